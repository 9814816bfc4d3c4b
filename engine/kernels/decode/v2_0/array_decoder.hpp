#pragma once

#include <memory>
#include <vector>

#include "decode/fsst.hpp"
#include "decode/leaf.hpp"
#include "decode/page.hpp"

namespace lance::v2_0 {

// Where decoded slots of one level of a leaf go: the values themselves, and their validity. Inside fixed-size
// lists `layer` says at which dimension the slots are.
struct Target {
  LeafValues& values;
  Validity& validity;
  size_t layer = 0;

  bool innermost() const { return layer == values.type().dims.size(); }
};

// An array encoding of version 2.0: rows of a page to values. A decoder belongs to one page; `load` reads
// what every access needs, once, before any other call.
class ArrayDecoder {
 public:
  virtual ~ArrayDecoder() = default;

  virtual void load(const Source&) {}
  // Appends slots [begin, end); lengths of leaves are counted by the page.
  virtual void decode(const Source& source, uint64_t begin, uint64_t end, Target out) const = 0;
  // Points at the bytes of slots [begin, end) if they are in the file as in Arrow, all of them
  // valid.
  virtual Span alias(const Source&, uint64_t, uint64_t) const { return {}; }
  // The same for the bytes of strings, whose offsets and validity are appended to `out`.
  virtual Span alias_strings(const Source&, uint64_t, uint64_t, Target) const { return {}; }
  // Byte ranges that `load` reads, and those that decoding slots [begin, end) reads in addition. To find the
  // latter, the source only has to have the former.
  virtual void metadata_ranges(std::vector<Range>&) const {}
  virtual void all_ranges(std::vector<Range>& ranges) const = 0;  // every buffer below, whole
  virtual void data_ranges(const Source& source, uint64_t begin, uint64_t end,
                           std::vector<Range>& ranges) const = 0;
};

using ArrayDecoderPtr = std::shared_ptr<ArrayDecoder>;

ArrayDecoderPtr make_flat(Range buffer, uint64_t bits_per_value, Compression scheme);
ArrayDecoderPtr make_all_null();
ArrayDecoderPtr make_constant(std::vector<uint8_t> value);
ArrayDecoderPtr make_nullable(ArrayDecoderPtr validity, ArrayDecoderPtr values);
ArrayDecoderPtr make_fixed_size_list(uint64_t dimension, ArrayDecoderPtr items);
ArrayDecoderPtr make_binary(ArrayDecoderPtr indices, ArrayDecoderPtr bytes, uint64_t null_adjustment);
ArrayDecoderPtr make_fixed_size_binary(ArrayDecoderPtr bytes, uint64_t byte_width);
ArrayDecoderPtr make_fsst(ArrayDecoderPtr binary, Span symbol_table);
// `shifted`: index 0 is null and value i is at index i + 1, as plain string columns have it.
ArrayDecoderPtr make_dictionary(ArrayDecoderPtr indices, unsigned index_width, ArrayDecoderPtr items,
                                uint64_t count, bool shifted, LeafType type);
ArrayDecoderPtr make_bitpacked(Range buffer, unsigned packed_bits, unsigned bits, bool is_signed);
ArrayDecoderPtr make_bitpacked_for_non_neg(Range buffer, unsigned packed_bits, unsigned bits);

// A page of a 2.0 leaf column.
PagePtr make_page(uint64_t rows, ArrayDecoderPtr decoder, std::vector<Range> buffers);

// Slots [begin, end) of a decoder of 64-bit integers, none of them null; in place where the file allows it.
class Integers {
 public:
  Integers(const ArrayDecoder& decoder, const Source& source, uint64_t begin, uint64_t end);
  uint64_t operator[](uint64_t i) const { return load<uint64_t>(data_ + i * 8); }
  const uint8_t* data() const { return data_; }

 private:
  LeafValues values_;
  const uint8_t* data_;
};

}  // namespace lance::v2_0
