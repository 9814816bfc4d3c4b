#include "encode/zones.hpp"

#include <algorithm>
#include <array>
#include <limits>
#include <string_view>

#include "encode/ordering.hpp"
#include "encode/truncate.hpp"

namespace lance::encode {
namespace {

// What is known about some values: bounds of those that are not NaN, and whether there are NaNs.
template <typename T>
struct Extremes {
  T low{}, high{};
  bool any = false, nan = false;

  void add(const T& value) {
    if (is_nan(value)) {
      nan = true;
    } else if (!any) {
      low = high = value;
      any = true;
    } else {
      if (value < low) low = value;
      if (high < value) high = value;
    }
  }
};

constexpr size_t kLanes = 8;

// All of `count` values. Several lanes are independent of each other, which keeps the processor busy.
template <typename T>
Extremes<T> extremes(const uint8_t* values, size_t count) {
  const auto value_at = [&](size_t index) { return load<T>(values + index * sizeof(T)); };
  Extremes<T> found;
  size_t at = 0;
  if constexpr (std::is_arithmetic_v<T>) {
    if (count >= 2 * kLanes) {
      T low[kLanes], high[kLanes];
      bool nan = false;
      for (size_t lane = 0; lane < kLanes; ++lane) {
        low[lane] = high[lane] = value_at(lane);
        nan |= is_nan(low[lane]);
      }
      for (at = kLanes; at + kLanes <= count; at += kLanes) {
        for (size_t lane = 0; lane < kLanes; ++lane) {
          const T value = value_at(at + lane);
          low[lane] = value < low[lane] ? value : low[lane];
          high[lane] = high[lane] < value ? value : high[lane];
          nan |= is_nan(value);
        }
      }
      if (nan) {  // comparisons with NaN mislead the lanes: rare, so start over
        at = 0;
      } else {
        for (size_t lane = 0; lane < kLanes; ++lane) {
          found.add(low[lane]);
          found.add(high[lane]);
        }
      }
    }
  }
  for (; at < count; ++at) found.add(value_at(at));
  return found;
}

template <typename T>
std::string bytes_of(T value) {
  return {reinterpret_cast<const char*>(&value), sizeof(T)};
}

// Both zeros are equal, regardless of how a reader of the bounds orders them.
template <typename T>
T signed_zero(T value, bool negative) {
  if constexpr (std::is_floating_point_v<T>) {
    if (value == 0) return negative ? -T{0} : T{0};
  } else if constexpr (std::is_same_v<T, Float16>) {
    if (value.key() == 0) return Float16{static_cast<uint16_t>(negative ? 0x8000 : 0)};
  }
  return value;
}

template <typename T>
std::string nan_bytes() {
  if constexpr (std::is_floating_point_v<T>)
    return bytes_of(std::numeric_limits<T>::quiet_NaN());
  else if constexpr (std::is_same_v<T, Float16>)
    return bytes_of(uint16_t{0x7e00});
  else
    return {};
}

template <typename T>
void store(const Extremes<T>& found, std::optional<std::string>& low, std::optional<std::string>& high) {
  if (found.any) {
    low = bytes_of(signed_zero(found.low, true));
    high = bytes_of(signed_zero(found.high, false));
  }
  if (found.nan) {
    if (!found.any) low = nan_bytes<T>();
    high = nan_bytes<T>();
  }
}

// Calls `visit(T{})` with the C++ type of fixed-width values.
template <typename Visit>
auto with_type(ZoneKind kind, unsigned width, Visit visit) {
  if (kind == ZoneKind::kFloat) {
    if (width == 2) return visit(Float16{});
    if (width == 4) return visit(float{});
    if (width == 8) return visit(double{});
  }
  if (kind == ZoneKind::kSigned) {
    if (width == 1) return visit(int8_t{});
    if (width == 2) return visit(int16_t{});
    if (width == 4) return visit(int32_t{});
    if (width == 8) return visit(int64_t{});
    if (width == 16) return visit(Int128{});
    if (width == 32) return visit(Int256{});
  }
  if (kind == ZoneKind::kUnsigned) {
    if (width == 1) return visit(uint8_t{});
    if (width == 2) return visit(uint16_t{});
    if (width == 4) return visit(uint32_t{});
    if (width == 8) return visit(uint64_t{});
  }
  throw InvalidInput("no order is known for values of this width");
}

// One flag per row; empty when no row is null.
std::vector<uint8_t> null_flags(const Levels& levels) {
  require(levels.max_rep == 0 && levels.slots == levels.rows, "zones have one value per row");
  std::vector<uint8_t> nulls;
  if (levels.has_nulls()) {
    nulls.resize(levels.slots);
    levels.for_each_slot([&](uint64_t slot, bool null) { nulls[slot] = null; });
  }
  return nulls;
}

// For 0 to 16 bytes, the bits of a key that they fill.
constexpr std::array<Uint128, 17> kPresent = [] {
  std::array<Uint128, 17> masks{};
  for (unsigned size = 1; size <= 16; ++size) masks[size] = ~Uint128{0} << (128 - 8 * size);
  return masks;
}();

// Values of variable width by their first bytes, which decide nearly all comparisons.
struct Key {
  static constexpr size_t kBytes = 16;

