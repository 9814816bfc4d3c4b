#include "decode/string_numbers.hpp"

#include <stdexcept>

#include "core/xxhash64.hpp"
#include "decode/dictionary.hpp"

namespace lance {

namespace {

constexpr uint64_t kFirstSlots = 256;
// Slots are in random places: they are requested this many strings ahead.
constexpr uint64_t kAhead = 8;
// A snapshot has readers of its own, and so has each scan of small fragments.
constexpr uint64_t kScansRemembered = 2;

uint64_t hash_of(Span string) {
  return xxhash64({string.data, string.size});
}

bool equal(Span one, Span other) {
  return one.size == other.size && (one.size == 0 || std::memcmp(one.data, other.data, one.size) == 0);
}

}  // namespace

StringNumbers::StringNumbers(uint64_t most_strings, uint64_t most_bytes)
    : most_strings_(most_strings),
      most_bytes_(most_bytes),
      grows_(true),
      most_remembered_(kScansRemembered * most_strings),
      slots_(kFirstSlots) {
  if (most_strings > INT32_MAX) throw std::invalid_argument("more strings than numbers can tell apart");
}

StringNumbers::StringNumbers(const std::vector<std::string>& strings)
    : most_strings_(strings.size()),
      most_bytes_(UINT64_MAX),
      grows_(false),
      most_remembered_(uint64_t{1} << 20),
      slots_(kFirstSlots) {
  if (strings.size() > 256) throw std::invalid_argument("more strings than a byte can tell apart");
  for (const std::string& string : strings) {
    const Span bytes{reinterpret_cast<const uint8_t*>(string.data()), string.size()};
    if (find_or_add(bytes, hash_of(bytes)) + 1 != entries_.size())
      throw std::invalid_argument("the strings of a list must be distinct");
  }
}

uint64_t StringNumbers::size() const {
  std::shared_lock lock(mutex_);
  return entries_.size();
}

uint64_t StringNumbers::bytes() const {
  std::shared_lock lock(mutex_);
  return arena_.capacity() + entries_.capacity() * sizeof(Entry) + slots_.capacity() * sizeof(uint64_t);
}

std::vector<std::string> StringNumbers::strings() const {
  std::shared_lock lock(mutex_);
  std::vector<std::string> found;
  found.reserve(entries_.size());
  for (uint64_t i = 0; i < entries_.size(); ++i) {
    const Span bytes = string(i);
    found.emplace_back(reinterpret_cast<const char*>(bytes.data), bytes.size);
  }
  return found;
}

uint32_t StringNumbers::find(Span wanted, uint64_t hash) const {
  const uint64_t mask = slots_.size() - 1;
  for (uint64_t at = hash & mask;; at = (at + 1) & mask) {
    const uint64_t slot = slots_[at];
    if (!slot) return kUnknown;
    const auto number = static_cast<uint32_t>(slot) - 1;
    if (slot >> 32 == hash >> 32 && equal(string(number), wanted)) return number;
  }
}

uint32_t StringNumbers::find_or_add(Span wanted, uint64_t hash) {
  const uint32_t found = find(wanted, hash);
  if (found != kUnknown) return found;
  const uint64_t number = entries_.size();
  if (number >= most_strings_ || wanted.size > most_bytes_ - arena_.size()) return kUnknown;
  if (2 * (number + 1) > slots_.size()) grow();
  // Without what was left over where memory ran out.
  arena_.shrink_to(number ? entries_.back().end : 0);
  copy_bytes(arena_.extend(wanted.size), wanted.data, wanted.size);
  entries_.push_back({arena_.size(), hash});
  place(hash, static_cast<uint32_t>(number));
  return static_cast<uint32_t>(number);
}

void StringNumbers::place(uint64_t hash, uint32_t number) {
  const uint64_t mask = slots_.size() - 1;
  uint64_t at = hash & mask;
  while (slots_[at]) at = (at + 1) & mask;
  slots_[at] = (hash >> 32 << 32) | (uint64_t{number} + 1);
}

void StringNumbers::grow() {
  slots_ = std::vector<uint64_t>(2 * slots_.size());
  for (uint64_t i = 0; i < entries_.size(); ++i) place(entries_[i].hash, static_cast<uint32_t>(i));
}

void StringNumbers::number(const Dictionary& dictionary, Bytes& out) {
  const uint64_t count = dictionary.size();
  std::vector<uint64_t> hashes(count);
  for (uint64_t i = 0; i < count; ++i) hashes[i] = hash_of(dictionary.string(i));
  uint8_t* to = out.extend(count * width());
  if (!grows_) {
    std::shared_lock lock(mutex_);
    for (uint64_t i = 0; i < count; ++i) {
      const uint32_t number = find(dictionary.string(i), hashes[i]);
      check(number != kUnknown, "a dictionary has other values than before");
      to[i] = static_cast<uint8_t>(number);
    }
    return;
  }
  std::lock_guard lock(mutex_);
  for (uint64_t i = 0; i < count; ++i) {
    if (i + kAhead < count) __builtin_prefetch(&slots_[hashes[i + kAhead] & (slots_.size() - 1)]);
    const uint32_t number = find_or_add(dictionary.string(i), hashes[i]);
    check(number != kUnknown, "a dictionary has more values than it claims");
    store(to + i * sizeof(number), number);
  }
}

std::shared_ptr<const Bytes> StringNumbers::of(const Dictionary& dictionary) {
  std::shared_ptr<Slot> slot;
  {
    std::lock_guard lock(remembered_mutex_);
    std::shared_ptr<Slot>& found = remembered_[dictionary.identity().number()];
    slot = found ? found : std::make_shared<Slot>();
    if (!found) {
      if (remembered_entries_ + dictionary.size() > most_remembered_) {
        remembered_.clear();
        remembered_entries_ = 0;
      }
      remembered_[dictionary.identity().number()] = slot;
      remembered_entries_ += dictionary.size();
    }
  }
  std::lock_guard lock(slot->mutex);  // others wait for this dictionary only
  if (!slot->numbers) {
    auto numbers = std::make_shared<Bytes>();
    number(dictionary, *numbers);
    slot->numbers = std::move(numbers);
  }
  return slot->numbers;
}

namespace {

template <typename Offset>
void end_string(uint64_t end, Offset* offset) {
  check_offset_range<Offset>(end);
  *offset = static_cast<Offset>(end);
}

}  // namespace

void StringNumbers::gather(std::span<const int64_t> numbers, const uint8_t* valid, LeafValues& out) const {
  std::shared_lock lock(mutex_);
  const bool is_wide = out.type().offset_width() == 8;
  for (size_t i = 0; i < numbers.size(); ++i) {
    Span bytes;
    if (!valid || get_bit(valid, i)) {
      if (static_cast<uint64_t>(numbers[i]) >= entries_.size())
        throw std::out_of_range("a number that no string has");
      bytes = string(static_cast<uint64_t>(numbers[i]));
    }
    copy_bytes(out.data.extend(bytes.size), bytes.data, bytes.size);
    if (is_wide)
      end_string(out.data.size(), out.extend_offsets<uint64_t>(1));
    else
      end_string(out.data.size(), out.extend_offsets<uint32_t>(1));
  }
}

}  // namespace lance
