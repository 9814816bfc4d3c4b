#pragma once

#include <cstdint>

namespace lance {

inline constexpr unsigned kTestedAtOnce = 64;
inline constexpr unsigned kSearchedAtOnce = 512;

// One instruction set's tests of 64 unaligned values, one byte each for the outcome.
template <typename T>
using InRange = void (*)(const uint8_t* values, T low, T span, uint8_t* out);
template <typename T>
using IsAny = void (*)(const uint8_t* values, const T* wanted, unsigned count, uint8_t* out);

// Whether any of kSearchedAtOnce unaligned values passes.
template <typename T>
using HoldsRange = bool (*)(const uint8_t* values, T low, T span);

// One byte each for the bit of `marks` that each of kTestedAtOnce unaligned codes stands for; false where a
// code is not below `size`, at most 64.
template <typename T>
using IsMarked = bool (*)(const uint8_t* codes, uint64_t marks, T size, uint8_t* out);

template <template <typename> typename Test>
struct PerWidth {
  Test<uint8_t> u8;
  Test<uint16_t> u16;
  Test<uint32_t> u32;
  Test<uint64_t> u64;

  template <typename T>
  Test<T> of() const {
    if constexpr (sizeof(T) == 1)
      return u8;
    else if constexpr (sizeof(T) == 2)
      return u16;
    else if constexpr (sizeof(T) == 4)
      return u32;
    else
      return u64;
  }
};

struct RangeTests {
  PerWidth<InRange> in_range;  // low <= value <= low + span, in unsigned arithmetic
  PerWidth<IsAny> is_any;
  PerWidth<HoldsRange> holds_range;
  PerWidth<IsMarked> is_marked;
};

// Those of the instruction set that `unpack_table` uses.
const RangeTests& range_tests();

}  // namespace lance
