#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/span.hpp"

namespace lance {

// How the last documents of a posting list, too few for a block, are written.
enum class PostingTail : uint8_t { kFixed, kVarint };

// Numbers in lanes of 32-bit words: value i is in lane i % lanes. `lanes` is 4 for 128 numbers, 8 for 256.
void pack_lanes(const uint32_t* values, uint32_t lanes, uint32_t bits, uint8_t* out);
void unpack_lanes(const uint8_t* packed, uint32_t lanes, uint32_t bits, uint32_t* values);
inline uint64_t packed_lanes_bytes(uint32_t lanes, uint32_t bits) {
  return uint64_t{4} * lanes * bits;
}

uint32_t bits_of(std::span<const uint32_t> values);

void put_varint(std::vector<uint8_t>& out, uint32_t value);

// Reads numbers one after the other; every read is checked.
class ByteReader {
 public:
  explicit ByteReader(Span bytes) : bytes_(bytes) {}

  uint8_t byte() { return *take(1); }
  uint32_t word() { return load<uint32_t>(take(4)); }
  uint32_t varint();
  const uint8_t* take(uint64_t count) {
    const Span found = bytes_.sub(at_, count);
    at_ += count;
    return found.data;
  }
  uint64_t left() const { return bytes_.size - at_; }

 private:
  Span bytes_;
  uint64_t at_ = 0;
};

// Appends the documents and frequencies of a block. They ascend, and follow `after` (-1 for none); checked.
void read_block(Span block, uint32_t count, uint32_t block_size, PostingTail tail,
                std::vector<uint32_t>& docs, std::vector<uint32_t>& frequencies);

// A block of 128 documents, or the last one with fewer; `best` is the largest score in it.
void write_block(std::span<const uint32_t> docs, std::span<const uint32_t> frequencies, float best,
                 std::vector<uint8_t>& out);

// Positions within documents, of which `frequencies` says how many there are: of one block, differences.
void read_positions(Span bytes, std::span<const uint32_t> frequencies, bool packed,
                    std::vector<uint32_t>& positions);
void write_positions(std::span<const uint32_t> positions, std::span<const uint32_t> frequencies,
                     std::vector<uint8_t>& out);

// Lengths of documents as blocks of 256 score them: with 4 significant bits.
uint32_t rounded_length(uint32_t length);

}  // namespace lance
