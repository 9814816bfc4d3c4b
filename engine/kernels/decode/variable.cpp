#include "decode/value_decoder.hpp"

namespace lance {

namespace {

// Offsets from the start of the buffer, then the bytes (format 2.1, variable).
template <typename Stored>
class Variable : public ValueDecoder {
 public:
  uint64_t most_bytes(uint64_t) const override { return kMostDecompressed; }

  void check_type(const LeafType& type) const override {
    check(type.variable() && type.offset_width() == sizeof(Stored),
          "the width of string offsets does not fit the type of the column");
  }

  void decode(const Chunk& chunk, uint64_t skip, uint64_t count, LeafValues& out, Scratch&) const override {
    const Span& buffer = chunk.buffers[0];
    Span stored = checked_offsets<Stored>(chunk, skip, count);
    auto start = load<Stored>(stored.data);
    auto end = load<Stored>(stored.data + count * sizeof(Stored));
    uint64_t base = out.data.size();
    check_offset_range<Stored>(base + (end - start));
    Stored* target = out.extend_offsets<Stored>(count);
    // Wraps around in unsigned arithmetic; the checks make the sums right.
    const Stored shift = static_cast<Stored>(base) - start;
    for (uint64_t i = 0; i < count; ++i)
      target[i] = load<Stored>(stored.data + (i + 1) * sizeof(Stored)) + shift;
    copy_bytes(out.data.extend(end - start), buffer.data + start, end - start);
  }

  void gather(const Chunk& chunk, const uint32_t* positions, size_t count, LeafValues& out,
              Scratch&) const override {
    const Span& buffer = chunk.buffers[0];
    uint64_t base = out.data.size(), total = 0;
    Stored* target = out.extend_offsets<Stored>(count);
    for (size_t i = 0; i < count; ++i) {
      total += checked_string<Stored>(chunk, positions[i]).size;
      target[i] = static_cast<Stored>(base + total);
    }
    check_offset_range<Stored>(base + total);
    uint8_t* at = out.data.extend(total);
    for (size_t i = 0; i < count; ++i) {
      Span bytes = string_at<Stored>(buffer, positions[i]);
      copy_bytes(at, bytes.data, bytes.size);
      at += bytes.size;
    }
  }

  bool test(const Chunk& chunk, uint64_t skip, uint64_t count, const ValueTest& test, Bits& out,
            Scratch&) const override {
    if (!test.strings()) return false;
    Span stored = checked_offsets<Stored>(chunk, skip, count);
    test.strings()->test_plain<Stored>(chunk.buffers[0].data, stored.data, count, out);
    return true;
  }
};

}  // namespace

ValueDecoderPtr make_variable(unsigned bits_per_offset) {
  if (bits_per_offset == 32) return std::make_shared<Variable<uint32_t>>();
  check(bits_per_offset == 64, "string offsets must be 32 or 64 bits wide");
  return std::make_shared<Variable<uint64_t>>();
}

}  // namespace lance
