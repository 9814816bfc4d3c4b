#include "page/compressive.hpp"

#include <algorithm>
#include <iterator>

#include "page/description.hpp"

namespace lance {

namespace {

// The functions of an encoding; one is missing where it does not apply, or where no writer uses it.
struct Compressive {
  const char* name;
  std::string (*describe)(const Message& body, unsigned depth);
  ValueDecoderPtr (*values)(const Message& body, unsigned depth);
  BlockDecoderPtr (*block)(const Message& body, unsigned depth);
  // As single values of a full-zip page, of fixed or of variable width.
  void (*single_fixed)(const Message& body, FullZipDescription& page);
  void (*single_variable)(const Message& body, FullZipDescription& page);
  uint64_t (*bits)(const Message& body, unsigned depth);
};

// Numbers of the alternatives of CompressiveEncoding that are required or forbidden for others.
enum : uint64_t { kFlat = 1, kVariable = 2, kConstant = 3, kGeneral = 10, kFixedSizeList = 11 };

Message::Alternative alternative_of(const Message& encoding);
const Compressive& known(const Message::Alternative& alternative);

std::string quoted(const Compressive& kind) {
  return std::string("the encoding '") + kind.name + "'";
}

void check_depth(unsigned depth) {
  check(depth <= kDeepest, "encodings are nested too deep");
}

// ---- any of them ---------------------------------------------------------------------------------------

std::string describe(const Message& encoding, unsigned depth);

ValueDecoderPtr values(const Message& encoding, unsigned depth) {
  check_depth(depth);
  Message::Alternative found = alternative_of(encoding);
  const Compressive& kind = known(found);
  return inside(kind.name, [&] {
    if (!kind.values) unsupported(quoted(kind) + " for the values of a mini-block page");
    return kind.values(found.body, depth + 1);
  });
}

BlockDecoderPtr block(const Message& encoding, unsigned depth) {
  check_depth(depth);
  Message::Alternative found = alternative_of(encoding);
  const Compressive& kind = known(found);
  return inside(kind.name, [&] {
    if (!kind.block) unsupported(quoted(kind) + " for a whole buffer");
    return kind.block(found.body, depth + 1);
  });
}

uint64_t bits(const Message& encoding, unsigned depth) {
  check_depth(depth);
  Message::Alternative found = alternative_of(encoding);
  const Compressive& kind = known(found);
  if (!kind.bits)
    throw CorruptData("fixed-width values cannot be encoded as '" + std::string(kind.name) + "'");
  return kind.bits(found.body, depth + 1);
}

void single(const Message& encoding, bool variable, FullZipDescription& page) {
  Message::Alternative found = alternative_of(encoding);
  check(found.number != 0, "a page does not say how its values are encoded");
  const Compressive& kind = known(found);
  inside(kind.name, [&] {
    auto read = variable ? kind.single_variable : kind.single_fixed;
    if (!read)
      unsupported(quoted(kind) + " for values of " + (variable ? "variable" : "fixed") +
                  " width in a full-zip page");
    read(found.body, page);
  });
}

// The width of the values of an encoding that can only be flat here.
uint64_t flat_bits(const Message& encoding, const char* whose) {
  Message::Alternative found = alternative_of(encoding);
  if (found.number != kFlat || found.body.has(2)) unsupported(std::string(whose) + " are not flat");
  return found.body.number(1);
}

template <uint32_t kField>
uint64_t bits_of_nested(const Message& body, unsigned depth) {
  return bits(body.message(kField), depth);
}

uint64_t own_bits(const Message& body, unsigned) {
  return body.number(1);
}

std::string bitpacked(const Message& body, unsigned) {
  return "bitpacked" + std::to_string(body.number(1));
}

// ---- flat ----------------------------------------------------------------------------------------------

uint64_t plain_bits(const Message& flat) {
  if (flat.has(2)) unsupported("a flat encoding with a compression of its own");
  return flat.number(1);
}

std::string describe_flat(const Message& body, unsigned) {
  return "flat" + std::to_string(body.number(1));
}

ValueDecoderPtr flat_values(const Message& body, unsigned) {
  return make_flat(plain_bits(body));
}

BlockDecoderPtr flat_block(const Message& body, unsigned) {
  return make_block_flat(plain_bits(body));
}

void flat_single(const Message& body, FullZipDescription& page) {
  page.bits_per_item = plain_bits(body);
}

// ---- variable ------------------------------------------------------------------------------------------

unsigned offset_bits(const Message& variable) {
  if (variable.has(2)) unsupported("a variable encoding with a compression of its own");
  uint64_t bits = flat_bits(variable.message(1), "the offsets of strings");
  if (bits != 32 && bits != 64)
    throw CorruptData("string offsets must be 32 or 64 bits wide, not " + std::to_string(bits));
  return static_cast<unsigned>(bits);
}

// An encoding that must be variable here. Where values are stored individually, it has no offsets.
Message variable_of(const Message& encoding, const char* whose) {
  Message::Alternative found = alternative_of(encoding);
  if (found.number != kVariable) unsupported(std::string(whose) + " are not variable");
  return found.body;
}

std::string describe_variable(const Message&, unsigned) {
  return "variable";
}

ValueDecoderPtr variable_values(const Message& body, unsigned) {
  return make_variable(offset_bits(body));
}

BlockDecoderPtr variable_block(const Message& body, unsigned) {
  return make_block_variable(offset_bits(body));
}

void variable_single(const Message& body, FullZipDescription& page) {
  offset_bits(body);
  page.codec = ZipCodec::kPlain;
}

// ---- bit-packing ---------------------------------------------------------------------------------------

uint64_t packed_bits(const Message& body) {
  if (body.has(2)) unsupported("a bit-packing with a compression of its own");
  return body.number(1);
}

ValueDecoderPtr inline_values(const Message& body, unsigned) {
  return make_inline_bitpacking(packed_bits(body));
}

BlockDecoderPtr inline_block(const Message& body, unsigned) {
  return make_block_inline_bitpacking(packed_bits(body));
}

uint64_t packed_width(const Message& body) {
  return flat_bits(body.message(3), "the values of an out-of-line bit-packing");
}

std::string describe_out_of_line(const Message& body, unsigned depth) {
  Message::Alternative packed = alternative_of(body.message(3));
  return bitpacked(body, depth) + "to" + std::to_string(packed.number == kFlat ? packed.body.number(1) : 0);
}

BlockDecoderPtr out_of_line_block(const Message& body, unsigned) {
  return make_block_out_of_line_bitpacking(body.number(1), packed_width(body));
}

// ---- FSST ----------------------------------------------------------------------------------------------

std::string describe_fsst(const Message& body, unsigned depth) {
  return "fsst(" + describe(body.message(2), depth) + ")";
}

ValueDecoderPtr fsst_values(const Message& body, unsigned) {
  return make_fsst(body.bytes(1).value_or(Span{}),
                   offset_bits(variable_of(body.message(2), "values in symbols")));
}

void fsst_single(const Message& body, FullZipDescription& page) {
  variable_of(body.message(2), "values in symbols");
  Span table = body.bytes(1).value_or(Span{});
  page.codec = ZipCodec::kFsst;
  page.symbol_table.assign(table.data, table.data + table.size);
}

// ---- run lengths ---------------------------------------------------------------------------------------

uint64_t run_value_bits(const Message& body) {
  if (flat_bits(body.message(2), "run lengths") != 8) unsupported("run lengths are not of 8 bits");
  return flat_bits(body.message(1), "the values of runs");
}

std::string describe_rle(const Message& body, unsigned depth) {
  return "rle(" + describe(body.message(1), depth) + ")";
}

ValueDecoderPtr rle_values(const Message& body, unsigned) {
  return make_rle(run_value_bits(body));
}

BlockDecoderPtr rle_block(const Message& body, unsigned) {
  return make_block_rle(run_value_bits(body));
}

// ---- byte streams --------------------------------------------------------------------------------------

std::string describe_byte_streams(const Message& body, unsigned depth) {
  return "byte-stream-split(" + describe(body.message(1), depth) + ")";
}

ValueDecoderPtr byte_stream_values(const Message& body, unsigned) {
  return make_byte_stream_split(flat_bits(body.message(1), "the values of byte streams"));
}

// ---- general compression -------------------------------------------------------------------------------

Compression scheme_of(const Message& body) {
  uint64_t scheme = body.message(1).number(1);
  if (scheme == 1) return Compression::kLz4;
  if (scheme == 2) return Compression::kZstd;
  unsupported("compression scheme number " + std::to_string(scheme) + " is not known");
}

std::string describe_general(const Message& body, unsigned depth) {
  const uint64_t scheme = body.message(1).number(1);
  const std::string name = scheme == 1   ? "lz4"
                           : scheme == 2 ? "zstd"
                                         : "compression number " + std::to_string(scheme);
  return name + "(" + describe(body.message(3), depth) + ")";
}

ValueDecoderPtr general_values(const Message& body, unsigned depth) {
  Compression scheme = scheme_of(body);
  const Message encoding = body.message(3);
  ValueDecoderPtr inner = values(encoding, depth);
  // Both would be expanded into the same memory, one while the other is read.
  if (alternative_of(encoding).number == kGeneral) unsupported("values that are compressed twice");
  return make_general(scheme, std::move(inner));
}

BlockDecoderPtr general_block(const Message& body, unsigned depth) {
  Compression scheme = scheme_of(body);
  return make_block_general(scheme, block(body.message(3), depth));
}

void general_single(const Message& body, FullZipDescription& page) {
  variable_of(body.message(3), "compressed values");
  page.codec = scheme_of(body) == Compression::kLz4 ? ZipCodec::kLz4 : ZipCodec::kZstd;
}

// ---- constants -----------------------------------------------------------------------------------------

std::string describe_constant(const Message& body, unsigned) {
  return body.has(1) ? "constant" : "constant(null)";
}

// Early releases write this for fixed-size lists that are all null or have only null items.
void constant_single(const Message& body, FullZipDescription& page) {
  if (body.has(1)) unsupported("the encoding 'constant' with a value in a full-zip page");
  page.bits_per_item = 0;
}

// ---- fixed-size lists ----------------------------------------------------------------------------------

// Nested lists, outermost first; `bits_per_item` is 0 where every item is null.
struct Lists {
  std::vector<uint64_t> dims;
  std::vector<bool> has_validity;
  uint64_t bits_per_item = 0;
};

// `body` is that of the outermost list.
Lists lists_of(Message body) {
  Lists lists;
  while (true) {
    check(lists.dims.size() < kDeepest, "encodings are nested too deep");
    lists.dims.push_back(body.number(1));
    lists.has_validity.push_back(body.number(3) != 0);
    Message items = body.message(2);
    Message::Alternative found = alternative_of(items);
    if (found.number == kConstant && !found.body.has(1)) return lists;
    if (found.number != kFixedSizeList) {
      lists.bits_per_item = flat_bits(items, "the items of a fixed-size list");
      return lists;
    }
    body = found.body;
  }
}

std::string describe_list(const Message& body, unsigned depth) {
  return "fixed-size-list[" + std::to_string(body.number(1)) + "](" + describe(body.message(2), depth) + ")";
}

ValueDecoderPtr list_values(const Message& body, unsigned) {
  Lists lists = lists_of(body);
  return make_fixed_size_list(std::move(lists.dims), std::move(lists.has_validity), lists.bits_per_item);
}

void list_single(const Message& body, FullZipDescription& page) {
  Lists lists = lists_of(body);
  page.dims = std::move(lists.dims);
  page.has_validity = std::move(lists.has_validity);
  page.bits_per_item = lists.bits_per_item;
}

// ---- packed structs ------------------------------------------------------------------------------------

std::string describe_packed(const Message& body, unsigned) {
  return "packed-struct[" + std::to_string(body.numbers(1).size()) + "]";
}

ValueDecoderPtr packed_values(const Message& body, unsigned) {
  uint64_t row_bits = flat_bits(body.message(2), "the rows of a packed struct");
  uint64_t rest = row_bits;
  for (uint64_t field : body.numbers(1)) {
    if (field % 8 != 0) unsupported("a packed struct with fields that are not whole bytes");
    check(field <= rest, "the fields of a packed struct do not add up to its rows");
    rest -= field;
  }
  check(rest == 0, "the fields of a packed struct do not add up to its rows");
  return make_flat(row_bits);
}

// ---- packed structs with fields of variable width --------------------------------------------------------

// Rows of 512 MiB are more than a batch may hold.
constexpr uint64_t kMostRowBits = uint64_t{1} << 32;

// Numbers of the fields of VariablePackedStruct.FieldEncoding.
enum : uint32_t { kFieldValue = 1, kBitsPerValue = 2, kBitsPerLength = 3 };

PackedField packed_field(const Message& field) {
  const uint64_t length_bits = field.number(kBitsPerLength);
  const uint64_t bits = length_bits != 0 ? length_bits : field.number(kBitsPerValue);
  check(bits <= kMostRowBits, "a field of a packed struct is impossibly wide");
  if (bits % 8 != 0) unsupported("a packed struct with fields that are not whole bytes");
  PackedField found;
  if (length_bits != 0) {
    found.length_bytes = static_cast<unsigned>(bits / 8);
    FullZipDescription value;
    single(field.message(kFieldValue), true, value);
    if (!value.packed.empty()) unsupported("a packed struct in a packed struct");
    found.codec = value.codec;
    found.symbol_table = std::move(value.symbol_table);
    return found;
  }
  Message::Alternative value = alternative_of(field.message(kFieldValue));
  Lists lists;
  if (value.number == kFixedSizeList) {
    lists = lists_of(value.body);
    if (lists.bits_per_item == 0) unsupported("a packed struct with lists of nothing but nulls");
  } else {
    lists.bits_per_item = flat_bits(field.message(kFieldValue), "the fields of a packed struct");
  }
  check(lists.bits_per_item <= kMostRowBits, "a field of a packed struct is impossibly wide");
  uint64_t items = 1, validity_bits = 0;
  for (size_t layer = 0; layer < lists.dims.size(); ++layer) {
    check(lists.dims[layer] > 0 && items <= kMostRowBits / lists.dims[layer],
          "a field of a packed struct is impossibly wide");
    items *= lists.dims[layer];
    if (lists.has_validity[layer]) validity_bits += pad_to(items, 8);
  }
  check(bits >= validity_bits && items <= kMostRowBits / std::max<uint64_t>(1, lists.bits_per_item) &&
            bits - validity_bits == items * lists.bits_per_item,
        "a field of a packed struct contradicts its width");
  found.bytes = (bits - validity_bits) / 8;
  found.dims = std::move(lists.dims);
  found.has_validity = std::move(lists.has_validity);
  return found;
}

std::string describe_variable_packed(const Message& body, unsigned depth) {
  std::string text;
  std::vector<Message> fields = body.messages(1);
  for (const Message& field : fields)
    text += (text.empty() ? "" : ", ") + describe(field.message(kFieldValue), depth);
  return "packed-struct[" + std::to_string(fields.size()) + "](" + text + ")";
}

void variable_packed_single(const Message& body, FullZipDescription& page) {
  for (const Message& field : body.messages(1)) page.packed.push_back(packed_field(field));
  check(!page.packed.empty(), "a packed struct has no fields");
}

// ---- the table -----------------------------------------------------------------------------------------

// By the number of the alternative in CompressiveEncoding, from 1 on. A name alone has no decoder here:
// dictionaries occur only next to the values of a page.
constexpr Compressive kTable[] = {
    {"flat", describe_flat, flat_values, flat_block, flat_single, nullptr, own_bits},
    {"variable", describe_variable, variable_values, variable_block, nullptr, variable_single, nullptr},
    {"constant", describe_constant, nullptr, nullptr, constant_single, nullptr, nullptr},
    {"out_of_line_bitpacking", describe_out_of_line, nullptr, out_of_line_block, nullptr, nullptr, own_bits},
    {"inline_bitpacking", bitpacked, inline_values, inline_block, nullptr, nullptr, own_bits},
    {"fsst", describe_fsst, fsst_values, nullptr, nullptr, fsst_single, nullptr},
    {"dictionary", nullptr, nullptr, nullptr, nullptr, nullptr, nullptr},
    {"rle", describe_rle, rle_values, rle_block, nullptr, nullptr, bits_of_nested<1>},
    {"byte_stream_split", describe_byte_streams, byte_stream_values, nullptr, nullptr, nullptr,
     bits_of_nested<1>},
    {"general", describe_general, general_values, general_block, nullptr, general_single, bits_of_nested<3>},
    {"fixed_size_list", describe_list, list_values, nullptr, list_single, nullptr, nullptr},
    {"packed_struct", describe_packed, packed_values, nullptr, nullptr, nullptr, nullptr},
    {"variable_packed_struct", describe_variable_packed, nullptr, nullptr, nullptr, variable_packed_single,
     nullptr},
};

Message::Alternative alternative_of(const Message& encoding) {
  return encoding.alternative(std::size(kTable));
}

const Compressive& known(const Message::Alternative& alternative) {
  if (alternative.number == 0 || alternative.number > std::size(kTable))
    without_decoder(unknown_alternative("CompressiveEncoding", alternative));
  const Compressive& kind = kTable[alternative.number - 1];
  if (!kind.describe) without_decoder(kind.name);
  return kind;
}

std::string describe(const Message& encoding, unsigned depth) {
  check_depth(depth);
  Message::Alternative found = alternative_of(encoding);
  if (found.number == 0) return "unknown";
  if (found.number > std::size(kTable)) return unknown_alternative("CompressiveEncoding", found);
  const Compressive& kind = kTable[found.number - 1];
  return kind.describe ? kind.describe(found.body, depth + 1) : kind.name;
}

}  // namespace

ValueDecoderPtr value_decoder(const Message& encoding) {
  return values(encoding, 0);
}

BlockDecoderPtr block_decoder(const Message& encoding) {
  return block(encoding, 0);
}

BlockDecoderPtr optional_block(const Message& message, uint32_t field) {
  std::optional<Span> bytes = message.bytes(field);
  return bytes ? block(Message(*bytes), 0) : nullptr;
}

void read_single_values(const Message& encoding, FullZipDescription& page) {
  single(encoding, page.bits_per_offset != 0, page);
}

uint64_t value_bits(const Message& encoding) {
  return bits(encoding, 0);
}

std::string describe_compressive(const Message& encoding) {
  return describe(encoding, 0);
}

}  // namespace lance
