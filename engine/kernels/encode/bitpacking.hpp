#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace lance::encode {

// Format 2.1, bit-packing: 1024 values per block, transposed so that neighbouring lanes pack in parallel.
inline constexpr size_t kPackedBlock = 1024;

// Bit width of the widest of `count` values.
template <typename T>
unsigned packed_width(const T* values, size_t count) {
  T all = 0;
  for (size_t i = 0; i < count; ++i) all |= values[i];
  return static_cast<unsigned>(std::bit_width(all));
}

// Packs one block of 1024 values, none wider than `width` bits, into width * 1024 / bits(T) words.
// The shifts are the same for a whole row of lanes, so that the inner loops vectorise for every width.
template <typename T>
void pack_block(const T* values, unsigned width, T* words) {
  constexpr unsigned kBits = sizeof(T) * 8;
  constexpr unsigned kLanes = kPackedBlock / kBits;
  constexpr unsigned kOrder[8] = {0, 4, 2, 6, 1, 5, 3, 7};
  if (width == 0) return;
  if (width == kBits) {
    for (unsigned row = 0; row < kBits; ++row)
      std::memcpy(words + row * kLanes, values + kOrder[row / 8] * 16 + (row % 8) * 128, kLanes * sizeof(T));
    return;
  }
  for (unsigned row = 0; row < kBits; ++row) {
    const T* in = values + kOrder[row / 8] * 16 + (row % 8) * 128;
    const unsigned bit = row * width;
    const unsigned shift = bit % kBits;
    T* out = words + (bit / kBits) * kLanes;
    if (shift == 0) {
      for (unsigned lane = 0; lane < kLanes; ++lane) out[lane] = in[lane];
    } else {
      for (unsigned lane = 0; lane < kLanes; ++lane) out[lane] |= static_cast<T>(in[lane] << shift);
      if (shift + width > kBits) {
        const unsigned rest = kBits - shift;
        T* next = out + kLanes;
        for (unsigned lane = 0; lane < kLanes; ++lane) next[lane] = static_cast<T>(in[lane] >> rest);
      }
    }
  }
}

}  // namespace lance::encode
