#pragma once

#include <functional>
#include <string_view>

#include "core/memory.hpp"
#include "core/span.hpp"

namespace lance::jsonb {

// Appends the text of a binary JSON value, without white space. `Invalid` where the value contradicts itself.
void append_text(Span value, Bytes& text);

// A value without children. The path are the names of the members that lead to it, with dots between them;
// arrays add nothing. The content is a string itself, or what other values are: number,1.5 or bool,true.
struct Leaf {
  std::string_view path, content;
  bool is_string;
};

// Calls `visit` for the leaves of a binary JSON value, in order; `Invalid` as of `append_text`.
void each_leaf(Span value, const std::function<void(const Leaf&)>& visit);

}  // namespace lance::jsonb
