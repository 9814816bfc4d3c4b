#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

namespace lance {

// Writes decimals of 128 bits as 64 bits. Whether all of them fit; those of nulls count too.
inline bool narrow_values(const uint8_t* from, uint8_t* to, uint64_t count) {
  constexpr uint64_t kBlock = 64;
  uint64_t excess = 0;
  for (uint64_t begin = 0; begin < count; begin += kBlock) {
    const uint64_t end = std::min(count, begin + kBlock);
    uint64_t words[2 * kBlock], low[kBlock];
    std::memcpy(words, from + 16 * begin, 16 * (end - begin));
    for (uint64_t i = 0; i < end - begin; ++i) {
      low[i] = words[2 * i];
      excess |= words[2 * i + 1] ^ static_cast<uint64_t>(static_cast<int64_t>(low[i]) >> 63);
    }
    std::memcpy(to + 8 * begin, low, 8 * (end - begin));
  }
  return excess == 0;
}

}  // namespace lance
