#include <algorithm>

#include "decode/by_width.hpp"
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

// That slots up to `end` have bits in the buffer; no product of them and the width wraps then.
void check_slots(Range buffer, unsigned width, uint64_t end) {
  check(end <= buffer.length * 8 / width, "a buffer ends before the data it should hold");
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
    check_slots(buffer_, width_, end);
    uint64_t first = begin * width_ / 8;
    Span bytes = checked_view(source, buffer_, first, bytes_for_bits(end * width_) - first);
    out.validity.append_valid(end - begin);
    T* target = extend<T>(out.values, end - begin);
    for (uint64_t i = begin; i < end; ++i) {
      uint64_t value = load_bits(bytes.data, i * width_ - first * 8, width_);
      if (signed_ && width_ < 64 && (value >> (width_ - 1) & 1)) value |= ~uint64_t{0} << width_;
      target[i - begin] = static_cast<T>(value);
    }
  }

  void all_ranges(std::vector<Range>& ranges) const override { ranges.push_back(buffer_); }
  void data_ranges(const Source&, uint64_t begin, uint64_t end, std::vector<Range>& ranges) const override {
    if (begin >= end) return;
    check_slots(buffer_, width_, end);
    uint64_t first = begin * width_ / 8, last = bytes_for_bits(end * width_);
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
    uint64_t block_bytes = width_ * kBlockValues / 8;
    check_slots(buffer_, width_, end);
    out.validity.append_valid(end - begin);
    T* target = extend<T>(out.values, end - begin);
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
    check_slots(buffer_, width_, end);
    uint64_t block_bytes = width_ * kBlockValues / 8;
    uint64_t first = begin / kBlockValues * block_bytes, last = ((end - 1) / kBlockValues + 1) * block_bytes;
    check(first <= last && last <= buffer_.length, "a buffer ends before the data it should hold");
    ranges.push_back({buffer_.offset + first, last - first});
  }

 private:
  Range buffer_;
  unsigned width_;
};

}  // namespace

ArrayDecoderPtr make_bitpacked(Range buffer, unsigned packed_bits, unsigned bits, bool is_signed) {
  return for_bits<ArrayDecoder, Bitpacked>(bits, kPackedWidths, buffer, packed_bits, is_signed);
}

ArrayDecoderPtr make_bitpacked_for_non_neg(Range buffer, unsigned packed_bits, unsigned bits) {
  return for_bits<ArrayDecoder, BitpackedForNonNeg>(bits, kPackedWidths, buffer, packed_bits);
}

namespace {

const LeafType kIntegers{LeafKind::kFixed, 8, {}};

}  // namespace

Integers::Integers(const ArrayDecoder& decoder, const Source& source, uint64_t begin, uint64_t end)
    : values_(kIntegers) {
  Span stored = decoder.alias(source, begin, end);
  data_ = stored.data;
  if (data_ && stored.size == (end - begin) * 8) return;
  Validity validity;
  if (end - begin > kBlockValues) {  // nothing is allocated for offsets that are not there
    LeafValues last(kIntegers);
    decoder.decode(source, end - 1, end, {last, validity, 0});
    check(validity.null_count() == 0, "offsets must not be null");
    validity = {};
  }
  decoder.decode(source, begin, end, {values_, validity, 0});
  check(validity.null_count() == 0, "offsets must not be null");
  check(values_.data.size() == (end - begin) * 8, "offsets must be 64 bits wide");
  data_ = values_.data.data();
}

}  // namespace lance::v2_0
