#include "encode/dictionary.hpp"

#include <algorithm>
#include <bit>
#include <cmath>

namespace lance::encode {
namespace {

// Sample of a page: evenly spaced blocks; pages below this many values are not sampled (format 2.1 writers'
// rule).
constexpr uint64_t kSampleValues = 4096, kSampleMinimum = 1024, kSampleBlocks = 32;
constexpr double kUniqueShare = 0.98;

uint64_t mix(uint64_t a, uint64_t b) {
  const unsigned __int128 product = static_cast<unsigned __int128>(a) * b;
  return static_cast<uint64_t>(product) ^ static_cast<uint64_t>(product >> 64);
}

// Reads every byte and ends with the length; collisions only cost comparisons.
uint64_t hash_bytes(const uint8_t* at, size_t size) {
  constexpr uint64_t kA = 0x9E3779B97F4A7C15, kB = 0xD1B54A32D192ED03;
  uint64_t hash = kA ^ size;
  while (size > 8) {
    hash = mix(hash ^ load<uint64_t>(at), kB);
    at += 8;
    size -= 8;
  }
  uint64_t tail = 0;
  if (size == 8) {
    tail = load<uint64_t>(at);
  } else if (size >= 4) {
    tail = load<uint32_t>(at) | static_cast<uint64_t>(load<uint32_t>(at + size - 4)) << 32;
  } else if (size > 0) {
    tail = at[0] | static_cast<uint64_t>(at[size / 2]) << 8 | static_cast<uint64_t>(at[size - 1]) << 16;
  }
  return mix(hash ^ tail, kB);
}

// Open addressing over item numbers; items are found again through `Source`, which knows their bytes.
class Table {
 public:
  Table() : slots_(1024, Slot{0, kFree}) {}

  // Number of the item equal to `value`, or a new number.
  template <typename Get>
  uint32_t find_or_add(std::span<const uint8_t> value, Get item, uint64_t count, bool& added) {
    const uint64_t hash = hash_bytes(value.data(), value.size());
    const uint32_t tag = static_cast<uint32_t>(hash >> 32);
    uint64_t at = hash & (slots_.size() - 1);
    while (slots_[at].item != kFree) {
      if (slots_[at].tag == tag) {
        const auto known = item(slots_[at].item);
        if (known.size() == value.size() &&
            (value.empty() || std::memcmp(known.data(), value.data(), value.size()) == 0)) {
          added = false;
          return slots_[at].item;
        }
      }
      at = (at + 1) & (slots_.size() - 1);
    }
    added = true;
    slots_[at] = {tag, static_cast<uint32_t>(count)};
    hashes_.push_back(hash);
    if (hashes_.size() * 2 > slots_.size()) grow();
    return static_cast<uint32_t>(count);
  }

 private:
  struct Slot {
    uint32_t tag;
    uint32_t item;
  };
  static constexpr uint32_t kFree = UINT32_MAX;

  void grow() {
    slots_.assign(slots_.size() * 4, Slot{0, kFree});
    for (uint32_t item = 0; item < hashes_.size(); ++item) {
      uint64_t at = hashes_[item] & (slots_.size() - 1);
      while (slots_[at].item != kFree) at = (at + 1) & (slots_.size() - 1);
      slots_[at] = {static_cast<uint32_t>(hashes_[item] >> 32), item};
    }
  }

  std::vector<Slot> slots_;
  std::vector<uint64_t> hashes_;
};

// Distinct values seen so far, each represented by its first occurrence.
template <typename Get>
class Distinct {
 public:
  explicit Distinct(Get value) : value_(value) {}

  uint32_t add(uint64_t index, bool& added) {
    const auto item = [this](uint32_t number) { return value_(first_[number]); };
    const uint32_t number = table_.find_or_add(value_(index), item, first_.size(), added);
    if (added) first_.push_back(index);
    return number;
  }
  const std::vector<uint64_t>& first() const { return first_; }

 private:
  Get value_;
  Table table_;
  std::vector<uint64_t> first_;
};

// The same for values of 4 or 8 bytes, which are stored in the table itself: a look-up touches one place of
// memory, which is prefetched some values ahead.
template <typename Key>
class DistinctKeys {
 public:
  DistinctKeys(const uint8_t* values, uint64_t count)
      : values_(values), count_(count), slots_(1024, Slot{0, kFree}) {}

  uint32_t add(uint64_t index, bool& added) {
    if (index + kAhead < count_) __builtin_prefetch(&slots_[place_of(key(index + kAhead))]);
    const Key wanted = key(index);
    uint64_t at = place_of(wanted);
    while (slots_[at].item != kFree) {
      if (slots_[at].key == wanted) {
        added = false;
        return slots_[at].item;
      }
      at = (at + 1) & (slots_.size() - 1);
    }
    added = true;
    const auto number = static_cast<uint32_t>(first_.size());
    slots_[at] = {wanted, number};
    first_.push_back(index);
    if (first_.size() * 2 > slots_.size()) grow();
    return number;
  }
  const std::vector<uint64_t>& first() const { return first_; }

