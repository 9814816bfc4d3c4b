#include "text/posting_blocks.hpp"

#include <bit>
#include <cstring>

namespace lance {
namespace {

constexpr uint32_t kBlock = 128;

void append(std::vector<uint8_t>& out, const void* bytes, size_t count) {
  const auto* first = static_cast<const uint8_t*>(bytes);
  out.insert(out.end(), first, first + count);
}

void pack_block(std::span<const uint32_t> values, std::vector<uint8_t>& out) {
  const uint32_t bits = bits_of(values);
  out.push_back(static_cast<uint8_t>(bits));
  const size_t at = out.size();
  out.resize(at + packed_lanes_bytes(4, bits));
  pack_lanes(values.data(), 4, bits, out.data() + at);
}

uint32_t unpack_block(ByteReader& in, uint32_t lanes, uint32_t* values) {
  const uint32_t bits = in.byte();
  check(bits <= 32, "a block of numbers has more than 32 bits");
  unpack_lanes(in.take(packed_lanes_bytes(lanes, bits)), lanes, bits, values);
  return bits;
}

}  // namespace

uint32_t bits_of(std::span<const uint32_t> values) {
  uint32_t every = 0;
  for (const uint32_t value : values) every |= value;
  return static_cast<uint32_t>(std::bit_width(every));
}

void pack_lanes(const uint32_t* values, uint32_t lanes, uint32_t bits, uint8_t* out) {
  zero_bytes(out, packed_lanes_bytes(lanes, bits));
  for (uint32_t slot = 0; slot < 32; ++slot) {
    const uint32_t begin = slot * bits, word = begin / 32, shift = begin % 32;
    for (uint32_t lane = 0; lane < lanes && bits; ++lane) {
      const uint64_t value = uint64_t{values[slot * lanes + lane]} << shift;
      uint8_t* at = out + 4 * (uint64_t{word} * lanes + lane);
      store(at, load<uint32_t>(at) | static_cast<uint32_t>(value));
      if (shift + bits > 32) {
        uint8_t* next = at + 4 * lanes;
        store(next, load<uint32_t>(next) | static_cast<uint32_t>(value >> 32));
      }
    }
  }
}

void unpack_lanes(const uint8_t* packed, uint32_t lanes, uint32_t bits, uint32_t* values) {
  if (bits == 0) {
    for (uint32_t i = 0; i < 32 * lanes; ++i) values[i] = 0;
    return;
  }
  const uint32_t mask = static_cast<uint32_t>((uint64_t{1} << bits) - 1);
  for (uint32_t slot = 0; slot < 32; ++slot) {
    const uint32_t begin = slot * bits, word = begin / 32, shift = begin % 32;
    const uint8_t* at = packed + 4 * uint64_t{word} * lanes;
    if (shift + bits <= 32) {
      for (uint32_t lane = 0; lane < lanes; ++lane)
        values[slot * lanes + lane] = load<uint32_t>(at + 4 * lane) >> shift & mask;
    } else {
      for (uint32_t lane = 0; lane < lanes; ++lane) {
        const uint64_t both =
            load<uint32_t>(at + 4 * lane) | uint64_t{load<uint32_t>(at + 4 * (lanes + lane))} << 32;
        values[slot * lanes + lane] = static_cast<uint32_t>(both >> shift) & mask;
      }
    }
  }
}

void put_varint(std::vector<uint8_t>& out, uint32_t value) {
  for (; value >= 0x80; value >>= 7) out.push_back(static_cast<uint8_t>(value | 0x80));
  out.push_back(static_cast<uint8_t>(value));
}

uint32_t ByteReader::varint() {
  uint64_t value = 0;
  for (uint32_t shift = 0; shift < 35; shift += 7) {
    const uint8_t next = byte();
    value |= uint64_t{next & 0x7fu} << shift;
    if (next < 0x80) {
      check(value >> 32 == 0, "a number has more than 32 bits");
      return static_cast<uint32_t>(value);
    }
  }
  throw CorruptData("a number does not end");
}

void read_block(Span block, uint32_t count, uint32_t block_size, PostingTail tail,
                std::vector<uint32_t>& docs, std::vector<uint32_t>& frequencies) {
  check(count <= block_size, "a block of a posting list has too many documents");
  ByteReader in(block);
  if (block_size == kBlock) in.word();  // the largest score, with other statistics than those of searches
  const size_t first = docs.size();
  docs.resize(first + count);
  frequencies.resize(first + count);
  uint32_t* doc = docs.data() + first;
  uint32_t* often = frequencies.data() + first;
  const uint32_t lanes = block_size / 32;
  if (count == block_size) {
    uint64_t reached = in.word();
    unpack_block(in, lanes, doc);
    check(doc[0] == 0, "a posting list does not begin with its first document");
    for (uint32_t i = 0; i < count; ++i) {
      reached += doc[i];
      check(reached >> 32 == 0, "a posting list has a document with a number of more than 32 bits");
      doc[i] = static_cast<uint32_t>(reached);
    }
    if (block_size == kBlock) {
      unpack_block(in, lanes, often);
    } else {
      const uint32_t bits = in.byte(), exceptions = in.byte();
      check(bits <= 32, "a block of numbers has more than 32 bits");
      unpack_lanes(in.take(packed_lanes_bytes(lanes, bits)), lanes, bits, often);
      for (uint32_t i = 0; i < exceptions; ++i) {
        const uint32_t place = in.byte();
        const uint64_t upper = uint64_t{in.varint()} << bits;
        check(upper >> 32 == 0, "a frequency has more than 32 bits");
        often[place] |= static_cast<uint32_t>(upper);
      }
    }
  } else if (tail == PostingTail::kVarint) {
    uint64_t reached = 0;
    for (uint32_t i = 0; i < count; ++i) {
      reached += in.varint();
      check(reached >> 32 == 0, "a posting list has a document with a number of more than 32 bits");
      doc[i] = static_cast<uint32_t>(reached);
    }
    for (uint32_t i = 0; i < count; ++i) often[i] = in.varint();
  } else {
    for (uint32_t i = 0; i < count; ++i) doc[i] = in.word();
    for (uint32_t i = 0; i < count; ++i) often[i] = in.word();
  }
}

void write_block(std::span<const uint32_t> docs, std::span<const uint32_t> frequencies, float best,
                 std::vector<uint8_t>& out) {
  append(out, &best, 4);
  if (docs.size() == kBlock) {
    append(out, &docs[0], 4);
    uint32_t differences[kBlock] = {};
    for (uint32_t i = 1; i < kBlock; ++i) differences[i] = docs[i] - docs[i - 1];
    pack_block(differences, out);
    pack_block(frequencies, out);
    return;
  }
  uint32_t before = 0;
  for (const uint32_t doc : docs) {
    put_varint(out, doc - before);
    before = doc;
  }
  for (const uint32_t frequency : frequencies) put_varint(out, frequency);
}

void read_positions(Span bytes, std::span<const uint32_t> frequencies, bool packed,
                    std::vector<uint32_t>& positions) {
  uint64_t total = 0;
  for (const uint32_t frequency : frequencies) total += frequency;
  // A group of 128 zeros takes one byte: what claims more than that is damaged.
  check(total / kBlock <= bytes.size, "a posting list has fewer positions than occurrences");
  const size_t first = positions.size();
  positions.resize(first + total);
  uint32_t* found = positions.data() + first;
  ByteReader in(bytes);
  uint64_t at = 0;
  for (; packed && total - at >= kBlock; at += kBlock) unpack_block(in, 4, found + at);
  for (; at < total; ++at) found[at] = in.varint();
  for (const uint32_t frequency : frequencies) {
    uint64_t reached = 0;
    for (uint32_t i = 0; i < frequency; ++i) {
      reached += *found;
      check(reached >> 32 == 0, "a position has more than 32 bits");
      *found++ = static_cast<uint32_t>(reached);
    }
  }
}

void write_positions(std::span<const uint32_t> positions, std::span<const uint32_t> frequencies,
                     std::vector<uint8_t>& out) {
  std::vector<uint32_t> differences;
  differences.reserve(positions.size());
  size_t at = 0;
  for (const uint32_t frequency : frequencies) {
    uint32_t before = 0;
    for (uint32_t i = 0; i < frequency; ++i, ++at) {
      differences.push_back(positions[at] - before);
      before = positions[at];
    }
  }
  size_t done = 0;
  for (; differences.size() - done >= kBlock; done += kBlock)
    pack_block(std::span(differences).subspan(done, kBlock), out);
  for (; done < differences.size(); ++done) put_varint(out, differences[done]);
}

uint32_t rounded_length(uint32_t length) {
  if (length < 8) return length;
  const auto shift = static_cast<uint32_t>(std::bit_width(length)) - 4;
  return length >> shift << shift;
}

}  // namespace lance
