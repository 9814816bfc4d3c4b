#pragma once

#include <array>
#include <memory>
#include <vector>

#include "core/span.hpp"
#include "decode/leaf.hpp"
#include "decode/offsets.hpp"
#include "decode/value_test.hpp"

namespace lance {

inline constexpr size_t kMaxValueBuffers = 16;
inline constexpr uint64_t kMostDecompressed = uint64_t{1} << 31;

// The value buffers of one mini-block chunk.
struct Chunk {
  std::array<Span, kMaxValueBuffers> buffers;
  size_t num_buffers = 0;
  uint64_t num_values = 0;
};

// Memory that decoding steps reuse from chunk to chunk.
struct Scratch {
  Bytes picked;  // what was read of a file, where it is not looked at in place
  Bytes decompressed;
  Bytes block;  // one unpacked block of 1024 values
  Bytes levels;
  Bytes places;  // where each code of a chunk ends in the output
  std::vector<uint16_t> rep;
  std::vector<uint16_t> def;
  std::vector<uint16_t> chunk_rep;
  std::vector<uint16_t> chunk_def;
  std::vector<uint32_t> positions;
};

// Room for what a writer may have added after values.
inline uint64_t padded(uint64_t bytes) {
  return bytes + bytes / 8 + (16 << 10);
}

// How the values of a mini-block chunk are compressed. Immutable and shared between threads.
class ValueDecoder {
 public:
  virtual ~ValueDecoder() = default;

  // How many buffers of a chunk it consumes.
  virtual size_t num_buffers() const { return 1; }
  // The most bytes that the first buffer of a chunk of `num_values` values can hold, for what is compressed.
  virtual uint64_t most_bytes(uint64_t num_values) const = 0;
  // Refuses, once per page, an output type that the bytes cannot be.
  virtual void check_type(const LeafType& type) const = 0;
  // Appends the values [skip, skip + count) of the chunk to `out`.
  virtual void decode(const Chunk& chunk, uint64_t skip, uint64_t count, LeafValues& out,
                      Scratch& scratch) const = 0;
  // Tests the values [skip, skip + count) without decoding them, where that is possible: appends a bit for
  // each to `out`, or returns false and does nothing.
  virtual bool test(const Chunk&, uint64_t /*skip*/, uint64_t /*count*/, const ValueTest&, Bits& /*out*/,
                    Scratch&) const {
    return false;
  }
  // Appends the values [skip, skip + count), decimals of 128 bits, as 64 bits each, where that takes less
  // than decoding them first: sets `fits` to false where one has more bits. Else returns false and does
  // nothing.
  virtual bool narrow(const Chunk&, uint64_t /*skip*/, uint64_t /*count*/, Bytes& /*out*/,
                      bool& /*fits*/) const {
    return false;
  }
  // The bytes of each value where its first buffer is these values, one after the other; 0 for others.
  virtual uint64_t plain_bytes() const { return 0; }
  // So many bytes of the first buffer, from its start, hold all values up to position `last`; there may be
  // fewer.
  virtual uint64_t prefix_bytes(const Chunk&, uint64_t /*last*/) const { return kMostDecompressed; }
  // Appends the values at ascending positions of the chunk, at least one; a position may repeat.
  virtual void gather(const Chunk& chunk, const uint32_t* positions, size_t count, LeafValues& out,
                      Scratch& scratch) const;
};

using ValueDecoderPtr = std::shared_ptr<const ValueDecoder>;

// The offsets of the strings [skip, skip + count) of a chunk: `count` + 1, ascending, inside its first buffer
// and after the offsets themselves.
template <typename Stored>
inline Span checked_offsets(const Chunk& chunk, uint64_t skip, uint64_t count) {
  const Span& buffer = chunk.buffers[0];
  Span stored = buffer.sub(skip * sizeof(Stored), (count + 1) * sizeof(Stored));
  check(load<Stored>(stored.data) >= (chunk.num_values + 1) * sizeof(Stored),
        "string offsets point into themselves");
  check(offsets_ascend<Stored>(stored.data, count), "string offsets decrease");
  check(load<Stored>(stored.data + count * sizeof(Stored)) <= buffer.size,
        "string offsets run past their chunk");
  return stored;
}

// The bytes of one string of a chunk, at its offsets, which were checked before.
template <typename Stored>
inline Span string_at(const Span& buffer, uint64_t position) {
  auto from = load<Stored>(buffer.data + position * sizeof(Stored));
  auto to = load<Stored>(buffer.data + (position + 1) * sizeof(Stored));
  return {buffer.data + from, static_cast<uint64_t>(to - from)};
}
// The same with the checks of `checked_offsets`.
template <typename Stored>
inline Span checked_string(const Chunk& chunk, uint64_t position) {
  checked_offsets<Stored>(chunk, position, 1);
  return string_at<Stored>(chunk.buffers[0], position);
}

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
// For values of 16 bytes that `general` expands with LZ4.
ValueDecoderPtr make_uniform(ValueDecoderPtr general);

// How many bytes such a buffer says that it holds; see `decompress`.
uint64_t declared_bytes(Compression scheme, Span input);

// Appends what a length-prefixed LZ4 block or zstd frame holds (format 2.1, general compression): at most
// `most` bytes. Where that saves work, only the first `wanted` bytes, if there are so many.
void decompress(Compression scheme, Span input, Bytes& out, uint64_t most = kMostDecompressed,
                uint64_t wanted = kMostDecompressed);

}  // namespace lance
