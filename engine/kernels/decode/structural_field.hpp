#pragma once

#include <memory>
#include <vector>

#include "decode/column.hpp"

namespace lance {

// The shape of a field over its leaves.
struct Node {
  enum class Kind : uint8_t { kLeaf, kStruct, kList, kLargeList, kFixedSizeList };
  Kind kind;
  std::vector<std::shared_ptr<const Node>> children;
  LeafColumnPtr leaf;
  std::vector<LeafType> packed;  // a leaf that is a packed struct: its children
  uint64_t dimension = 0;        // items per list of a fixed-size list
};

using NodePtr = std::shared_ptr<const Node>;

// A field of format 2.1 and later: only leaves are stored, and each carries the levels of everything above
// it.
class StructuralField : public Field {
 public:
  // `coded`: strings come as codes into a dictionary.
  StructuralField(NodePtr root, bool coded);
  FieldPtr tested(ValueTestPtr test) const override;
  bool takes_masks() const override { return one_per_row_ && !test_; }
  FieldPtr narrowed() const override;
  FieldPtr numbered(StringNumbersPtr strings) const override;
  ArrayBuilder decode(const Selection& selection, const Overlays& overlays, Scratch& scratch) const override;

 private:
  struct Leaf {
    LeafColumnPtr column;
    uint64_t items_per_row;
  };
  void collect_leaves(const Node& node, uint64_t items_per_row);

  NodePtr root_;
  bool coded_;
  ValueTestPtr test_;  // null: the values themselves are requested
  bool narrow_ = false;
  StringNumbersPtr strings_;  // null: without numbers
  std::vector<Leaf> leaves_;
  bool one_per_row_ = true;  // whether every leaf has a value per row
};

}  // namespace lance
