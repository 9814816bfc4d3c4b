#pragma once

#include <array>
#include <memory>
#include <vector>

#include "core/span.hpp"
#include "decode/leaf.hpp"

namespace lance {

inline constexpr size_t kMaxValueBuffers = 16;

// The value buffers of one mini-block chunk.
struct Chunk {
  std::array<Span, kMaxValueBuffers> buffers;
  size_t num_buffers = 0;
  uint64_t num_values = 0;
};

// Memory that decoding steps reuse from chunk to chunk.
struct Scratch {
  Bytes decompressed;
  Bytes block;  // one unpacked block of 1024 values
  Bytes levels;
  std::vector<uint16_t> rep;
  std::vector<uint16_t> def;
  std::vector<uint16_t> chunk_rep;
  std::vector<uint16_t> chunk_def;
  std::vector<uint32_t> positions;
};

// How the values of a mini-block chunk are compressed. Immutable and shared between threads.
class ValueDecoder {
 public:
  virtual ~ValueDecoder() = default;

  // How many buffers of a chunk it consumes.
  virtual size_t num_buffers() const { return 1; }
  // Refuses, once per page, an output type that the bytes cannot be.
  virtual void check_type(const LeafType& type) const = 0;
  // Appends the values [skip, skip + count) of the chunk to `out`.
  virtual void decode(const Chunk& chunk, uint64_t skip, uint64_t count, LeafValues& out,
                      Scratch& scratch) const = 0;
  // Appends the values at ascending positions of the chunk.
  virtual void gather(const Chunk& chunk, const uint32_t* positions, size_t count, LeafValues& out,
                      Scratch& scratch) const;
};

using ValueDecoderPtr = std::shared_ptr<const ValueDecoder>;

ValueDecoderPtr make_flat(uint64_t bits_per_value);
ValueDecoderPtr make_inline_bitpacking(uint64_t bits_per_value);
ValueDecoderPtr make_variable(unsigned bits_per_offset);
ValueDecoderPtr make_fsst(Span symbol_table, unsigned bits_per_offset);
ValueDecoderPtr make_rle(uint64_t bits_per_value);
ValueDecoderPtr make_byte_stream_split(uint64_t bits_per_value);
ValueDecoderPtr make_fixed_size_list(std::vector<uint64_t> dims, std::vector<bool> has_validity,
                                     uint64_t bits_per_item);

enum class Compression : uint8_t { kNone, kLz4, kZstd };
ValueDecoderPtr make_general(Compression scheme, ValueDecoderPtr inner);

// Expands a length-prefixed LZ4 block or zstd frame (format 2.1, general compression).
void decompress(Compression scheme, Span input, Bytes& out);

}  // namespace lance
