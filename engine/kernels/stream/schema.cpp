#include "stream/schema.hpp"

#include <utility>
#include <vector>

namespace lance {
namespace {

// What a handed-out schema points to. Children can be moved out and kept longer, so each has its own.
struct Held {
  std::shared_ptr<const ArrowSchema> owner;
  std::vector<ArrowSchema> children;
  std::vector<ArrowSchema*> pointers;
  ArrowSchema dictionary{};
};

void release(ArrowSchema* schema) {
  auto* held = static_cast<Held*>(schema->private_data);
  for (ArrowSchema& child : held->children)
    if (child.release) child.release(&child);
  if (held->dictionary.release) held->dictionary.release(&held->dictionary);
  delete held;
  schema->release = nullptr;
}

void copy(const ArrowSchema& from, const std::shared_ptr<const ArrowSchema>& owner, ArrowSchema& out) {
  auto held = std::make_unique<Held>();
  held->owner = owner;
  held->children.resize(static_cast<size_t>(from.n_children));
  for (size_t i = 0; i < held->children.size(); ++i) {
    copy(*from.children[i], owner, held->children[i]);
    held->pointers.push_back(&held->children[i]);
  }
  if (from.dictionary) copy(*from.dictionary, owner, held->dictionary);
  out = from;
  out.children = held->pointers.data();
  out.dictionary = from.dictionary ? &held->dictionary : nullptr;
  out.release = release;
  out.private_data = held.release();
}

}  // namespace

SharedSchema::SharedSchema(ArrowSchema& schema) {
  auto* owned = new ArrowSchema(std::exchange(schema, {}));
  schema_ = std::shared_ptr<const ArrowSchema>(owned, [](const ArrowSchema* held) {
    auto* last = const_cast<ArrowSchema*>(held);
    if (last->release) last->release(last);
    delete last;
  });
}

void SharedSchema::copy_to(ArrowSchema& out) const {
  copy(*schema_, schema_, out);
}

}  // namespace lance
