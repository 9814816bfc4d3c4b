#include "encode/levels.hpp"

#include <algorithm>

namespace lance::encode {

void LevelBuilder::add_item(const Bitmap& validity, uint64_t count) {
  require(count == open_, "a layer has another number of slots than its parent");
  Step step{.list = false};
  if (validity.present()) {
    const uint16_t code = next_code();
    if (def_.empty()) def_.assign(entries_, 0);
    bool any = false;
    if (closed_.empty()) {
      uint16_t* def = def_.data();
      for (uint64_t i = 0; i < count; ++i) {
        const bool marks = !validity[i] && def[i] == 0;
        def[i] = marks ? code : def[i];
        any |= marks;
      }
    } else {
      uint64_t slot = 0;
      for (uint64_t i = 0; i < entries_; ++i) {
        if (closed_[i]) continue;
        if (!validity[slot++] && def_[i] == 0) {
          def_[i] = code;
          any = true;
        }
      }
    }
    step.nulls = any;
  }
  steps_.push_back(step);
}

void LevelBuilder::add_fixed_size_list(const Bitmap& validity, uint64_t count, uint64_t dimension) {
  require(lists_ == 0, "a fixed-size list of structs stands inside a list");
  require(dimension > 0 && entries_ <= (uint64_t{1} << 40) / dimension, "unusable fixed-size list dimension");
  add_item(validity, count);
  if (!def_.empty()) {
    std::vector<uint16_t> def(entries_ * dimension);
    for (uint64_t i = 0; i < entries_; ++i)
      std::fill_n(def.begin() + static_cast<ptrdiff_t>(i * dimension), dimension, def_[i]);
    def_ = std::move(def);
  }
  rows_ *= dimension;
  entries_ *= dimension;
  open_ *= dimension;
}

LevelBuilder::Children LevelBuilder::add_list(const Bitmap& validity, const Bytes& offsets,
                                              unsigned offset_bits, uint64_t offset, uint64_t count,
                                              uint64_t child_count) {
  require(count == open_, "a layer has another number of slots than its parent");
  require(offset_bits == 32 || offset_bits == 64, "list offsets have 32 or 64 bits");
  if (count == 0 && offsets.data.empty()) {
    steps_.push_back({.list = true});
    ++lists_;
    if (rep_.empty()) rep_.assign(entries_, 0);
    return {0, 0, std::nullopt};
  }
  offsets.require_values(offset_bits, offset, count + 1);
  const uint8_t* first = offsets.data.data() + offset * (offset_bits / 8);
  return offset_bits == 32 ? add_list_of<int32_t>(validity, first, count, child_count)
                           : add_list_of<int64_t>(validity, first, count, child_count);
}

template <typename T>
LevelBuilder::Children LevelBuilder::add_list_of(const Bitmap& validity, const uint8_t* offsets,
                                                 uint64_t count, uint64_t child_count) {
  const auto at = [offsets](uint64_t i) { return load<T>(offsets + i * sizeof(T)); };
  const T begin = at(0), end = at(count);
  require(begin >= 0 && end >= begin && static_cast<uint64_t>(end) <= child_count,
          "list offsets point outside the child values");
  const uint16_t null_code = next_code(), empty_code = null_code + 1;
  Step step{.list = true};
  const uint64_t children = static_cast<uint64_t>(end - begin);
  std::vector<uint16_t> rep(entries_ + children), def(entries_ + children, 0);
  std::vector<uint8_t> closed(entries_ + children, 0);
  const uint16_t starts = ++lists_;
  std::optional<std::vector<uint8_t>> keep;
  uint64_t written = 0, open = 0, slot = 0;
  bool any_def = false;

  for (uint64_t i = 0; i < entries_; ++i) {
    const uint16_t outer_rep = rep_.empty() ? 0 : rep_[i];
    const uint16_t outer_def = def_.empty() ? 0 : def_[i];
    if (!closed_.empty() && closed_[i]) {
      rep[written] = outer_rep;
      def[written] = outer_def;
      closed[written++] = 1;
      any_def = true;
      continue;
    }
    const T from = at(slot), to = at(slot + 1);
    require(from >= begin && to >= from && to <= end, "list offsets decrease");
    const uint64_t length = static_cast<uint64_t>(to - from);
    uint16_t own_def = outer_def;
    if (own_def == 0 && validity.present() && !validity[slot]) {
      own_def = null_code;
      step.nulls = true;
    }
    ++slot;
    rep[written] = outer_rep != 0 ? outer_rep : starts;
    if (own_def != 0) {
      if (length != 0) {
        if (!keep) keep.emplace(children, 1);
        std::fill_n(keep->begin() + (from - begin), length, 0);
      }
    } else if (length == 0) {
      own_def = empty_code;
      step.empties = true;
    } else {
      std::fill_n(rep.begin() + written + 1, length - 1, 0);
      written += length;
      open += length;
      continue;
    }
    any_def = true;
    def[written] = own_def;
    closed[written++] = 1;
  }
  rep.resize(written);
  def.resize(written);
  closed.resize(written);
  rep_ = std::move(rep);
  if (any_def) {
    def_ = std::move(def);
    closed_ = std::move(closed);
  } else {
    def_.clear();
    closed_.clear();
  }
  entries_ = written;
  open_ = open;
  steps_.push_back(step);
  return {static_cast<uint64_t>(begin), static_cast<uint64_t>(end), std::move(keep)};
}

Levels LevelBuilder::finish() const {
  require(!steps_.empty() && !steps_.back().list, "the leaf layer is missing");
  Levels levels;
  levels.rows = rows_;
  levels.entries = entries_;
  levels.max_rep = lists_;

  // Number the definition levels from the leaf outwards and translate the provisional codes.
  std::vector<uint16_t> final_def(2 * steps_.size() + 1, 0);
  // Below a struct with nulls everything counts as nullable, down to the next list: a reader that looks at
  // the inner layers only must find the null there too.
  std::vector<Step> declared = steps_;
  for (size_t i = 1; i < declared.size(); ++i)
    if (declared[i - 1].nulls && !declared[i - 1].list) declared[i].nulls = true;
  bool before_first_list = true;
  for (size_t i = steps_.size(); i-- > 0;) {
    const Step& step = declared[i];
    levels.null_layers.push_back(steps_[i].nulls);
    if (step.list) before_first_list = false;
    if (step.nulls) final_def[2 * i + 1] = ++levels.max_def;
    if (step.empties) final_def[2 * i + 2] = ++levels.max_def;
    if (before_first_list) levels.max_visible = levels.max_def;
    if (!step.list)
      levels.layers.push_back(step.nulls ? Layer::kNullableItem : Layer::kAllValidItem);
    else if (step.nulls)
      levels.layers.push_back(step.empties ? Layer::kNullAndEmptyList : Layer::kNullableList);
    else
      levels.layers.push_back(step.empties ? Layer::kEmptyableList : Layer::kAllValidList);
  }
  if (levels.max_def != 0) {
    levels.def.resize(entries_);
    for (uint64_t i = 0; i < entries_; ++i) levels.def[i] = final_def[def_[i]];
  }
  if (lists_ != 0) {
    levels.rep.resize(entries_);
    for (uint64_t i = 0; i < entries_; ++i) {
      levels.rep[i] = rep_[i] == 0 ? 0 : static_cast<uint16_t>(lists_ - rep_[i] + 1);
    }
  }

  if (levels.def.empty()) {
    levels.slots = levels.valid_slots = entries_;
  } else {
    uint64_t run = 0;
    for (uint16_t def : levels.def) {
      levels.valid_slots += def == 0;
      levels.slots += def <= levels.max_visible;
      run = def <= levels.max_visible ? 0 : run + 1;
      levels.longest_invisible_run = std::max(levels.longest_invisible_run, run);
    }
  }
  return levels;
}

}  // namespace lance::encode
