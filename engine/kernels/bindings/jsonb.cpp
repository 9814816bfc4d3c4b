// Columns of JSON: from their binary form to text and back.
#include "core/jsonb.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstdlib>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <tuple>
#include <vector>

#include "bindings/bindings.hpp"
#include "decode/jsonb.hpp"
#include "decode/leaf.hpp"
#include "encode/jsonb.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace lance {
namespace {

using Input = nb::ndarray<nb::numpy, const uint8_t, nb::ndim<1>, nb::c_contig>;
using Offsets = nb::ndarray<nb::numpy, const int64_t, nb::ndim<1>, nb::c_contig>;
using Array = nb::ndarray<nb::numpy, const uint8_t, nb::ndim<1>>;

// Calls `convert` for each value, `done` after each one. `valid` has a byte per value, 0 for nulls, or
// nothing.
template <typename Convert, typename Done>
void for_each_value(Span data, std::span<const int64_t> offsets, std::span<const uint8_t> valid,
                    const Convert& convert, const Done& done) {
  for (size_t i = 0; i + 1 < offsets.size(); ++i) {
    if (valid.empty() || valid[i] != 0) {
      const int64_t begin = offsets[i], end = offsets[i + 1];
      if (begin < 0 || end < begin || static_cast<uint64_t>(end) > data.size) {
        throw std::out_of_range("offsets outside of the data");
      }
      try {
        convert(data.sub(static_cast<uint64_t>(begin), static_cast<uint64_t>(end - begin)));
      } catch (jsonb::Invalid& error) {
        error.row = i;
        throw;
      }
    }
    done();
  }
}

Array hand_over(encode::Output& output) {
  auto [data, size] = output.release();
  if (data == nullptr) data = static_cast<uint8_t*>(std::malloc(1));
  nb::capsule owner(data, [](void* memory) noexcept { std::free(memory); });
  return Array(data, {size}, owner);
}

Array hand_over(Bytes&& bytes) {
  auto held = std::make_unique<Bytes>(std::move(bytes));
  if (held->data() == nullptr) held->reserve(1);
  const uint8_t* data = held->data();
  const size_t size = held->size();
  nb::capsule owner(held.release(), [](void* memory) noexcept { delete static_cast<Bytes*>(memory); });
  return Array(data, {size}, owner);
}

std::span<const uint8_t> mask_of(const std::optional<Input>& valid, const Offsets& offsets) {
  if (!valid) return {};
  if (valid->size() + 1 < offsets.size()) throw std::out_of_range("a mask shorter than the column");
  return {valid->data(), valid->size()};
}

using Paths = std::vector<std::vector<std::string>>;

// The members on paths; a path that ends at a member wants all of it.
jsonb::Members members_on(const Paths& paths) {
  jsonb::Members found;
  for (const auto& path : paths) {
    jsonb::Members* level = &found;
    for (size_t i = 0; i < path.size(); ++i) {
      auto at = std::find_if(level->begin(), level->end(),
                             [&](const jsonb::Member& member) { return member.name == path[i]; });
      const bool is_new = at == level->end();
      if (is_new) at = level->insert(level->end(), {path[i], {}});
      if (i + 1 == path.size()) at->below.clear();
      // What is wanted completely stays so.
      if (!is_new && at->below.empty()) break;
      level = &at->below;
    }
  }
  return found;
}

std::tuple<Array, Array> decode_jsonb(Input data, Offsets offsets, std::optional<Input> valid,
                                      const Paths& paths) {
  const jsonb::Members wanted = members_on(paths);
  Bytes text, ends;
  const auto mask = mask_of(valid, offsets);
  {
    nb::gil_scoped_release nogil;
    const auto finish = [&] {
      if (text.size() > std::numeric_limits<int32_t>::max())
        throw BatchTooLarge("more text than fits a batch");
      store(ends.extend(4), static_cast<int32_t>(text.size()));
    };
    finish();
    for_each_value(
        {data.data(), data.size()}, {offsets.data(), offsets.size()}, mask,
        [&](Span value) { jsonb::append_text(value, wanted, text); }, finish);
  }
  return {hand_over(std::move(text)), hand_over(std::move(ends))};
}

std::tuple<Array, Array> encode_jsonb(Input data, Offsets offsets, std::optional<Input> valid) {
  encode::Output values, ends;
  const auto mask = mask_of(valid, offsets);
  {
    nb::gil_scoped_release nogil;
    jsonb::Writer writer;
    const auto finish = [&] { ends.put<int64_t>(static_cast<int64_t>(values.size())); };
    finish();
    for_each_value(
        {data.data(), data.size()}, {offsets.data(), offsets.size()}, mask,
        [&](Span text) { writer.append_value(text, values); }, finish);
  }
  return {hand_over(values), hand_over(ends)};
}

}  // namespace

void bind_jsonb(nb::module_& m) {
  static nb::handle invalid = nb::exception<jsonb::Invalid>(m, "InvalidJsonError", PyExc_ValueError);
  invalid.attr("__doc__") = "A JSON value that is none; `args` is (what, number of the value in the column).";
  nb::register_exception_translator([](const std::exception_ptr& pointer, void*) {
    try {
      std::rethrow_exception(pointer);
    } catch (const jsonb::Invalid& error) {
      PyErr_SetObject(invalid.ptr(), nb::make_tuple(error.what(), error.row).ptr());
    }
  });
  m.def("decode_jsonb", &decode_jsonb, "data"_a, "offsets"_a, "valid"_a.none(), "paths"_a = Paths(),
        "Bytes and int32 offsets of the texts of binary JSON values, of objects only the members on some "
        "paths; InvalidJsonError, BatchTooLargeError.");
  m.def("encode_jsonb", &encode_jsonb, "data"_a, "offsets"_a, "valid"_a.none(),
        "Bytes and int64 offsets of the binary values of JSON texts; InvalidJsonError.");
}

}  // namespace lance
