#pragma once

#include <shared_mutex>
#include <span>
#include <string>
#include <vector>

#include "decode/entry_map.hpp"

namespace lance {

// A list of distinct strings, in which each has a number: its place. Rows get numbers in place of strings,
// which are as good for grouping and for counting distinct ones.
//
// It grows while dictionaries are decoded. Its memory is that of the strings and at most 64 bytes for each.
// Threads may share it: they hold its lock once for each dictionary.
class StringNumbers : public EntryMap {
 public:
  // A list that grows to at most `most_strings` of `most_bytes` together; numbers have 32 bits.
  StringNumbers(uint64_t most_strings, uint64_t most_bytes);
  // A list of up to 256 distinct strings that does not grow; numbers have 8 bits.
  explicit StringNumbers(const std::vector<std::string>& strings);

  uint64_t size() const;
  uint64_t bytes() const;
  // All strings, in the order of their numbers.
  std::vector<std::string> strings() const;
  // Gives each string its number, a new one if need be. False, and some strings may be new, if there are too
  // many.
  bool number(std::span<const Span> strings, int32_t* numbers);
  // Appends the strings that numbers stand for; nothing for those that `valid`, if there is one, marks as
  // null. Throws std::out_of_range for a number that no string has.
  void gather(std::span<const int64_t> numbers, const uint8_t* valid, LeafValues& out) const;

 protected:
  EntryValuesPtr map(const Dictionary& dictionary, const LeafType& type) override;

 private:
  static constexpr uint32_t kUnknown = UINT32_MAX;

  struct Entry {
    uint64_t end;  // of its string among all
    uint64_t hash;
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
  mutable std::shared_mutex mutex_;
  Bytes arena_;                 // the strings one after the other
  std::vector<Entry> entries_;  // by number
  // Open addressing: the upper half of the hash and the number plus one, or 0. At most half of them are in
  // use.
  std::vector<uint64_t> slots_;
};

using StringNumbersPtr = std::shared_ptr<StringNumbers>;

}  // namespace lance
