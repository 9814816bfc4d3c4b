#include "decode/value_test.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <string_view>
#include <unordered_set>

#include "decode/dictionary.hpp"
#include "decode/range_test.hpp"

namespace lance {

Remembered<std::vector<uint8_t>>::Pointer ValueTest::entries(const Dictionary& dictionary,
                                                             const LeafType& type) const {
  return entries_.of(dictionary.identity(), [&] {
    LeafValues values(type);
    dictionary.append_to(values);
    Bits bits;
    test(values, bits);
    auto found = std::make_unique<std::vector<uint8_t>>(dictionary.size());
    for (uint64_t i = 0; i < dictionary.size(); ++i) (*found)[i] = get_bit(bits.data(), i);
    return found;
  });
}

namespace {

bool is_fixed(const LeafType& type, size_t width) {
  return type.kind == LeafKind::kFixed && type.width == width && type.dims.empty();
}

const uint8_t* fixed_values(const LeafValues& values) {
  return values.aliased.data ? values.aliased.data : values.data.data();
}

template <typename T>
struct UnsignedOf {
  using type = std::make_unsigned_t<T>;
};
template <>
struct UnsignedOf<__int128> {
  using type = unsigned __int128;
};

// A test of fixed-width values.
class FixedTest : public ValueTest {
 public:
  bool tests_fixed() const override { return true; }
  void test(const LeafValues& values, Bits& out) const override {
    test_fixed(fixed_values(values), values.length(), out);
  }
};

// Appends the outcome of the tests block by block: `none(i)` says whether none of `Block` values from the
// i-th on is found, which is mostly true and quick to find out; `some(i, count)` appends tests.
template <unsigned Block, typename None, typename Some>
void append_sparse(Bits& out, uint64_t count, bool negate, None none, Some some) {
  uint64_t i = 0;
  for (; i + Block <= count; i += Block)
    if (none(i))
      out.append_same(negate, Block);
    else
      some(i, Block);
  if (i < count) some(i, count - i);
}

template <typename T>
class IntegerRange : public FixedTest {
 public:
  IntegerRange(T low, T high, bool negate) : low_(low), high_(high), negate_(negate) {}
  bool fits(const LeafType& type) const override { return is_fixed(type, sizeof(T)); }
  void test_fixed(const uint8_t* at, uint64_t length, Bits& out) const override {
    const bool negate = negate_;
    if (low_ > high_) return out.append_same(negate, length);
    // One comparison: what is below the range wraps around to the top.
    const auto low = static_cast<Unsigned>(low_);
    const auto span = static_cast<Unsigned>(static_cast<Unsigned>(high_) - low);
    auto one = [=](uint64_t i) {
      return static_cast<Unsigned>(load<Unsigned>(at + i * sizeof(T)) - low) <= span;
    };
    if constexpr (sizeof(T) <= 8) {
      auto in_range = range_tests().in_range.of<Unsigned>();
      auto many = [=](uint64_t i, uint8_t* bytes) { in_range(at + i * sizeof(T), low, span, bytes); };
      auto holds = range_tests().holds_range.of<Unsigned>();
      append_sparse<kSearchedAtOnce>(
          out, length, negate, [=](uint64_t i) { return !holds(at + i * sizeof(T), low, span); },
          [&](uint64_t i, uint64_t count) {
            append_blocks(
                out, count, negate, [=](uint64_t k, uint8_t* bytes) { many(i + k, bytes); },
                [=](uint64_t k) { return one(i + k); });
          });
    } else {
      append_tests(out, length, [=](uint64_t i) { return one(i) != negate; });
    }
  }

 private:
  using Unsigned = typename UnsignedOf<T>::type;

  T low_, high_;
  bool negate_;
};

template <typename T>
class FloatRange : public FixedTest {
 public:
  FloatRange(T low, T high, bool nan, bool negative_nan, bool negate)
      : low_(low), high_(high), nan_(nan), negative_nan_(negative_nan), negate_(negate) {}
  bool fits(const LeafType& type) const override { return is_fixed(type, sizeof(T)); }
  void test_fixed(const uint8_t* at, uint64_t length, Bits& out) const override {
    if (nan_ != negative_nan_) {
      append_tests(out, length, [at, this](uint64_t i) {
        T value = load<T>(at + i * sizeof(T));
        bool nan = (std::signbit(value) ? negative_nan_ : nan_) & (value != value);
        return (((value >= low_) & (value <= high_)) | nan) != negate_;
      });
      return;
    }
    append_tests(out, length, [at, this](uint64_t i) {
      T value = load<T>(at + i * sizeof(T));
      return (((value >= low_) & (value <= high_)) | (nan_ & (value != value))) != negate_;
    });
  }

