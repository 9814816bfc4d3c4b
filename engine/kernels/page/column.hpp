#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/span.hpp"
#include "decode/page.hpp"
#include "decode/v2_0/nested_field.hpp"
#include "page/array.hpp"

namespace lance {

// From the metadata of a column, as files have it, to its pages. What nothing here can read is Unsupported,
// what is invalid CorruptData; both name the page and the encoding at fault.

// One page, not looked into: the name of the message that describes it, the bytes of the message, and the
// places of its buffers.
struct StoredPage {
  uint64_t number = 0;
  uint64_t rows = 0;
  uint64_t priority = 0;
  std::string_view name;
  Span message;
  std::vector<Range> buffers;
};

// A column: the message `name` that describes it, its pages in row order, and the positions of its buffers.
struct StoredColumn {
  std::string_view name;
  Span message;
  std::vector<StoredPage> pages;
  std::vector<Range> buffers;
};

// What the metadata of a column say, of a file of `file_size` bytes; points into `metadata`.
StoredColumn stored_column(Span metadata, uint64_t file_size);

// Opens a page whose description is not of the format; null if it can't.
using OpenCustom = std::function<PagePtr(const StoredPage&)>;

// The pages of a column of version 2.1 or 2.2, of a file of `file_size` bytes.
std::vector<PagePtr> open_pages(Span metadata, uint64_t file_size, const OpenCustom& custom);

// Version 2.0: the pages with rows of a column of values of `type`.
std::vector<PagePtr> open_array_pages(Span metadata, uint64_t file_size, const LeafType& type,
                                      bool is_dictionary, bool is_blob, const OpenCustom& custom);
// Version 2.0: the pages with rows of a column of offsets.
std::vector<v2_0::ListPage> open_list_pages(Span metadata, uint64_t file_size);
// Version 2.0: what the first page of a column holds, such as "list"; "" for a custom encoding, nothing
// where there is no page.
std::optional<std::string> array_column_kind(Span metadata, uint64_t file_size);

// What a page holds in one line: the message `name` of any version, or the name of one that is not known.
std::string describe_page(std::string_view name, Span message);

}  // namespace lance