 private:
  struct Slot {
    Key key;
    uint32_t item;
  };
  static constexpr uint32_t kFree = UINT32_MAX;
  static constexpr uint64_t kAhead = 12;

  Key key(uint64_t index) const { return load<Key>(values_ + index * sizeof(Key)); }
  uint64_t place_of(Key wanted) const {
    return mix(wanted ^ 0x9E3779B97F4A7C15, 0xD1B54A32D192ED03) & (slots_.size() - 1);
  }

  void grow() {
    slots_.assign(slots_.size() * 4, Slot{0, kFree});
    for (uint32_t item = 0; item < first_.size(); ++item) {
      const Key known = key(first_[item]);
      uint64_t at = place_of(known);
      while (slots_[at].item != kFree) at = (at + 1) & (slots_.size() - 1);
      slots_[at] = {known, item};
    }
  }

  const uint8_t* values_;
  uint64_t count_;
  std::vector<Slot> slots_;
  std::vector<uint64_t> first_;
};

template <typename Values>
bool sample_repeats(Values distinct, uint64_t count, uint64_t max_items) {
  const uint64_t wanted = std::min(count, kSampleValues);
  if (wanted < kSampleMinimum) return true;
  const uint64_t block = wanted / kSampleBlocks, sampled = block * kSampleBlocks;
  bool added;
  for (uint64_t b = 0; b < kSampleBlocks; ++b) {
    const uint64_t start = b * (count - block) / (kSampleBlocks - 1);
    for (uint64_t i = 0; i < block; ++i) distinct.add(start + i, added);
  }
  const double share = static_cast<double>(distinct.first().size()) / static_cast<double>(sampled);
  // A sample of all values says nothing new about the limit, except that it is exact.
  return share < kUniqueShare && (sampled < count || distinct.first().size() <= max_items);
}

// Numbers all values; `distinct` has seen none so far.
template <typename Values, typename ItemCost>
std::optional<Values> collect(Values distinct, uint64_t count, uint64_t max_items, uint64_t max_bytes,
                              ItemCost cost, Output& indices) {
  if (!sample_repeats(distinct, count, max_items)) return std::nullopt;
  uint8_t* target = indices.extend(count * sizeof(uint32_t));
  uint64_t bytes = 0;
  for (uint64_t i = 0; i < count; ++i) {
    bool added;
    const uint32_t number = distinct.add(i, added);
    std::memcpy(target + i * sizeof(uint32_t), &number, sizeof(uint32_t));
    if (!added) continue;
    bytes += cost(i);
    const uint64_t items = distinct.first().size();
    const uint64_t packed = count / 8 * std::bit_width(items - 1);
    if (items > max_items || bytes + packed > max_bytes) return std::nullopt;
  }
  return distinct;
}

template <typename T>
void write_variable_items(const VariableInput& input, const std::vector<uint64_t>& first, Output& out) {
  const T count = static_cast<T>(first.size());
  out.put(static_cast<T>(sizeof(T) * 8));
  out.put(static_cast<T>(sizeof(T) * (2 + count + 1)));
  T end = 0;
  out.put(end);
  for (uint64_t index : first) out.put(end += static_cast<T>(input.length(index)));
  for (uint64_t index : first) out.append(input[index].data(), input[index].size());
}

}  // namespace

std::optional<DictionaryPage> build_dictionary(const VariableInput& input, uint64_t max_items,
                                               uint64_t max_bytes) {
  DictionaryPage page;
  const auto value = [&input](uint64_t index) { return input[index]; };
  const uint64_t width = input.offset_bits() / 8;
  const auto cost = [&](uint64_t index) { return input.length(index) + width; };
  const auto distinct = collect(Distinct(value), input.count(), max_items, max_bytes, cost, page.indices);
  if (!distinct) return std::nullopt;
  page.num_items = distinct->first().size();
  if (width == 4)
    write_variable_items<uint32_t>(input, distinct->first(), page.items);
  else
    write_variable_items<uint64_t>(input, distinct->first(), page.items);
  return page;
}

std::optional<DictionaryPage> build_dictionary(const Bytes& values, uint64_t bits, uint64_t offset,
                                               uint64_t count, uint64_t max_items, uint64_t max_bytes) {
  require(bits % 8 == 0, "values have whole bytes");
  values.require_values(bits, offset, count);
  DictionaryPage page;
  const uint64_t width = bits / 8;
  const uint8_t* base = values.data.data() + offset * width;
  const auto cost = [width](uint64_t) { return width; };
  const auto number = [&](auto distinct) {
    const auto found = collect(std::move(distinct), count, max_items, max_bytes, cost, page.indices);
    if (!found) return false;
    page.num_items = found->first().size();
    for (uint64_t index : found->first()) page.items.append(base + index * width, width);
    return true;
  };
  const auto value = [base, width](uint64_t index) {
    return std::span<const uint8_t>(base + index * width, width);
  };
  const bool repeats = width == 8   ? number(DistinctKeys<uint64_t>(base, count))
                       : width == 4 ? number(DistinctKeys<uint32_t>(base, count))
                                    : number(Distinct(value));
  return repeats ? std::optional(std::move(page)) : std::nullopt;
}

}  // namespace lance::encode
