#include "decode/block_decoder.hpp"

#include <algorithm>

#include "core/bitmap.hpp"
#include "decode/by_width.hpp"
#include "decode/unpack.hpp"

namespace lance {
namespace {

class BlockFlat : public BlockDecoder {
 public:
  explicit BlockFlat(uint64_t bits) : bits_(bits) {
    check(bits == 1 || (bits % 8 == 0 && bits > 0 && bits <= (1 << 20)),
          "block values must be 1 bit or whole bytes wide");
  }
  uint64_t bits() const override { return bits_; }
  void decode(Span input, uint64_t count, Bytes& out, Scratch&) const override {
    check(count / 8 <= input.size, "a block is shorter than its values");
    Span bytes = input.sub(0, bytes_for_bits(count * bits_));
    copy_bytes(out.extend(bytes.size), bytes.data, bytes.size);
  }

 private:
  uint64_t bits_;
};

template <typename T>
class BlockInlineBitpacking : public BlockDecoder {
 public:
  uint64_t bits() const override { return sizeof(T) * 8; }
  void decode(Span input, uint64_t count, Bytes& out, Scratch& scratch) const override {
    if (count == 0) return;
    check(count <= kBlockValues, "an in-line bit-packed block holds more than 1024 values");
    auto width = static_cast<uint64_t>(input.at<T>(0));
    check(width <= sizeof(T) * 8, "a bit-packed block claims more bits than its type has");
    Span packed = input.sub(sizeof(T), width * kBlockValues / 8);
    scratch.block.reserve(kBlockValues * sizeof(T));
    auto* block = reinterpret_cast<T*>(scratch.block.data());
    unpack_block<T>(table_, packed.data, static_cast<unsigned>(width), block);
    std::memcpy(out.extend(count * sizeof(T)), block, count * sizeof(T));
  }

 private:
  const UnpackTable& table_ = unpack_table();
};

// Whole blocks without a header; a short tail is a padded block or raw values, distinguished by the size.
template <typename T>
class BlockOutOfLineBitpacking : public BlockDecoder {
 public:
  explicit BlockOutOfLineBitpacking(uint64_t packed_bits) : packed_(packed_bits) {
    check(packed_bits <= sizeof(T) * 8, "bit-packed values claim more bits than their type has");
  }
  uint64_t bits() const override { return sizeof(T) * 8; }
  void decode(Span input, uint64_t count, Bytes& out, Scratch& scratch) const override {
    // Values of no bits take no bytes that would bound their number.
    check(count <= (packed_ != 0 ? uint64_t{1} << 32 : kMostZeros),
          "a block claims an impossible number of values");
    uint64_t block_bytes = packed_ * kBlockValues / 8;
    uint64_t full = count / kBlockValues;
    uint64_t tail = count % kBlockValues;
    check(packed_ == 0 || full <= input.size / block_bytes, "a bit-packed buffer is shorter than its values");
    auto* target = reinterpret_cast<T*>(out.extend(count * sizeof(T)));
    for (uint64_t i = 0; i < full; ++i)
      unpack_block<T>(table_, input.data + i * block_bytes, static_cast<unsigned>(packed_),
                      target + i * kBlockValues);
    if (!tail) return;
    Span rest = input.from(full * block_bytes);
    // Raw wins a tie: a tail is only packed where that is shorter.
    if (packed_ != 0 && rest.size == tail * sizeof(T)) {
      std::memcpy(target + full * kBlockValues, rest.data, rest.size);
      return;
    }
    Span packed = rest.sub(0, block_bytes);
    scratch.block.reserve(kBlockValues * sizeof(T));
    auto* block = reinterpret_cast<T*>(scratch.block.data());
    unpack_block<T>(table_, packed.data, static_cast<unsigned>(packed_), block);
    std::memcpy(target + full * kBlockValues, block, tail * sizeof(T));
  }

 private:
  static constexpr uint64_t kMostZeros = uint64_t{1} << 24;
  uint64_t packed_;
  const UnpackTable& table_ = unpack_table();
};

// Byte length of the values, the values, the run lengths.
template <typename T>
class BlockRle : public BlockDecoder {
 public:
  uint64_t bits() const override { return sizeof(T) * 8; }
  void decode(Span input, uint64_t count, Bytes& out, Scratch&) const override {
    if (count == 0) return;
    Span values = input.sub(8, input.at<uint64_t>(0));
    Span lengths = input.from(8 + values.size);
    uint64_t runs = std::min(values.size / sizeof(T), lengths.size);
    check(count <= runs * 255, "run lengths add up to fewer values than the block holds");
    auto* target = reinterpret_cast<T*>(out.extend(count * sizeof(T)));
    uint64_t written = 0;
    for (uint64_t run = 0; run < runs && written < count; ++run) {
      uint64_t length = std::min<uint64_t>(lengths.data[run], count - written);
      std::fill_n(target + written, length, load<T>(values.data + run * sizeof(T)));
      written += length;
    }
    check(written == count, "run lengths add up to fewer values than the block holds");
  }
};

class BlockVariable : public BlockDecoder {
 public:
  explicit BlockVariable(unsigned bits_per_offset) {
    check(bits_per_offset == 32 || bits_per_offset == 64, "string offsets must be 32 or 64 bits wide");
  }
  uint64_t bits() const override { return 0; }
  uint64_t most_bytes(Span input, uint64_t) const override { return input.size; }
  void decode(Span input, uint64_t, Bytes& out, Scratch&) const override {
    copy_bytes(out.extend(input.size), input.data, input.size);
  }
};

class BlockGeneral : public BlockDecoder {
 public:
  BlockGeneral(Compression scheme, BlockDecoderPtr inner) : scheme_(scheme), inner_(std::move(inner)) {}
  uint64_t bits() const override { return inner_->bits(); }
  uint64_t most_bytes(Span input, uint64_t count) const override {
    return bits() ? inner_->most_bytes(input, count) : declared_bytes(scheme_, input);
  }
  void decode(Span input, uint64_t count, Bytes& out, Scratch& scratch) const override {
    // Strings may be of any length; of fixed-width values each takes a few bytes more than its width at most.
    uint64_t width = inner_->bits() / 8;
    Bytes expanded;
    decompress(scheme_, input, expanded, width ? padded(count * (width + 1)) : kMostDecompressed);
    inner_->decode({expanded.data(), expanded.size()}, count, out, scratch);
  }

 private:
  Compression scheme_;
  BlockDecoderPtr inner_;
};

}  // namespace

BlockDecoderPtr make_block_flat(uint64_t bits) {
  return std::make_shared<BlockFlat>(bits);
}

BlockDecoderPtr make_block_inline_bitpacking(uint64_t bits) {
  return for_bits<const BlockDecoder, BlockInlineBitpacking>(bits, kPackedWidths);
}

BlockDecoderPtr make_block_out_of_line_bitpacking(uint64_t bits, uint64_t packed_bits) {
  return for_bits<const BlockDecoder, BlockOutOfLineBitpacking>(bits, kPackedWidths, packed_bits);
}

BlockDecoderPtr make_block_rle(uint64_t bits) {
  return for_bits<const BlockDecoder, BlockRle>(bits, kRunWidths);
}

BlockDecoderPtr make_block_variable(unsigned bits_per_offset) {
  return std::make_shared<BlockVariable>(bits_per_offset);
}

BlockDecoderPtr make_block_general(Compression scheme, BlockDecoderPtr inner) {
  return std::make_shared<BlockGeneral>(scheme, std::move(inner));
}

}  // namespace lance
