#include "decode/value_decoder.hpp"

namespace lance {
namespace {

template <size_t Width>
void gather_fixed(const uint8_t* values, const uint32_t* positions, size_t count, uint8_t* out) {
  for (size_t i = 0; i < count; ++i)
    std::memcpy(out + i * Width, values + uint64_t{positions[i]} * Width, Width);
}

// Values one after the other; booleans as an LSB-first bitmap.
class Flat : public ValueDecoder {
 public:
  explicit Flat(uint64_t bits) : bits_(bits) {
    check(bits == 1 || (bits % 8 == 0 && bits > 0 && bits <= (uint64_t{1} << 32)),
          "flat values must be 1 bit or whole bytes wide");
  }

  uint64_t most_bytes(uint64_t num_values) const override {
    return padded(bytes_for_bits(num_values * bits_));
  }

  void check_type(const LeafType& type) const override {
    check(type.dims.empty() &&
              (bits_ == 1 ? type.kind == LeafKind::kBits
                          : type.kind == LeafKind::kFixed && uint64_t{type.width} * 8 == bits_),
          "the width of flat values does not fit the type of the column");
  }

  void decode(const Chunk& chunk, uint64_t skip, uint64_t count, LeafValues& out, Scratch&) const override {
    const Span& buffer = chunk.buffers[0];
    if (bits_ == 1) {
      check(bytes_for_bits(skip + count) <= buffer.size, "a bitmap is shorter than its values");
      out.extend_bits(buffer.data, skip, count);
    } else {
      uint64_t width = bits_ / 8;
      Span bytes = buffer.sub(skip * width, count * width);
      copy_bytes(out.extend_fixed(count), bytes.data, bytes.size);
    }
  }

  uint64_t plain_bytes() const override { return bits_ / 8; }

  uint64_t prefix_bytes(const Chunk&, uint64_t last) const override {
    return bits_ == 1 ? bytes_for_bits(last + 1) : (last + 1) * (bits_ / 8);
  }

  void gather(const Chunk& chunk, const uint32_t* positions, size_t count, LeafValues& out,
              Scratch& scratch) const override {
    uint64_t width = bits_ / 8;
    if (width != 4 && width != 8 && width != 16)
      return ValueDecoder::gather(chunk, positions, count, out, scratch);
    Span bytes = chunk.buffers[0].sub(0, (uint64_t{positions[count - 1]} + 1) * width);
    uint8_t* target = out.extend_fixed(count);
    if (width == 4) return gather_fixed<4>(bytes.data, positions, count, target);
    if (width == 8) return gather_fixed<8>(bytes.data, positions, count, target);
    gather_fixed<16>(bytes.data, positions, count, target);
  }

 private:
  uint64_t bits_;
};

}  // namespace

ValueDecoderPtr make_flat(uint64_t bits_per_value) {
  return std::make_shared<Flat>(bits_per_value);
}

}  // namespace lance
