#pragma once

#include "decode/page.hpp"

namespace lance {

// The decoder of a page of version 2.1 or 2.2 that a serialised `PageLayout` describes: the same as the
// modules of encodings make of it, without the interpreter. Throws NotUnderstood, or CorruptData, for what
// these have to look at.
PagePtr make_page(Span layout, uint64_t rows, std::vector<Range> buffers);

}  // namespace lance
