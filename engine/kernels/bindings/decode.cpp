#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <optional>
#include <stdexcept>

#include "bindings/bindings.hpp"
#include "bindings/decoded_batch.hpp"
#include "bindings/leaf_types.hpp"
#include "core/memory.hpp"
#include "core/source.hpp"
#include "decode/column.hpp"
#include "decode/page.hpp"
#include "decode/structural_field.hpp"
#include "decode/uniform_block.hpp"
#include "decode/unpack.hpp"
#include "decode/value_test.hpp"
#include "file/data_file.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace lance {

namespace {

using RangeList = std::vector<std::pair<uint64_t, uint64_t>>;
using Rows = nb::ndarray<const uint32_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using MaskBytes = nb::ndarray<const uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Ranges = nb::ndarray<const int64_t, nb::shape<-1, 2>, nb::c_contig, nb::device::cpu>;
using ReleaseGil = nb::call_guard<nb::gil_scoped_release>;

RangeList to_pairs(const std::vector<Range>& ranges) {
  RangeList pairs;
  for (const Range& range : ranges) pairs.emplace_back(range.offset, range.length);
  return pairs;
}

std::vector<RowRange> row_ranges(const Ranges& ranges) {
  std::vector<RowRange> rows;
  rows.reserve(ranges.shape(0));
  for (size_t i = 0; i < ranges.shape(0); ++i) {
    int64_t begin = ranges(i, 0), end = ranges(i, 1);
    if (begin < 0 || begin > end) throw std::invalid_argument("a range of rows ends before it begins");
    rows.push_back({static_cast<uint64_t>(begin), static_cast<uint64_t>(end)});
  }
  return rows;
}

template <typename Work>
auto without_gil(Work work) {
  nb::gil_scoped_release released;
  return work();
}

DecodedBatch* decode(const Columns& columns, const Selection& selection, const Overlays& overlays) {
  auto batch = std::make_unique<DecodedBatch>();
  {
    nb::gil_scoped_release release;
    uint64_t before = bytes_viewed;
    columns.decode(selection, overlays, batch->array);
    batch->bytes_read = bytes_viewed - before;
  }
  return batch.release();
}

// "item", "list", "large_list", or "fixed_size_list:N".
Layer layer(const std::string& text) {
  if (text == "item") return {LayerKind::kItem};
  if (text == "list") return {LayerKind::kList};
  if (text == "large_list") return {LayerKind::kLargeList};
  const std::string prefix = "fixed_size_list:";
  if (text.starts_with(prefix)) {
    uint64_t dimension = std::stoull(text.substr(prefix.size()));
    check(dimension > 0 && dimension <= UINT32_MAX, "a fixed-size list has an impossible dimension");
    return {LayerKind::kFixedSizeList, dimension};
  }
  throw std::invalid_argument("unknown kind of layer " + text);
}

using PackedChildren = std::vector<std::tuple<std::string, uint32_t, std::vector<uint64_t>>>;

std::vector<LeafType> leaf_types(const PackedChildren& children) {
  std::vector<LeafType> types;
  for (const auto& [kind, width, dims] : children) types.push_back({leaf_kind(kind), width, dims});
  return types;
}

// The bytes of a Python object, which lives as long as this.
class BufferView {
 public:
  explicit BufferView(nb::handle object) {
    if (PyObject_GetBuffer(object.ptr(), &view_, PyBUF_SIMPLE) != 0) throw nb::python_error();
  }
  ~BufferView() {
    nb::gil_scoped_acquire gil;
    PyBuffer_Release(&view_);
  }
  BufferView(const BufferView&) = delete;
  BufferView& operator=(const BufferView&) = delete;

  Span bytes() const { return {static_cast<const uint8_t*>(view_.buf), static_cast<uint64_t>(view_.len)}; }

