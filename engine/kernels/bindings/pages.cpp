// Pages: opened from their descriptions in files, or combined for encodings that are not of the format.
#include <nanobind/nanobind.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "bindings/bindings.hpp"
#include "bindings/leaf_types.hpp"
#include "decode/legacy/array_decoder.hpp"
#include "decode/v2_0/array_decoder.hpp"
#include "decode/v2_0/nested_field.hpp"
#include "file/footer.hpp"
#include "page/column.hpp"
#include "page/compressive.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace lance {

namespace {

using RangeList = std::vector<std::pair<uint64_t, uint64_t>>;
using ListPages = std::vector<std::tuple<uint64_t, v2_0::ArrayDecoderPtr, uint64_t, uint64_t>>;

Span span_of(const nb::bytes& bytes) {
  return {static_cast<const uint8_t*>(bytes.data()), bytes.size()};
}

// Opens a page with a custom encoding; None if no decoder is registered: called with its number, the name
// and the bytes of the message, its rows, buffers and priority.
using Custom = nb::typed<nb::callable, std::optional<PagePtr>(
                                           uint64_t, nb::str, nb::bytes, uint64_t,
                                           nb::typed<nb::list, std::pair<uint64_t, uint64_t>>, uint64_t)>;

RangeList places_of(const std::vector<Range>& ranges) {
  RangeList places;
  for (const Range& range : ranges) places.emplace_back(range.offset, range.length);
  return places;
}

nb::str text_of(std::string_view name) {
  return nb::steal<nb::str>(
      PyUnicode_DecodeUTF8(name.data(), static_cast<Py_ssize_t>(name.size()), "replace"));
}

nb::bytes bytes_of(Span message) {
  return nb::bytes(message.data, message.size);
}

OpenCustom calling(const Custom& custom) {
  return [custom](const StoredPage& page) {
    nb::object found = custom(page.number, text_of(page.name), bytes_of(page.message), page.rows,
                              places_of(page.buffers), page.priority);
    return found.is_none() ? nullptr : nb::cast<PagePtr>(found);
  };
}

using FooterNumbers = std::tuple<uint64_t, uint64_t, uint32_t, uint32_t, std::string>;
using PageNumbers = std::tuple<uint64_t, uint64_t, nb::str, nb::bytes, RangeList>;
using ColumnNumbers = std::tuple<nb::str, nb::bytes, std::vector<PageNumbers>, RangeList>;

void bind_container(nb::module_& m) {
  m.def(
      "parse_footer",
      [](const nb::bytes& tail, uint64_t file_size) {
        const Footer footer = parse_footer(span_of(tail), file_size);
        return FooterNumbers{footer.column_table, footer.global_table, footer.num_global_buffers,
                             footer.num_columns, footer.version};
      },
      "tail"_a, "file_size"_a,
      "From the last bytes of a file: positions of its tables of columns and of global buffers, the lengths "
      "of "
      "the second and the first, and the version; UnsupportedError for one that is not known.");
  m.def(
      "parse_table_entry",
      [](const nb::bytes& entry, uint64_t file_size) {
        const Range place = parse_table_entry(span_of(entry), file_size);
        return std::pair{place.offset, place.length};
      },
      "entry"_a, "file_size"_a, "Position and size, from an entry of a table of offsets.");
  m.def(
      "parse_column",
      [](const nb::bytes& metadata, uint64_t file_size) {
        const StoredColumn column = stored_column(span_of(metadata), file_size);
        std::vector<PageNumbers> pages;
        for (const StoredPage& page : column.pages)
          pages.emplace_back(page.rows, page.priority, text_of(page.name), bytes_of(page.message),
                             places_of(page.buffers));
        return ColumnNumbers{text_of(column.name), bytes_of(column.message), std::move(pages),
                             places_of(column.buffers)};
      },
      "metadata"_a, "file_size"_a,
      "What the metadata of a column say: the name and bytes of its encoding, (rows, priority, name, bytes, "
      "buffers) of each page, and its own buffers.");
}

void bind_stored_pages(nb::module_& m) {
  nb::class_<Page>(m, "Page").def_prop_ro("rows", &Page::rows);
  m.def(
      "column_pages",
      [](const Source& source, uint64_t offset, uint64_t length, const Custom& custom) {
        return open_pages(source.view(offset, length), source.size(), calling(custom));
      },
      "source"_a, "offset"_a, "length"_a, "custom"_a,
      "The pages that the metadata of a column of version 2.1 or 2.2 describe; UnsupportedError.");
  m.def(
      "array_pages",
      [](const Source& source, uint64_t offset, uint64_t length, const std::string& kind, uint32_t width,
         bool is_dictionary, bool is_blob, const Custom& custom) {
        return open_array_pages(source.view(offset, length), source.size(), {leaf_kind(kind), width, {}},
                                is_dictionary, is_blob, calling(custom));
      },
      "source"_a, "offset"_a, "length"_a, "kind"_a, "width"_a, "is_dictionary"_a, "is_blob"_a, "custom"_a,
      "The same for version 2.0 and values of `kind` and `width`.");
  m.def(
      "list_pages",
      [](const Source& source, uint64_t offset, uint64_t length) {
        ListPages pages;
        for (v2_0::ListPage& page : open_list_pages(source.view(offset, length), source.size()))
          pages.emplace_back(page.rows, std::move(page.offsets), page.null_adjustment, page.num_items);
        return pages;
      },
      "source"_a, "offset"_a, "length"_a,
      "Rows, offsets, adjustment of nulls and number of items of the pages of a column of version 2.0 that "
      "holds the "
      "offsets of lists.");
  m.def(
      "array_column_kind",
      [](const Source& source, uint64_t offset, uint64_t length) {
        return array_column_kind(source.view(offset, length), source.size());
      },
      "source"_a, "offset"_a, "length"_a,
      "The name of the outermost encoding of a column of version 2.0; None where it has no pages.");
  m.def(
      "describe_page",
      [](const std::string& name, const nb::bytes& message) { return describe_page(name, span_of(message)); },
      "name"_a, "message"_a, "What a page holds in one line; `name` if it is not a message of the format.");
}

void bind_block_decoder(nb::module_& m) {
  nb::class_<BlockDecoder>(m, "BlockDecoder")
      .def(
          "decode",
          [](const BlockDecoder& decoder, const nb::bytes& data, uint64_t count) {
            Bytes out;
            Scratch scratch;
            decoder.decode(span_of(data), count, out, scratch);
            return nb::bytes(out.data(), out.size());
          },
          "data"_a, "count"_a);
  m.def(
      "block_decoder", [](const nb::bytes& encoding) { return block_decoder(Message(span_of(encoding))); },
      "encoding"_a, "The decoder of a whole buffer that a `CompressiveEncoding` message describes.");
}

void bind_v2_0(nb::module_& m) {
  using namespace v2_0;
  nb::class_<ArrayDecoder>(m, "ArrayDecoder");
  m.def(
      "array_flat",
      [](std::pair<uint64_t, uint64_t> buffer, uint64_t bits, const std::string& scheme) {
        Compression how = Compression::kNone;
        if (scheme == "lz4") {
          how = Compression::kLz4;
        } else if (scheme == "zstd") {
          how = Compression::kZstd;
        } else if (!scheme.empty()) {
          throw std::invalid_argument("unknown compression " + scheme);
        }
        return v2_0::make_flat({buffer.first, buffer.second}, bits, how);
      },
      "buffer"_a, "bits_per_value"_a, "compression"_a);
  m.def("array_all_null", &make_all_null);
  m.def("array_nullable", &make_nullable, "validity"_a, "values"_a);
  m.def(
      "array_fixed_size_list",
      [](uint64_t dimension, ArrayDecoderPtr items) {
        return v2_0::make_fixed_size_list(dimension, std::move(items));
      },
      "dimension"_a, "items"_a);
  m.def(
      "array_dictionary",
      [](ArrayDecoderPtr indices, uint64_t index_width, ArrayDecoderPtr items, uint64_t count, bool shifted,
         const std::string& kind, uint32_t width) {
        return make_dictionary(std::move(indices), narrow(index_width), std::move(items), count, shifted,
                               LeafType{leaf_kind(kind), width, {}});
      },
      "indices"_a, "index_width"_a, "items"_a, "count"_a, "shifted"_a, "kind"_a, "width"_a);
  m.def(
      "array_page",
      [](uint64_t rows, ArrayDecoderPtr decoder, const RangeList& buffers) {
        std::vector<Range> ranges;
        for (auto [offset, length] : buffers) ranges.push_back({offset, length});
        return make_page(rows, std::move(decoder), std::move(ranges));
      },
      "rows"_a, "decoder"_a, "buffers"_a = RangeList());
  m.def("array_struct_field", &make_struct_field, "children"_a);
  m.def("array_string_field", &make_string_field, "lists"_a);
  m.def(
      "array_list_field",
      [](std::string name, const ListPages& pages, std::shared_ptr<const Source> source, FieldPtr items,
         bool large) {
        std::vector<ListPage> list_pages;
        for (const auto& [rows, offsets, adjustment, num_items] : pages)
          list_pages.push_back({rows, offsets, adjustment, num_items});
        return make_list_field(std::move(name), std::move(list_pages), std::move(source), std::move(items),
                               large);
      },
      "name"_a, "pages"_a, "source"_a, "items"_a, "large"_a);
}

void bind_legacy(nb::module_& m) {
  m.def(
      "legacy_var_binary",
      [](std::pair<uint64_t, uint64_t> positions, bool empty_is_null) {
        return legacy::make_var_binary({positions.first, positions.second}, empty_is_null);
      },
      "positions"_a, "empty_is_null"_a);
  m.def(
      "legacy_list_ends",
      [](std::pair<uint64_t, uint64_t> offsets, unsigned bits) {
        return legacy::make_list_ends({offsets.first, offsets.second}, bits);
      },
      "offsets"_a, "bits"_a);
}

}  // namespace

void bind_page_decoders(nb::module_& m) {
  bind_container(m);
  bind_stored_pages(m);
  bind_block_decoder(m);
  bind_v2_0(m);
  bind_legacy(m);
}

}  // namespace lance
