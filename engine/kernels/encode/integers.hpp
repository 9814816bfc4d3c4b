#pragma once

#include <cstdint>
#include <utility>

#include "encode/input.hpp"

namespace lance::encode {

// Calls `visit` with a zero of the unsigned type of that width: 8, 16, 32 or 64 bits.
template <typename Visit>
decltype(auto) with_integer(uint64_t bits, Visit visit) {
  switch (bits) {
    case 8:
      return visit(uint8_t{0});
    case 16:
      return visit(uint16_t{0});
    case 32:
      return visit(uint32_t{0});
    case 64:
      return visit(uint64_t{0});
    default:
      throw InvalidInput("this encoding takes values of 8, 16, 32 or 64 bits");
  }
}

// Arrow buffers may start anywhere when they come from another process; copies make them safe to address.
template <typename T>
const T* typed(const Bytes& bytes, uint64_t offset) {
  const uint8_t* at = bytes.data.data() + offset * sizeof(T);
  require(reinterpret_cast<uintptr_t>(at) % alignof(T) == 0, "values are not aligned to their width");
  return reinterpret_cast<const T*>(at);
}

// What the choice of an encoding for integers needs to know.
struct IntegerStatistics {
  uint64_t packed_bytes = 0;  // in-line bit-packing
  uint64_t run_bytes = 0;     // run lengths; UINT64_MAX when they cannot pay off
};
IntegerStatistics integer_statistics(const Bytes& bytes, uint64_t bits, uint64_t offset, uint64_t count);

}  // namespace lance::encode
