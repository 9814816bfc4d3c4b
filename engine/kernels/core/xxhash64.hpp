#pragma once

#include <cstdint>
#include <span>

namespace lance {

// XXH64 of `data` with seed 0, by its public specification.
uint64_t xxhash64(std::span<const uint8_t> data);

}  // namespace lance
