#pragma once

#include <memory>
#include <variant>
#include <vector>

#include "encode/values.hpp"

namespace lance::encode {

// `width` bytes for each row, from row number `offset` of the buffer on.
struct FixedField {
  Bytes bytes;
  uint64_t width = 0;
  uint64_t offset = 0;
};

using PackedField = std::variant<FixedField, std::shared_ptr<const VariableInput>>;

// The rows of a variable packed struct (format 2.2): field after field, strings after their length. The
// offsets of the result have 32 bits.
std::shared_ptr<const VariableInput> pack_rows(const std::vector<PackedField>& fields, uint64_t count);

}  // namespace lance::encode
