#pragma once

#include <bit>
#include <cstdint>

#include "core/bitmap.hpp"

namespace lance {

// Which of some rows are wanted: one bit each, from `offset` on; no bits mean all.
struct RowMask {
  const uint8_t* bits = nullptr;
  uint64_t offset = 0;

  explicit operator bool() const { return bits != nullptr; }
  // The same, numbered from the `first` row on.
  RowMask from(uint64_t first) const { return {bits, offset + first}; }

  // Calls visit(word, first, size) for the bits of `count` rows, up to 64 at a time.
  template <typename Visit>
  void words(uint64_t count, Visit visit) const {
    uint64_t i = 0;
    const unsigned shift = offset & 7;
    for (const uint8_t* at = bits + (offset >> 3); i + 64 <= count; i += 64, at += 8) {
      uint64_t word = load<uint64_t>(at) >> shift;
      if (shift) word |= static_cast<uint64_t>(at[8]) << (64 - shift);
      visit(word, i, uint64_t{64});
    }
    if (i < count) visit(load_bits(bits, offset + i, count - i), i, count - i);
  }
  // Calls visit(row) for each wanted one of `count` rows.
  template <typename Visit>
  void visit(uint64_t count, Visit visit) const {
    words(count, [&](uint64_t word, uint64_t first, uint64_t) {
      for (; word; word &= word - 1) visit(first + static_cast<uint64_t>(std::countr_zero(word)));
    });
  }
  // How many of `rows` rows are wanted.
  uint64_t count(uint64_t rows) const {
    uint64_t found = 0;
    words(rows,
          [&](uint64_t word, uint64_t, uint64_t) { found += static_cast<uint64_t>(std::popcount(word)); });
    return found;
  }
};

}  // namespace lance
