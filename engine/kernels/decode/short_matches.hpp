#pragma once

#include "core/span.hpp"

namespace lance {

// Expands an LZ4 block in which a few new bytes mostly alternate with a few bytes of a value before, as in
// columns of numbers of 8 or 16 bytes: faster than the library there, which reads what it has just written in
// other pieces. False, with anything in `out`, where the block is of another kind or damaged: then the
// library has to expand it.
bool expand_short_matches(Span input, uint8_t* out, uint64_t size);

}  // namespace lance