 private:
  Py_buffer view_{};
};

nb::ndarray<nb::numpy, uint8_t, nb::ndim<1>> new_buffer(size_t length) {
  auto bytes = std::make_unique<Bytes>();
  uint8_t* data = bytes->extend(length);
  nb::capsule owner(bytes.get(), [](void* memory) noexcept { delete static_cast<Bytes*>(memory); });
  bytes.release();
  return {data, {length}, owner};
}

void bind_sources(nb::module_& m) {
  nb::class_<Source>(m, "Source")
      .def_prop_ro("size", &Source::size)
      .def_prop_ro("identity",
                   [](const Source& source) { return reinterpret_cast<uintptr_t>(source.identity()); })
      .def(
          "read",
          [](const Source& source, uint64_t offset, uint64_t length) {
            Span bytes = source.view(offset, length);
            return nb::bytes(bytes.data, bytes.size);
          },
          "offset"_a, "length"_a);
  nb::class_<MappedSource, Source>(m, "MappedSource").def_static("open", &MappedSource::open, "path"_a);
  nb::class_<SegmentSource, Source>(m, "SegmentSource")
      .def(nb::init<uint64_t>(), "size"_a)
      .def(nb::init<std::shared_ptr<const SegmentSource>>(), "parent"_a)
      .def(
          "add",
          [](SegmentSource& source, uint64_t offset, const nb::bytes& bytes) {
            source.add(offset, {static_cast<const uint8_t*>(bytes.data()), bytes.size()});
          },
          "offset"_a, "data"_a)
      .def(
          "share",
          [](SegmentSource& source, uint64_t offset, nb::handle data) {
            auto view = std::make_shared<BufferView>(data);
            Span bytes = view->bytes();
            source.share(offset, bytes, std::move(view));
          },
          "offset"_a, "data"_a)
      .def("holds", &SegmentSource::holds, "offset"_a, "length"_a);
}

std::string to_string(const nb::bytes& bytes) {
  return {static_cast<const char*>(bytes.data()), bytes.size()};
}

std::vector<std::string> to_strings(const std::vector<nb::bytes>& all) {
  std::vector<std::string> strings;
  for (const nb::bytes& bytes : all) strings.push_back(to_string(bytes));
  return strings;
}

nb::bytes passing(const ValueTest& test, const nb::bytes& values, uint32_t width) {
  const LeafType type{.kind = LeafKind::kFixed, .width = width, .dims = {}};
  if (!width || values.size() % width || !test.tests_fixed() || !test.fits(type))
    throw std::invalid_argument("values of another width than the test's");
  Bits bits;
  {
    nb::gil_scoped_release nogil;
    test.test_fixed(static_cast<const uint8_t*>(values.data()), values.size() / width, bits);
  }
  return nb::bytes(bits.data(), bytes_for_bits(bits.length()));
}

void bind_tests(nb::module_& m) {
  nb::class_<ValueTest>(m, "ValueTest")
      .def("passing", &passing, "values"_a, "width"_a,
           "Whether each of some fixed-width values passes, as a bitmap.");
  m.def(
      "integer_range_test",
      [](unsigned bits, bool is_signed, const nb::bytes& low, const nb::bytes& high, bool negate) {
        return make_integer_range(bits, is_signed, to_string(low), to_string(high), negate);
      },
      "bits"_a, "signed_"_a, "low"_a, "high"_a, "negate"_a);
  m.def(
      "integer_set_test",
      [](unsigned bits, const nb::bytes& values, bool negate) {
        return make_integer_set(bits, to_string(values), negate);
      },
      "bits"_a, "values"_a, "negate"_a);
  m.def("float_range_test", &make_float_range, "bits"_a, "low"_a, "high"_a, "nan"_a, "negative_nan"_a,
        "negate"_a);
  m.def(
      "string_test",
      [](const std::vector<nb::bytes>& pieces, bool at_start, bool at_end, bool negate, bool ignore_case) {
        return ValueTestPtr(
            std::make_shared<StringTest>(to_strings(pieces), at_start, at_end, negate, ignore_case));
      },
      "pieces"_a, "at_start"_a, "at_end"_a, "negate"_a, "ignore_case"_a = false);
  m.def(
      "string_set_test",
      [](const std::vector<nb::bytes>& values, bool negate) {
        return make_string_set(to_strings(values), negate);
      },
      "values"_a, "negate"_a);
}

void bind_columns(nb::module_& m) {
  nb::class_<LeafColumn>(m, "LeafColumn")
      .def_prop_ro("rows", &LeafColumn::rows)
      .def_prop_ro("name", &LeafColumn::name)
      .def_prop_ro("gives_codes", &LeafColumn::gives_codes)
      .def_prop_ro("dictionary_entries", &LeafColumn::dictionary_entries)
      .def_prop_ro("most_distinct", &LeafColumn::most_distinct)
      .def_prop_ro("plain_bytes", &LeafColumn::plain_bytes)
      .def("dictionary_bytes", &LeafColumn::dictionary_bytes, ReleaseGil(),
           "The most bytes that all dictionaries together can decode to.")
      .def("map_pages", &LeafColumn::number_pages, "strings"_a, "dictionaries"_a, ReleaseGil(),
           "Add the strings of pages without a dictionary to `strings`, and all dictionaries if "
           "`dictionaries`.")
      .def_prop_ro("page_starts", &LeafColumn::page_starts)
      .def_prop_ro("value_bytes",
                   [](const LeafColumn& column) { return column.type().width * column.type().items(); })
      .def(
          "metadata_ranges",
          [](const LeafColumn& column, const Ranges& rows) {
            return to_pairs(
                without_gil([&, ranges = row_ranges(rows)] { return column.metadata_ranges(ranges); }));
          },
          "rows"_a)
      .def(
          "data_ranges",
          [](const LeafColumn& column, const Ranges& rows) {
            return to_pairs(
                without_gil([&, ranges = row_ranges(rows)] { return column.data_ranges(ranges); }));
          },
          "rows"_a)
      .def_prop_ro("page_buffers", [](const LeafColumn& column) {
        std::vector<RangeList> pages;
        for (const std::vector<Range>& buffers : column.page_buffers()) pages.push_back(to_pairs(buffers));
        return pages;
      });
  m.def(
      "leaf_column",
      [](std::string name, const std::string& kind, uint32_t width, std::vector<uint64_t> dims,
         const std::vector<std::string>& path, std::vector<PagePtr> pages,
         std::shared_ptr<const Source> source) {
        std::vector<Layer> layers;
        for (const std::string& step : path) layers.push_back(layer(step));
        std::vector<std::shared_ptr<const Source>> sources(pages.size(), source);
        return std::make_shared<LeafColumn>(std::move(name),
                                            LeafType{leaf_kind(kind), width, std::move(dims)},
                                            std::move(layers), std::move(pages), std::move(sources));
      },
      "name"_a, "kind"_a, "width"_a, "dims"_a, "path"_a, "pages"_a, "source"_a);

  nb::class_<DataFiles>(
      m, "DataFiles",
      "Files of version 2.1 or 2.2 with the same columns, as if one followed the other. Raises "
      "CorruptDataError, UnsupportedError, or RuntimeError where a file cannot be opened.")
      .def(
          "__init__",
          [](DataFiles* files, const std::vector<std::tuple<std::string, uint64_t, uint64_t>>& places) {
            std::vector<DataFiles::Place> found;
            found.reserve(places.size());
            nb::gil_scoped_release release;
            for (const auto& [path, size, rows] : places)
              found.push_back({MappedSource::open(path), size, rows});
            new (files) DataFiles(found);
          },
          "places"_a, "Map files: path, size in bytes or 0 where it is not known, number of rows.")
      .def(
          "__init__",
          [](DataFiles* files,
             const std::vector<std::pair<std::shared_ptr<SegmentSource>, uint64_t>>& fetched) {
            std::vector<DataFiles::Place> found;
            found.reserve(fetched.size());
            for (const auto& [source, rows] : fetched) found.push_back({source, source->size(), rows});
            nb::gil_scoped_release release;
            new (files) DataFiles(found);
          },
          "fetched"_a, "Files that are in memory as a whole: their bytes, number of rows.")
      .def(
          "leaf_column",
          [](const DataFiles& files, std::string name, const std::string& kind, uint32_t width,
             std::vector<uint64_t> dims, const std::vector<std::string>& path, uint32_t column,
             uint64_t per_row) {
            std::vector<Layer> layers;
            for (const std::string& step : path) layers.push_back(layer(step));
            if (per_row == 0) throw std::invalid_argument("a row has at least one item");
            nb::gil_scoped_release release;
            const uint64_t before = bytes_viewed;
            LeafColumnPtr leaf =
                files.leaf_column(std::move(name), LeafType{leaf_kind(kind), width, std::move(dims)},
                                  std::move(layers), column, per_row);
            return std::make_pair(std::move(leaf), bytes_viewed - before);
          },
          "name"_a, "kind"_a, "width"_a, "dims"_a, "path"_a, "column"_a, "per_row"_a,
          "A column of all files, whose rows have `per_row` items each, and the bytes read for it.");

  nb::class_<Node>(m, "Node");
  m.def(
      "leaf_node",
      [](LeafColumnPtr leaf, const PackedChildren& packed) {
        return NodePtr(new Node{Node::Kind::kLeaf, {}, std::move(leaf), leaf_types(packed)});
      },
      "leaf"_a, "packed"_a = PackedChildren{});
  m.def(
      "struct_node",
      [](std::vector<NodePtr> children) {
        return NodePtr(new Node{Node::Kind::kStruct, std::move(children), nullptr, {}});
      },
      "children"_a);
  m.def(
      "list_node",
      [](NodePtr child, bool large) {
        return NodePtr(
            new Node{large ? Node::Kind::kLargeList : Node::Kind::kList, {std::move(child)}, nullptr, {}});
      },
      "child"_a, "large"_a);
  m.def(
      "fixed_size_list_node",
      [](NodePtr child, uint64_t dimension) {
        return NodePtr(new Node{Node::Kind::kFixedSizeList, {std::move(child)}, nullptr, {}, dimension});
      },
      "child"_a, "dimension"_a);

  nb::class_<Field>(m, "Field")
      .def("tested", &Field::tested, "test"_a)
      .def("mapped", &Field::numbered, "strings"_a);
  m.def(
      "structural_field",
      [](NodePtr root, bool coded) { return FieldPtr(new StructuralField(std::move(root), coded)); },
      "root"_a, "coded"_a = false);

  nb::class_<Columns>(m, "Columns")
      .def(nb::init<std::vector<FieldPtr>>(), "fields"_a)
      .def("narrowed", &Columns::narrowed, "indices"_a)
      .def(
          "decode_range",
          [](const Columns& columns, uint64_t begin, uint64_t end, const Overlays& overlays) {
            if (begin > end) throw std::invalid_argument("a range of rows ends before it begins");
            RowRange range{begin, end};
            return decode(columns, Selection::of(std::span<const RowRange>(&range, 1)), overlays);
          },
          "begin"_a, "end"_a, "overlays"_a = Overlays{}, nb::rv_policy::take_ownership)
      .def_prop_ro("take_masks", &Columns::take_masks)
      .def(
          "decode_wanted",
          [](const Columns& columns, uint64_t begin, uint64_t end, const MaskBytes& mask, uint64_t offset,
             const Overlays& overlays) {
            if (begin > end || offset > mask.size() * 8 || end - begin > mask.size() * 8 - offset)
              throw std::invalid_argument("a mask is shorter than its range of rows");
            if (!columns.take_masks()) throw std::invalid_argument("these columns do not take masks");
            const RowRange range{begin, end};
            return decode(columns, Selection::of(range, RowMask{mask.data(), offset}), overlays);
          },
          "begin"_a, "end"_a, "mask"_a, "offset"_a, "overlays"_a = Overlays{}, nb::rv_policy::take_ownership,
          "The rows of a range whose bits, from `offset` on, are set.")
      .def(
          "decode_ranges",
          [](const Columns& columns, const Ranges& ranges, const Overlays& overlays) {
            const std::vector<RowRange> rows = row_ranges(ranges);
            return decode(columns, Selection::of(std::span<const RowRange>(rows)), overlays);
          },
          "ranges"_a, "overlays"_a = Overlays{}, nb::rv_policy::take_ownership)
      .def(
          "decode_rows",
          [](const Columns& columns, const Rows& rows, const Overlays& overlays) {
            return decode(columns, Selection::of(std::span<const uint32_t>(rows.data(), rows.shape(0))),
                          overlays);
          },
          "rows"_a, "overlays"_a = Overlays{}, nb::rv_policy::take_ownership);
}

nb::bytes expand_lz4(const nb::bytes& block, uint64_t wanted) {
  const Span input{static_cast<const uint8_t*>(block.data()), block.size()};
  Bytes out;
  decompress(Compression::kLz4, input, out, kMostDecompressed, wanted);
  return nb::bytes(out.data(), out.size());
}

// The values [begin, end) of a block of `UniformLayout`, as 128 or 64 bits; nothing where it is another one
// or they do not fit.
std::optional<nb::bytes> uniform_values(const nb::bytes& input, uint64_t begin, uint64_t end, bool narrow) {
  const UniformBlock block({static_cast<const uint8_t*>(input.data()), input.size()});
  if (begin >= end || end > block.count() || !block.uniform(end)) return std::nullopt;
  Bytes out;
  uint8_t* to = out.extend((end - begin) * (narrow ? 8 : 16));
  if (!narrow)
    block.decode(begin, end, to);
  else if (!block.narrow(begin, end, to))
    return std::nullopt;
  return nb::bytes(out.data(), out.size());
}

template <typename T>
nb::bytes unpack_bytes(const UnpackTable& table, const nb::bytes& packed, unsigned width) {
  if (width > sizeof(T) * 8 || packed.size() < width * kBlockValues / 8)
    throw std::invalid_argument("a block needs width * 128 bytes");
  std::vector<T> out(kBlockValues);
  unpack_block<T>(table, static_cast<const uint8_t*>(packed.data()), width, out.data());
  return nb::bytes(out.data(), out.size() * sizeof(T));
}

void bind_unpack(nb::module_& m) {
  m.def("expand_lz4", &expand_lz4, "block"_a, "wanted"_a = kMostDecompressed);
  m.def("uniform_values", &uniform_values, "block"_a, "begin"_a, "end"_a, "narrow"_a);
  m.def(
      "unpack_block",
      [](const nb::bytes& packed, unsigned bits, unsigned width, const std::string& level) {
        const UnpackTable* table = unpack_table_at(level.c_str());
        if (!table) throw std::invalid_argument("this processor has no " + level);
        if (bits == 8) return unpack_bytes<uint8_t>(*table, packed, width);
        if (bits == 16) return unpack_bytes<uint16_t>(*table, packed, width);
        if (bits == 32) return unpack_bytes<uint32_t>(*table, packed, width);
        if (bits == 64) return unpack_bytes<uint64_t>(*table, packed, width);
        throw std::invalid_argument("values have 8, 16, 32 or 64 bits");
      },
      "packed"_a, "bits"_a, "width"_a, "level"_a);
  m.def("simd_level", [] { return unpack_table().level; });
  m.def("simd_levels", [] {
    std::vector<std::string> levels;
    for (const char* level : {"baseline", "avx2", "avx512"})
      if (unpack_table_at(level)) levels.emplace_back(level);
    return levels;
  });
  m.def("cached_bytes", &cached_bytes);
  m.def("new_buffer", &new_buffer, "length"_a, "Bytes to be filled in, in memory that is used again later.");
  m.def("set_cache_limit", &set_cache_limit, "bytes"_a, "most"_a);
}

}  // namespace

void bind_decode(nb::module_& m) {
  bind_sources(m);
  bind_tests(m);
  bind_columns(m);
  bind_unpack(m);
}

}  // namespace lance
