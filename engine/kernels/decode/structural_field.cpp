#include "decode/structural_field.hpp"

#include <algorithm>

#include "decode/packed_row.hpp"
#include "decode/value_test.hpp"

namespace lance {

namespace {

void add_values(ArrayBuilder& array, LeafValues& values) {
  switch (values.type().kind) {
    case LeafKind::kNull:
      break;
    case LeafKind::kBits:
      array.add_buffer(std::move(values.bits.bytes()));
      break;
    case LeafKind::kFixed:
      if (values.aliased.data)
        array.add_alias(values.aliased, values.alias_owner);
      else
        array.add_buffer(std::move(values.data));
      break;
    default:
      array.add_buffer(std::move(values.offsets));
      if (values.aliased.data)
        array.add_alias(values.aliased, values.alias_owner);
      else
        array.add_buffer(std::move(values.data));
  }
}

// The items of a fixed-size list from dimension `layer` on.
ArrayBuilder export_items(LeafValues& values, size_t layer) {
  uint64_t length = values.length();
  for (size_t i = 0; i <= layer; ++i) length *= values.type().dims[i];
  ArrayBuilder items(length);
  check(values.item_validity[layer].length() == length, "a fixed-size list has too few items");
  const bool innermost = layer + 1 == values.type().dims.size();
  if (innermost && values.type().kind == LeafKind::kNull) return items;  // has no buffers
  items.add_validity(values.item_validity[layer]);
  if (!innermost)
    items.add_child(export_items(values, layer + 1));
  else
    add_values(items, values);
  return items;
}

// Codes, and the values they stand for as their dictionary.
ArrayBuilder export_codes(LeafOutput& output) {
  Validity& validity = output.layers.front().validity;
  uint64_t rows = output.codes.size() / sizeof(int32_t);
  check(validity.length() == rows, "the levels and the values of a page disagree");
  check(output.values.length() <= INT32_MAX, "a dictionary has more values than codes can tell apart");
  ArrayBuilder array(rows);
  array.add_validity(validity);
  array.add_buffer(std::move(output.codes));
  ArrayBuilder dictionary(output.values.length());
  dictionary.add_all_valid();
  add_values(dictionary, output.values);
  array.set_dictionary(std::move(dictionary));
  return array;
}

ArrayBuilder export_narrowed(LeafOutput& output) {
  Validity& validity = output.layers.front().validity;
  check(validity.length() * 8 == output.narrowed.size(), "the levels and the values of a page disagree");
  ArrayBuilder array(validity.length());
  array.add_validity(validity);
  array.add_buffer(std::move(output.narrowed));
  return array;
}

Validity both_valid(Validity& one, Validity& other) {
  Validity found;
  const RowMask wanted{other.bits().data(), 0};
  wanted.words(one.length(), [&](uint64_t word, uint64_t first, uint64_t size) {
    word &= load_bits(one.bits().data(), first, size);
    found.append_word(word, size, size - static_cast<uint64_t>(std::popcount(word)));
  });
  return found;
}

// The numbers of strings.
ArrayBuilder export_numbers(LeafOutput& output, unsigned width) {
  Validity& validity = output.layers.front().validity;
  check(output.numbers.size() == validity.length() * width, "the levels and the values of a page disagree");
  ArrayBuilder array(validity.length());
  array.add_validity(validity);
  array.add_buffer(std::move(output.numbers));
  return array;
}

// Which values are neither null nor in a null struct.
Validity all_valid(std::vector<LayerValues>& layers) {
  Validity found = std::move(layers.front().validity);
  for (size_t i = 1; i < layers.size(); ++i) {
    Validity& above = layers[i].validity;
    check(above.length() == found.length(), "the levels of a struct and of its field disagree");
    if (above.null_count()) found = found.null_count() ? both_valid(found, above) : std::move(above);
  }
  return found;
}

// What a test of the values gave.
ArrayBuilder export_matches(LeafOutput& output) {
  Validity validity = all_valid(output.layers);
  check(validity.length() == output.matches.length(), "the levels and the values of a page disagree");
  ArrayBuilder array(output.matches.length());
  array.add_validity(validity);
  array.add_buffer(std::move(output.matches.bytes()));
  return array;
}

ArrayBuilder export_leaf(LeafOutput& output) {
  if (output.coded) return export_codes(output);
  if (output.narrow) return export_narrowed(output);
  LeafValues& values = output.values;
  Validity& validity = output.layers.front().validity;
  check(validity.length() == values.length(), "the levels and the values of a page disagree");
  ArrayBuilder array(values.length());
  if (values.type().kind == LeafKind::kNull && values.type().dims.empty()) return array;
  array.add_validity(validity);
  if (values.type().dims.empty())
    add_values(array, values);
  else
    array.add_child(export_items(values, 0));
  return array;
}

void append_strided(const LeafValues& rows, uint64_t offset, uint64_t width, Bytes& out) {
  uint64_t stride = rows.value_bytes();
  const uint8_t* from = (rows.aliased.data ? rows.aliased.data : rows.data.data()) + offset;
  uint8_t* to = out.extend(rows.length() * width);
  for (uint64_t i = 0; i < rows.length(); ++i) copy_bytes(to + i * width, from + i * stride, width);
}

// Row-major rows of a packed struct of fixed-width fields.
std::vector<LeafValues> unpack_fixed_rows(const LeafValues& rows, const std::vector<LeafType>& children) {
  std::vector<LeafValues> unpacked;
  unpacked.reserve(children.size());
  uint64_t offset = 0;
  for (const LeafType& child : children) {
    LeafValues& values = unpacked.emplace_back(child);
    uint64_t width = values.value_bytes();
    append_strided(rows, offset, width, values.data);
    values.add_length(rows.length());
    uint64_t items = rows.length();
    for (size_t i = 0; i < child.dims.size(); ++i)
      values.item_validity[i].append_valid(items *= child.dims[i]);
    offset += width;
  }
  return unpacked;
}

// The rows of a packed struct, split into its children; none of them is ever null.
ArrayBuilder export_packed(const Node& node, LeafOutput& output) {
  LeafValues& rows = output.values;
  Validity& validity = output.layers.front().validity;
  check(validity.length() == rows.length(), "the levels and the values of a page disagree");
  ArrayBuilder array(rows.length());
  array.add_validity(validity);
  auto children =
      rows.type().variable() ? unpack_rows(rows, node.packed) : unpack_fixed_rows(rows, node.packed);
  for (LeafValues& values : children) {
    ArrayBuilder built(rows.length());
    built.add_all_valid();
    if (values.type().dims.empty())
      add_values(built, values);
    else
      built.add_child(export_items(values, 0));
    array.add_child(std::move(built));
  }
  return array;
}

// Structs of nothing but structs without fields: no column stores their nulls.
bool has_leaves(const Node& node) {
  return node.kind == Node::Kind::kLeaf ||
         std::any_of(node.children.begin(), node.children.end(),
                     [](const NodePtr& child) { return has_leaves(*child); });
}

ArrayBuilder export_structs_without_leaves(const Node& node, uint64_t rows) {
  ArrayBuilder array(rows);
  array.add_all_valid();
  for (const NodePtr& child : node.children) array.add_child(export_structs_without_leaves(*child, rows));
  return array;
}

ArrayBuilder export_node(const Node& node, size_t depth, std::vector<LeafOutput>& outputs, size_t& leaf,
                         uint64_t rows) {
  if (node.kind == Node::Kind::kLeaf)
    return node.packed.empty() ? export_leaf(outputs[leaf++]) : export_packed(node, outputs[leaf++]);
  if (!has_leaves(node)) return export_structs_without_leaves(node, rows);
  // Every leaf below repeats the levels of this node; the first one represents all.
  std::vector<LayerValues>& layers = outputs[leaf].layers;
  LayerValues& own = layers[layers.size() - 1 - depth];
  uint64_t length = own.validity.length();
  ArrayBuilder array(length);
  array.add_validity(own.validity);
  if (node.kind == Node::Kind::kStruct) {
    for (const NodePtr& child : node.children) {
      ArrayBuilder built = export_node(*child, depth + 1, outputs, leaf, length);
      check(built.length() == length, "the children of a struct have unequal lengths");
      array.add_child(std::move(built));
    }
    return array;
  }
  if (node.kind == Node::Kind::kFixedSizeList) {
    ArrayBuilder child =
        export_node(*node.children.front(), depth + 1, outputs, leaf, length * node.dimension);
    check(child.length() == length * node.dimension, "a fixed-size list has too few items");
    array.add_child(std::move(child));
    return array;
  }
  bool large = node.kind == Node::Kind::kLargeList;
  const uint8_t* end = own.offsets.data() + own.offsets.size();
  auto items = static_cast<uint64_t>(large ? load<int64_t>(end - 8) : load<int32_t>(end - 4));
  check(own.offsets.size() == (length + 1) * (large ? 8 : 4), "a list column has too few offsets");
  array.add_buffer(std::move(own.offsets));
  ArrayBuilder child = export_node(*node.children.front(), depth + 1, outputs, leaf, items);
  check(child.length() == items, "the offsets and the items of a list disagree");
  array.add_child(std::move(child));
  return array;
}

}  // namespace

StructuralField::StructuralField(NodePtr root, bool coded) : root_(std::move(root)), coded_(coded) {
  collect_leaves(*root_, 1);
  const Node& node = *root_;
  check(!coded || (node.kind == Node::Kind::kLeaf && node.leaf->type().variable() && node.packed.empty()),
        "only strings can be read as codes");
}

FieldPtr StructuralField::tested(ValueTestPtr test) const {
  const Node* node = root_.get();
  while (node->kind == Node::Kind::kStruct && node->children.size() == 1) node = node->children.front().get();
  if (node->kind != Node::Kind::kLeaf || !node->packed.empty() || !test->fits(node->leaf->type()))
    return nullptr;
  auto field = std::make_shared<StructuralField>(root_, false);
  field->test_ = std::move(test);
  return field;
}

FieldPtr StructuralField::narrowed() const {
  const Node& node = *root_;
  if (node.kind != Node::Kind::kLeaf || !node.packed.empty()) return nullptr;
  const LeafType& type = node.leaf->type();
  if (type.kind != LeafKind::kFixed || type.width != 16 || !type.dims.empty()) return nullptr;
  auto field = std::make_shared<StructuralField>(root_, false);
  field->narrow_ = true;
  return field;
}

FieldPtr StructuralField::numbered(StringNumbersPtr strings) const {
  const Node& node = *root_;
  if (node.kind != Node::Kind::kLeaf || !node.packed.empty()) return nullptr;
  const LeafType& type = node.leaf->type();
  if (!type.variable() || !type.dims.empty()) return nullptr;
  auto field = std::make_shared<StructuralField>(root_, false);
  field->strings_ = std::move(strings);
  return field;
}

void StructuralField::collect_leaves(const Node& node, uint64_t items_per_row) {
  check(node.kind == Node::Kind::kStruct || has_leaves(node),
        "a list of structs without fields has no column");
  if (node.kind == Node::Kind::kFixedSizeList) {
    check(node.dimension > 0 && items_per_row <= UINT32_MAX / node.dimension,
          "a fixed-size list is impossibly long");
    items_per_row *= node.dimension;
  }
  if (node.leaf) leaves_.push_back({node.leaf, items_per_row});
  one_per_row_ &= node.kind == Node::Kind::kStruct ||
                  (node.kind == Node::Kind::kLeaf && node.packed.empty() && node.leaf->type().dims.empty());
  for (const NodePtr& child : node.children) collect_leaves(*child, items_per_row);
}

ArrayBuilder StructuralField::decode(const Selection& selection, const Overlays& overlays,
                                     Scratch& scratch) const {
  std::vector<LeafOutput> outputs;
  outputs.reserve(leaves_.size());
  for (const auto& [leaf, items_per_row] : leaves_) {
    outputs.emplace_back(leaf->type(), leaf->path());
    if (coded_) outputs.back().as_codes();
    if (test_) outputs.back().as_matches(*test_);
    if (narrow_) outputs.back().as_narrow();
    if (strings_) outputs.back().as_numbers(*strings_);
    if (items_per_row == 1) {
      leaf->decode(selection, overlays, outputs.back(), scratch);
      continue;
    }
    // Pages below a fixed-size list count its items.
    std::vector<RowRange> items;
    selection.visit_ranges([&, factor = items_per_row](uint64_t begin, uint64_t end) {
      items.push_back({begin * factor, end * factor});
    });
    leaf->decode(Selection::of(items), overlays, outputs.back(), scratch);
  }
  if (narrow_ && !outputs.front().fits) {  // unless the values are those of nulls, this fails
    ArrayBuilder array = StructuralField(root_, false).decode(selection, overlays, scratch);
    array.narrow_decimals();
    return array;
  }
  if (test_) return export_matches(outputs.front());
  // A field that is read without the structs around it is null where one of these is.
  if (root_->kind == Node::Kind::kLeaf && outputs.front().layers.size() > 1)
    outputs.front().layers.front().validity = all_valid(outputs.front().layers);
  if (strings_) return export_numbers(outputs.front(), strings_->width());
  size_t next = 0;
  return export_node(*root_, 0, outputs, next, selection.count());
}

}  // namespace lance
