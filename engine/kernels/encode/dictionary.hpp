#pragma once

#include <optional>

#include "encode/output.hpp"
#include "encode/values.hpp"

namespace lance::encode {

// A dictionary in order of first appearance, with one 32-bit index per value.
struct DictionaryPage {
  Output indices;
  Output items;  // block framing: fixed-width items as they are, variable ones with their header
  uint64_t num_items = 0;
};

// Both give up, returning nothing, as soon as more than `max_items` distinct values or `max_bytes` of
// dictionary and bit-packed indices are needed, or when a sample says that values rarely repeat.
std::optional<DictionaryPage> build_dictionary(const VariableInput& input, uint64_t max_items,
                                               uint64_t max_bytes);
std::optional<DictionaryPage> build_dictionary(const Bytes& values, uint64_t bits, uint64_t offset,
                                               uint64_t count, uint64_t max_items, uint64_t max_bytes);

}  // namespace lance::encode
