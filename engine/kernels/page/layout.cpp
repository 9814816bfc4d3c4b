#include "page/layout.hpp"

#include <algorithm>
#include <iterator>

#include "page/compressive.hpp"
#include "page/description.hpp"

namespace lance {

namespace {

// The number of the mini-block layout among the alternatives of PageLayout.
constexpr uint64_t kMiniBlock = 1;

unsigned narrow(uint64_t width) {
  return static_cast<unsigned>(std::min<uint64_t>(width, UINT32_MAX));
}

std::vector<uint8_t> layers_of(const Message& message, uint32_t field) {
  std::vector<uint8_t> layers;
  for (uint64_t layer : message.numbers(field)) {
    if (layer < 1 || layer > 6)
      unsupported("a page declares a layer of the unknown kind " + std::to_string(layer));
    layers.push_back(static_cast<uint8_t>(layer));
  }
  return layers;
}

// ---- mini-block ----------------------------------------------------------------------------------------

PagePtr open_mini_block(const Message& message, uint64_t rows, std::vector<Range> buffers) {
  const uint64_t depth = message.number(8);
  if (depth > 1) unsupported("a repetition index of depth " + std::to_string(depth));
  Message values = message.message(3);
  MiniBlockDescription d;
  d.rows = rows;
  d.buffers = std::move(buffers);
  d.layers = layers_of(message, 6);
  d.rep = optional_block(message, 1);
  d.def = optional_block(message, 2);
  d.values = value_decoder(values);
  d.dictionary = optional_block(message, 4);
  d.dictionary_items = message.number(5);
  d.index_width = d.dictionary ? narrow(value_bits(values) / 8) : 0;
  d.num_buffers = message.number(7);
  d.num_items = message.number(9);
  d.large_chunks = message.number(10) != 0;
  d.repetition_index = depth > 0;
  return make_mini_block(std::move(d));
}

std::string describe_mini_block(const Message& message) {
  std::string values = describe_compressive(message.message(3));
  if (message.has(4)) values = "dictionary[" + std::to_string(message.number(5)) + "](" + values + ")";
  return "mini-block(" + values + ")";
}

// ---- constant ------------------------------------------------------------------------------------------

PagePtr open_constant(const Message& message, uint64_t rows, std::vector<Range> buffers) {
  ConstantDescription d;
  d.rows = rows;
  d.buffers = std::move(buffers);
  d.layers = layers_of(message, 5);
  if (std::optional<Span> value = message.bytes(6)) {
    d.has_inline_value = true;
    d.inline_value.assign(value->data, value->data + value->size);
  }
  d.rep = optional_block(message, 7);
  d.def = optional_block(message, 8);
  d.num_rep = message.number(9);
  d.num_def = message.number(10);
  return make_constant(std::move(d));
}

std::string describe_constant(const Message& message) {
  return message.has(6) ? "constant" : "constant(null)";
}

// ---- full-zip ------------------------------------------------------------------------------------------

PagePtr open_full_zip(const Message& message, uint64_t rows, std::vector<Range> buffers) {
  FullZipDescription d;
  d.rows = rows;
  d.buffers = std::move(buffers);
  d.layers = layers_of(message, 8);
  d.bits_rep = narrow(message.number(1));
  d.bits_def = narrow(message.number(2));
  d.bits_per_value = message.number(3);
  d.bits_per_offset = narrow(message.number(4));
  check(!d.bits_per_value || !d.bits_per_offset, "values are of fixed and of variable width");
  read_single_values(message.message(7), d);
  return make_full_zip(std::move(d));
}

std::string describe_full_zip(const Message& message) {
  return "full-zip(" + describe_compressive(message.message(7)) + ")";
}

// ---- blobs ---------------------------------------------------------------------------------------------

PagePtr open_blob(const Message& message, uint64_t rows, std::vector<Range> buffers) {
  Message::Alternative inner = message.message(1).alternative(kMiniBlock);
  if (inner.number != kMiniBlock) unsupported("the descriptors of blobs are not in a mini-block layout");
  PagePtr descriptors = open_mini_block(inner.body, rows, buffers);
  return make_blob(std::move(descriptors), std::move(buffers), layers_of(message, 2), false);
}

std::string describe_blob(const Message&) {
  return "blob";
}

// ---- the table -----------------------------------------------------------------------------------------

struct Layout {
  const char* name;
  PagePtr (*open)(const Message& message, uint64_t rows, std::vector<Range> buffers);
  std::string (*describe)(const Message& message);
};

// By the number of the alternative in PageLayout, from 1 on; a name alone has no decoder here.
constexpr Layout kTable[] = {
    {"mini-block", open_mini_block, describe_mini_block},
    {"constant", open_constant, describe_constant},
    {"full-zip", open_full_zip, describe_full_zip},
    {"blob", open_blob, describe_blob},
    {"sparse_layout", nullptr, nullptr},
};

}  // namespace

PagePtr open_layout(const Message& layout, uint64_t rows, std::vector<Range> buffers) {
  Message::Alternative found = layout.alternative(std::size(kTable));
  if (found.number == 0 || found.number > std::size(kTable))
    without_decoder(unknown_alternative("PageLayout", found));
  const Layout& kind = kTable[found.number - 1];
  if (!kind.open) without_decoder(kind.name);
  return inside(kind.name, [&] { return kind.open(found.body, rows, std::move(buffers)); });
}

std::string describe_layout(const Message& layout) {
  Message::Alternative found = layout.alternative(std::size(kTable));
  if (found.number == 0) return "unknown";
  if (found.number > std::size(kTable)) return unknown_alternative("PageLayout", found);
  const Layout& kind = kTable[found.number - 1];
  return kind.describe ? kind.describe(found.body) : kind.name;
}

}  // namespace lance
