#pragma once

#include "decode/v2_0/array_decoder.hpp"

namespace lance::legacy {

// Strings after the positions in the file where they begin, the last one being an end (format 0.1,
// var-binary). No page stores nulls: `empty_is_null` makes them of empty values.
v2_0::ArrayDecoderPtr make_var_binary(Range positions, bool empty_is_null);

// Ends of lists as 64-bit integers, from 32-bit or 64-bit offsets, one more than lists (format 0.1,
// list).
v2_0::ArrayDecoderPtr make_list_ends(Range offsets, unsigned bits);

}  // namespace lance::legacy
