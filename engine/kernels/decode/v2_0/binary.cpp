#include <algorithm>
#include <bit>
#include <limits>

#include "decode/offsets.hpp"
#include "decode/v2_0/array_decoder.hpp"

namespace lance::v2_0 {

namespace {

const LeafType kBytes{LeafKind::kFixed, 1, {}};

template <typename Append>
void for_offset_width(const LeafType& type, Append append) {
  check(type.variable(), "strings stand where fixed-width values should");
  if (type.kind == LeafKind::kVariable32)
    append(int32_t{});
  else
    append(int64_t{});
}

// Appends slots [begin, end) of a decoder of single bytes.
void append_bytes(const ArrayDecoder& bytes, const Source& source, uint64_t begin, uint64_t end,
                  LeafValues& out) {
  LeafValues found(kBytes);
  std::swap(found.data, out.data);
  Validity validity;
  bytes.decode(source, begin, end, {found, validity, 0});
  check(validity.null_count() == 0, "the bytes of strings must not be null");
  std::swap(found.data, out.data);
}

// That offsets from `base` on can address bytes [begin, end) of a decoder. Fewer rows help where they cannot,
// but only if there are as many bytes as the page says.
template <typename Offset>
void check_bytes(const ArrayDecoder& bytes, const Source& source, uint64_t begin, uint64_t end,
                 uint64_t base) {
  if (base + (end - begin) <= static_cast<uint64_t>(std::numeric_limits<Offset>::max())) return;
  LeafValues last(kBytes);
  append_bytes(bytes, source, end - 1, end, last);
  check_offset_range<Offset>(base + (end - begin));
}

// Ends of the values and their bytes; a null adds the adjustment to its end (format 2.0, binary).
class Binary : public ArrayDecoder {
 public:
  Binary(ArrayDecoderPtr indices, ArrayDecoderPtr bytes, uint64_t adjustment)
      : indices_(std::move(indices)), bytes_(std::move(bytes)), adjustment_(adjustment) {}

  void load(const Source& source) override {
    indices_->load(source);
    bytes_->load(source);
  }

  void decode(const Source& source, uint64_t begin, uint64_t end, Target out) const override {
    if (begin == end) return;
    auto [start, stop] = append_offsets(source, begin, end, out);
    append_bytes(*bytes_, source, start, stop, out.values);
  }

  Span alias_strings(const Source& source, uint64_t begin, uint64_t end, Target out) const override {
    if (!bytes_->alias(source, 0, 0).data) return {};  // they are compressed
    auto [start, stop] = append_offsets(source, begin, end, out);
    Span bytes = bytes_->alias(source, start, stop);
    check(bytes.size == stop - start, "the bytes of strings must be 8 bits wide");
    return bytes;
  }

  void metadata_ranges(std::vector<Range>& ranges) const override {
    indices_->metadata_ranges(ranges);
    indices_->all_ranges(ranges);  // where the bytes are is known only from the indices
    bytes_->metadata_ranges(ranges);
  }
  void all_ranges(std::vector<Range>& ranges) const override {
    indices_->all_ranges(ranges);
    bytes_->all_ranges(ranges);
  }
  void data_ranges(const Source& source, uint64_t begin, uint64_t end,
                   std::vector<Range>& ranges) const override {
    if (begin >= end) return;
    uint64_t first = begin ? begin - 1 : 0;
    const Integers ends(*indices_, source, first, end);
    uint64_t start = begin ? normalise(ends[0]) : 0;
    bytes_->data_ranges(source, start, std::max(start, normalise(ends[end - first - 1])), ranges);
  }

 private:
  // Appends offsets and validity of slots [begin, end) and returns where their bytes begin and end.
  std::pair<uint64_t, uint64_t> append_offsets(const Source& source, uint64_t begin, uint64_t end,
                                               Target out) const {
    check(out.innermost(), "strings stand where a fixed-size list should");
    uint64_t first = begin ? begin - 1 : 0;
    const Integers ends(*indices_, source, first, end);
    uint64_t start = begin ? normalise(ends[0]) : 0;
    const uint64_t skipped = begin - first;
    LeafValues& values = out.values;
    uint64_t stop = normalise(ends[end - first - 1]);
    check(start <= stop, "string offsets decrease");
    for_offset_width(values.type(), [&](auto width) {
      using Offset = decltype(width);
      uint64_t base = values.data.size();
      check_bytes<Offset>(*bytes_, source, start, stop, base);
      auto* offsets = reinterpret_cast<Offset*>(values.offsets.extend((end - begin) * sizeof(Offset)));
      if (stop < adjustment_ && ends[end - first - 1] == stop && ends[skipped] >= start &&
          offsets_ascend<uint64_t>(ends.data() + skipped * 8, end - begin - 1)) {  // no nulls
        out.validity.append_valid(end - begin);
        for (uint64_t i = 0; i < end - begin; ++i)
          offsets[i] = static_cast<Offset>(base + (ends[skipped + i] - start));
        return;
      }
      uint64_t previous = start;
      for (uint64_t i = 0; i < end - begin; i += 64) {
        uint64_t step = std::min<uint64_t>(64, end - begin - i);
        uint64_t word = 0;
        for (uint64_t k = 0; k < step; ++k) {
          uint64_t value = ends[skipped + i + k];
          word |= static_cast<uint64_t>(value < adjustment_) << k;
          uint64_t offset = normalise(value);
          check(offset >= previous && offset <= stop, "string offsets decrease");
          previous = offset;
          offsets[i + k] = static_cast<Offset>(base + (offset - start));
        }
        out.validity.append_word(word, step, step - static_cast<uint64_t>(std::popcount(word)));
      }
    });
    return {start, stop};
  }

