#include "decode/value_decoder.hpp"

namespace lance {

namespace {

// Offsets from the start of the buffer, then the bytes (format 2.1, variable).
template <typename Stored>
class Variable : public ValueDecoder {
 public:
  void check_type(const LeafType& type) const override {
    check(type.variable() && type.offset_width() == sizeof(Stored),
          "the width of string offsets does not fit the type of the column");
  }

  void decode(const Chunk& chunk, uint64_t skip, uint64_t count, LeafValues& out, Scratch&) const override {
    const Span& buffer = chunk.buffers[0];
    Span stored = buffer.sub(skip * sizeof(Stored), (count + 1) * sizeof(Stored));
    auto start = load<Stored>(stored.data);
    auto end = load<Stored>(stored.data + count * sizeof(Stored));
    check(start <= end && end <= buffer.size, "string offsets run past their chunk");
    check(start >= (chunk.num_values + 1) * sizeof(Stored), "string offsets point into themselves");
    uint64_t base = out.data.size();
    check_offset_range<Stored>(base + (end - start));
    Stored* target = out.extend_offsets<Stored>(count);
    // Wraps around in unsigned arithmetic; the checks below make the sums right. Decreasing offsets show up
    // as a maximum above the end, which a loop without branches can collect.
    const Stored shift = static_cast<Stored>(base) - start;
    Stored previous = start;
    Stored disorder = 0;
    for (uint64_t i = 0; i < count; ++i) {
      auto offset = load<Stored>(stored.data + (i + 1) * sizeof(Stored));
      disorder |= static_cast<Stored>(offset < previous);
      previous = offset;
      target[i] = offset + shift;
    }
    check(disorder == 0, "string offsets decrease");
    copy_bytes(out.data.extend(end - start), buffer.data + start, end - start);
  }
};

}  // namespace

ValueDecoderPtr make_variable(unsigned bits_per_offset) {
  if (bits_per_offset == 32) return std::make_shared<Variable<uint32_t>>();
  check(bits_per_offset == 64, "string offsets must be 32 or 64 bits wide");
  return std::make_shared<Variable<uint64_t>>();
}

}  // namespace lance
