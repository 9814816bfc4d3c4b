#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "encode/input.hpp"

namespace lance::encode {

// Format 2.1, repetition and definition levels: what one step from leaf to root may hold.
enum class Layer : uint8_t {
  kAllValidItem = 1,
  kAllValidList = 2,
  kNullableItem = 3,
  kNullableList = 4,
  kEmptyableList = 5,
  kNullAndEmptyList = 6,
};

// The levels of one leaf column over one page. `rep` is empty without lists, `def` without nulls and empties.
struct Levels {
  uint64_t rows = 0;
  uint64_t entries = 0;
  uint64_t slots = 0;        // visible entries: each owns a value
  uint64_t valid_slots = 0;  // visible entries with a stored value
  std::vector<uint16_t> rep;
  std::vector<uint16_t> def;
  std::vector<Layer> layers;      // leaf first
  std::vector<bool> null_layers;  // leaf first: whether the layer itself has a null, besides those above it
  uint16_t max_rep = 0;
  uint16_t max_def = 0;
  uint16_t max_visible = 0;
  uint64_t longest_invisible_run = 0;  // consecutive entries without a value

  bool visible(uint64_t entry) const { return def.empty() || def[entry] <= max_visible; }
  bool has_nulls() const { return valid_slots != slots; }

  // Calls `visit(slot, is_null)` for every value slot in order.
  template <typename Visit>
  void for_each_slot(Visit visit) const {
    uint64_t slot = 0;
    for (uint64_t entry = 0; entry < entries; ++entry)
      if (visible(entry)) visit(slot++, !def.empty() && def[entry] != 0);
  }
};

// Builds levels from the outermost layer to the leaf. Levels are numbered from the leaf, so until `finish`
// each layer marks its nulls and empties with provisional codes counted from the outside.
class LevelBuilder {
 public:
  explicit LevelBuilder(uint64_t rows) : rows_(rows), entries_(rows), open_(rows) {}

  // A struct or the leaf itself: `count` slots with their validity.
  void add_item(const Bitmap& validity, uint64_t count);

  // A fixed-size list of structs: `count` lists of `dimension` items, each of which then has an entry of its
  // own. Rows are items from here on. No list may be above.
  void add_fixed_size_list(const Bitmap& validity, uint64_t count, uint64_t dimension);

  struct Children {
    uint64_t start;
    uint64_t stop;
    // One byte per child in [start, stop), 0 for those under a null list; absent when all are referenced.
    std::optional<std::vector<uint8_t>> keep;
  };

  // A list or large_list. `offsets` holds count + 1 integers of the given width from element `offset` on.
  Children add_list(const Bitmap& validity, const Bytes& offsets, unsigned offset_bits, uint64_t offset,
                    uint64_t count, uint64_t child_count);

  Levels finish() const;

 private:
  struct Step {
    bool list;
    bool nulls = false;
    bool empties = false;
  };

  uint16_t next_code() const { return static_cast<uint16_t>(2 * steps_.size() + 1); }
  template <typename T>
  Children add_list_of(const Bitmap& validity, const uint8_t* offsets, uint64_t count, uint64_t child_count);

  uint64_t rows_;
  uint64_t entries_;
  uint64_t open_;  // entries that still own a slot of the next layer
  uint16_t lists_ = 0;
  std::vector<uint16_t> rep_;    // 1 = the outermost list starts here, 0 = none starts
  std::vector<uint16_t> def_;    // provisional codes
  std::vector<uint8_t> closed_;  // entries that end at a null or empty list
  std::vector<Step> steps_;      // outermost first
};

}  // namespace lance::encode
