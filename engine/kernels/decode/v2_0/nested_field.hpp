#pragma once

#include <vector>

#include "decode/column.hpp"
#include "decode/v2_0/array_decoder.hpp"

namespace lance::v2_0 {

// One page of the offsets column of a list (format 2.0, list).
struct ListPage {
  uint64_t rows = 0;
  ArrayDecoderPtr offsets;
  uint64_t null_adjustment = 0;
  uint64_t num_items = 0;
};

// A list: an offsets column in the space of its rows, and items in their own space. Offsets are kept
// once they are fetched: a row then costs a request for its items only, however deep these are.
FieldPtr make_list_field(std::string name, std::vector<ListPage> pages, std::shared_ptr<const Source> source,
                         FieldPtr items, bool large);

// Strings that are stored as lists of bytes, as early writers did.
FieldPtr make_string_field(FieldPtr lists);

// A struct: its children share its rows; 2.0 cannot say that a struct is null.
FieldPtr make_struct_field(std::vector<FieldPtr> children);

}  // namespace lance::v2_0
