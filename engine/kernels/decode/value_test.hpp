#pragma once

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "core/bitmap.hpp"
#include "core/remembered.hpp"
#include "core/span.hpp"
#include "decode/leaf.hpp"

namespace lance {

class Dictionary;
class FsstTable;
class StringTest;

// A condition on the values of one column, tested while these are decoded, so that they need not be kept.
// Immutable except for what it remembers of dictionaries; threads may share it.
class ValueTest {
 public:
  virtual ~ValueTest() = default;
  // Whether values of this type can be tested.
  virtual bool fits(const LeafType& type) const = 0;
  // Appends to `out` whether each value passes; slots of null values give arbitrary bits.
  virtual void test(const LeafValues& values, Bits& out) const = 0;
  // Whether `test_fixed` can be called.
  virtual bool tests_fixed() const { return false; }
  // The same for fixed-width values that are one after the other; no alignment is needed.
  virtual void test_fixed(const uint8_t* /*values*/, uint64_t /*count*/, Bits& /*out*/) const {}
  // The test as one of strings, which may be tested without decoding them.
  virtual const StringTest* strings() const { return nullptr; }
  // One byte per entry of a dictionary: whether it passes.
  Remembered<std::vector<uint8_t>>::Pointer entries(const Dictionary& dictionary, const LeafType& type) const;

 private:
  mutable Remembered<std::vector<uint8_t>> entries_;
};

using ValueTestPtr = std::shared_ptr<const ValueTest>;

// Eight bytes of 0 or 1 become eight bits: the product moves byte k to bit 56 + k.
inline uint64_t pack_bytes(const uint8_t* bytes) {
  uint64_t word = 0;
  for (uint64_t j = 0; j < 8; ++j)
    word |= (load<uint64_t>(bytes + 8 * j) * 0x0102040810204080u >> 56) << (8 * j);
  return word;
}

// Appends `count` bits: `many(i, bytes)` tests 64 values from the i-th on, `one(i)` the i-th.
template <typename Many, typename One>
inline void append_blocks(Bits& out, uint64_t count, bool negate, Many many, One one) {
  const uint64_t flip = negate ? ~uint64_t{0} : 0;
  out.reserve(out.length() + count);
  uint64_t i = 0;
  for (; i + 64 <= count; i += 64) {
    alignas(64) std::array<uint8_t, 64> bytes;
    many(i, bytes.data());
    out.append_word(pack_bytes(bytes.data()) ^ flip, 64);
  }
  uint64_t word = 0;
  for (uint64_t j = 0; i + j < count; ++j) word |= static_cast<uint64_t>(one(i + j) != negate) << j;
  if (i < count) out.append_word(word, count - i);
}

// Appends `count` bits: what `test(i)`, 0 or 1, gives for each i.
template <typename Test>
inline void append_tests(Bits& out, uint64_t count, Test test) {
  out.reserve(out.length() + count);
  uint64_t i = 0;
  for (; i + 64 <= count; i += 64) {
    alignas(64) std::array<uint8_t, 64> bytes;
    for (uint64_t j = 0; j < 64; ++j) bytes[j] = static_cast<uint8_t>(test(i + j));
    out.append_word(pack_bytes(bytes.data()), 64);
  }
  uint64_t word = 0;
  for (uint64_t j = 0; i + j < count; ++j) word |= static_cast<uint64_t>(test(i + j)) << j;
  if (i < count) out.append_word(word, count - i);
}

// Strings that hold some pieces in this order and apart, the first at their start or the last at their end if
// anchored. One piece that is anchored at both ends is equality. As an automaton over bytes, it can also run
// over the symbols of FSST. With `ignore_case`, the case of ASCII letters does not matter.
class StringTest : public ValueTest {
 public:
  StringTest(std::vector<std::string> pieces, bool at_start, bool at_end, bool negate, bool ignore_case);

  bool fits(const LeafType& type) const override { return type.variable() && type.dims.empty(); }
  void test(const LeafValues& values, Bits& out) const override;
  const StringTest* strings() const override { return this; }

  // Tests `count` strings that are between consecutive `offsets` of `bytes`, which the caller has checked.
  template <typename Offset>
  void test_plain(const uint8_t* bytes, const uint8_t* offsets, uint64_t count, Bits& out) const;
  // The same for strings coded with `table`.
  template <typename Offset>
  void test_coded(const FsstTable& table, const uint8_t* bytes, const uint8_t* offsets, uint64_t count,
                  Bits& out) const;

 private:
  using Row = std::array<uint8_t, 256>;

  Remembered<std::vector<Row>>::Pointer symbols_of(const FsstTable& table) const;
  bool accepts(const uint8_t* bytes, uint64_t size) const;

  std::vector<std::string> pieces_;
  bool at_start_;
  bool at_end_;
  bool negate_;
  bool ignore_case_;
  std::vector<Row> next_;
  uint8_t accept_ = 0;
  int dead_ = -1;  // the state that nothing leaves, if there is one
  bool absorbing_ = false;
  mutable Remembered<std::vector<Row>> coded_;
};

// Integers, or what is stored as such, of `bits` (8 to 128) that are in [low, high]; little-endian bytes.
ValueTestPtr make_integer_range(unsigned bits, bool is_signed, const std::string& low,
                                const std::string& high, bool negate);
// Integers of 8 to 64 bits that are one of `values`, one after the other.
ValueTestPtr make_integer_set(unsigned bits, const std::string& values, bool negate);
// Floats of 32 or 64 bits in [low, high], or NaN if `nan`.
ValueTestPtr make_float_range(unsigned bits, double low, double high, bool nan, bool negative_nan,
                              bool negate);
// Strings that are one of `values`.
ValueTestPtr make_string_set(std::vector<std::string> values, bool negate);

}  // namespace lance
