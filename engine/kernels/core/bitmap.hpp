#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "core/memory.hpp"
#include "core/span.hpp"

namespace lance {

inline uint64_t bytes_for_bits(uint64_t bits) {
  return (bits + 7) / 8;
}

inline bool get_bit(const uint8_t* bits, uint64_t index) {
  return bits[index >> 3] >> (index & 7) & 1;
}

// Reads up to 64 bits starting anywhere; touches only bytes that hold wanted bits.
inline uint64_t load_bits(const uint8_t* bits, uint64_t index, uint64_t count) {
  const uint8_t* at = bits + (index >> 3);
  unsigned shift = index & 7;
  uint64_t bytes = bytes_for_bits(shift + count);
  uint64_t low = 0;
  std::memcpy(&low, at, std::min<uint64_t>(bytes, 8));
  uint64_t word = low >> shift;
  if (bytes > 8) word |= static_cast<uint64_t>(at[8]) << (64 - shift);
  return count == 64 ? word : word & ((uint64_t{1} << count) - 1);
}

struct RowMask;  // of decode/row_mask.hpp

// A bitmap that grows at its end. Bits past the end are zero.
class Bits {
 public:
  uint64_t length() const { return length_; }
  Bytes& bytes() { return bytes_; }
  const uint8_t* data() const { return bytes_.data(); }

  void append_word(uint64_t word, uint64_t count) {
    unsigned shift = length_ & 7;
    uint64_t end = bytes_for_bits(length_ + count);
    uint8_t* start = grow_to(end) + (length_ >> 3);
    uint64_t low = word << shift;
    if (shift) low |= *start;
    uint64_t touched = end - (length_ >> 3);
    std::memcpy(start, &low, std::min<uint64_t>(touched, 8));
    if (touched > 8) start[8] = static_cast<uint8_t>(word >> (64 - shift));
    length_ += count;
  }

  void append_bits(const uint8_t* bits, uint64_t offset, uint64_t count) {
    if ((length_ & 7) == 0 && (offset & 7) == 0 && count >= 64) {
      uint64_t whole = count / 8;
      std::memcpy(grow_to(length_ / 8 + whole) + length_ / 8, bits + offset / 8, whole);
      length_ += whole * 8;
      offset += whole * 8;
      count -= whole * 8;
    }
    for (; count >= 64; count -= 64, offset += 64) append_word(load_bits(bits, offset, 64), 64);
    if (count) append_word(load_bits(bits, offset, count), count);
  }

  void append_same(bool value, uint64_t count) {
    if (count >= 256 && (length_ & 7) == 0) {
      uint64_t whole = count / 8;
      std::memset(grow_to(length_ / 8 + whole) + length_ / 8, value ? 0xFF : 0, whole);
      length_ += whole * 8;
      count -= whole * 8;
    }
    uint64_t word = value ? ~uint64_t{0} : 0;
    for (; count >= 64; count -= 64) append_word(word, 64);
    if (count) append_word(value ? (uint64_t{1} << count) - 1 : 0, count);
  }

  // Drops all bits from `length` on.
  void truncate(uint64_t length) {
    length_ = length;
    bytes_.shrink_to(bytes_for_bits(length));
    if (length & 7) bytes_.data()[length >> 3] &= static_cast<uint8_t>((1u << (length & 7)) - 1);
  }
  // Of the bits from `before` on, keeps only those in `mask`, which begins there.
  void keep(uint64_t before, RowMask mask);

  void reserve(uint64_t bits) { bytes_.reserve(bytes_for_bits(bits) + 8); }

 private:
  uint8_t* grow_to(uint64_t size) {
    if (size > bytes_.size()) bytes_.extend(size - bytes_.size());
    return bytes_.data();
  }

  Bytes bytes_;
  uint64_t length_ = 0;
};

// Validity of a run of slots: no memory while everything is valid.
class Validity {
 public:
  uint64_t length() const { return bits_started_ ? bits_.length() : length_; }
  uint64_t null_count() const { return null_count_; }
  Bits& bits() { return bits_; }

  void append_valid(uint64_t count) {
    if (bits_started_)
      bits_.append_same(true, count);
    else
      length_ += count;
  }
  void append_null(uint64_t count) {
    if (!count) return;
    start();
    bits_.append_same(false, count);
    null_count_ += count;
  }
  void append_word(uint64_t word, uint64_t count, uint64_t nulls) {
    if (!nulls && !bits_started_) {
      length_ += count;
      return;
    }
    start();
    bits_.append_word(word, count);
    null_count_ += nulls;
  }
  // Of the slots from `before` on, keeps only those in `mask`, which begins there.
  void keep(uint64_t before, RowMask mask);
  void append_bits(const uint8_t* bits, uint64_t offset, uint64_t count) {
    for (; count;) {
      uint64_t step = std::min<uint64_t>(count, 64);
      uint64_t word = load_bits(bits, offset, step);
      append_word(word, step, step - static_cast<uint64_t>(std::popcount(word)));
      offset += step;
      count -= step;
    }
  }

 private:
  uint64_t zeros_from(uint64_t first) const;
  void start() {
    if (bits_started_) return;
    bits_started_ = true;
    bits_.append_same(true, length_);
  }

  Bits bits_;
  uint64_t length_ = 0;
  uint64_t null_count_ = 0;
  bool bits_started_ = false;
};

}  // namespace lance
