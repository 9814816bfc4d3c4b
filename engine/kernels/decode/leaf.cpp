#include "decode/leaf.hpp"

namespace lance {

namespace {

template <typename Offset>
void repeat_last_offset(LeafValues& out, uint64_t count) {
  auto end = static_cast<Offset>(out.data.size());
  Offset* offsets = out.extend_offsets<Offset>(count);
  for (uint64_t i = 0; i < count; ++i) offsets[i] = end;
}

}  // namespace

void LeafValues::append_placeholders(uint64_t count) {
  if (!type_->dims.empty()) check_placeholders(bytes_for_bits(count * items_));
  switch (type_->kind) {
    case LeafKind::kNull:
      length_ += count;
      break;
    case LeafKind::kBits:
      extend_same(false, count);
      break;
    case LeafKind::kFixed:
      check_placeholders(count * value_bytes());
      zero_bytes(extend_fixed(count), count * value_bytes());
      break;
    case LeafKind::kVariable32:
      repeat_last_offset<int32_t>(*this, count);
      break;
    case LeafKind::kVariable64:
      repeat_last_offset<int64_t>(*this, count);
      break;
  }
  uint64_t items = count;
  for (size_t layer = 0; layer < item_validity.size(); ++layer) {
    items *= type_->dims[layer];
    item_validity[layer].append_valid(items);
  }
}

}  // namespace lance
