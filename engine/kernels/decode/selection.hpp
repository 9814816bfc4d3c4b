#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "decode/row_mask.hpp"

namespace lance {

// Rows [begin, end).
struct RowRange {
  uint64_t begin = 0;
  uint64_t end = 0;
};

// Which slots to decode: ascending rows one by one, ranges, or the wanted rows of one range.
struct Selection {
  std::span<const RowRange> ranges;
  std::span<const uint32_t> rows;
  bool by_rows = false;
  RowMask mask{};  // counted from the begin of the range

  static Selection of(std::span<const RowRange> ranges) { return {ranges, {}, false}; }
  static Selection of(std::span<const uint32_t> rows) { return {{}, rows, true}; }

  // Only for fields that `take_masks`.
  static Selection of(const RowRange& range, RowMask mask) {
    return {std::span<const RowRange>(&range, 1), {}, false, mask};
  }

  uint64_t count() const {
    if (by_rows) return rows.size();
    if (mask) return mask.count(ranges[0].end - ranges[0].begin);
    uint64_t count = 0;
    for (const RowRange& range : ranges) count += range.end - range.begin;
    return count;
  }

  // Calls visit(begin, end) for each range; neighbouring rows are one range.
  template <typename Visit>
  void visit_ranges(Visit visit) const {
    if (!by_rows) {
      for (const RowRange& range : ranges) visit(range.begin, range.end);
      return;
    }
    for (size_t i = 0; i < rows.size();) {
      size_t run = 1;
      while (i + run < rows.size() && rows[i + run] == rows[i] + run) ++run;
      visit(uint64_t{rows[i]}, uint64_t{rows[i]} + run);
      i += run;
    }
  }
};

}  // namespace lance
