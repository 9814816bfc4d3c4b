#pragma once

#include "core/memory.hpp"
#include "core/span.hpp"

namespace lance::jsonb {

// Appends the text of a binary JSON value, without white space. `Invalid` where the value contradicts itself.
void append_text(Span value, Bytes& text);

}  // namespace lance::jsonb
