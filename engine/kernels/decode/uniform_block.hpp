#pragma once

#include "core/span.hpp"
#include "core/uniform_layout.hpp"

namespace lance {

// Reads single values of an LZ4 block whose sequences are equally long, see `UniformLayout`.
class UniformBlock {
 public:
  // `input` begins with the length of the values, in 32 bits.
  explicit UniformBlock(Span input);

  // How many values the block has; 0 where it is of another kind, as far as its two ends tell.
  uint64_t count() const { return count_; }
  // Whether the values before `end` (at least 1, at most `count`) are where the layout has them. What follows
  // is only for these.
  bool uniform(uint64_t end) const;

  void decode(uint64_t begin, uint64_t end, uint8_t* out) const;
  // Writes the values as 64 bits; whether they fit.
  bool narrow(uint64_t begin, uint64_t end, uint8_t* out) const;
  void value(uint64_t position, uint8_t* out) const;

 private:
  template <typename Run>
  void visit_records(uint64_t begin, uint64_t end, Run run) const;

  Span block_;
  UniformLayout layout_{1};
  uint64_t count_ = 0;
  uint64_t low_ = 0, high_ = 0;  // what all values but the last one have besides their literals
};

}  // namespace lance
