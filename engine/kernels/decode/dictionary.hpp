#pragma once

#include <memory>

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
  // Appends all values in their order.
  void append_to(LeafValues& out) const;
  // Throws unless every index has a value.
  void check_codes(Span indices, unsigned index_width, uint64_t count) const;

  // Appends the values that `indices` (fixed-width, unsigned, `index_width` bytes each) point at.
  void gather(Span indices, unsigned index_width, uint64_t count, LeafValues& out) const;

 private:
  template <typename Index>
  void gather_from(const Index* indices, uint64_t count, LeafValues& out) const;
  template <typename Index, typename Offset>
  void gather_strings(const Index* indices, uint64_t count, LeafValues& out) const;
  template <size_t Size, typename Index>
  void copy_strings(const Index* indices, uint64_t count, uint8_t* at) const;
  void read_strings(Span block);

  uint64_t count_;
  uint64_t width_ = 0;    // bytes of a fixed-width value
  uint64_t longest_ = 0;  // bytes of the longest string
  Bytes values_;
  std::unique_ptr<uint64_t[]> starts_;
  std::unique_ptr<uint32_t[]> lengths_;
};

}  // namespace lance
