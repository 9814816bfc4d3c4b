#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "core/memory.hpp"
#include "core/remembered.hpp"
#include "decode/leaf.hpp"

namespace lance {

class Dictionary;

// What stands for the entries of one dictionary.
struct EntryValues {
  Bytes values;                // `EntryMap::width` bytes per entry
  std::vector<uint8_t> valid;  // a byte per entry; empty where none is null
};
using EntryValuesPtr = std::shared_ptr<const EntryValues>;

// Gives every entry of the dictionaries of a string column a value of a fixed width, which rows then get in
// place of their string: one step per entry, not per row. Threads may share it.
class EntryMap {
 public:
  // Values of 1, 4 or 8 bytes; booleans have a byte here, and a bit in arrays. What was found out about
  // dictionaries is dropped as soon as these have more than `most_remembered` entries together.
  EntryMap(unsigned width, bool is_boolean, uint64_t most_remembered);
  virtual ~EntryMap() = default;

  unsigned width() const { return width_; }
  bool is_boolean() const { return is_boolean_; }
  // The values for a dictionary of strings of this type, made once as long as they are remembered.
  EntryValuesPtr of(const Dictionary& dictionary, const LeafType& type);
  // The same without remembering them.
  EntryValuesPtr once(const Dictionary& dictionary, const LeafType& type);
  // Drops what was found out so far.
  void forget();

 protected:
  // Called by one thread at a time for a dictionary, by several for different ones.
  virtual EntryValuesPtr map(const Dictionary& dictionary, const LeafType& type) = 0;

 private:
  struct Slot {
    std::mutex mutex;
    EntryValuesPtr values;
  };

  unsigned width_;
  bool is_boolean_;
  uint64_t most_remembered_;
  std::mutex mutex_;
  uint64_t remembered_ = 0;
  std::unordered_map<uint64_t, std::shared_ptr<Slot>> slots_;  // by the identity of the dictionary
};

using EntryMapPtr = std::shared_ptr<EntryMap>;

}  // namespace lance
