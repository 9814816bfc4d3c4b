#include "decode/array_builder.hpp"

#include <algorithm>
#include <cstring>
#include <iterator>

#include "decode/narrow.hpp"

namespace lance {

namespace {

// Zero-length buffers still need an address.
alignas(64) const uint8_t kNothing[64] = {};

}  // namespace

ArrayBuilder::Held::~Held() {
  for (auto& child : children)
    if (child->release) child->release(child.get());
  if (dictionary && dictionary->release) dictionary->release(dictionary.get());
}

void ArrayBuilder::release(ArrowArray* array) {
  delete static_cast<Held*>(array->private_data);
  array->release = nullptr;
}

uint64_t ArrayBuilder::owned_bytes(const ArrowArray& array) {
  uint64_t bytes = 0;
  for (const Bytes& buffer : static_cast<const Held*>(array.private_data)->bytes) bytes += buffer.capacity();
  for (int64_t i = 0; i < array.n_children; ++i) bytes += owned_bytes(*array.children[i]);
  return array.dictionary ? bytes + owned_bytes(*array.dictionary) : bytes;
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
  held_->aliases.push_back({bytes, std::move(source)});
}

namespace {

// Whether the values fit that are not null.
bool values_fit(const uint8_t* values, const uint8_t* validity, uint64_t count) {
  for (uint64_t i = 0; i < count; ++i) {
    uint64_t words[2];
    std::memcpy(words, values + 16 * i, 16);
    bool fits = words[1] == static_cast<uint64_t>(static_cast<int64_t>(words[0]) >> 63);
    if (!fits && (!validity || (validity[i / 8] >> (i % 8) & 1))) return false;
  }
  return true;
}

}  // namespace

void ArrayBuilder::narrow_decimals() {
  if (length_ == 0) return;
  check(held_->buffers.size() == 2 && held_->children.empty() && !held_->dictionary,
        "only plain decimals can be made narrower");
  const auto* values = static_cast<const uint8_t*>(held_->buffers[1]);
  uint64_t size = 0;
  for (const Bytes& owned : held_->bytes)
    if (owned.data() == values) size = owned.size();
  for (const Alias& alias : held_->aliases)
    if (alias.bytes.data == values) size = alias.bytes.size;
  check(length_ <= size / 16, "a column of decimals is shorter than its rows");
  Bytes narrow;
  uint8_t* out = narrow.extend(length_ * 8);
  if (!narrow_values(values, out, length_))
    check(values_fit(values, static_cast<const uint8_t*>(held_->buffers[0]), length_),
          "a decimal has more digits than its type");
  std::erase_if(held_->aliases, [&](const Alias& alias) { return alias.bytes.data == values; });
  std::erase_if(held_->bytes, [&](const Bytes& owned) { return owned.data() == values; });
  held_->buffers.pop_back();
  add_buffer(std::move(narrow));
}

void ArrayBuilder::add_child(ArrayBuilder&& child) {
  held_->children.push_back(std::make_unique<ArrowArray>());
  child.move_to(*held_->children.back());
  held_->child_pointers.push_back(held_->children.back().get());
}

void ArrayBuilder::join_bytes() {
  check(held_->children.size() == 1 && held_->children[0]->n_buffers == 2, "only lists of bytes are strings");
  check(held_->children[0]->null_count == 0, "the bytes of strings must not be null");
  Held& child = *static_cast<Held*>(held_->children[0]->private_data);
  held_->buffers.push_back(child.buffers[1]);
  std::move(child.bytes.begin(), child.bytes.end(), std::back_inserter(held_->bytes));
  std::move(child.aliases.begin(), child.aliases.end(), std::back_inserter(held_->aliases));
  held_->children[0]->release(held_->children[0].get());
  held_->children.clear();
  held_->child_pointers.clear();
}

void ArrayBuilder::set_dictionary(ArrayBuilder&& dictionary) {
  held_->dictionary = std::make_unique<ArrowArray>();
  dictionary.move_to(*held_->dictionary);
}

void ArrayBuilder::move_to(ArrowArray& out) {
  out = {};
  out.length = static_cast<int64_t>(length_);
  out.null_count = static_cast<int64_t>(null_count_);
  out.n_buffers = static_cast<int64_t>(held_->buffers.size());
  out.buffers = held_->buffers.data();
  out.n_children = static_cast<int64_t>(held_->child_pointers.size());
  out.children = held_->child_pointers.data();
  out.dictionary = held_->dictionary.get();
  out.release = release;
  out.private_data = held_.release();
}

}  // namespace lance
