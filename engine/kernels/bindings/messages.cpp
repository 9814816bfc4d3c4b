// Serialised messages: single fields, and the contents of lists of fragments.
#include "core/messages.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/pair.h>

#include <string>
#include <utility>

#include "bindings/arrays.hpp"
#include "bindings/bindings.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace lance {
namespace {

Span span_of(const nb::bytes& data) {
  return {static_cast<const uint8_t*>(data.data()), data.size()};
}

std::pair<nb::bytes, nb::bytes> split_message(const nb::bytes& message, uint64_t number) {
  const Span data = span_of(message);
  std::string chosen, rest;
  MessageReader reader(data);
  MessageField field;
  while (reader.next(field)) {
    auto& part = field.number == number && field.wire_type == 2 ? chosen : rest;
    part.append(reinterpret_cast<const char*>(data.data + field.begin), field.end - field.begin);
  }
  return {nb::bytes(chosen.data(), chosen.size()), nb::bytes(rest.data(), rest.size())};
}

OutputArray<uint64_t> fragment_summaries(const nb::bytes& message) {
  const auto found = summarize_fragments(span_of(message));
  constexpr size_t kRows = 5;
  const size_t count = found.size();
  Owned<uint64_t> out(count * kRows);
  uint64_t* numbers = out.data();
  for (size_t i = 0; i < count; ++i) {
    numbers[i] = found[i].size;
    numbers[count + i] = found[i].id;
    numbers[2 * count + i] = found[i].rows;
    numbers[3 * count + i] = found[i].deleted;
    numbers[4 * count + i] = found[i].flags;
  }
  return out.array({kRows, count});
}

}  // namespace

void bind_messages(nb::module_& m) {
  m.def("split_message", &split_message, "message"_a, "number"_a,
        "The fields of a serialised message with this number and a length, and all others, in order.");
  m.def("fragment_summaries", &fragment_summaries, "message"_a,
        "Shape (5, fragments) of a message whose fields are all fragments: size, id, physical rows, "
        "deleted "
        "rows, and flags (1: has a deletion file, 2: has spilled row lineage).");
}

}  // namespace lance
