#pragma once

#include <memory>
#include <mutex>
#include <shared_mutex>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "core/memory.hpp"
#include "decode/leaf.hpp"

namespace lance {

class Dictionary;

// A list of distinct strings, in which each has a number: its place. Rows get numbers in place of strings,
// which are as good for grouping and for counting distinct ones.
//
// It grows while dictionaries are decoded: one step per entry, not per row. Its memory is that of the strings
// and at most 64 bytes for each. Threads may share it: they hold its lock once for each dictionary.
class StringNumbers {
 public:
  // A list that grows to at most `most_strings` of `most_bytes` together; numbers have 32 bits.
  StringNumbers(uint64_t most_strings, uint64_t most_bytes);
  // A list of up to 256 distinct strings that does not grow; numbers have 8 bits.
  explicit StringNumbers(const std::vector<std::string>& strings);

  uint64_t size() const;
  uint64_t bytes() const;
  // All strings, in the order of their numbers.
  std::vector<std::string> strings() const;
  // Bytes of a number.
  unsigned width() const { return grows_ ? 4 : 1; }
  // Appends the numbers of the entries of a dictionary, new ones if need be.
  void number(const Dictionary& dictionary, Bytes& out);
  // The same, found once as long as they are remembered.
  std::shared_ptr<const Bytes> of(const Dictionary& dictionary);
  // Appends the strings that numbers stand for; nothing for those that `valid`, if there is one, marks as
  // null. Throws std::out_of_range for a number that no string has.
  void gather(std::span<const int64_t> numbers, const uint8_t* valid, LeafValues& out) const;

 private:
  static constexpr uint32_t kUnknown = UINT32_MAX;

  struct Entry {
    uint64_t end;  // of its string among all
    uint64_t hash;
  };
  struct Slot {
    std::mutex mutex;
    std::shared_ptr<const Bytes> numbers;
  };

  Span string(uint64_t number) const {
    const uint64_t begin = number ? entries_[number - 1].end : 0;
    return {arena_.data() + begin, entries_[number].end - begin};
  }
  uint32_t find(Span string, uint64_t hash) const;
  uint32_t find_or_add(Span string, uint64_t hash);
  void place(uint64_t hash, uint32_t number);
  void grow();

  const uint64_t most_strings_, most_bytes_;
  const bool grows_;
  // What was found out about dictionaries is dropped as soon as these have more entries together.
  const uint64_t most_remembered_;
  mutable std::shared_mutex mutex_;
  Bytes arena_;                 // the strings one after the other
  std::vector<Entry> entries_;  // by number
  // Open addressing: the upper half of the hash and the number plus one, or 0. At most half of them are in
  // use.
  std::vector<uint64_t> slots_;
  std::mutex remembered_mutex_;
  uint64_t remembered_entries_ = 0;
  std::unordered_map<uint64_t, std::shared_ptr<Slot>> remembered_;  // by the identity of the dictionary
};

using StringNumbersPtr = std::shared_ptr<StringNumbers>;

}  // namespace lance
