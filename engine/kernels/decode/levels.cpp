#include "decode/levels.hpp"

#include <algorithm>
#include <bit>

namespace lance {

namespace {

bool is_list(RepDefLayer layer) {
  return layer != RepDefLayer::kAllValidItem && layer != RepDefLayer::kNullableItem;
}

unsigned levels_of(RepDefLayer layer) {
  switch (layer) {
    case RepDefLayer::kAllValidItem:
    case RepDefLayer::kAllValidList:
      return 0;
    case RepDefLayer::kNullAndEmptyList:
      return 2;
    default:
      return 1;
  }
}

bool nullable_list(RepDefLayer layer) {
  return layer == RepDefLayer::kNullableList || layer == RepDefLayer::kNullAndEmptyList;
}

bool emptyable_list(RepDefLayer layer) {
  return layer == RepDefLayer::kEmptyableList || layer == RepDefLayer::kNullAndEmptyList;
}

// Bit i of the result says whether def[i] <= limit; 64 comparisons that vectorise.
uint64_t at_most(const uint16_t* def, uint64_t count, unsigned limit) {
  uint64_t word = 0;
  for (uint64_t i = 0; i < count; ++i) word |= static_cast<uint64_t>(def[i] <= limit) << i;
  return word;
}

template <typename Offset>
void push_offset(LayerValues& out, uint64_t offset) {
  check_offset_range<Offset>(offset);
  store<Offset>(out.offsets.extend(sizeof(Offset)), static_cast<Offset>(offset));
}

}  // namespace

LevelMap::LevelMap(std::vector<uint8_t> layers) {
  check(!layers.empty(), "a page declares no layers");
  owner_.push_back(0);
  for (uint8_t number : layers) {
    check(number >= 1 && number <= 6, "a page declares an unknown kind of layer");
    auto layer = static_cast<RepDefLayer>(number);
    num_lists_ += is_list(layer);
    owner_.insert(owner_.end(), levels_of(layer), num_lists_);
    max_def_ += levels_of(layer);
    if (num_lists_ == 0) max_visible_ = max_def_;
    layers_.push_back(layer);
  }
}

void LevelMap::check_path(const std::vector<Layer>& path) const {
  bool fits = path.size() == layers_.size();
  for (size_t i = 0; fits && i < path.size(); ++i) fits = is_list(layers_[i]) == path[i].list();
  check(fits, "the layers of a page do not fit the nesting of the column");
}

void LevelMap::append_items(size_t layer, const uint16_t* def, uint64_t count, unsigned base, unsigned lists,
                            LayerValues& out) const {
  if (!def || layers_[layer] == RepDefLayer::kAllValidItem) {
    // Everything valid: count the slots only.
    if (!def || num_lists_ == 0) return out.validity.append_valid(count);
    uint64_t slots = 0;
    for (uint64_t i = 0; i < count; ++i) slots += owner_[def[i]] <= lists;
    return out.validity.append_valid(slots);
  }
  if (num_lists_ == 0) {
    for (uint64_t i = 0; i < count; i += 64) {
      uint64_t step = std::min<uint64_t>(64, count - i);
      uint64_t word = at_most(def + i, step, base);
      out.validity.append_word(word, step, step - static_cast<uint64_t>(std::popcount(word)));
    }
    return;
  }
  uint64_t word = 0;
  unsigned filled = 0;
  unsigned nulls = 0;
  for (uint64_t i = 0; i < count; ++i) {
    if (owner_[def[i]] > lists) continue;
    bool valid = def[i] <= base;
    word |= static_cast<uint64_t>(valid) << filled;
    nulls += !valid;
    if (++filled == 64) {
      out.validity.append_word(word, 64, nulls);
      word = 0;
      filled = nulls = 0;
    }
  }
  if (filled) out.validity.append_word(word, filled, nulls);
}

void LevelMap::unravel(uint16_t* rep, uint16_t* def, uint64_t count, uint64_t num_values,
                       std::vector<LayerValues>& out) const {
  check(num_lists_ == 0 || rep, "a column of lists lacks repetition levels");
  if (def && max_def_ < 0xFFFF) {
    uint16_t largest = 0;
    for (uint64_t i = 0; i < count; ++i) largest = std::max(largest, def[i]);
    check(largest <= max_def_, "a definition level is out of range");
  }
  unsigned base = 0;
  unsigned lists = 0;
  uint64_t children = num_values;  // slots that the layer below appended in this call
  for (size_t layer = 0; layer < layers_.size(); ++layer) {
    RepDefLayer kind = layers_[layer];
    LayerValues& values = out[layer];
    unsigned top = base + levels_of(kind);
    if (!is_list(kind)) {
      if (values.kind == LayerKind::kFixedSizeList) {
        // Every item repeats the levels of its list; the first one speaks for all.
        check(num_lists_ == 0 && count % values.dimension == 0,
              "a fixed-size list of structs is cut in the middle");
        count /= values.dimension;
        children /= values.dimension;
        for (uint64_t i = 0; def && i < count; ++i) def[i] = def[i * values.dimension];
      }
      uint64_t before = values.validity.length();
      append_items(layer, def, count, base, lists, values);
      uint64_t appended = values.validity.length() - before;
      check(appended == children, "the levels and the values of a page disagree");
      base = top;
      continue;
    }
    const bool wide = values.kind == LayerKind::kLargeList;
    uint64_t first_child =
        wide ? static_cast<uint64_t>(load<int64_t>(values.offsets.data() + values.offsets.size() - 8))
             : static_cast<uint64_t>(load<int32_t>(values.offsets.data() + values.offsets.size() - 4));
    uint64_t child = 0;
    uint64_t kept = 0;
    uint64_t slots = 0;
    auto push = [&](bool valid) {
      if (slots++)
        wide ? push_offset<int64_t>(values, first_child + child)
             : push_offset<int32_t>(values, first_child + child);
      if (valid)
        values.validity.append_valid(1);
      else
        values.validity.append_null(1);
    };
    for (uint64_t i = 0; i < count; ++i) {
      if (rep[i] == 0) {
        ++child;
        continue;
      }
      uint16_t level = def ? def[i] : 0;
      if (owner_[level] <= lists + 1) {
        bool null = level > top || (nullable_list(kind) && level == base + 1);
        bool empty = emptyable_list(kind) && level == top;
        push(!null);
        if (!null && !empty) ++child;
      }
      rep[kept] = rep[i] - 1;
      if (def) def[kept] = level;
      ++kept;
    }
    if (slots)
      wide ? push_offset<int64_t>(values, first_child + child)
           : push_offset<int32_t>(values, first_child + child);
    check(child == children, "the levels and the values of a page disagree");
    children = slots;
    count = kept;
    base = top;
    ++lists;
  }
}

}  // namespace lance
