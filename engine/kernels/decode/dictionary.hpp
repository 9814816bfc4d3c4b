#pragma once

#include <memory>

#include "core/remembered.hpp"
#include "decode/block_decoder.hpp"
#include "decode/leaf.hpp"

namespace lance {

// The distinct values of a mini-block page, decoded once (format 2.1, mini-block dictionary).
class Dictionary {
 public:
  Dictionary(const LeafType& type, const BlockDecoder& decoder, Span buffer, uint64_t count,
             Scratch& scratch);

  // Values that were decoded by other means.
  Dictionary(LeafValues&& values, uint64_t count);

  uint64_t size() const { return count_; }
  const Identity& identity() const { return identity_; }
  // One of the values, which are strings.
  Span string(uint64_t index) const {
    check(starts_ != nullptr, "a dictionary of fixed-width values stands where strings should");
    return {values_.data() + starts_[index], lengths_[index]};
  }
  // Appends all values in their order.
  void append_to(LeafValues& out) const;
  // Throws unless every index has a value.
  void check_codes(Span indices, unsigned index_width, uint64_t count) const;

  // Appends for each index the bit of its value in `passing`, one byte per value; throws unless every index
  // has a value.
  void match(Span indices, unsigned index_width, uint64_t count, const uint8_t* passing, Bits& out) const;

  // Appends the values, decimals of 128 bits, in 64 bits to `out`; false where some have more bits.
  bool gather_narrow(Span indices, unsigned index_width, uint64_t count, Bytes& out) const;
  // Appends the numbers, of `width` bytes (1 or 4), of the values that `indices` point at.
  void gather_numbers(Span indices, unsigned index_width, uint64_t count, const Bytes& numbers,
                      unsigned width, Bytes& out) const;
  // Appends the values that `indices` (fixed-width, unsigned, `index_width` bytes each) point at.
  void gather(Span indices, unsigned index_width, uint64_t count, LeafValues& out) const;

 private:
  template <typename Index>
  void match_from(const Index* indices, uint64_t count, const uint8_t* passing, Bits& out) const;
  template <typename Index>
  void gather_from(const Index* indices, uint64_t count, LeafValues& out) const;
  template <typename Index, typename Offset>
  void gather_strings(const Index* indices, uint64_t count, LeafValues& out) const;
  template <size_t Size, typename Index, typename Offset>
  void gather_cells(const Index* indices, uint64_t count, LeafValues& out) const;
  template <typename Index>
  uint64_t total_length(const Index* indices, uint64_t count) const;
  void read_strings(Span block);
  void make_cells();
  void read_bits(const uint8_t* bits);

  Identity identity_;
  uint64_t count_;
  uint64_t width_ = 0;    // bytes of a fixed-width value
  uint64_t longest_ = 0;  // bytes of the longest string
  Bytes values_;
  Bytes narrow_;      // values of 128 bits in 64 bits
  bool fits_ = true;  // whether these are the same
  Bytes cells_;       // of short strings: all equally long, the value first and its length in the last byte
  uint64_t cell_ = 0;
  std::unique_ptr<uint64_t[]> starts_;
  std::unique_ptr<uint32_t[]> lengths_;
};

}  // namespace lance
