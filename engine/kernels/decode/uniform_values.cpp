#include "decode/uniform_block.hpp"
#include "decode/value_decoder.hpp"

namespace lance {
namespace {

// LZ4 over values of 16 bytes, one after the other. What our own writer lays out evenly is read value by
// value; other blocks, and damaged ones, are left to the decoder for all of them.
class UniformValues : public ValueDecoder {
 public:
  explicit UniformValues(ValueDecoderPtr general) : general_(std::move(general)) {}

  uint64_t most_bytes(uint64_t num_values) const override { return general_->most_bytes(num_values); }
  void check_type(const LeafType& type) const override { general_->check_type(type); }

  void decode(const Chunk& chunk, uint64_t skip, uint64_t count, LeafValues& out,
              Scratch& scratch) const override {
    const UniformBlock block(chunk.buffers[0]);
    if (!is_uniform(block, chunk, skip, count)) return general_->decode(chunk, skip, count, out, scratch);
    block.decode(skip, skip + count, out.extend_fixed(count));
  }

  bool narrow(const Chunk& chunk, uint64_t skip, uint64_t count, Bytes& out, bool& fits) const override {
    const UniformBlock block(chunk.buffers[0]);
    if (!is_uniform(block, chunk, skip, count)) return false;
    fits &= block.narrow(skip, skip + count, out.extend(count * 8));
    return true;
  }

  void gather(const Chunk& chunk, const uint32_t* positions, size_t count, LeafValues& out,
              Scratch& scratch) const override {
    const UniformBlock block(chunk.buffers[0]);
    if (!is_uniform(block, chunk, positions[count - 1], 1))
      return general_->gather(chunk, positions, count, out, scratch);
    uint8_t* to = out.extend_fixed(count);
    for (size_t i = 0; i < count; ++i) block.value(positions[i], to + i * UniformLayout::kValue);
  }

 private:
  static bool is_uniform(const UniformBlock& block, const Chunk& chunk, uint64_t skip, uint64_t count) {
    return block.count() == chunk.num_values && count != 0 && skip + count <= block.count() &&
           block.uniform(skip + count);
  }

  ValueDecoderPtr general_;
};

}  // namespace

ValueDecoderPtr make_uniform(ValueDecoderPtr general) {
  return std::make_shared<UniformValues>(std::move(general));
}

}  // namespace lance
