#pragma once

#include <cstdint>
#include <type_traits>

#include "core/span.hpp"

namespace lance {

// Whether `count` + 1 offsets never decrease; also false if one has its highest bit set, for which no buffer
// is long enough. If so, checking the bounds of the first and the last one is enough.
//
// A loop without branches: a step back, or around, shows in the highest bit of a difference or of an offset.
template <typename Offset>
inline bool offsets_ascend(const uint8_t* offsets, uint64_t count) {
  static_assert(std::is_unsigned_v<Offset>);
  Offset seen = load<Offset>(offsets);
  for (uint64_t i = 0; i < count; ++i) {
    auto from = load<Offset>(offsets + i * sizeof(Offset));
    auto to = load<Offset>(offsets + (i + 1) * sizeof(Offset));
    seen |= to | static_cast<Offset>(to - from);
  }
  return seen >> (sizeof(Offset) * 8 - 1) == 0;
}

}  // namespace lance
