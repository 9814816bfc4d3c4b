#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "decode/leaf.hpp"

namespace lance {

// One step on the path from the leaf to the root, as the schema has it.
enum class LayerKind : uint8_t { kItem, kList, kLargeList, kFixedSizeList };

struct Layer {
  LayerKind kind = LayerKind::kItem;
  uint64_t dimension = 0;  // of a fixed-size list of structs

  bool list() const { return kind == LayerKind::kList || kind == LayerKind::kLargeList; }
};

// Validity and, for lists, offsets of one step of the path; grows with the values.
class LayerValues {
 public:
  explicit LayerValues(Layer layer) : kind(layer.kind), dimension(layer.dimension) {
    if (kind == LayerKind::kList) store<int32_t>(offsets.extend(4), 0);
    if (kind == LayerKind::kLargeList) store<int64_t>(offsets.extend(8), 0);
  }

  LayerKind kind;
  uint64_t dimension;
  Validity validity;
  Bytes offsets;
};

// The kinds of layer a page declares (format 2.1, repetition and definition levels).
enum class RepDefLayer : uint8_t {
  kAllValidItem = 1,
  kAllValidList = 2,
  kNullableItem = 3,
  kNullableList = 4,
  kEmptyableList = 5,
  kNullAndEmptyList = 6,
};

// How many of `levels` are no higher than `limit`.
uint64_t count_at_most(const uint16_t* levels, uint64_t count, unsigned limit);

// What the level numbers of one page mean.
class LevelMap {
 public:
  explicit LevelMap(std::vector<uint8_t> layers);

  const std::vector<RepDefLayer>& layers() const { return layers_; }
  unsigned max_def() const { return max_def_; }
  unsigned max_rep() const { return num_lists_; }
  bool has_lists() const { return num_lists_ > 0; }
  // Entries up to this definition level own a slot among the values.
  unsigned max_visible() const { return max_visible_; }
  bool visible(uint16_t def) const { return def <= max_visible_; }
  // Throws unless the page's layers are what the schema says.
  void check_path(const std::vector<Layer>& path) const;

  // Appends what `count` entries say to the layers of the path. `rep` may be null without lists, `def` when
  // nothing is null or empty. `num_values` is how many leaf slots these entries own. Both arrays are used up.
  void unravel(uint16_t* rep, uint16_t* def, uint64_t count, uint64_t num_values,
               std::vector<LayerValues>& out) const;

 private:
  void append_items(size_t layer, const uint16_t* def, uint64_t count, unsigned base, unsigned lists,
                    LayerValues& out) const;

  std::vector<RepDefLayer> layers_;
  struct ListStep;
  template <typename Offset>
  static std::array<uint64_t, 3> unravel_list(uint16_t* rep, uint16_t* def, uint64_t count, ListStep step,
                                              LayerValues& out);

  std::vector<unsigned> owned_by_;  // per number of list layers: the last level whose owner is among them
  std::vector<unsigned> owner_;     // per definition level: list layers at or below the layer that owns it
  unsigned max_def_ = 0;
  unsigned num_lists_ = 0;
  unsigned max_visible_ = 0;
};

}  // namespace lance
