#include "decode/value_decoder.hpp"

namespace lance {
namespace {

// Byte j of value i is at j * n + i (format 2.1, byte-stream split).
template <typename T>
class ByteStreamSplit : public ValueDecoder {
 public:
  uint64_t most_bytes(uint64_t num_values) const override { return padded(num_values * sizeof(T)); }

  void check_type(const LeafType& type) const override {
    check(type.dims.empty() && type.kind == LeafKind::kFixed && type.width == sizeof(T),
          "the width of byte-stream-split values does not fit the type of the column");
  }

  void decode(const Chunk& chunk, uint64_t skip, uint64_t count, LeafValues& out, Scratch&) const override {
    Span streams = chunk.buffers[0].sub(0, chunk.num_values * sizeof(T));
    auto* target = reinterpret_cast<T*>(out.extend_fixed(count));
    for (uint64_t i = 0; i < count; ++i) {
      T value = 0;
      for (unsigned byte = 0; byte < sizeof(T); ++byte)
        value |= static_cast<T>(streams.data[byte * chunk.num_values + skip + i]) << (8 * byte);
      target[i] = value;
    }
  }
};

}  // namespace

ValueDecoderPtr make_byte_stream_split(uint64_t bits_per_value) {
  if (bits_per_value == 32) return std::make_shared<ByteStreamSplit<uint32_t>>();
  check(bits_per_value == 64, "byte-stream-split values must be 32 or 64 bits wide");
  return std::make_shared<ByteStreamSplit<uint64_t>>();
}

}  // namespace lance
