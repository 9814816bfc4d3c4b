#pragma once

#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "core/memory.hpp"
#include "core/span.hpp"

namespace lance::jsonb {

// A member of objects, and which members of its value are wanted; all if none is named.
struct Member {
  std::string name;
  std::vector<Member> below;
};
using Members = std::vector<Member>;

// Appends the text of a binary JSON value, without white space; of objects, only the `wanted` members if any
// are named, and other values completely. `Invalid` where the value contradicts itself.
void append_text(Span value, const Members& wanted, Bytes& text);

// A value without children. The path are the names of the members that lead to it, with dots between them;
// arrays add nothing. The content is a string itself, or what other values are: number,1.5 or bool,true.
struct Leaf {
  std::string_view path, content;
  bool is_string;
};

// Calls `visit` for the leaves of a binary JSON value, in order; `Invalid` as of `append_text`.
void each_leaf(Span value, const std::function<void(const Leaf&)>& visit);

}  // namespace lance::jsonb
