#pragma once

#include "encode/levels.hpp"
#include "encode/output.hpp"

namespace lance::encode {

// Copies fixed-width values, giving each null slot the value before it: what is under a null is undefined,
// and repeating a neighbour is the cheapest choice in every encoding. `bits` is a multiple of 8.
Output fill_nulls(const Bytes& values, uint64_t bits, uint64_t offset, const Levels& levels);

}  // namespace lance::encode
