#include "decode/arrow_export.hpp"

namespace lance {

namespace {

// Zero-length buffers still need an address.
alignas(64) const uint8_t kNothing[64] = {};

}  // namespace

ArrayBuilder::Held::~Held() {
  for (auto& child : children)
    if (child->release) child->release(child.get());
}

void ArrayBuilder::release(ArrowArray* array) {
  delete static_cast<Held*>(array->private_data);
  array->release = nullptr;
}

void ArrayBuilder::add_validity(Validity& validity) {
  null_count_ = validity.null_count();
  if (null_count_ == 0) {
    held_->buffers.push_back(nullptr);
    return;
  }
  add_buffer(std::move(validity.bits().bytes()));
}

void ArrayBuilder::add_buffer(Bytes&& bytes) {
  held_->bytes.push_back(std::move(bytes));
  const uint8_t* data = held_->bytes.back().data();
  held_->buffers.push_back(data ? data : kNothing);
}

void ArrayBuilder::add_alias(Span bytes, std::shared_ptr<const Source> source) {
  held_->buffers.push_back(bytes.data);
  held_->sources.push_back(std::move(source));
}

void ArrayBuilder::add_child(ArrayBuilder&& child) {
  held_->children.push_back(std::make_unique<ArrowArray>());
  child.move_to(*held_->children.back());
  held_->child_pointers.push_back(held_->children.back().get());
}

void ArrayBuilder::move_to(ArrowArray& out) {
  out = {};
  out.length = static_cast<int64_t>(length_);
  out.null_count = static_cast<int64_t>(null_count_);
  out.n_buffers = static_cast<int64_t>(held_->buffers.size());
  out.buffers = held_->buffers.data();
  out.n_children = static_cast<int64_t>(held_->child_pointers.size());
  out.children = held_->child_pointers.data();
  out.release = release;
  out.private_data = held_.release();
}

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
      array.add_buffer(std::move(values.data));
  }
}

// The items of a fixed-size list from dimension `layer` on.
ArrayBuilder export_items(LeafValues& values, size_t layer) {
  uint64_t length = values.length();
  for (size_t i = 0; i <= layer; ++i) length *= values.type().dims[i];
  ArrayBuilder items(length);
  check(values.item_validity[layer].length() == length, "a fixed-size list has too few items");
  items.add_validity(values.item_validity[layer]);
  if (layer + 1 < values.type().dims.size())
    items.add_child(export_items(values, layer + 1));
  else
    add_values(items, values);
  return items;
}

ArrayBuilder export_leaf(LeafOutput& output) {
  LeafValues& values = output.values;
  Validity& validity = output.layers.front().validity;
  check(validity.length() == values.length(), "the levels and the values of a page disagree");
  ArrayBuilder array(values.length());
  if (values.type().kind == LeafKind::kNull) return array;
  array.add_validity(validity);
  if (values.type().dims.empty())
    add_values(array, values);
  else
    array.add_child(export_items(values, 0));
  return array;
}

}  // namespace

ArrayBuilder export_node(const Node& node, size_t depth, std::vector<LeafOutput>& outputs, size_t& leaf,
                         uint64_t rows) {
  if (node.kind == Node::Kind::kLeaf) return export_leaf(outputs[leaf++]);
  if (node.kind == Node::Kind::kStruct && node.children.empty()) {
    if (node.leaf) ++leaf;
    ArrayBuilder array(rows);
    Validity all_valid;
    all_valid.append_valid(rows);
    array.add_validity(all_valid);
    return array;
  }
  // Every leaf below repeats the levels of this node; the first one speaks for all.
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

}  // namespace lance
