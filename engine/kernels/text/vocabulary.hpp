#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "core/errors.hpp"

namespace lance {

// Numbers for strings, from 0 on in the order of their first appearance.
class Vocabulary {
 public:
  Vocabulary() : slots_(64, kEmpty), ends_{0} {}

  uint32_t size() const { return static_cast<uint32_t>(ends_.size() - 1); }

  std::string_view at(uint32_t number) const {
    return {bytes_.data() + ends_[number], ends_[number + 1] - ends_[number]};
  }

  uint32_t number_of(std::string_view token) {
    const uint64_t hash = hash_of(token);
    size_t slot = hash & (slots_.size() - 1);
    for (; slots_[slot] != kEmpty; slot = (slot + 1) & (slots_.size() - 1)) {
      const uint32_t number = static_cast<uint32_t>(slots_[slot]);
      if (slots_[slot] >> 32 == hash >> 32 && at(number) == token) return number;
    }
    const uint32_t number = size();
    check(number < kMost, "too many different tokens");
    bytes_.append(token);
    ends_.push_back(bytes_.size());
    slots_[slot] = (hash >> 32) << 32 | number;
    if (2 * ends_.size() > slots_.size()) grow();
    return number;
  }

  uint64_t nbytes() const { return bytes_.size() + 8 * ends_.size() + 8 * slots_.size(); }

 private:
  static constexpr uint64_t kEmpty = ~uint64_t{0};
  static constexpr uint32_t kMost = 0x7ffffff0;

  static uint64_t hash_of(std::string_view token) {
    constexpr uint64_t kFactor = 0x9e3779b97f4a7c15;
    uint64_t hash = token.size() * kFactor;
    size_t at = 0;
    for (; at + 8 <= token.size(); at += 8) {
      uint64_t word;
      std::memcpy(&word, token.data() + at, 8);
      hash = (std::rotl(hash, 29) ^ word) * kFactor;
    }
    uint64_t word = 0;
    for (size_t i = 0; at + i < token.size(); ++i)
      word |= uint64_t{static_cast<uint8_t>(token[at + i])} << (8 * i);
    hash = (std::rotl(hash, 29) ^ word) * kFactor;
    return hash ^ hash >> 32;
  }

  void grow() {
    std::vector<uint64_t> slots(2 * slots_.size(), kEmpty);
    for (uint32_t number = 0; number < size(); ++number) {
      const uint64_t hash = hash_of(at(number));
      size_t slot = hash & (slots.size() - 1);
      while (slots[slot] != kEmpty) slot = (slot + 1) & (slots.size() - 1);
      slots[slot] = (hash >> 32) << 32 | number;
    }
    slots_ = std::move(slots);
  }

  std::string bytes_;
  std::vector<uint64_t> slots_;  // the upper half of the hash, then the number
  std::vector<uint64_t> ends_;
};

}  // namespace lance
