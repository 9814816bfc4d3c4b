// What the write path calls: levels, mini-block values and page assembly. Input buffers are anything with the
// buffer protocol (or None); results are numpy arrays that own their memory.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include "bindings/bindings.hpp"
#include "encode/byte_stream_split.hpp"
#include "encode/compressed.hpp"
#include "encode/dictionary.hpp"
#include "encode/fill.hpp"
#include "encode/fsst.hpp"
#include "encode/full_zip.hpp"
#include "encode/integers.hpp"
#include "encode/levels.hpp"
#include "encode/mini_block.hpp"
#include "encode/packed_row.hpp"
#include "encode/values.hpp"
#include "encode/zones.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace lance {
namespace {

using namespace encode;
using Array = nb::ndarray<nb::numpy, const uint8_t, nb::ndim<1>>;

// Keeps the buffer of a Python object until the last kernel that reads it has finished.
Bytes borrow(nb::handle object) {
  if (object.is_none()) return {};
  auto view = std::unique_ptr<Py_buffer>(new Py_buffer);
  if (PyObject_GetBuffer(object.ptr(), view.get(), PyBUF_SIMPLE) != 0) throw nb::python_error();
  const std::span<const uint8_t> data(static_cast<const uint8_t*>(view->buf), static_cast<size_t>(view->len));
  return {data, std::shared_ptr<const void>(view.release(), [](const Py_buffer* held) {
            nb::gil_scoped_acquire gil;
            PyBuffer_Release(const_cast<Py_buffer*>(held));
            delete held;
          })};
}

Array hand_over(Output& output) {
  auto [data, size] = output.release();
  if (data == nullptr) data = static_cast<uint8_t*>(std::malloc(1));
  nb::capsule owner(data, [](void* memory) noexcept { std::free(memory); });
  return Array(data, {size}, owner);
}

template <typename T>
Array copy_out(const std::vector<T>& values) {
  Output output;
  output.append(values.data(), values.size() * sizeof(T));
  return hand_over(output);
}

// (dimension, validity buffer or None, bit offset) per layer of a fixed-size list, outermost first.
using ListLayers = std::vector<std::tuple<uint64_t, nb::object, uint64_t>>;

std::vector<FixedSizeListLayer> list_layers(const ListLayers& layers, uint64_t rows) {
  std::vector<FixedSizeListLayer> result;
  uint64_t items = rows;
  for (const auto& [dimension, validity, offset] : layers) {
    require(dimension > 0 && items <= (uint64_t{1} << 48) / dimension, "unusable fixed-size list dimension");
    items *= dimension;
    result.push_back({dimension, Bitmap(borrow(validity), offset, items)});
  }
  return result;
}

void bind_levels(nb::module_& m) {
  nb::class_<Levels>(m, "Levels")
      .def_ro("rows", &Levels::rows)
      .def_ro("entries", &Levels::entries)
      .def_ro("slots", &Levels::slots)
      .def_ro("valid_slots", &Levels::valid_slots)
      .def_ro("max_rep", &Levels::max_rep)
      .def_ro("max_def", &Levels::max_def)
      .def_ro("longest_invisible_run", &Levels::longest_invisible_run)
      .def_ro("null_layers", &Levels::null_layers)
      .def_prop_ro("budget", &level_budget)
      .def_prop_ro("layers",
                   [](const Levels& levels) {
                     std::vector<int> layers;
                     for (Layer layer : levels.layers) layers.push_back(static_cast<int>(layer));
                     return layers;
                   })
      .def_prop_ro(
          "rep", [](const Levels& levels) { return copy_out(levels.rep); }, nb::rv_policy::move)
      .def_prop_ro(
          "def_", [](const Levels& levels) { return copy_out(levels.def); }, nb::rv_policy::move)
      .def("null_slots", [](const Levels& levels) {
        std::vector<uint8_t> nulls(levels.slots);
        levels.for_each_slot([&](uint64_t slot, bool null) { nulls[slot] = null; });
        return copy_out(nulls);
      });

  nb::class_<LevelBuilder>(m, "LevelBuilder")
      .def(nb::init<uint64_t>(), "rows"_a)
      .def("clone", [](const LevelBuilder& builder) { return LevelBuilder(builder); })
      .def(
          "add_item",
          [](LevelBuilder& builder, nb::object validity, uint64_t offset, uint64_t count) {
            const Bitmap bitmap(borrow(validity), offset, count);
            nb::gil_scoped_release nogil;
            builder.add_item(bitmap, count);
          },
          "validity"_a.none(), "offset"_a, "count"_a)
      .def(
          "add_fixed_size_list",
          [](LevelBuilder& builder, nb::object validity, uint64_t offset, uint64_t count,
             uint64_t dimension) {
            const Bitmap bitmap(borrow(validity), offset, count);
            nb::gil_scoped_release nogil;
            builder.add_fixed_size_list(bitmap, count, dimension);
          },
          "validity"_a.none(), "offset"_a, "count"_a, "dimension"_a)
      .def(
          "add_list",
          [](LevelBuilder& builder, nb::object validity, nb::object offsets, unsigned offset_bits,
             uint64_t offset, uint64_t count, uint64_t child_count) {
            const Bitmap bitmap(borrow(validity), offset, count);
            const Bytes bytes = borrow(offsets);
            LevelBuilder::Children children;
            {
              nb::gil_scoped_release nogil;
              children = builder.add_list(bitmap, bytes, offset_bits, offset, count, child_count);
            }
            std::optional<Array> keep;
            if (children.keep) keep = copy_out(*children.keep);
            return std::make_tuple(children.start, children.stop, keep);
          },
          "validity"_a.none(), "offsets"_a.none(), "offset_bits"_a, "offset"_a, "count"_a, "child_count"_a)
      .def("finish", &LevelBuilder::finish, nb::call_guard<nb::gil_scoped_release>());
}

template <typename Values>
void bind_fixed_values(nb::module_& m, const char* name) {
  nb::class_<Values, MiniBlockValues>(m, name).def(
      "__init__",
      [](Values* self, nb::object values, uint64_t bits, uint64_t offset, uint64_t count) {
        new (self) Values(borrow(values), bits, offset, count);
      },
      "values"_a.none(), "bits"_a, "offset"_a, "count"_a);
}

void bind_values(nb::module_& m) {
  nb::class_<MiniBlockValues>(m, "MiniBlockValues")
      .def_prop_ro("count", &MiniBlockValues::count)
      .def_prop_ro("buffers", &MiniBlockValues::buffers)
      .def(
          "chunk_length",
          [](const MiniBlockValues& values, uint64_t start) {
            require(start < values.count(), "there are no values after the last");
            return values.chunk_length(start);
          },
          "start"_a);
  nb::class_<FlatValues, MiniBlockValues>(m, "FlatValues")
      .def(
          "__init__",
          [](FlatValues* self, nb::object values, uint64_t bits, uint64_t offset, uint64_t count,
             uint64_t chunk_bytes) {
            new (self) FlatValues(borrow(values), bits, offset, count, chunk_bytes);
          },
          "values"_a.none(), "bits"_a, "offset"_a, "count"_a, "chunk_bytes"_a = kFixedChunkBytes);
  bind_fixed_values<BitpackedValues>(m, "BitpackedValues");
  bind_fixed_values<RunLengthValues>(m, "RunLengthValues");
  bind_fixed_values<ByteStreamSplitValues>(m, "ByteStreamSplitValues");

  nb::class_<VariableInput>(m, "VariableInput")
      .def(
          "__init__",
          [](VariableInput* self, nb::object offsets, nb::object data, unsigned offset_bits, uint64_t offset,
             uint64_t count, const Levels* levels) {
            Bytes offset_bytes = borrow(offsets), data_bytes = borrow(data);
            nb::gil_scoped_release nogil;
            new (self) VariableInput(std::move(offset_bytes), std::move(data_bytes), offset_bits, offset,
                                     count, levels);
          },
          "offsets"_a.none(), "data"_a.none(), "offset_bits"_a, "offset"_a, "count"_a, "levels"_a.none())
      .def_prop_ro("count", &VariableInput::count)
      .def_prop_ro("offset_bits", &VariableInput::offset_bits)
      .def_prop_ro("total_bytes", &VariableInput::total_bytes)
      .def_prop_ro("longest", &VariableInput::longest);
  nb::class_<VariableValues, MiniBlockValues>(m, "VariableValues")
      .def(nb::init<std::shared_ptr<const VariableInput>, uint64_t>(), "values"_a,
           "chunk_bytes"_a = kVariableChunkBytes);
  nb::class_<FixedSizeListValues, MiniBlockValues>(m, "FixedSizeListValues")
      .def(
          "__init__",
          [](FixedSizeListValues* self, const ListLayers& layers, nb::object items, uint64_t item_bits,
             uint64_t offset, uint64_t count) {
            new (self)
                FixedSizeListValues(list_layers(layers, count), borrow(items), item_bits, offset, count);
          },
          "layers"_a, "items"_a.none(), "item_bits"_a, "offset"_a, "count"_a);
  nb::enum_<Scheme>(m, "Scheme").value("LZ4", Scheme::kLz4).value("ZSTD", Scheme::kZstd);
  nb::class_<CompressedValues, MiniBlockValues>(m, "CompressedValues")
      .def(
          "__init__",
          [](CompressedValues* self, std::shared_ptr<MiniBlockValues> values, Scheme scheme, int level,
             bool wide_values, double bytes_per_ns) {
            new (self) CompressedValues(std::move(values), scheme, level, {wide_values, bytes_per_ns});
          },
          "values"_a, "scheme"_a, "level"_a, "wide_values"_a = false, "bytes_per_ns"_a = 0.0)
      .def("uniform_share", &CompressedValues::uniform_share);
}

void bind_pages(nb::module_& m) {
  nb::class_<LevelEncoding>(m, "LevelEncoding")
      .def_ro("present", &LevelEncoding::present)
      .def_ro("packed", &LevelEncoding::packed)
      .def_ro("width", &LevelEncoding::width);
  nb::class_<MiniBlockPage>(m, "MiniBlockPage")
      .def_ro("rep", &MiniBlockPage::rep)
      .def_ro("def_", &MiniBlockPage::def)
      .def_ro("chunks", &MiniBlockPage::chunks)
      .def("take_chunk_metadata", [](MiniBlockPage& page) { return hand_over(page.chunk_metadata); })
      .def("take_chunk_data", [](MiniBlockPage& page) { return hand_over(page.chunk_data); })
      .def("take_repetition_index", [](MiniBlockPage& page) { return hand_over(page.repetition_index); });
  m.def("encode_mini_block", &encode_mini_block, "values"_a, "levels"_a, "large_chunks"_a,
        nb::call_guard<nb::gil_scoped_release>());

  nb::class_<FullZipPage>(m, "FullZipPage")
      .def_ro("bits_rep", &FullZipPage::bits_rep)
      .def_ro("bits_def", &FullZipPage::bits_def)
      .def("take_data", [](FullZipPage& page) { return hand_over(page.data); })
      .def("take_repetition_index", [](FullZipPage& page) { return hand_over(page.repetition_index); });
  m.def(
      "encode_full_zip_fixed",
      [](nb::object values, uint64_t bits, uint64_t offset, uint64_t count, const ListLayers& layers,
         const Levels& levels) {
        const Bytes bytes = borrow(values);
        const auto lists = list_layers(layers, count);
        nb::gil_scoped_release nogil;
        return encode_full_zip_fixed(bytes, bits, offset, count, lists, levels);
      },
      "values"_a.none(), "bits"_a, "offset"_a, "count"_a, "layers"_a, "levels"_a);
  m.def("encode_full_zip_variable", &encode_full_zip_variable, "values"_a, "levels"_a,
        nb::call_guard<nb::gil_scoped_release>());
}

void bind_analysis(nb::module_& m) {
  m.def("estimated_bytes", &estimated_bytes, "values"_a, "chunks"_a, nb::call_guard<nb::gil_scoped_release>(),
        "Bytes of all values when encoded, extrapolated from chunks spread over them.");
  m.def(
      "integer_statistics",
      [](nb::object values, uint64_t bits, uint64_t offset, uint64_t count) {
        const Bytes bytes = borrow(values);
        IntegerStatistics statistics;
        {
          nb::gil_scoped_release nogil;
          statistics = integer_statistics(bytes, bits, offset, count);
        }
        return std::make_pair(statistics.packed_bytes, statistics.run_bytes);
      },
      "values"_a.none(), "bits"_a, "offset"_a, "count"_a,
      "Bytes that bit-packing and run lengths would need.");
  m.def(
      "fill_nulls",
      [](nb::object values, uint64_t bits, uint64_t offset, const Levels& levels) {
        const Bytes bytes = borrow(values);
        Output output;
        {
          nb::gil_scoped_release nogil;
          output = fill_nulls(bytes, bits, offset, levels);
        }
        return hand_over(output);
      },
      "values"_a.none(), "bits"_a, "offset"_a, "levels"_a);

  nb::class_<DictionaryPage>(m, "DictionaryPage")
      .def_ro("num_items", &DictionaryPage::num_items)
      .def("take_indices", [](DictionaryPage& page) { return hand_over(page.indices); })
      .def("take_items", [](DictionaryPage& page) { return hand_over(page.items); });
  nb::class_<FsstCoder>(m, "FsstCoder")
      .def_static("train", &FsstCoder::train, "values"_a, nb::call_guard<nb::gil_scoped_release>())
      .def_prop_ro("share", &FsstCoder::share)
      .def("encode", &FsstCoder::encode, "values"_a, nb::call_guard<nb::gil_scoped_release>())
      .def("symbol_table", [](const FsstCoder& coder) {
        Output table = coder.symbol_table();
        return hand_over(table);
      });
  m.def(
      "compress_block",
      [](nb::object plain, Scheme scheme, int level) {
        const Bytes bytes = borrow(plain);
        Output output;
        {
          nb::gil_scoped_release nogil;
          output = compress_block(bytes, scheme, level);
        }
        return hand_over(output);
      },
      "plain"_a, "scheme"_a, "level"_a);
  m.def(
      "pack_rows",
      [](const std::vector<nb::object>& fields, uint64_t count) {
        std::vector<PackedField> packed;
        for (const nb::object& field : fields) {
          if (nb::isinstance<VariableInput>(field)) {
            packed.emplace_back(nb::cast<std::shared_ptr<const VariableInput>>(field));
            continue;
          }
          auto [bytes, width, offset] = nb::cast<std::tuple<nb::object, uint64_t, uint64_t>>(field);
          packed.emplace_back(FixedField{borrow(bytes), width, offset});
        }
        nb::gil_scoped_release nogil;
        return pack_rows(packed, count);
      },
      "fields"_a, "count"_a);
  m.def("compress_each", &compress_each, "values"_a, "scheme"_a, "level"_a, "saving"_a,
        nb::call_guard<nb::gil_scoped_release>());
  m.def(
      "build_variable_dictionary",
      [](const VariableInput& values, uint64_t max_items, uint64_t max_bytes) {
        return build_dictionary(values, max_items, max_bytes);
      },
      "values"_a, "max_items"_a, "max_bytes"_a, nb::call_guard<nb::gil_scoped_release>());
  m.def(
      "build_fixed_dictionary",
      [](nb::object values, uint64_t bits, uint64_t offset, uint64_t count, uint64_t max_items,
         uint64_t max_bytes) {
        const Bytes bytes = borrow(values);
        nb::gil_scoped_release nogil;
        return build_dictionary(bytes, bits, offset, count, max_items, max_bytes);
      },
      "values"_a.none(), "bits"_a, "offset"_a, "count"_a, "max_items"_a, "max_bytes"_a);
}

void bind_zones(nb::module_& m) {
  nb::enum_<ZoneKind>(m, "ZoneKind")
      .value("BOOL", ZoneKind::kBool)
      .value("SIGNED", ZoneKind::kSigned)
      .value("UNSIGNED", ZoneKind::kUnsigned)
      .value("FLOAT", ZoneKind::kFloat)
      .value("TEXT", ZoneKind::kText)
      .value("BYTES", ZoneKind::kBytes);
  nb::class_<ZoneStatistics>(m, "ZoneStatistics",
                             "Minimum, maximum and null count per zone of `zone_rows` rows, from row "
                             "`first_row` of a column on. `width` is that of "
                             "a value in bytes: 1 for BOOL, 0 for TEXT and BYTES.")
      .def(nb::init<ZoneKind, unsigned, uint64_t, uint64_t>(), "kind"_a, "width"_a, "zone_rows"_a,
           "first_row"_a)
      .def(
          "add_fixed",
          [](ZoneStatistics& zones, nb::object values, uint64_t offset, const Levels& levels) {
            const Bytes bytes = borrow(values);
            nb::gil_scoped_release nogil;
            zones.add_fixed(bytes, offset, levels);
          },
          "values"_a.none(), "offset"_a, "levels"_a)
      .def("add_variable", &ZoneStatistics::add_variable, "values"_a, "levels"_a,
           nb::call_guard<nb::gil_scoped_release>())
      .def("append", &ZoneStatistics::append, "next"_a)
      .def_prop_ro("zones", &ZoneStatistics::zones)
      .def_prop_ro("rows", &ZoneStatistics::rows)
      .def(
          "bounds",
          [](const ZoneStatistics& zones, bool upper) {
            ZoneStatistics::Bounds bounds = zones.bounds(upper);
            return std::make_tuple(copy_out(bounds.known), copy_out(bounds.ends), hand_over(bounds.data));
          },
          "upper"_a,
          "Per zone whether the bound is known (one byte) and where it ends in the data (uint64); the data.")
      .def(
          "null_counts", [](const ZoneStatistics& zones) { return copy_out(zones.null_counts()); },
          nb::rv_policy::move, "Per zone (uint32).");
}

}  // namespace

void bind_encode(nb::module_& m) {
  bind_levels(m);
  bind_values(m);
  bind_pages(m);
  bind_analysis(m);
  bind_zones(m);
}

}  // namespace lance
