#include "encode/packed_row.hpp"

#include "encode/variable_builder.hpp"

namespace lance::encode {
namespace {

void append(const FixedField& field, uint64_t row, Output& out) {
  out.append(field.bytes.data.data() + (field.offset + row) * field.width, field.width);
}

void append(const std::shared_ptr<const VariableInput>& field, uint64_t row, Output& out) {
  const auto value = (*field)[row];
  const uint64_t length = value.size();
  out.append(&length, field->offset_bits() / 8);
  out.append(value.data(), value.size());
}

void check(const FixedField& field, uint64_t count) {
  require(field.width > 0 && field.width < (uint64_t{1} << 31), "unusable width of a packed field");
  field.bytes.require_values(field.width * 8, field.offset, count);
}

void check(const std::shared_ptr<const VariableInput>& field, uint64_t count) {
  require(field != nullptr && field->count() == count, "the fields of a packed struct have unequal lengths");
}

}  // namespace

std::shared_ptr<const VariableInput> pack_rows(const std::vector<PackedField>& fields, uint64_t count) {
  for (const auto& field : fields) std::visit([&](const auto& each) { check(each, count); }, field);
  VariableBuilder rows(32, count);
  for (uint64_t row = 0; row < count; ++row) {
    for (const auto& field : fields)
      std::visit([&](const auto& each) { append(each, row, rows.bytes()); }, field);
    rows.end_value();
  }
  return rows.finish();
}

}  // namespace lance::encode
