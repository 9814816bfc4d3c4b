#include "decode/array_builder.hpp"

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
