#include <algorithm>

#include "decode/unpack.hpp"
#include "decode/v2_0/array_decoder.hpp"

namespace lance::v2_0 {
namespace {

template <typename T>
T* extend(LeafValues& values, uint64_t count) {
  check(values.type().kind == LeafKind::kFixed && values.type().width == sizeof(T),
        "the width of bit-packed values does not fit the type of the column");
  return reinterpret_cast<T*>(values.data.extend(count * sizeof(T)));
}

Span checked_view(const Source& source, Range buffer, uint64_t offset, uint64_t length) {
  check(offset <= buffer.length && length <= buffer.length - offset,
        "a buffer ends before the data it should hold");
  return source.view(buffer.offset + offset, length);
}

// A plain stream of W-bit values, least significant bit first (format 2.0, bit-packed).
template <typename T>
class Bitpacked : public ArrayDecoder {
 public:
  Bitpacked(Range buffer, unsigned width, bool is_signed)
      : buffer_(buffer), width_(width), signed_(is_signed) {
    check(width >= 1 && width <= sizeof(T) * 8, "bit-packed values claim more bits than their type has");
  }

  void decode(const Source& source, uint64_t begin, uint64_t end, Target out) const override {
    out.validity.append_valid(end - begin);
    T* target = extend<T>(out.values, end - begin);
    uint64_t first = begin * width_ / 8;
    Span bytes = checked_view(source, buffer_, first, bytes_for_bits(end * width_) - first);
    for (uint64_t i = begin; i < end; ++i) {
      uint64_t value = load_bits(bytes.data, i * width_ - first * 8, width_);
      if (signed_ && width_ < 64 && (value >> (width_ - 1) & 1)) value |= ~uint64_t{0} << width_;
      target[i - begin] = static_cast<T>(value);
    }
  }

  void all_ranges(std::vector<Range>& ranges) const override { ranges.push_back(buffer_); }
  void data_ranges(const Source&, uint64_t begin, uint64_t end, std::vector<Range>& ranges) const override {
    if (begin >= end) return;
    uint64_t first = begin * width_ / 8, last = bytes_for_bits(end * width_);
    check(first <= last && last <= buffer_.length, "a buffer ends before the data it should hold");
    ranges.push_back({buffer_.offset + first, last - first});
  }

 private:
  Range buffer_;
  unsigned width_;
  bool signed_;
};

// Transposed blocks of 1024 unsigned values (format 2.0, bit-packed for non-negative values).
template <typename T>
class BitpackedForNonNeg : public ArrayDecoder {
 public:
  BitpackedForNonNeg(Range buffer, unsigned width) : buffer_(buffer), width_(width) {
    check(width >= 1 && width <= sizeof(T) * 8, "bit-packed values claim more bits than their type has");
  }

  void decode(const Source& source, uint64_t begin, uint64_t end, Target out) const override {
    out.validity.append_valid(end - begin);
    T* target = extend<T>(out.values, end - begin);
    uint64_t block_bytes = width_ * kBlockValues / 8;
    for (uint64_t block = begin / kBlockValues; block * kBlockValues < end; ++block) {
      Span packed = checked_view(source, buffer_, block * block_bytes, block_bytes);
      T values[kBlockValues];
      unpack_block<T>(unpack_table(), packed.data, width_, values);
      uint64_t from = std::max(begin, block * kBlockValues), to = std::min(end, (block + 1) * kBlockValues);
      std::memcpy(target + (from - begin), values + (from - block * kBlockValues), (to - from) * sizeof(T));
    }
  }

  void all_ranges(std::vector<Range>& ranges) const override { ranges.push_back(buffer_); }
  void data_ranges(const Source&, uint64_t begin, uint64_t end, std::vector<Range>& ranges) const override {
    if (begin >= end) return;
    uint64_t block_bytes = width_ * kBlockValues / 8;
    uint64_t first = begin / kBlockValues * block_bytes, last = ((end - 1) / kBlockValues + 1) * block_bytes;
    check(first <= last && last <= buffer_.length, "a buffer ends before the data it should hold");
    ranges.push_back({buffer_.offset + first, last - first});
  }

 private:
  Range buffer_;
  unsigned width_;
};

template <template <typename> class Decoder, typename... Arguments>
ArrayDecoderPtr for_bits(unsigned bits, Arguments... arguments) {
  switch (bits) {
    case 8:
      return std::make_shared<Decoder<uint8_t>>(arguments...);
    case 16:
      return std::make_shared<Decoder<uint16_t>>(arguments...);
    case 32:
      return std::make_shared<Decoder<uint32_t>>(arguments...);
    case 64:
      return std::make_shared<Decoder<uint64_t>>(arguments...);
    default:
      throw CorruptData("bit-packed values must be 8, 16, 32 or 64 bits wide");
  }
}

}  // namespace

ArrayDecoderPtr make_bitpacked(Range buffer, unsigned packed_bits, unsigned bits, bool is_signed) {
  return for_bits<Bitpacked>(bits, buffer, packed_bits, is_signed);
}

ArrayDecoderPtr make_bitpacked_for_non_neg(Range buffer, unsigned packed_bits, unsigned bits) {
  return for_bits<BitpackedForNonNeg>(bits, buffer, packed_bits);
}

std::vector<uint64_t> read_integers(const ArrayDecoder& decoder, const Source& source, uint64_t begin,
                                    uint64_t end) {
  static const LeafType kIntegers{LeafKind::kFixed, 8, {}};
  LeafValues values(kIntegers);
  Validity ignored;
  decoder.decode(source, begin, end, {values, ignored, 0});
  check(ignored.null_count() == 0, "offsets must not be null");
  std::vector<uint64_t> integers(end - begin);
  check(values.data.size() == integers.size() * 8, "offsets must be 64 bits wide");
  copy_bytes(integers.data(), values.data.data(), values.data.size());
  return integers;
}

}  // namespace lance::v2_0
