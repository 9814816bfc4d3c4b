#pragma once

#include <cstdint>
#include <cstring>

namespace lance {

// FastLanes blocks: 1024 values of T bits packed to W bits, transposed over 1024/T lanes (format 2.1,
// bit-packing).
inline constexpr uint32_t kBlockValues = 1024;

// Order of the groups of eight rows inside a block.
inline constexpr uint32_t kRowGroupOrder[8] = {0, 4, 2, 6, 1, 5, 3, 7};

// One instruction set's kernels. `packed` needs no alignment; `out` takes 1024 values.
struct UnpackTable {
  const char* level;
  void (*u8)(const uint8_t* packed, unsigned width, uint8_t* out);
  void (*u16)(const uint8_t* packed, unsigned width, uint16_t* out);
  void (*u32)(const uint8_t* packed, unsigned width, uint32_t* out);
  void (*u64)(const uint8_t* packed, unsigned width, uint64_t* out);
};

// The fastest level of this processor, or the one that LANCE_SQL_SIMD names (baseline, avx2, avx512).
const UnpackTable& unpack_table();
// A certain level, for tests; nullptr where the processor lacks it.
const UnpackTable* unpack_table_at(const char* level);

template <typename T>
inline void unpack_block(const UnpackTable& table, const uint8_t* packed, unsigned width, T* out) {
  if constexpr (sizeof(T) == 1)
    table.u8(packed, width, out);
  else if constexpr (sizeof(T) == 2)
    table.u16(packed, width, out);
  else if constexpr (sizeof(T) == 4)
    table.u32(packed, width, out);
  else
    table.u64(packed, width, out);
}

// One value of a block without touching the rest.
template <typename T>
inline T unpack_one(const uint8_t* packed, unsigned width, uint32_t index) {
  constexpr unsigned bits = sizeof(T) * 8;
  constexpr uint32_t lanes = kBlockValues / bits;
  if (width == 0) return 0;
  // index = order[row / 8] * 16 + (row % 8) * 128 + lane, and the groups of eight rows are `lanes` values
  // apart.
  uint32_t rest = index % 128;
  uint32_t lane = rest % lanes;
  uint32_t group = kRowGroupOrder[(rest - lane) / 16];  // this order is its own inverse
  uint32_t bit = (group * 8 + index / 128) * width;
  uint32_t word = bit / bits;
  unsigned shift = bit % bits;
  T low;
  std::memcpy(&low, packed + (word * lanes + lane) * sizeof(T), sizeof(T));
  T value = static_cast<T>(low >> shift);
  if (shift + width > bits) {
    T high;
    std::memcpy(&high, packed + ((word + 1) * lanes + lane) * sizeof(T), sizeof(T));
    value = static_cast<T>(value | static_cast<T>(high << (bits - shift)));
  }
  return width == bits ? value : static_cast<T>(value & ((T{1} << width) - 1));
}

}  // namespace lance