 private:
  T low_, high_;
  bool nan_, negative_nan_, negate_;
};

// Most values are excluded by a table of marks that is nearly empty, many at once without a branch; where
// that leaves some, a few wanted values are compared one by one, many are looked up.
template <typename T>
class IntegerSet : public FixedTest {
 public:
  IntegerSet(std::vector<T> values, bool negate) : values_(std::move(values)), negate_(negate) {
    shift_ = 64 - 4;
    while ((uint64_t{1} << (64 - shift_)) < 4 * values_.size()) --shift_;
    slots_.resize(uint64_t{1} << (64 - shift_));
    used_.resize(slots_.size());
    for (T value : values_) {
      size_t slot = slot_of(value);
      while (used_[slot] && slots_[slot] != value) slot = (slot + 1) & (slots_.size() - 1);
      slots_[slot] = value;
      used_[slot] = 1;
    }
    while (mark_shift_ > 64 - kMostMarks && (uint64_t{1} << (64 - mark_shift_)) < kRoom * values_.size())
      --mark_shift_;
    marks_.resize(uint64_t{1} << (64 - mark_shift_));
    for (T value : values_) marks_[mark_of(value)] = 1;
  }
  bool fits(const LeafType& type) const override { return is_fixed(type, sizeof(T)); }
  void test_fixed(const uint8_t* at, uint64_t length, Bits& out) const override {
    auto one = [=, this](uint64_t i) { return holds(load<T>(at + i * sizeof(T))); };
    auto none = [=, this](uint64_t i) {
      const uint8_t* marks = marks_.data();
      uint8_t marked = 0;
      for (uint64_t k = 0; k < kTestedAtOnce; ++k)
        marked |= marks[mark_of(load<T>(at + (i + k) * sizeof(T)))];
      return !marked;
    };
    auto is_any = range_tests().is_any.of<T>();
    append_sparse<kTestedAtOnce>(out, length, negate_, none, [&](uint64_t i, uint64_t count) {
      if (values_.empty() || values_.size() > kFew)
        return append_tests(out, count, [=, this](uint64_t k) { return one(i + k) != negate_; });
      append_blocks(
          out, count, negate_,
          [=, this](uint64_t k, uint8_t* bytes) {
            is_any(at + (i + k) * sizeof(T), values_.data(), static_cast<unsigned>(values_.size()), bytes);
          },
          [=](uint64_t k) { return one(i + k); });
    });
  }

 private:
  static constexpr size_t kFew = 16;      // up to this many, comparing with each is faster than looking up
  static constexpr uint64_t kRoom = 512;  // marks for each value
  static constexpr unsigned kMostMarks = 16;  // as a power of two, so that they fit the cache

  size_t slot_of(T value) const {
    return static_cast<size_t>((static_cast<uint64_t>(value) * 0x9E3779B97F4A7C15u) >> shift_);
  }
  size_t mark_of(T value) const {
    return static_cast<size_t>((static_cast<uint64_t>(value) * 0x9E3779B97F4A7C15u) >> mark_shift_);
  }
  bool holds(T value) const {
    for (size_t slot = slot_of(value); used_[slot]; slot = (slot + 1) & (slots_.size() - 1))
      if (slots_[slot] == value) return true;
    return false;
  }

  std::vector<T> values_;
  bool negate_;
  unsigned shift_;
  std::vector<T> slots_;
  std::vector<uint8_t> used_;
  unsigned mark_shift_ = 64 - 12;
  std::vector<uint8_t> marks_;
};

// Values that are close to one another, such as keys: one bit for each number between the least and the
// largest.
template <typename T>
class DenseIntegerSet : public FixedTest {
 public:
  // `values` are in [low, low + span] in unsigned arithmetic.
  DenseIntegerSet(const std::vector<T>& values, T low, uint64_t span, bool negate)
      : low_(low), span_(span), negate_(negate), bits_((span + 1) / 8 + 1) {
    for (T value : values) {
      const uint64_t place = static_cast<T>(value - low_);
      bits_[place / 8] |= static_cast<uint8_t>(1u << (place % 8));
    }
  }
  bool fits(const LeafType& type) const override { return is_fixed(type, sizeof(T)); }
  void test_fixed(const uint8_t* at, uint64_t length, Bits& out) const override {
    const uint8_t* bits = bits_.data();
    append_tests(out, length, [=, this](uint64_t i) {
      const uint64_t distance = static_cast<T>(load<T>(at + i * sizeof(T)) - low_);
      // After the last value there is a bit that no value has.
      const uint64_t place = std::min(distance, span_ + 1);
      return ((bits[place / 8] >> (place % 8)) & 1u) != static_cast<unsigned>(negate_);
    });
  }