  uint64_t normalise(uint64_t value) const { return value >= adjustment_ ? value - adjustment_ : value; }

  ArrayDecoderPtr indices_;
  ArrayDecoderPtr bytes_;
  uint64_t adjustment_;
};

// Strings that all have the same length.
class FixedSizeBinary : public ArrayDecoder {
 public:
  FixedSizeBinary(ArrayDecoderPtr bytes, uint64_t width) : bytes_(std::move(bytes)), width_(width) {
    check(width <= kMaxValueBytes, "a fixed-size string is impossibly long");
  }

  void load(const Source& source) override { bytes_->load(source); }

  void decode(const Source& source, uint64_t begin, uint64_t end, Target out) const override {
    check(out.innermost(), "strings stand where a fixed-size list should");
    out.validity.append_valid(end - begin);
    for_offset_width(out.values.type(), [&](auto width) {
      using Offset = decltype(width);
      uint64_t base = out.values.data.size();
      check(end <= std::numeric_limits<uint64_t>::max() / std::max<uint64_t>(width_, 1),
            "a buffer ends before the data it should hold");
      check_bytes<Offset>(*bytes_, source, begin * width_, end * width_, base);
      auto* offsets = reinterpret_cast<Offset*>(out.values.offsets.extend((end - begin) * sizeof(Offset)));
      for (uint64_t i = 0; i < end - begin; ++i) offsets[i] = static_cast<Offset>(base + (i + 1) * width_);
    });
    append_bytes(*bytes_, source, begin * width_, end * width_, out.values);
  }

  void metadata_ranges(std::vector<Range>& ranges) const override { bytes_->metadata_ranges(ranges); }
  void all_ranges(std::vector<Range>& ranges) const override { bytes_->all_ranges(ranges); }
  void data_ranges(const Source& source, uint64_t begin, uint64_t end,
                   std::vector<Range>& ranges) const override {
    bytes_->data_ranges(source, begin * width_, end * width_, ranges);
  }

 private:
  ArrayDecoderPtr bytes_;
  uint64_t width_;
};

// Each string coded alone with the symbols of the page.
class Fsst : public ArrayDecoder {
 public:
  Fsst(ArrayDecoderPtr binary, Span table) : binary_(std::move(binary)), table_(table) {}

  void load(const Source& source) override { binary_->load(source); }

  void decode(const Source& source, uint64_t begin, uint64_t end, Target out) const override {
    if (!table_.coded()) return binary_->decode(source, begin, end, out);
    LeafValues coded(out.values.type());
    binary_->decode(source, begin, end, {coded, out.validity, out.layer});
    for_offset_width(out.values.type(), [&](auto width) {
      using Offset = std::make_unsigned_t<decltype(width)>;
      uint64_t count = end - begin;
      auto* offsets = reinterpret_cast<Offset*>(out.values.offsets.extend(count * sizeof(Offset)));
      Bytes places;
      table_.decode_values(coded.data.data(), coded.offsets.data(), count, out.values.data, offsets, places);
    });
  }

  void metadata_ranges(std::vector<Range>& ranges) const override { binary_->metadata_ranges(ranges); }
  void all_ranges(std::vector<Range>& ranges) const override { binary_->all_ranges(ranges); }
  void data_ranges(const Source& source, uint64_t begin, uint64_t end,
                   std::vector<Range>& ranges) const override {
    binary_->data_ranges(source, begin, end, ranges);
  }

 private:
  ArrayDecoderPtr binary_;
  FsstTable table_;
};

}  // namespace

ArrayDecoderPtr make_binary(ArrayDecoderPtr indices, ArrayDecoderPtr bytes, uint64_t null_adjustment) {
  return std::make_shared<Binary>(std::move(indices), std::move(bytes), null_adjustment);
}

ArrayDecoderPtr make_fixed_size_binary(ArrayDecoderPtr bytes, uint64_t byte_width) {
  return std::make_shared<FixedSizeBinary>(std::move(bytes), byte_width);
}

ArrayDecoderPtr make_fsst(ArrayDecoderPtr binary, Span symbol_table) {
  return std::make_shared<Fsst>(std::move(binary), symbol_table);
}

}  // namespace lance::v2_0
