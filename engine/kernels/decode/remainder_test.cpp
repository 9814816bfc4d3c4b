// Tests of the remainders of whole numbers, as in `id % 100 = 3`.
#include <algorithm>
#include <array>
#include <stdexcept>

#include "decode/value_test.hpp"

namespace lance {
namespace {

// Remainders are rounded towards zero, as in SQL: they have the sign of the value.
template <typename T>
class RemainderTest : public ValueTest {
 public:
  RemainderTest(uint64_t divisor, int64_t low, int64_t high, bool negate)
      : divisor_(divisor), inverse_(UINT64_MAX / divisor), low_(low), high_(high), negate_(negate) {
    // Remainders of values that are not negative are in this range.
    low = std::max<int64_t>(low, 0);
    high = std::min<int64_t>(high, UINT32_MAX);
    small_ = divisor <= UINT32_MAX && low <= high;
    if (small_) {
      small_inverse_ = UINT32_MAX / static_cast<uint32_t>(divisor);
      small_low_ = static_cast<uint32_t>(low);
      small_span_ = static_cast<uint32_t>(high - low);
    }
  }

  bool fits(const LeafType& type) const override {
    return type.kind == LeafKind::kFixed && type.width == sizeof(T) && type.dims.empty();
  }
  bool tests_fixed() const override { return true; }
  void test(const LeafValues& values, Bits& out) const override {
    test_fixed(values.aliased.data ? values.aliased.data : values.data.data(), values.length(), out);
  }
  void test_fixed(const uint8_t* at, uint64_t length, Bits& out) const override {
    auto one = [=, this](uint64_t i) { return passes(load<T>(at + i * sizeof(T))); };
    append_blocks(
        out, length, negate_,
        [&](uint64_t i, uint8_t* bytes) {
          if (small_ && many(at + i * sizeof(T), bytes)) return;
          for (uint64_t k = 0; k < 64; ++k) bytes[k] = one(i + k);
        },
        one);
  }

 private:
  bool passes(T value) const {
    const auto wide = static_cast<int64_t>(value);
    const uint64_t sign = static_cast<uint64_t>(wide >> 63);
    const uint64_t size = (static_cast<uint64_t>(wide) ^ sign) - sign;
    // The product with the rounded inverse is the quotient or one less.
    const auto quotient = static_cast<uint64_t>(static_cast<unsigned __int128>(size) * inverse_ >> 64);
    uint64_t rest = size - quotient * divisor_;
    rest -= rest >= divisor_ ? divisor_ : 0;
    const auto remainder = static_cast<int64_t>((rest ^ sign) - sign);
    return remainder >= low_ && remainder <= high_;
  }

  // 64 values that fit 32 bits and are not negative, which vectors can divide; false if some does not.
  bool many(const uint8_t* at, uint8_t* bytes) const {
    std::array<uint32_t, 64> values;
    uint64_t high = 0;
    for (uint64_t k = 0; k < 64; ++k) {
      const auto value = static_cast<uint64_t>(static_cast<int64_t>(load<T>(at + k * sizeof(T))));
      high |= value;
      values[k] = static_cast<uint32_t>(value);
    }
    if (high > UINT32_MAX) return false;
    const auto divisor = static_cast<uint32_t>(divisor_);
    const uint64_t inverse = small_inverse_;
    for (uint64_t k = 0; k < 64; ++k) {
      const auto quotient = static_cast<uint32_t>(values[k] * inverse >> 32);
      uint32_t rest = values[k] - quotient * divisor;
      rest -= rest >= divisor ? divisor : 0;
      bytes[k] = rest - small_low_ <= small_span_;
    }
    return true;
  }

  uint64_t divisor_;
  uint64_t inverse_;
  int64_t low_, high_;
  bool negate_;
  bool small_ = false;
  uint32_t small_inverse_ = 0;
  uint32_t small_low_ = 0;
  uint32_t small_span_ = 0;
};

template <typename Signed, typename Unsigned>
ValueTestPtr remainder_test(bool is_signed, uint64_t divisor, int64_t low, int64_t high, bool negate) {
  if (is_signed) return std::make_shared<RemainderTest<Signed>>(divisor, low, high, negate);
  return std::make_shared<RemainderTest<Unsigned>>(divisor, low, high, negate);
}

}  // namespace

ValueTestPtr make_integer_remainder(unsigned bits, bool is_signed, uint64_t divisor, int64_t low,
                                    int64_t high, bool negate) {
  if (divisor == 0) throw std::invalid_argument("there are no remainders of a division by zero");
  switch (bits) {
    case 8:
      return remainder_test<int8_t, uint8_t>(is_signed, divisor, low, high, negate);
    case 16:
      return remainder_test<int16_t, uint16_t>(is_signed, divisor, low, high, negate);
    case 32:
      return remainder_test<int32_t, uint32_t>(is_signed, divisor, low, high, negate);
    case 64:
      if (!is_signed) break;
      return std::make_shared<RemainderTest<int64_t>>(divisor, low, high, negate);
    default:
      break;
  }
  throw std::invalid_argument("remainders are tested of integers that 64 bits with a sign can hold");
}

}  // namespace lance
