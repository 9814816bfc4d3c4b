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

// Collects the validity of slots; entries that own none are passed over without a branch.
class SlotBits {
 public:
  void add(bool valid, bool owns, Validity& out) {
    word_ |= static_cast<uint64_t>(valid & owns) << filled_;
    filled_ += owns;
    if (filled_ == 64) finish(out);
  }
  void finish(Validity& out) {
    if (filled_) out.append_word(word_, filled_, filled_ - static_cast<uint64_t>(std::popcount(word_)));
    word_ = 0;
    filled_ = 0;
  }

 private:
  uint64_t word_ = 0;
  unsigned filled_ = 0;
};

}  // namespace

uint64_t count_at_most(const uint16_t* levels, uint64_t count, unsigned limit) {
  constexpr uint64_t kAtOnce = 0x8000;  // sums fit the lanes of the comparisons
  uint64_t total = 0;
  for (uint64_t first = 0; first < count; first += kAtOnce) {
    uint64_t end = std::min(count, first + kAtOnce);
    uint16_t sum = 0;
    for (uint64_t i = first; i < end; ++i) sum = static_cast<uint16_t>(sum + (levels[i] <= limit));
    total += sum;
  }
  return total;
}

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
  for (unsigned lists = 0; lists <= num_lists_; ++lists) {
    auto after = std::upper_bound(owner_.begin(), owner_.end(), lists);
    owned_by_.push_back(static_cast<unsigned>(after - owner_.begin()) - 1);
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
    return out.validity.append_valid(count_at_most(def, count, owned_by_[lists]));
  }
  if (num_lists_ == 0) {
    for (uint64_t i = 0; i < count; i += 64) {
      uint64_t step = std::min<uint64_t>(64, count - i);
      uint64_t word = at_most(def + i, step, base);
      out.validity.append_word(word, step, step - static_cast<uint64_t>(std::popcount(word)));
    }
    return;
  }
  SlotBits slots;
  for (uint64_t i = 0; i < count; ++i) slots.add(def[i] <= base, def[i] <= owned_by_[lists], out.validity);
  slots.finish(out.validity);
}

// One layer of lists: its levels, and the highest of those that own a slot of it.
struct LevelMap::ListStep {
  unsigned base;
  unsigned top;
  unsigned owned;
  RepDefLayer kind;
};

// Appends the lists that `count` entries make; leaves the levels of the layer above in `rep` and `def`.
// Returns the number of lists, of their items, and of the entries that are left. Branches would follow the
// lengths of lists, which are hard to foresee.
template <typename Offset>
std::array<uint64_t, 3> LevelMap::unravel_list(uint16_t* rep, uint16_t* def, uint64_t count, ListStep step,
                                               LayerValues& out) {
  check(count == 0 || rep[0] != 0, "a page of lists starts inside a list");
  uint64_t before = out.offsets.size();
  auto first = uint64_t{load<Offset>(out.offsets.data() + before - sizeof(Offset))};
  out.offsets.extend(count * sizeof(Offset));
  auto* starts = reinterpret_cast<Offset*>(out.offsets.data() + before - sizeof(Offset));
  const unsigned null_list = nullable_list(step.kind) ? step.base + 1 : UINT32_MAX;
  const unsigned empty_list = emptyable_list(step.kind) ? step.top : UINT32_MAX;
  uint64_t slots = 0, items = 0, kept = 0;
  SlotBits bits;
  for (uint64_t i = 0; i < count; ++i) {
    const unsigned level = def ? def[i] : 0;
    const bool begins = rep[i] != 0;
    const bool owns = begins & (level <= step.owned);
    const bool null = (level > step.top) | (level == null_list);
    starts[slots] = static_cast<Offset>(first + items);
    bits.add(!null, owns, out.validity);
    slots += owns;
    items += static_cast<uint64_t>(!begins) | (owns & !null & (level != empty_list));
    rep[kept] = static_cast<uint16_t>(rep[i] - 1);
    if (def) def[kept] = static_cast<uint16_t>(level);
    kept += begins;
  }
  bits.finish(out.validity);
  check_offset_range<Offset>(first + items);
  starts[slots] = static_cast<Offset>(first + items);
  out.offsets.shrink_to(before + slots * sizeof(Offset));
  return {slots, items, kept};
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
        // Every item repeats the levels of its list; the first one represents all.
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
    ListStep step{base, top, owned_by_[lists + 1], kind};
    auto [slots, child, kept] = values.kind == LayerKind::kLargeList
                                    ? unravel_list<uint64_t>(rep, def, count, step, values)
                                    : unravel_list<uint32_t>(rep, def, count, step, values);
    check(child == children, "the levels and the values of a page disagree");
    children = slots;
    count = kept;
    base = top;
    ++lists;
  }
}

}  // namespace lance
