#include "decode/v2_0/array_decoder.hpp"

namespace lance::v2_0 {
namespace {

// Fixed-width values in one buffer, which as a whole may be compressed (format 2.0, flat).
class Flat : public ArrayDecoder {
 public:
  Flat(Range buffer, uint64_t bits, Compression scheme) : buffer_(buffer), bits_(bits), scheme_(scheme) {
    check(bits == 1 || (bits % 8 == 0 && bits > 0 && bits <= (uint64_t{1} << 32)),
          "flat values must be 1 bit or whole bytes wide");
    check(bits != 1 || scheme == Compression::kNone, "a bitmap cannot be compressed");
  }

  void load(const Source& source) override {
    if (scheme_ == Compression::kNone) return;
    expanded_.clear();
    decompress(scheme_, source.view(buffer_.offset, buffer_.length), expanded_);
  }

  void decode(const Source& source, uint64_t begin, uint64_t end, Target out) const override {
    uint64_t count = end - begin;
    out.validity.append_valid(count);
    const LeafType& type = out.values.type();
    check(out.innermost(), "a flat page stands where a fixed-size list should");
    if (bits_ == 1) {
      check(type.kind == LeafKind::kBits, "the width of flat values does not fit the type of the column");
      uint64_t first = begin / 8;
      Span bitmap = bytes(source, first, bytes_for_bits(end) - first);
      out.values.bits.append_bits(bitmap.data, begin - first * 8, count);
      return;
    }
    check(type.kind == LeafKind::kFixed && uint64_t{type.width} * 8 == bits_,
          "the width of flat values does not fit the type of the column");
    Span values = bytes(source, begin * type.width, count * type.width);
    copy_bytes(out.values.data.extend(values.size), values.data, values.size);
  }

  Span alias(const Source& source, uint64_t begin, uint64_t end) const override {
    if (bits_ == 1 || scheme_ != Compression::kNone) return {};
    return bytes(source, begin * (bits_ / 8), (end - begin) * (bits_ / 8));
  }

  void metadata_ranges(std::vector<Range>& ranges) const override {
    if (scheme_ != Compression::kNone) ranges.push_back(buffer_);
  }

  void all_ranges(std::vector<Range>& ranges) const override { ranges.push_back(buffer_); }

  void data_ranges(const Source&, uint64_t begin, uint64_t end, std::vector<Range>& ranges) const override {
    if (scheme_ != Compression::kNone || begin >= end) return;
    uint64_t from = begin * bits_ / 8, to = bytes_for_bits(end * bits_);
    check(from <= to && to <= buffer_.length, "a buffer ends before the data it should hold");
    ranges.push_back({buffer_.offset + from, to - from});
  }

 private:
  Span bytes(const Source& source, uint64_t offset, uint64_t length) const {
    if (scheme_ != Compression::kNone) return Span{expanded_.data(), expanded_.size()}.sub(offset, length);
    check(offset <= buffer_.length && length <= buffer_.length - offset,
          "a buffer ends before the data it should hold");
    return source.view(buffer_.offset + offset, length);
  }

  Range buffer_;
  uint64_t bits_;
  Compression scheme_;
  Bytes expanded_;
};

}  // namespace

ArrayDecoderPtr make_flat(Range buffer, uint64_t bits_per_value, Compression scheme) {
  return std::make_shared<Flat>(buffer, bits_per_value, scheme);
}

}  // namespace lance::v2_0
