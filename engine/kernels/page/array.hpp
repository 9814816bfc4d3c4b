#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/protobuf.hpp"
#include "decode/v2_0/array_decoder.hpp"

namespace lance::v2_0 {

// The array encodings of version 2.0: what an `ArrayEncoding` message says. Their table is in array.cpp. All
// of these throw CorruptData or Unsupported.

// What they need in addition to their message: the buffers that they refer to, and the schema.
// `is_dictionary` says whether the column has a dictionary type, as opposed to one that is only stored so.
struct ArrayContext {
  std::vector<Range> page_buffers;
  std::vector<Range> column_buffers;
  LeafType type;
  bool is_dictionary = false;
};

ArrayDecoderPtr array_decoder(const Message& encoding, const ArrayContext& context);
// A page of a leaf column.
PagePtr open_array(const Message& encoding, uint64_t rows, const ArrayContext& context);
// A page of a blob column, whose encoding holds descriptors unless it holds the blobs themselves.
PagePtr open_blob(const Message& encoding, uint64_t rows, const ArrayContext& context);
// The message of a list encoding; nothing where the encoding is another.
std::optional<Message> list_of(const Message& encoding);
// The name of the outermost encoding in the format, such as "packed_struct"; "" for one that is not known.
std::string array_kind(const Message& encoding);
// Name and nested encodings, such as "nullable(flat64)".
std::string describe_array(const Message& encoding);

}  // namespace lance::v2_0