 private:
  T low_;
  uint64_t span_;
  bool negate_;
  std::vector<uint8_t> bits_;
};

// Where the strings of decoded values are.
struct Strings {
  explicit Strings(const LeafValues& values)
      : bytes(values.data.data()), offsets(values.offsets.data()), width(values.type().offset_width()) {}
  std::string_view operator[](uint64_t i) const {
    uint64_t from = at(i), to = at(i + 1);
    return {reinterpret_cast<const char*>(bytes) + from, to - from};
  }
  uint64_t at(uint64_t i) const {
    return width == 4 ? load<uint32_t>(offsets + 4 * i) : load<uint64_t>(offsets + 8 * i);
  }
  const uint8_t* bytes;
  const uint8_t* offsets;
  unsigned width;
};

class StringSet : public ValueTest {
 public:
  StringSet(std::vector<std::string> values, bool negate) : values_(std::move(values)), negate_(negate) {
    for (const std::string& value : values_) set_.insert(value);
  }
  bool fits(const LeafType& type) const override { return type.variable() && type.dims.empty(); }
  void test(const LeafValues& values, Bits& out) const override {
    Strings strings(values);
    append_tests(out, values.length(), [&](uint64_t i) { return set_.contains(strings[i]) != negate_; });
  }

 private:
  std::vector<std::string> values_;
  bool negate_;
  std::unordered_set<std::string_view> set_;
};

template <typename T>
T from_bytes(const std::string& bytes) {
  if (bytes.size() != sizeof(T)) throw std::invalid_argument("a bound has another width than the values");
  return load<T>(bytes.data());
}

// What `make` gives for a zero of the unsigned type of that width.
template <typename Make>
ValueTestPtr with_unsigned(unsigned bits, Make make) {
  switch (bits) {
    case 8:
      return make(uint8_t{0});
    case 16:
      return make(uint16_t{0});
    case 32:
      return make(uint32_t{0});
    case 64:
      return make(uint64_t{0});
    default:
      throw std::invalid_argument("integers have 8, 16, 32, 64 or 128 bits");
  }
}

template <typename T>
ValueTestPtr integer_range(const std::string& low, const std::string& high, bool negate) {
  return std::make_shared<IntegerRange<T>>(from_bytes<T>(low), from_bytes<T>(high), negate);
}

template <typename T>
ValueTestPtr integer_set(const std::string& bytes, bool negate) {
  if (bytes.size() % sizeof(T)) throw std::invalid_argument("a list of values ends inside a value");
  std::vector<T> values(bytes.size() / sizeof(T));
  copy_bytes(values.data(), bytes.data(), bytes.size());
  constexpr size_t kMany = 64;            // fewer are compared or looked up faster
  constexpr uint64_t kBitsForEach = 256;  // so that the bits take little more than the values
  constexpr uint64_t kMostBits = uint64_t{1} << 28;
  if (values.size() >= kMany) {
    // The numbers may be signed, and then the negative ones follow the others.
    using Signed = std::make_signed_t<T>;
    auto less = [](T a, T b) { return static_cast<Signed>(a) < static_cast<Signed>(b); };
    auto [least, most] = std::minmax_element(values.begin(), values.end());
    auto [first, last] = std::minmax_element(values.begin(), values.end(), less);
    const bool is_signed = static_cast<T>(*last - *first) < static_cast<T>(*most - *least);
    const T low = is_signed ? *first : *least;
    const uint64_t span = static_cast<T>((is_signed ? *last : *most) - low);
    if (span < kMostBits && span / kBitsForEach < values.size())
      return std::make_shared<DenseIntegerSet<T>>(values, low, span, negate);
  }
  return std::make_shared<IntegerSet<T>>(std::move(values), negate);
}

}  // namespace

ValueTestPtr make_integer_range(unsigned bits, bool is_signed, const std::string& low,
                                const std::string& high, bool negate) {
  if (bits == 128) return integer_range<__int128>(low, high, negate);
  return with_unsigned(bits, [&]<typename T>(T) {
    return is_signed ? integer_range<std::make_signed_t<T>>(low, high, negate)
                     : integer_range<T>(low, high, negate);
  });
}

ValueTestPtr make_integer_set(unsigned bits, const std::string& values, bool negate) {
  if (bits == 128) throw std::invalid_argument("integers of a set have 8, 16, 32 or 64 bits");
  return with_unsigned(bits, [&]<typename T>(T) { return integer_set<T>(values, negate); });
}

ValueTestPtr make_float_range(unsigned bits, double low, double high, bool nan, bool negative_nan,
                              bool negate) {
  if (bits == 64) return std::make_shared<FloatRange<double>>(low, high, nan, negative_nan, negate);
  if (bits != 32) throw std::invalid_argument("floats have 32 or 64 bits");
  return std::make_shared<FloatRange<float>>(static_cast<float>(low), static_cast<float>(high), nan,
                                             negative_nan, negate);
}

ValueTestPtr make_string_set(std::vector<std::string> values, bool negate) {
  return std::make_shared<StringSet>(std::move(values), negate);
}

}  // namespace lance
