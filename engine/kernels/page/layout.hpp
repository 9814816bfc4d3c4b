#pragma once

#include <string>
#include <vector>

#include "core/protobuf.hpp"
#include "decode/page.hpp"

namespace lance {

// The page layouts of versions 2.1 and 2.2: what a `PageLayout` message says. Their table is in layout.cpp.
// Throws CorruptData or Unsupported.
PagePtr open_layout(const Message& layout, uint64_t rows, std::vector<Range> buffers);
// Layout and encodings in one line, such as "mini-block(fsst(variable))".
std::string describe_layout(const Message& layout);

}  // namespace lance
