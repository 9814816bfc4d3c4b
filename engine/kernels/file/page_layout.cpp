#include "file/page_layout.hpp"

#include <algorithm>

#include "core/protobuf.hpp"

namespace lance {

namespace {

// No writer nests encodings deeper.
constexpr unsigned kDeepest = 16;

// Numbers of the alternatives of PageLayout and of CompressiveEncoding.
enum Layout : uint32_t { kMiniBlock = 1, kConstant = 2, kFullZip = 3, kBlob = 4 };
enum Compressive : uint32_t {
  kFlat = 1,
  kVariable = 2,
  kConstantValue = 3,
  kOutOfLineBitpacking = 4,
  kInlineBitpacking = 5,
  kFsst = 6,
  kRle = 8,
  kByteStreamSplit = 9,
  kGeneral = 10,
  kFixedSizeList = 11,
  kPackedStruct = 12,
};

[[noreturn]] void refuse(const char* what) {
  throw NotUnderstood(what);
}

// One alternative of CompressiveEncoding.
struct Encoding {
  explicit Encoding(const Message& message) : kind(message.alternative()), body(message.message(kind)) {}

  uint32_t kind;
  Message body;
};

unsigned narrow(uint64_t width) {
  return static_cast<unsigned>(std::min<uint64_t>(width, UINT32_MAX));
}

std::vector<uint8_t> layers_of(const Message& message, uint32_t field) {
  std::vector<uint8_t> layers;
  for (uint64_t layer : message.numbers(field)) {
    if (layer < 1 || layer > 6) refuse("a page declares an unknown kind of layer");
    layers.push_back(static_cast<uint8_t>(layer));
  }
  return layers;
}

Compression scheme_of(const Encoding& general) {
  switch (general.body.message(1).number(1)) {
    case 1:
      return Compression::kLz4;
    case 2:
      return Compression::kZstd;
    default:
      refuse("a compression scheme is unknown");
  }
}

uint64_t flat_bits(const Encoding& encoding) {
  if (encoding.kind != kFlat || encoding.body.has(2)) refuse("an encoding is not flat");
  return encoding.body.number(1);
}

unsigned offset_bits(const Encoding& variable) {
  if (variable.kind != kVariable || variable.body.has(2)) refuse("an encoding is not variable");
  uint64_t bits = flat_bits(Encoding(variable.body.message(1)));
  if (bits != 32 && bits != 64) refuse("string offsets are of an impossible width");
  return static_cast<unsigned>(bits);
}

uint64_t packed_bits(const Encoding& bitpacking) {
  if (bitpacking.body.has(2)) refuse("a bit-packing has a compression of its own");
  return bitpacking.body.number(1);
}

uint64_t run_value_bits(const Encoding& rle) {
  if (flat_bits(Encoding(rle.body.message(2))) != 8) refuse("run lengths are not of 8 bits");
  return flat_bits(Encoding(rle.body.message(1)));
}

// Nested fixed-size lists, outermost first; `bits_per_item` is 0 where every item is null.
struct Lists {
  std::vector<uint64_t> dims;
  std::vector<bool> has_validity;
  uint64_t bits_per_item = 0;
};

Lists lists_of(Encoding encoding) {
  Lists lists;
  while (encoding.kind == kFixedSizeList) {
    if (lists.dims.size() == kDeepest) refuse("encodings are nested too deep");
    lists.dims.push_back(encoding.body.number(1));
    lists.has_validity.push_back(encoding.body.number(3) != 0);
    encoding = Encoding(encoding.body.message(2));
  }
  if (!lists.dims.empty() && encoding.kind == kConstantValue && !encoding.body.has(1)) return lists;
  lists.bits_per_item = flat_bits(encoding);
  return lists;
}

ValueDecoderPtr value_decoder(const Encoding& encoding, unsigned depth = 0) {
  if (depth > kDeepest) refuse("encodings are nested too deep");
  const Message& body = encoding.body;
  switch (encoding.kind) {
    case kFlat:
      return make_flat(flat_bits(encoding));
    case kVariable:
      return make_variable(offset_bits(encoding));
    case kInlineBitpacking:
      return make_inline_bitpacking(packed_bits(encoding));
    case kFsst:
      return make_fsst(body.bytes(1).value_or(Span{}), offset_bits(Encoding(body.message(2))));
    case kRle:
      return make_rle(run_value_bits(encoding));
    case kByteStreamSplit:
      return make_byte_stream_split(flat_bits(Encoding(body.message(1))));
    case kGeneral:
      return make_general(scheme_of(encoding), value_decoder(Encoding(body.message(3)), depth + 1));
    case kFixedSizeList: {
      Lists lists = lists_of(encoding);
      return make_fixed_size_list(std::move(lists.dims), std::move(lists.has_validity), lists.bits_per_item);
    }
    case kPackedStruct: {
      uint64_t bits = 0;
      for (uint64_t field : body.numbers(1)) {
        if (field % 8 != 0 || field > UINT32_MAX) refuse("a packed struct has a field of an odd width");
        bits += field;
      }
      Encoding rows(body.message(2));
      if (flat_bits(rows) != bits) refuse("the fields of a packed struct do not add up to its rows");
      return make_flat(bits);
    }
    default:
      refuse("an encoding of values is unknown");
  }
}

BlockDecoderPtr block_decoder(const Encoding& encoding, unsigned depth = 0) {
  if (depth > kDeepest) refuse("encodings are nested too deep");
  switch (encoding.kind) {
    case kFlat:
      return make_block_flat(flat_bits(encoding));
    case kVariable:
      return make_block_variable(offset_bits(encoding));
    case kOutOfLineBitpacking:
      return make_block_out_of_line_bitpacking(encoding.body.number(1),
                                               flat_bits(Encoding(encoding.body.message(3))));
    case kInlineBitpacking:
      return make_block_inline_bitpacking(packed_bits(encoding));
    case kRle:
      return make_block_rle(run_value_bits(encoding));
    case kGeneral:
      return make_block_general(scheme_of(encoding),
                                block_decoder(Encoding(encoding.body.message(3)), depth + 1));
    default:
      refuse("an encoding of a whole buffer is unknown");
  }
}

BlockDecoderPtr optional_block(const Message& message, uint32_t field) {
  std::optional<Span> bytes = message.bytes(field);
  return bytes ? block_decoder(Encoding(Message(*bytes))) : nullptr;
}

// Bits of one decoded fixed-width value.
uint64_t value_bits(const Encoding& encoding) {
  switch (encoding.kind) {
    case kFlat:
    case kInlineBitpacking:
    case kOutOfLineBitpacking:
      return encoding.body.number(1);
    case kRle:
    case kByteStreamSplit:
      return value_bits(Encoding(encoding.body.message(1)));
    case kGeneral:
      return value_bits(Encoding(encoding.body.message(3)));
    default:
      refuse("fixed-width values are encoded in another way");
  }
}

PagePtr mini_block(const Message& message, uint64_t rows, std::vector<Range> buffers) {
  if (message.number(8) > 1) refuse("a repetition index is deeper than one");
  Encoding values(message.message(3));
  MiniBlockDescription d;
  d.rows = rows;
  d.buffers = std::move(buffers);
  d.layers = layers_of(message, 6);
  d.rep = optional_block(message, 1);
  d.def = optional_block(message, 2);
  d.values = value_decoder(values);
  d.dictionary = optional_block(message, 4);
  d.dictionary_items = message.number(5);
  d.index_width = d.dictionary ? narrow(value_bits(values) / 8) : 0;
  d.num_buffers = message.number(7);
  d.num_items = message.number(9);
  d.large_chunks = message.number(10) != 0;
  d.repetition_index = message.number(8) > 0;
  return make_mini_block(std::move(d));
}

PagePtr constant(const Message& message, uint64_t rows, std::vector<Range> buffers) {
  ConstantDescription d;
  d.rows = rows;
  d.buffers = std::move(buffers);
  d.layers = layers_of(message, 5);
  if (std::optional<Span> value = message.bytes(6)) {
    d.has_inline_value = true;
    d.inline_value.assign(value->data, value->data + value->size);
  }
  d.rep = optional_block(message, 7);
  d.def = optional_block(message, 8);
  d.num_rep = message.number(9);
  d.num_def = message.number(10);
  return make_constant(std::move(d));
}

void set_variable_codec(const Encoding& encoding, FullZipDescription& d) {
  switch (encoding.kind) {
    case kVariable:
      offset_bits(encoding);
      return;
    case kFsst: {
      if (Encoding(encoding.body.message(2)).kind != kVariable) refuse("symbols are of other values");
      Span table = encoding.body.bytes(1).value_or(Span{});
      d.codec = ZipCodec::kFsst;
      d.symbol_table.assign(table.data, table.data + table.size);
      return;
    }
    case kGeneral:
      if (Encoding(encoding.body.message(3)).kind != kVariable)
        refuse("compressed values are of another kind");
      d.codec = scheme_of(encoding) == Compression::kLz4 ? ZipCodec::kLz4 : ZipCodec::kZstd;
      return;
    default:
      refuse("an encoding of single strings is unknown");
  }
}

PagePtr full_zip(const Message& message, uint64_t rows, std::vector<Range> buffers) {
  FullZipDescription d;
  d.rows = rows;
  d.buffers = std::move(buffers);
  d.layers = layers_of(message, 8);
  d.bits_rep = narrow(message.number(1));
  d.bits_def = narrow(message.number(2));
  d.bits_per_value = message.number(3);
  d.bits_per_offset = narrow(message.number(4));
  if (d.bits_per_value && d.bits_per_offset) refuse("values are of fixed and of variable width");
  Encoding values(message.message(7));
  if (d.bits_per_offset) {
    set_variable_codec(values, d);
  } else {
    Lists lists = lists_of(values);
    d.dims = std::move(lists.dims);
    d.has_validity = std::move(lists.has_validity);
    d.bits_per_item = lists.bits_per_item;
  }
  return make_full_zip(std::move(d));
}

PagePtr blob(const Message& message, uint64_t rows, std::vector<Range> buffers) {
  Message inner = message.message(1);
  if (inner.alternative() != kMiniBlock) refuse("the descriptors of blobs are in another layout");
  PagePtr descriptors = mini_block(inner.message(kMiniBlock), rows, buffers);
  return make_blob(std::move(descriptors), std::move(buffers), layers_of(message, 2), false);
}

}  // namespace

PagePtr make_page(Span layout, uint64_t rows, std::vector<Range> buffers) {
  Message message(layout);
  uint32_t kind = message.alternative();
  switch (kind) {
    case kMiniBlock:
      return mini_block(message.message(kind), rows, std::move(buffers));
    case kConstant:
      return constant(message.message(kind), rows, std::move(buffers));
    case kFullZip:
      return full_zip(message.message(kind), rows, std::move(buffers));
    case kBlob:
      return blob(message.message(kind), rows, std::move(buffers));
    default:
      refuse("a page layout is unknown");
  }
}

}  // namespace lance
