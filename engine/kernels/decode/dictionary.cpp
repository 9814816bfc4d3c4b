#include "decode/dictionary.hpp"

#include <algorithm>
#include <numeric>
#include <vector>

#include "decode/by_width.hpp"
#include "decode/narrow.hpp"
#include "decode/range_test.hpp"
#include "decode/value_test.hpp"

namespace lance {

Dictionary::Dictionary(const LeafType& type, const BlockDecoder& decoder, Span buffer, uint64_t count,
                       Scratch& scratch)
    : count_(count) {
  check(count <= (uint64_t{1} << 31), "a dictionary claims an impossible number of values");
  check(type.dims.empty(), "fixed-size lists have no dictionary");
  if (type.variable()) {
    check(decoder.bits() == 0, "a dictionary of fixed-width values stands where strings should");
    Bytes block;
    decoder.decode(buffer, count, block, scratch);
    read_strings({block.data(), block.size()});
  } else if (type.kind == LeafKind::kBits) {
    check(decoder.bits() == 1, "the width of dictionary values does not fit the type of the column");
    Bytes block;
    decoder.decode(buffer, count, block, scratch);
    read_bits(block.data());
  } else {
    check(type.kind == LeafKind::kFixed && decoder.bits() == uint64_t{type.width} * 8,
          "the width of dictionary values does not fit the type of the column");
    width_ = type.width;
    decoder.decode(buffer, count, values_, scratch);
    if (width_ == 16) {
      check(values_.size() >= count * 16, "a dictionary has fewer values than it claims");
      fits_ = narrow_values(values_.data(), narrow_.extend(count * 8), count);
    }
  }
}

Dictionary::Dictionary(LeafValues&& values, uint64_t count) : count_(count), width_(values.type().width) {
  if (values.type().variable()) {
    starts_ = std::make_unique<uint64_t[]>(count);
    lengths_ = std::make_unique<uint32_t[]>(count);
    unsigned width = values.type().offset_width();
    auto offset = [&](uint64_t i) -> uint64_t {
      const uint8_t* at = values.offsets.data() + i * width;
      return width == 4 ? load<uint32_t>(at) : load<uint64_t>(at);
    };
    for (uint64_t i = 0; i < count; ++i) {
      starts_[i] = offset(i);
      uint64_t length = offset(i + 1) - starts_[i];
      check(length <= UINT32_MAX, "a dictionary value is impossibly long");
      lengths_[i] = static_cast<uint32_t>(length);
      longest_ = std::max(longest_, length);
    }
  }
  if (values.type().kind == LeafKind::kBits)
    read_bits(values.bits.data());
  else
    values_ = std::move(values.data);
  values_.reserve(1);  // there may be no bytes at all
  if (starts_) make_cells();
}

// Booleans take a byte each, so that they are looked up like other values.
void Dictionary::read_bits(const uint8_t* bits) {
  uint8_t* bytes = values_.extend(count_);
  for (uint64_t i = 0; i < count_; ++i) bytes[i] = get_bit(bits, i);
}

// Width of an offset in bits, start of the bytes, count + 1 offsets, bytes.
void Dictionary::read_strings(Span block) {
  auto bits = block.at<uint32_t>(0);
  check(bits == 32 || bits == 64, "a dictionary of strings has neither 32-bit nor 64-bit offsets");
  uint64_t width = bits / 8;
  uint64_t start = width == 4 ? block.at<uint32_t>(4) : block.at<uint64_t>(8);
  Span offsets = block.sub(2 * width, (count_ + 1) * width);
  check(start >= (count_ + 3) * width, "dictionary values start inside their offsets");
  Span bytes = block.from(start);
  starts_ = std::make_unique<uint64_t[]>(count_);
  lengths_ = std::make_unique<uint32_t[]>(count_);
  auto offset = [&](uint64_t i) -> uint64_t {
    return width == 4 ? load<uint32_t>(offsets.data + 4 * i) : load<uint64_t>(offsets.data + 8 * i);
  };
  uint64_t longest = 0;
  for (uint64_t i = 0; i < count_; ++i) {
    uint64_t from = offset(i), to = offset(i + 1);
    check(from <= to && to <= bytes.size && to - from <= UINT32_MAX,
          "dictionary offsets run past their bytes");
    starts_[i] = from;
    lengths_[i] = static_cast<uint32_t>(to - from);
    longest = std::max(longest, to - from);
  }
  longest_ = longest;
  copy_bytes(values_.extend(bytes.size), bytes.data, bytes.size);
  make_cells();
}

namespace {

// Calls `run` with the indices in their width.
template <typename Run>
void with_indices(Span indices, unsigned index_width, uint64_t count, Run run) {
  check(count <= indices.size / index_width, "there are fewer dictionary indices than values");
  of_width(indices.data, index_width, run);
}

// Whether all are in range is decided once; the copies then run unchecked. `limit` is at most 2^31.
template <typename Index>
void check_indices(const Index* indices, uint64_t count, uint64_t limit) {
  bool inside;
  if constexpr (sizeof(Index) >= 4) {
    // The highest bit is set only where an index lacks it and is below the limit: without a comparison, for
    // which not every processor has an instruction.
    Index below = static_cast<Index>(~Index{0});
    for (uint64_t i = 0; i < count; ++i) below &= (indices[i] - static_cast<Index>(limit)) & ~indices[i];
    inside = below >> (8 * sizeof(Index) - 1);
  } else {
    Index largest = 0;
    for (uint64_t i = 0; i < count; ++i) largest = std::max(largest, indices[i]);
    inside = count == 0 || largest < limit;
  }
  check(inside, "a dictionary index is out of range");
}

template <typename Index, size_t Width>
void gather_fixed(const Index* indices, uint64_t count, const uint8_t* values, uint8_t* out) {
#pragma GCC unroll 8
  for (uint64_t i = 0; i < count; ++i)
    std::memcpy(out + i * Width, values + uint64_t{indices[i]} * Width, Width);
}

}  // namespace

template <typename Index>
uint64_t Dictionary::total_length(const Index* indices, uint64_t count) const {
  uint64_t total = 0;
  for (uint64_t i = 0; i < count; ++i) total += lengths_[indices[i]];
  return total;
}

template <typename Index, typename Offset>
void Dictionary::gather_strings(const Index* indices, uint64_t count, LeafValues& out) const {
  if (cell_ == 16) return gather_cells<16, Index, Offset>(indices, count, out);
  if (cell_ == 32) return gather_cells<32, Index, Offset>(indices, count, out);
  uint64_t base = out.data.size();
  uint64_t total = 0;
  Offset* offsets = out.extend_offsets<Offset>(count);
  for (uint64_t i = 0; i < count; ++i) {
    total += lengths_[indices[i]];
    offsets[i] = static_cast<Offset>(base + total);
  }
  check_offset_range<Offset>(base + total);
  if (total == 0) return;  // no memory need exist on either side
  uint8_t* at = out.data.extend(total);
  const uint8_t* values = values_.data();
  for (uint64_t i = 0; i < count; ++i) {
    uint32_t length = lengths_[indices[i]];
    copy_bytes(at, values + starts_[indices[i]], length);
    at += length;
  }
}

// Whole cells are copied, each over the rest of the one before: the output has slack after its end.
template <size_t Size, typename Index, typename Offset>
void Dictionary::gather_cells(const Index* indices, uint64_t count, LeafValues& out) const {
  static_assert(Size <= kSlack);
  const uint64_t base = out.data.size();
  uint64_t room = count * longest_;
  if (base + room > out.data.capacity()) {
    room = total_length(indices, count);
    check_offset_range<Offset>(base + room);  // before memory is requested
  }
  Offset* offsets = out.extend_offsets<Offset>(count);
  out.data.reserve(1);  // what is copied needs a place even where it has no bytes
  uint8_t* begin = out.data.extend(room);
  const uint8_t* cells = cells_.data();
  uint64_t at = 0;
  for (uint64_t i = 0; i < count; ++i) {
    const uint8_t* cell = cells + uint64_t{indices[i]} * Size;
    std::memcpy(begin + at, cell, Size);
    at += cell[Size - 1];
    offsets[i] = static_cast<Offset>(base + at);
  }
  out.data.shrink_to(base + at);
  check_offset_range<Offset>(base + at);
}

// Strings that with their length fit into few bytes get such a cell each.
void Dictionary::make_cells() {
  if (longest_ > 31) return;
  cell_ = longest_ <= 15 ? 16 : 32;
  uint8_t* cells = cells_.extend(count_ * cell_);
  zero_bytes(cells, count_ * cell_);
  for (uint64_t i = 0; i < count_; ++i) {
    copy_bytes(cells + i * cell_, values_.data() + starts_[i], lengths_[i]);
    cells[i * cell_ + cell_ - 1] = static_cast<uint8_t>(lengths_[i]);
  }
}

template <typename Index>
void Dictionary::gather_from(const Index* indices, uint64_t count, LeafValues& out) const {
  check_indices(indices, count, count_);
  if (out.type().kind == LeafKind::kVariable32) return gather_strings<Index, uint32_t>(indices, count, out);
  if (out.type().kind == LeafKind::kVariable64) return gather_strings<Index, uint64_t>(indices, count, out);
  const uint8_t* values = values_.data();
  if (out.type().kind == LeafKind::kBits) {
    append_tests(out.bits, count, [=](uint64_t i) { return values[indices[i]]; });
    return out.add_length(count);
  }
  uint8_t* target = out.extend_fixed(count);
  switch (width_) {
    case 4:
      return gather_fixed<Index, 4>(indices, count, values, target);
    case 8:
      return gather_fixed<Index, 8>(indices, count, values, target);
    case 16:
      return gather_fixed<Index, 16>(indices, count, values, target);
    default:
      for (uint64_t i = 0; i < count; ++i)
        copy_bytes(target + i * width_, values + uint64_t{indices[i]} * width_, width_);
  }
}

void Dictionary::gather(Span indices, unsigned index_width, uint64_t count, LeafValues& out) const {
  with_indices(indices, index_width, count, [&](const auto* at) { gather_from(at, count, out); });
}

bool Dictionary::gather_narrow(Span indices, unsigned index_width, uint64_t count, Bytes& out) const {
  check(width_ == 16, "only plain decimals can be made narrower");
  with_indices(indices, index_width, count, [&]<typename Index>(const Index* at) {
    check_indices(at, count, count_);
    gather_fixed<Index, 8>(at, count, narrow_.data(), out.extend(count * 8));
  });
  return fits_;
}

void Dictionary::gather_numbers(Span indices, unsigned index_width, uint64_t count, const Bytes& numbers,
                                unsigned width, Bytes& out) const {
  with_indices(indices, index_width, count, [&]<typename Index>(const Index* at) {
    check_indices(at, count, count_);
    uint8_t* target = out.extend(count * width);
    if (width == 1)
      gather_fixed<Index, 1>(at, count, numbers.data(), target);
    else
      gather_fixed<Index, 4>(at, count, numbers.data(), target);
  });
}

// Of few values, which pass is a word of bits, which vectors of codes shift.
template <typename Index>
void Dictionary::match_from(const Index* indices, uint64_t count, const uint8_t* passing, Bits& out) const {
  constexpr uint64_t kMarks = 64;
  if (count_ > kMarks) {
    check_indices(indices, count, count_);
    return append_tests(out, count, [=](uint64_t i) { return passing[indices[i]]; });
  }
  uint64_t marks = 0;
  for (uint64_t i = 0; i < count_; ++i) marks |= static_cast<uint64_t>(passing[i] != 0) << i;
  const auto is_marked = range_tests().is_marked.of<Index>();
  bool valid = true;
  append_blocks(
      out, count, false,
      [&](uint64_t i, uint8_t* bytes) {
        valid &= is_marked(reinterpret_cast<const uint8_t*>(indices + i), marks, static_cast<Index>(count_),
                           bytes);
      },
      [&](uint64_t i) {
        valid &= indices[i] < count_;
        return (marks >> (indices[i] % kMarks) & 1) != 0;
      });
  check(valid, "a dictionary index is out of range");
}

void Dictionary::match(Span indices, unsigned index_width, uint64_t count, const uint8_t* passing,
                       Bits& out) const {
  with_indices(indices, index_width, count, [&](const auto* at) { match_from(at, count, passing, out); });
}

void Dictionary::append_to(LeafValues& out) const {
  std::vector<uint32_t> all(count_);
  std::iota(all.begin(), all.end(), 0);
  gather({reinterpret_cast<const uint8_t*>(all.data()), all.size() * 4}, 4, count_, out);
}

void Dictionary::check_codes(Span indices, unsigned index_width, uint64_t count) const {
  with_indices(indices, index_width, count, [&](const auto* at) { check_indices(at, count, count_); });
}

}  // namespace lance
