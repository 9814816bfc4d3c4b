#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/span.hpp"

namespace lance {

// The tokens of a part of an index, ascending, with their numbers.
class TokenSet {
 public:
  // Of strings one after the other; every number must be less than `limit`.
  TokenSet(std::span<const int64_t> ends, Span bytes, std::span<const uint32_t> numbers, uint32_t limit);
  // Of a finite-state transducer; tokens have `total` bytes together.
  TokenSet(Span transducer, uint32_t limit, uint64_t total);

  size_t size() const { return numbers_.size(); }
  std::string_view at(size_t place) const {
    return std::string_view(bytes_).substr(ends_[place], ends_[place + 1] - ends_[place]);
  }
  uint32_t number(size_t place) const { return numbers_[place]; }
  std::optional<uint32_t> find(std::string_view token) const;
  // Up to `most` tokens that differ in at most `distance` letters; the first `prefix` letters must not
  // differ.
  std::vector<std::string> similar(std::string_view token, uint32_t distance, uint32_t prefix,
                                   size_t most) const;
  uint64_t nbytes() const { return bytes_.size() + 12 * ends_.size(); }

 private:
  std::string bytes_;
  std::vector<uint64_t> ends_{0};
  std::vector<uint32_t> numbers_;
};

}  // namespace lance
