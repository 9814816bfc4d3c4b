#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "encode/levels.hpp"
#include "encode/output.hpp"
#include "encode/values.hpp"

namespace lance::encode {

// How the values of a column are ordered. Floating point numbers: NaN is the largest value. Text: UTF-8,
// bytewise.
enum class ZoneKind { kBool, kSigned, kUnsigned, kFloat, kText, kBytes };

// Minimum, maximum and null count per zone of consecutive rows of one column without lists.
//
// A bound is absent if a zone has no value, or no bound is short enough: long texts and bytes are truncated,
// the minimum downwards and the maximum upwards, so their bounds may not be values of the zone.
class ZoneStatistics {
 public:
  // Longest bound of text and bytes that is kept.
  static constexpr size_t kBoundBytes = 32;

  // `first_row` is the number of the first row in the column, which says where its zone ends. Width of a
  // fixed value in bytes: 1 for bool, 0 for text and bytes.
  ZoneStatistics(ZoneKind kind, unsigned width, uint64_t zone_rows, uint64_t first_row);

  // Values number [offset, offset + levels.slots) of the buffer; bits for bool. May be called once.
  void add_fixed(const Bytes& values, uint64_t offset, const Levels& levels);
  void add_variable(const VariableInput& values, const Levels& levels);

  // Continues these statistics with those of the rows that follow.
  void append(const ZoneStatistics& next);

  uint64_t zones() const { return zones_.size(); }
  uint64_t rows() const { return rows_; }
  bool is_variable() const { return kind_ == ZoneKind::kText || kind_ == ZoneKind::kBytes; }

  struct Bounds {
    std::vector<uint8_t> known;  // one byte per zone
    std::vector<uint64_t> ends;  // of each bound in `data`
    Output data;                 // fixed values are at multiples of their width; absent ones are zero
  };
  Bounds bounds(bool upper) const;
  std::vector<uint32_t> null_counts() const;

 private:
  struct Zone {
    uint32_t nulls = 0;
    bool empty = true;  // no value so far
    std::optional<std::string> low, high;
  };

  // Calls `visit(zone, begin, end)` for the zones that the next `count` rows fall into.
  template <typename Visit>
  void for_each_zone(uint64_t count, Visit visit);
  template <typename ValueAt>
  void add_each(uint64_t count, const std::vector<uint8_t>& nulls, ValueAt value_at);
  bool less(const std::string& left, const std::string& right) const;

  ZoneKind kind_;
  unsigned width_;
  uint64_t zone_rows_;
  uint64_t phase_;  // rows of the first zone that are before the first row
  uint64_t rows_ = 0;
  std::vector<Zone> zones_;
};

}  // namespace lance::encode
