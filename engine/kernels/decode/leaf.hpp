#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <stdexcept>
#include <vector>

#include "core/bitmap.hpp"
#include "core/memory.hpp"
#include "core/source.hpp"
#include "decode/row_mask.hpp"

namespace lance {

// What the Arrow type of a leaf column requires.
enum class LeafKind : uint8_t { kNull, kBits, kFixed, kVariable32, kVariable64 };

// No value is wider. With at most 2^32 rows to a file, no place in a column then exceeds 64 bits.
inline constexpr uint64_t kMaxValueBytes = uint64_t{1} << 28;

struct LeafType {
  LeafKind kind = LeafKind::kNull;
  uint32_t width = 0;          // kFixed: bytes of one value, of one innermost item for fixed-size lists
  std::vector<uint64_t> dims;  // fixed-size lists, outermost first

  bool variable() const { return kind == LeafKind::kVariable32 || kind == LeafKind::kVariable64; }
  unsigned offset_width() const { return kind == LeafKind::kVariable32 ? 4 : 8; }
  uint64_t items() const {
    uint64_t product = 1;
    for (uint64_t dim : dims) product *= dim;
    return product;
  }
};

// More than a 32-bit offset can address in one array: the caller asks again for fewer rows.
struct BatchTooLarge : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Bytes of values that no bytes of the file stand for, such as those below nulls, in one array.
inline constexpr uint64_t kMaxPlaceholderBytes = uint64_t{1} << 31;
inline void check_placeholders(uint64_t bytes) {
  if (bytes > kMaxPlaceholderBytes) throw BatchTooLarge("more nulls than fit a batch");
}

// Decoded values of one leaf, growing at the end; slots of null values hold arbitrary bytes.
class LeafValues {
 public:
  explicit LeafValues(const LeafType& type)
      : item_validity(type.dims.size()), type_(&type), items_(type.items()) {
    if (type.variable()) std::memset(offsets.extend(type.offset_width()), 0, type.offset_width());
  }

  // Starts again with the memory of values that are done with.
  LeafValues(const LeafType& type, Bytes memory) : LeafValues(type) {
    data = std::move(memory);
    data.clear();
  }

  // Drops all values, but keeps their memory.
  void clear() {
    data.clear();
    offsets.clear();
    if (type_->variable()) std::memset(offsets.extend(type_->offset_width()), 0, type_->offset_width());
    aliased = {};
    alias_owner.reset();
    length_ = 0;
  }

  // Of the values from `before` on, whose bytes begin at `bytes_before`, keeps only those in `mask`, which
  // begins there; without fixed-size lists.
  void keep(uint64_t before, uint64_t bytes_before, RowMask mask);

  // Counts values whose parts were appended one by one.
  void add_length(uint64_t count) { length_ += count; }

  const LeafType& type() const { return *type_; }
  uint64_t length() const { return length_; }
  uint64_t value_bytes() const { return type_->width * items_; }

  // Room for `count` more fixed-width values.
  uint8_t* extend_fixed(uint64_t count) {
    length_ += count;
    return data.extend(count * value_bytes());
  }
  void extend_bits(const uint8_t* from, uint64_t offset, uint64_t count) {
    bits.append_bits(from, offset, count * items_);
    length_ += count;
  }
  void extend_same(bool value, uint64_t count) {
    bits.append_same(value, count * items_);
    length_ += count;
  }
  // Room for `count` more offsets; the caller fills them with ends of values, starting from `data.size()`.
  template <typename Offset>
  Offset* extend_offsets(uint64_t count) {
    length_ += count;
    return reinterpret_cast<Offset*>(offsets.extend(count * sizeof(Offset)));
  }
  void append_placeholders(uint64_t count);

  // Points to bytes in the file instead of copying them; these are then all the values there are. Of strings,
  // they are the bytes that the offsets count.
  void alias(Span bytes, std::shared_ptr<const Source> owner, uint64_t count) {
    aliased = bytes;
    alias_owner = std::move(owner);
    length_ += count;
  }

  Bytes data;
  Bits bits;
  Bytes offsets;
  Span aliased;
  std::shared_ptr<const Source> alias_owner;
  std::vector<Validity> item_validity;  // one per dimension of a fixed-size list, outermost first

 private:
  const LeafType* type_;
  uint64_t items_;
  uint64_t length_ = 0;
};

template <typename Offset>
inline void check_offset_range(uint64_t bytes) {
  if (bytes > static_cast<uint64_t>(std::numeric_limits<std::make_signed_t<Offset>>::max()))
    throw BatchTooLarge("more bytes of strings than 32-bit offsets can address");
}

}  // namespace lance
