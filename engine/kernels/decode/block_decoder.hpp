#pragma once

#include <memory>

#include "core/bitmap.hpp"
#include "core/memory.hpp"
#include "core/span.hpp"
#include "decode/value_decoder.hpp"

namespace lance {

// How one whole buffer is compressed: the levels of a chunk, or a dictionary (format 2.1, "block" context).
class BlockDecoder {
 public:
  virtual ~BlockDecoder() = default;
  // Bits of one fixed-width value, or 0 for strings.
  virtual uint64_t bits() const = 0;
  // The most bytes that `count` values can take, as far as `input` tells without being decoded.
  virtual uint64_t most_bytes(Span input, uint64_t count) const {
    static_cast<void>(input);
    return bytes_for_bits(count * bits());
  }
  // Appends `count` values. Strings come out in their own framing: width, start, offsets, bytes.
  virtual void decode(Span input, uint64_t count, Bytes& out, Scratch& scratch) const = 0;
};

using BlockDecoderPtr = std::shared_ptr<const BlockDecoder>;

BlockDecoderPtr make_block_flat(uint64_t bits_per_value);
BlockDecoderPtr make_block_inline_bitpacking(uint64_t bits_per_value);
BlockDecoderPtr make_block_out_of_line_bitpacking(uint64_t bits_per_value, uint64_t packed_bits);
BlockDecoderPtr make_block_rle(uint64_t bits_per_value);
BlockDecoderPtr make_block_variable(unsigned bits_per_offset);
BlockDecoderPtr make_block_general(Compression scheme, BlockDecoderPtr inner);

}  // namespace lance
