#include "decode/entry_map.hpp"

#include <stdexcept>

#include "decode/dictionary.hpp"

namespace lance {

EntryMap::EntryMap(unsigned width, bool is_boolean, uint64_t most_remembered)
    : width_(width), is_boolean_(is_boolean), most_remembered_(most_remembered) {
  if ((width != 1 && width != 4 && width != 8) || (is_boolean && width != 1))
    throw std::invalid_argument("the values of entries have 1, 4 or 8 bytes");
}

EntryValuesPtr EntryMap::of(const Dictionary& dictionary, const LeafType& type) {
  std::shared_ptr<Slot> slot;
  {
    std::lock_guard lock(mutex_);
    std::shared_ptr<Slot>& found = slots_[dictionary.identity().number()];
    if (!found) {
      slot = std::make_shared<Slot>();
      if (remembered_ + dictionary.size() > most_remembered_) {
        slots_.clear();
        remembered_ = 0;
        slots_[dictionary.identity().number()] = slot;
      } else {
        found = slot;
      }
      remembered_ += dictionary.size();
    } else {
      slot = found;
    }
  }
  std::lock_guard lock(slot->mutex);  // others wait for this dictionary only
  if (!slot->values) slot->values = once(dictionary, type);
  return slot->values;
}

EntryValuesPtr EntryMap::once(const Dictionary& dictionary, const LeafType& type) {
  EntryValuesPtr found = map(dictionary, type);
  if (found->values.size() != dictionary.size() * width_ ||
      (!found->valid.empty() && found->valid.size() != dictionary.size()))
    throw std::logic_error("a dictionary has another number of entries than its values");
  return found;
}

void EntryMap::forget() {
  std::lock_guard lock(mutex_);
  slots_.clear();
  remembered_ = 0;
}

}  // namespace lance
