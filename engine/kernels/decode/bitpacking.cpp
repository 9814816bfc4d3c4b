#include "decode/by_width.hpp"
#include "decode/unpack.hpp"
#include "decode/value_decoder.hpp"

namespace lance {
namespace {

// One transposed block of 1024 values per chunk, its bit width in front (format 2.1, in-line bit-packing).
template <typename T>
class InlineBitpacking : public ValueDecoder {
 public:
  uint64_t most_bytes(uint64_t) const override { return padded((kBlockValues + 1) * sizeof(T)); }

  void check_type(const LeafType& type) const override {
    check(type.dims.empty() && type.kind == LeafKind::kFixed && type.width == sizeof(T),
          "the width of bit-packed values does not fit the type of the column");
  }

  void decode(const Chunk& chunk, uint64_t skip, uint64_t count, LeafValues& out,
              Scratch& scratch) const override {
    uint64_t width = checked_width(chunk);
    check(skip + count <= kBlockValues, "a bit-packed chunk holds more than 1024 values");
    Span packed = chunk.buffers[0].sub(sizeof(T), width * kBlockValues / 8);
    auto* target = reinterpret_cast<T*>(out.extend_fixed(count));
    if (count <= kFew) {
      for (uint64_t i = 0; i < count; ++i)
        target[i] = unpack_one<T>(packed.data, static_cast<unsigned>(width), static_cast<uint32_t>(skip + i));
    } else if (count == kBlockValues) {
      unpack_block<T>(table_, packed.data, static_cast<unsigned>(width), target);
    } else {
      std::memcpy(target, unpacked(chunk, scratch) + skip, count * sizeof(T));
    }
  }

  bool test(const Chunk& chunk, uint64_t skip, uint64_t count, const ValueTest& test, Bits& out,
            Scratch& scratch) const override {
    if (!test.tests_fixed()) return false;
    check(skip + count <= kBlockValues, "a bit-packed chunk holds more than 1024 values");
    test.test_fixed(reinterpret_cast<const uint8_t*>(unpacked(chunk, scratch) + skip), count, out);
    return true;
  }

  void gather(const Chunk& chunk, const uint32_t* positions, size_t count, LeafValues& out,
              Scratch& scratch) const override {
    check(positions[count - 1] < kBlockValues, "a bit-packed chunk holds more than 1024 values");
    if (count <= kFew) {
      auto width = checked_width(chunk);
      Span packed = chunk.buffers[0].sub(sizeof(T), width * kBlockValues / 8);
      auto* target = reinterpret_cast<T*>(out.extend_fixed(count));
      for (size_t i = 0; i < count; ++i)
        target[i] = unpack_one<T>(packed.data, static_cast<unsigned>(width), positions[i]);
      return;
    }
    const T* block = unpacked(chunk, scratch);
    auto* target = reinterpret_cast<T*>(out.extend_fixed(count));
    for (size_t i = 0; i < count; ++i) target[i] = block[positions[i]];
  }

 private:
  static uint64_t checked_width(const Chunk& chunk) {
    auto width = static_cast<uint64_t>(chunk.buffers[0].at<T>(0));
    check(width <= sizeof(T) * 8, "a bit-packed chunk claims more bits than its type has");
    return width;
  }

  const T* unpacked(const Chunk& chunk, Scratch& scratch) const {
    uint64_t width = checked_width(chunk);
    Span packed = chunk.buffers[0].sub(sizeof(T), width * kBlockValues / 8);
    scratch.block.reserve(kBlockValues * sizeof(T));
    auto* block = reinterpret_cast<T*>(scratch.block.data());
    unpack_block<T>(table_, packed.data, static_cast<unsigned>(width), block);
    return block;
  }

  static constexpr uint64_t kFew = 16;  // below this, single values are quicker than the block
  const UnpackTable& table_ = unpack_table();
};

}  // namespace

ValueDecoderPtr make_inline_bitpacking(uint64_t bits_per_value) {
  return for_bits<const ValueDecoder, InlineBitpacking>(bits_per_value, kPackedWidths);
}

}  // namespace lance
