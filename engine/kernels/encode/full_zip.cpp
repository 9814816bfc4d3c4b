#include "encode/full_zip.hpp"

#include <algorithm>
#include <bit>

namespace lance::encode {
namespace {

// Writes control words and notes where rows begin.
class Zipper {
 public:
  Zipper(FullZipPage& page, const Levels& levels) : page_(page), levels_(levels) {
    for (uint16_t rep : levels.rep) max_rep_ = std::max(max_rep_, rep);
    for (uint16_t def : levels.def) max_def_ = std::max(max_def_, def);
    page.bits_rep = std::bit_width(max_rep_);
    page.bits_def = std::bit_width(max_def_);
    const unsigned bits = page.bits_rep + page.bits_def;
    word_bytes_ = bits == 0 ? 0 : bits <= 8 ? 1 : bits <= 16 ? 2 : 4;
  }

  size_t word_bytes() const { return word_bytes_; }

  // Calls `write(slot)` after the control word of each entry whose value is stored.
  template <typename Write>
  void run(bool nulls_have_values, Write write) {
    Output& out = page_.data;
    uint64_t slot = 0;
    for (uint64_t entry = 0; entry < levels_.entries; ++entry) {
      const uint32_t rep = levels_.rep.empty() ? 0 : levels_.rep[entry];
      const uint32_t def = levels_.def.empty() ? 0 : levels_.def[entry];
      if (levels_.rep.empty() || rep == levels_.max_rep) row_starts_.push_back(out.size());
      const uint32_t word = (rep << page_.bits_def) | def;
      if (word_bytes_ != 0) out.append(&word, word_bytes_);
      if (!levels_.visible(entry)) continue;
      if (def == 0 || nulls_have_values) write(slot);
      ++slot;
    }
    row_starts_.push_back(out.size());
  }

  void write_index() {
    require(row_starts_.size() == levels_.rows + 1, "levels and rows disagree");
    const uint64_t total = row_starts_.back();
    const size_t width = total <= 0xFF ? 1 : total <= 0xFFFF ? 2 : total <= 0xFFFFFFFF ? 4 : 8;
    uint8_t* at = page_.repetition_index.extend(row_starts_.size() * width);
    for (uint64_t start : row_starts_) {
      std::memcpy(at, &start, width);
      at += width;
    }
  }

 private:
  FullZipPage& page_;
  const Levels& levels_;
  uint16_t max_rep_ = 0, max_def_ = 0;
  size_t word_bytes_ = 0;
  std::vector<uint64_t> row_starts_;
};

}  // namespace

FullZipPage encode_full_zip_fixed(const Bytes& values, uint64_t bits, uint64_t offset, uint64_t count,
                                  const std::vector<FixedSizeListLayer>& layers, const Levels& levels) {
  require(count == levels.slots, "levels and values disagree about the number of slots");
  uint64_t items = 1, validity_bytes = 0;
  for (const auto& layer : layers) {
    require(layer.dimension > 0 && layer.dimension < (uint64_t{1} << 31) / items,
            "unusable fixed-size list dimension");
    items *= layer.dimension;
    if (layer.validity.present()) validity_bytes += (items + 7) / 8;
  }
  require((items * bits) % 8 == 0, "rows of a full-zip page are whole bytes");
  if (bits != 0)
    values.require_values(bits, offset, count * items);  // lists of nothing but nulls have no items
  const uint64_t row_bytes = items * bits / 8;

  FullZipPage page;
  Zipper zipper(page, levels);
  page.data.reserve(levels.entries * zipper.word_bytes() + count * (row_bytes + validity_bytes));
  zipper.run(true, [&](uint64_t slot) {
    uint64_t per_row = 1;
    for (const auto& layer : layers) {
      per_row *= layer.dimension;
      if (!layer.validity.present()) continue;
      copy_bits(layer.validity.data(), layer.validity.offset() + slot * per_row, per_row,
                page.data.extend((per_row + 7) / 8));
    }
    const uint64_t from = offset + slot * items;
    if (bits % 8 == 0)
      page.data.append(values.data.data() + from * (bits / 8), row_bytes);
    else
      copy_bits(values.data.data(), from * bits, items * bits, page.data.extend(row_bytes));
  });
  if (!levels.rep.empty()) zipper.write_index();
  return page;
}

FullZipPage encode_full_zip_variable(const VariableInput& input, const Levels& levels) {
  require(input.count() == levels.slots, "levels and values disagree about the number of slots");
  const size_t length_bytes = input.offset_bits() / 8;
  FullZipPage page;
  Zipper zipper(page, levels);
  page.data.reserve(levels.entries * (zipper.word_bytes() + length_bytes) + input.total_bytes());
  zipper.run(false, [&](uint64_t slot) {
    const auto value = input[slot];
    const uint64_t length = value.size();
    page.data.append(&length, length_bytes);
    page.data.append(value.data(), value.size());
  });
  zipper.write_index();
  return page;
}

}  // namespace lance::encode