  Uint128 prefix = 0;  // the first bytes as a number that orders like them
  std::span<const uint8_t> value;

  Key() = default;
  // Up to `end` bytes may be read.
  Key(std::span<const uint8_t> bytes, const uint8_t* end) : value(bytes) {
    uint8_t copy[kBytes] = {};
    const uint8_t* from = bytes.data();
    if (end - from < static_cast<ptrdiff_t>(kBytes)) [[unlikely]] {
      if (!bytes.empty()) std::memcpy(copy, from, std::min(bytes.size(), kBytes));
      from = copy;
    }
    const Uint128 both =
        Uint128{__builtin_bswap64(load<uint64_t>(from))} << 64 | __builtin_bswap64(load<uint64_t>(from + 8));
    prefix = both & kPresent[std::min(bytes.size(), kBytes)];
  }

  std::string_view view() const { return {reinterpret_cast<const char*>(value.data()), value.size()}; }
  // Whether the prefixes are equal and the values may differ.
  bool unsure(const Key& other) const {
    return (prefix == other.prefix) & ((value.size() != other.value.size()) | (value.size() > kBytes));
  }
};

}  // namespace

ZoneStatistics::ZoneStatistics(ZoneKind kind, unsigned width, uint64_t zone_rows, uint64_t first_row)
    : kind_(kind), width_(width), zone_rows_(zone_rows), phase_(0) {
  require(zone_rows > 0 && zone_rows < (uint64_t{1} << 32), "a zone has 1 to 2^32 - 1 rows");
  phase_ = first_row % zone_rows;
  if (is_variable())
    require(width == 0, "values of variable width have no width");
  else if (kind == ZoneKind::kBool)
    require(width == 1, "a bound of a bool takes one byte");
  else
    with_type(kind, width, [](auto) {});
}

template <typename Visit>
void ZoneStatistics::for_each_zone(uint64_t count, Visit visit) {
  require(rows_ == 0, "rows are added once");
  zones_.resize((phase_ + count + zone_rows_ - 1) / zone_rows_);
  uint64_t begin = 0;
  for (Zone& zone : zones_) {
    const uint64_t first = begin == 0 ? zone_rows_ - phase_ : zone_rows_;
    const uint64_t end = begin + std::min(first, count - begin);
    visit(zone, begin, end);
    begin = end;
  }
  rows_ = count;
}

void ZoneStatistics::add_fixed(const Bytes& values, uint64_t offset, const Levels& levels) {
  require(!is_variable(), "values of fixed width expected");
  const std::vector<uint8_t> nulls = null_flags(levels);
  if (kind_ == ZoneKind::kBool) {
    values.require_values(1, offset, levels.slots);
    const Bitmap bits(values, offset, levels.slots);
    add_each(levels.slots, nulls, [&](uint64_t row) { return static_cast<uint8_t>(bits[row]); });
    return;
  }
  values.require_values(width_ * 8, offset, levels.slots);
  const uint8_t* first = values.data.data() + offset * width_;
  with_type(kind_, width_, [&]<typename T>(T) {
    if (!nulls.empty()) {
      add_each(levels.slots, nulls, [&](uint64_t row) { return load<T>(first + row * sizeof(T)); });
      return;
    }
    for_each_zone(levels.slots, [&](Zone& zone, uint64_t begin, uint64_t end) {
      zone.empty = false;
      store(extremes<T>(first + begin * sizeof(T), end - begin), zone.low, zone.high);
    });
  });
}

template <typename ValueAt>
void ZoneStatistics::add_each(uint64_t count, const std::vector<uint8_t>& nulls, ValueAt value_at) {
  using T = decltype(value_at(0));
  for_each_zone(count, [&](Zone& zone, uint64_t begin, uint64_t end) {
    Extremes<T> found;
    for (uint64_t row = begin; row < end; ++row) {
      if (!nulls.empty() && nulls[row])
        ++zone.nulls;
      else
        found.add(value_at(row));
    }
    zone.empty = !found.any && !found.nan;
    store(found, zone.low, zone.high);
  });
}

void ZoneStatistics::add_variable(const VariableInput& values, const Levels& levels) {
  require(is_variable() && values.count() == levels.slots, "values of variable width expected, one per row");
  const std::vector<uint8_t> nulls = null_flags(levels);
  const bool text = kind_ == ZoneKind::kText;
  for_each_zone(levels.slots, [&](Zone& zone, uint64_t begin, uint64_t end) {
    Key low, high;
    for (uint64_t row = begin; row < end; ++row) {
      if (!nulls.empty() && nulls[row]) {
        ++zone.nulls;
        continue;
      }
      const Key key(values[row], values.data_end());
      if (zone.empty) {
        low = high = key;
        zone.empty = false;
        continue;
      }
      // One branch that is almost never taken: columns with few distinct values would mispredict several.
      const bool outside = (key.prefix < low.prefix) | (high.prefix < key.prefix);
      if (outside | key.unsure(low) | key.unsure(high)) [[unlikely]] {
        if (key.view() < low.view()) low = key;
        if (high.view() < key.view()) high = key;
      }
    }
    if (zone.empty) return;
    zone.low = truncated_minimum(low.view(), kBoundBytes, text);
    zone.high = truncated_maximum(high.view(), kBoundBytes, text);
  });
}

void ZoneStatistics::append(const ZoneStatistics& next) {
  require(kind_ == next.kind_ && width_ == next.width_ && zone_rows_ == next.zone_rows_ &&
              (phase_ + rows_) % zone_rows_ == next.phase_,
          "statistics of other rows or of another column");
  auto begin = next.zones_.begin();
  if (next.phase_ != 0 && begin != next.zones_.end() && !zones_.empty()) {
    Zone& open = zones_.back();
    const Zone& rest = *begin++;
    open.nulls += rest.nulls;
    if (open.empty) {
      open.low = rest.low;
      open.high = rest.high;
    } else if (!rest.empty) {
      // A bound that one half lacks, the whole lacks too.
      if (!rest.low || (open.low && less(*rest.low, *open.low))) open.low = rest.low;
      if (!rest.high || (open.high && less(*open.high, *rest.high))) open.high = rest.high;
    }
    open.empty = open.empty && rest.empty;
  }
  zones_.insert(zones_.end(), begin, next.zones_.end());
  rows_ += next.rows_;
}

bool ZoneStatistics::less(const std::string& left, const std::string& right) const {
  if (is_variable() || kind_ == ZoneKind::kBool) return left < right;
  return with_type(kind_, width_, [&]<typename T>(T) {
    return ordered_less(load<T>(reinterpret_cast<const uint8_t*>(left.data())),
                        load<T>(reinterpret_cast<const uint8_t*>(right.data())));
  });
}

ZoneStatistics::Bounds ZoneStatistics::bounds(bool upper) const {
  Bounds result;
  for (const Zone& zone : zones_) {
    const std::optional<std::string>& bound = upper ? zone.high : zone.low;
    result.known.push_back(bound.has_value());
    if (bound)
      result.data.append(bound->data(), bound->size());
    else if (width_ != 0)
      std::memset(result.data.extend(width_), 0, width_);
    result.ends.push_back(result.data.size());
  }
  return result;
}

std::vector<uint32_t> ZoneStatistics::null_counts() const {
  std::vector<uint32_t> counts;
  for (const Zone& zone : zones_) counts.push_back(zone.nulls);
  return counts;
}

}  // namespace lance::encode
