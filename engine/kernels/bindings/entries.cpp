// What stands for the entries of dictionaries: numbers of strings, or what a Python function gives.
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
#include "decode/dictionary.hpp"
#include "decode/string_numbers.hpp"
#include "stream/batch_stream.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace lance {
namespace {

LeafType string_type(bool large) {
  return {large ? LeafKind::kVariable64 : LeafKind::kVariable32, 0, {}};
}

void move_strings(LeafValues& values, Validity& validity, ArrowArray& out) {
  ArrayBuilder array(values.length());
  array.add_validity(validity);
  array.add_buffer(std::move(values.offsets));
  array.add_buffer(std::move(values.data));
  array.move_to(out);
}

// An Arrow array that Python gave, until it is looked at.
class Exported {
 public:
  Exported(const nb::object& array, int64_t buffers) {
    array.attr("_export_to_c")(reinterpret_cast<uintptr_t>(&array_));
    if (array_.n_buffers != buffers || array_.n_children != 0 || array_.dictionary)
      throw std::invalid_argument("an array of another kind");
  }
  ~Exported() {
    if (array_.release) array_.release(&array_);
  }
  Exported(const Exported&) = delete;
  Exported& operator=(const Exported&) = delete;

  uint64_t length() const { return static_cast<uint64_t>(array_.length); }
  uint64_t offset() const { return static_cast<uint64_t>(array_.offset); }
  const uint8_t* buffer(size_t index) const { return static_cast<const uint8_t*>(array_.buffers[index]); }
  bool valid(uint64_t row) const {
    return array_.null_count == 0 || !buffer(0) || get_bit(buffer(0), offset() + row);
  }

 private:
  ArrowArray array_{};
};

// A function that gets the address of an array of strings, which it imports, and gives an array of the same
// length.
class EntryFunction : public EntryMap {
 public:
  EntryFunction(nb::object function, unsigned width, bool is_boolean, uint64_t most_remembered)
      : EntryMap(width, is_boolean, most_remembered), function_(std::move(function)) {}

  ~EntryFunction() override {
    if (streams_stopped() && !PyGILState_Check()) {  // the interpreter is going away, its objects with it
      function_.release();
      return;
    }
    nb::gil_scoped_acquire lock;
    function_.reset();
  }

 protected:
  EntryValuesPtr map(const Dictionary& dictionary, const LeafType& type) override {
    LeafValues values(type);
    dictionary.append_to(values);
    Validity validity;
    validity.append_valid(values.length());
    DecodedBatch strings;
    move_strings(values, validity, strings.array);
    const Exported array = called(strings);
    const uint64_t count = dictionary.size();
    if (array.length() != count) throw std::length_error("a function gave another number of values");
    auto found = std::make_shared<EntryValues>();
    uint8_t* to = found->values.extend(count * width());
    if (is_boolean())
      for (uint64_t i = 0; i < count; ++i) to[i] = get_bit(array.buffer(1), array.offset() + i);
    else
      copy_bytes(to, array.buffer(1) + array.offset() * width(), count * width());
    std::vector<uint8_t> valid(count);
    bool all = true;
    for (uint64_t i = 0; i < count; ++i) all &= (valid[i] = array.valid(i)) != 0;
    if (!all) found->valid = std::move(valid);
    return found;
  }

 private:
  // What the function gives; only this needs the interpreter.
  Exported called(DecodedBatch& strings) const {
    if (streams_stopped()) throw std::runtime_error("the interpreter is exiting");
    nb::gil_scoped_acquire lock;
    const nb::object result = function_(reinterpret_cast<uintptr_t>(&strings.array));
    return Exported(result, 2);
  }

  nb::object function_;
};

using Numbers = nb::ndarray<const int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using ValidBits = nb::ndarray<const uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

DecodedBatch* strings_of(const StringNumbers& strings, const Numbers& numbers,
                         const std::optional<ValidBits>& valid, bool large) {
  const uint64_t count = numbers.shape(0);
  if (valid && valid->shape(0) < bytes_for_bits(count)) throw std::invalid_argument("a bitmap is too short");
  const uint8_t* bits = valid ? valid->data() : nullptr;
  auto found = std::make_unique<DecodedBatch>();
  nb::gil_scoped_release released;
  const LeafType type = string_type(large);
  LeafValues values(type);
  strings.gather({numbers.data(), count}, bits, values);
  Validity validity;
  if (bits)
    validity.append_bits(bits, 0, count);
  else
    validity.append_valid(count);
  move_strings(values, validity, found->array);
  return found.release();
}

template <typename Offset>
std::vector<Span> spans(const Exported& array) {
  std::vector<Span> found(array.length());
  const uint8_t* ends = array.buffer(1) + array.offset() * sizeof(Offset);
  for (uint64_t i = 0; i < array.length(); ++i) {
    if (!array.valid(i)) continue;  // the empty string will do
    const auto begin = load<Offset>(ends + i * sizeof(Offset)),
               end = load<Offset>(ends + (i + 1) * sizeof(Offset));
    found[i] = {array.buffer(2) + begin, static_cast<uint64_t>(end - begin)};
  }
  return found;
}

DecodedBatch* number(StringNumbers& strings, const nb::object& array, bool large) {
  const Exported exported(array, 3);
  const uint64_t count = exported.length();
  auto found = std::make_unique<DecodedBatch>();
  nb::gil_scoped_release released;
  Bytes numbers;
  auto* to = reinterpret_cast<int32_t*>(numbers.extend(count * sizeof(int32_t)));
  if (!strings.number(large ? spans<int64_t>(exported) : spans<int32_t>(exported), to)) return nullptr;
  Validity validity;
  for (uint64_t i = 0; i < count; ++i) validity.append_word(exported.valid(i), 1, !exported.valid(i));
  ArrayBuilder built(count);
  built.add_validity(validity);
  built.add_buffer(std::move(numbers));
  built.move_to(found->array);
  return found.release();
}

}  // namespace

void bind_entries(nb::module_& m) {
  nb::class_<DecodedBatch>(m, "DecodedBatch")
      .def_prop_ro("address",
                   [](const DecodedBatch& batch) { return reinterpret_cast<uintptr_t>(&batch.array); })
      .def_ro("bytes_read", &DecodedBatch::bytes_read);
  nb::class_<EntryMap>(m, "EntryMap", "Gives every entry of the dictionaries of a string column a value.");
  nb::class_<StringNumbers, EntryMap>(m, "StringNumbers",
                                      "A list of distinct strings; its places are numbers.")
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
      .def("number", &number, "strings"_a, "large"_a, nb::rv_policy::take_ownership,
           nb::sig("def number(self, strings: object, large: bool) -> DecodedBatch | None"),
           "An array of the numbers of strings, new ones if need be; None if there are too many.")
      .def("strings_of", &strings_of, "numbers"_a, "valid"_a.none(), "large"_a, nb::rv_policy::take_ownership,
           nb::sig("def strings_of(self, numbers: NDArray[numpy.int64], valid: NDArray[numpy.uint8] | None, "
                   "large: bool) -> DecodedBatch"),
           "An array of the strings of some numbers. IndexError for a number that no string has.");
  nb::class_<EntryFunction, EntryMap>(m, "EntryFunction", "Values that a function gives for the strings.")
      .def(nb::init<nb::object, unsigned, bool, uint64_t>(), "function"_a, "width"_a, "is_boolean"_a,
           "most_remembered"_a)
      .def("forget", &EntryFunction::forget, "Drops the values that the function gave so far.");
}

}  // namespace lance
