#include "decode/value_decoder.hpp"

namespace lance {
namespace {

// Values one after the other; booleans as an LSB-first bitmap.
class Flat : public ValueDecoder {
 public:
  explicit Flat(uint64_t bits) : bits_(bits) {
    check(bits == 1 || (bits % 8 == 0 && bits > 0 && bits <= (uint64_t{1} << 32)),
          "flat values must be 1 bit or whole bytes wide");
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

 private:
  uint64_t bits_;
};

}  // namespace

ValueDecoderPtr make_flat(uint64_t bits_per_value) {
  return std::make_shared<Flat>(bits_per_value);
}

}  // namespace lance
