// The numbers of the strings of dictionaries.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "bindings/bindings.hpp"
#include "bindings/decoded_batch.hpp"
#include "decode/array_builder.hpp"
#include "decode/string_numbers.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace lance {
namespace {

using Numbers = nb::ndarray<const int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using ValidBits = nb::ndarray<const uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

DecodedBatch* strings_of(const StringNumbers& strings, const Numbers& numbers,
                         const std::optional<ValidBits>& valid, bool large) {
  const uint64_t count = numbers.shape(0);
  if (valid && valid->shape(0) < bytes_for_bits(count)) throw std::invalid_argument("a bitmap is too short");
  const uint8_t* bits = valid ? valid->data() : nullptr;
  auto found = std::make_unique<DecodedBatch>();
  nb::gil_scoped_release released;
  const LeafType type{large ? LeafKind::kVariable64 : LeafKind::kVariable32, 0, {}};
  LeafValues values(type);
  strings.gather({numbers.data(), count}, bits, values);
  Validity validity;
  if (bits)
    validity.append_bits(bits, 0, count);
  else
    validity.append_valid(count);
  ArrayBuilder array(count);
  array.add_validity(validity);
  array.add_buffer(std::move(values.offsets));
  array.add_buffer(std::move(values.data));
  array.move_to(found->array);
  return found.release();
}

}  // namespace

void bind_entries(nb::module_& m) {
  nb::class_<DecodedBatch>(m, "DecodedBatch")
      .def_prop_ro("address",
                   [](const DecodedBatch& batch) { return reinterpret_cast<uintptr_t>(&batch.array); })
      .def_ro("bytes_read", &DecodedBatch::bytes_read);
  nb::class_<StringNumbers>(m, "StringNumbers", "A list of distinct strings; its places are numbers.")
      .def(nb::init<uint64_t, uint64_t>(), "most_strings"_a, "most_bytes"_a,
           "A list that grows, of up to so many strings of so many bytes; numbers have 32 bits.")
      .def(
          "__init__",
          [](StringNumbers* self, const std::vector<nb::bytes>& all) {
            std::vector<std::string> strings;
            for (const nb::bytes& one : all)
              strings.emplace_back(static_cast<const char*>(one.data()), one.size());
            new (self) StringNumbers(strings);
          },
          "strings"_a, "A list of up to 256 strings that does not grow; numbers have 8 bits.")
      .def_prop_ro("size", &StringNumbers::size)
      .def_prop_ro("memory", &StringNumbers::bytes)
      .def("all_strings",
           [](const StringNumbers& strings) {
             std::vector<nb::bytes> found;
             for (const std::string& one : strings.strings()) found.emplace_back(one.data(), one.size());
             return found;
           })
      .def("strings_of", &strings_of, "numbers"_a, "valid"_a.none(), "large"_a, nb::rv_policy::take_ownership,
           nb::sig("def strings_of(self, numbers: NDArray[numpy.int64], valid: NDArray[numpy.uint8] | None, "
                   "large: bool) -> DecodedBatch"),
           "An array of the strings of some numbers. IndexError for a number that no string has.");
}

}  // namespace lance
