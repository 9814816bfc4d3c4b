#include "page/array.hpp"

#include <algorithm>
#include <iterator>

#include "page/description.hpp"

namespace lance::v2_0 {

namespace {

// What is known about one encoding; one without `decoder` has no values itself.
struct Array {
  const char* name;
  std::string (*describe)(const Message& body, unsigned depth);
  ArrayDecoderPtr (*decoder)(const Message& body, const ArrayContext& context, unsigned depth);
};

// Numbers of the alternatives of ArrayEncoding and of Nullable.
enum : uint64_t { kFlat = 1, kNullable = 2, kList = 4, kPackedStruct = 9, kBitpacked = 10, kForNonNeg = 12 };
enum : uint64_t { kNoNulls = 1, kSomeNulls = 2, kAllNulls = 3 };

constexpr uint64_t kDescriptorBits = 128;

Message::Alternative alternative_of(const Message& encoding);
ArrayDecoderPtr decoder_of(const Message& encoding, const ArrayContext& context, unsigned depth);
std::string describe(const Message& encoding, unsigned depth);

unsigned narrow(uint64_t width) {
  return static_cast<unsigned>(std::min<uint64_t>(width, UINT32_MAX));
}

// The range that a `Buffer` message names.
Range buffer_of(const Message& reference, const ArrayContext& context) {
  const uint64_t index = reference.number(1), kind = reference.number(2);
  if (kind > 1) unsupported("a page refers to a file buffer, which is not supported");
  const std::vector<Range>& buffers = kind == 0 ? context.page_buffers : context.column_buffers;
  if (index >= buffers.size())
    throw CorruptData("an encoding refers to buffer " + std::to_string(index) + ", there are " +
                      std::to_string(buffers.size()));
  return buffers[index];
}

// ---- flat ----------------------------------------------------------------------------------------------

std::string scheme_of(const Message& flat) {
  std::string_view scheme = flat.message(3).text(1);
  return scheme == "none" ? "" : printable(scheme);
}

std::string describe_flat(const Message& body, unsigned) {
  std::string scheme = scheme_of(body), name = "flat" + std::to_string(body.number(1));
  return scheme.empty() ? name : scheme + "(" + name + ")";
}

ArrayDecoderPtr flat(const Message& body, const ArrayContext& context, unsigned) {
  std::string scheme = scheme_of(body);
  Compression compression = Compression::kNone;
  if (scheme == "lz4") {
    compression = Compression::kLz4;
  } else if (scheme == "zstd") {
    compression = Compression::kZstd;
  } else if (!scheme.empty()) {
    unsupported("the compression '" + scheme + "' is not known");
  }
  return make_flat(buffer_of(body.message(2), context), body.number(1), compression);
}

// ---- nullable ------------------------------------------------------------------------------------------

std::string describe_nullable(const Message& body, unsigned depth) {
  Message::Alternative found = body.alternative(kAllNulls);
  if (found.number == kNoNulls) return describe(found.body.message(1), depth);
  if (found.number == kSomeNulls) return "nullable(" + describe(found.body.message(2), depth) + ")";
  return "null";
}

ArrayDecoderPtr nullable(const Message& body, const ArrayContext& context, unsigned depth) {
  Message::Alternative found = body.alternative(kAllNulls);
  switch (found.number) {
    case kNoNulls:
      return decoder_of(found.body.message(1), context, depth);
    case kSomeNulls: {
      ArrayDecoderPtr validity = decoder_of(found.body.message(1), context, depth);
      return make_nullable(std::move(validity), decoder_of(found.body.message(2), context, depth));
    }
    case kAllNulls:
      return make_all_null();
    default:
      unsupported("a page says in an unknown way which values are null");
  }
}

// ---- fixed-size lists ----------------------------------------------------------------------------------

std::string describe_fixed_size_list(const Message& body, unsigned depth) {
  return "fixed-size-list[" + std::to_string(body.number(1)) + "](" + describe(body.message(2), depth) + ")";
}

ArrayDecoderPtr fixed_size_list(const Message& body, const ArrayContext& context, unsigned depth) {
  return make_fixed_size_list(body.number(1), decoder_of(body.message(2), context, depth));
}

// ---- lists and structs, whose items and children are their own columns
// ----------------------------------

std::string describe_list(const Message& body, unsigned depth) {
  return "list(" + describe(body.message(1), depth) + ")";
}

std::string describe_struct(const Message&, unsigned) {
  return "struct";
}

// ---- strings -------------------------------------------------------------------------------------------

std::string describe_binary(const Message& body, unsigned depth) {
  return "binary(" + describe(body.message(2), depth) + ")";
}

ArrayDecoderPtr binary(const Message& body, const ArrayContext& context, unsigned depth) {
  ArrayDecoderPtr ends = decoder_of(body.message(1), context, depth);
  return make_binary(std::move(ends), decoder_of(body.message(2), context, depth), body.number(3));
}

std::string describe_fixed_size_binary(const Message& body, unsigned) {
  return "fixed-size-binary[" + std::to_string(body.number(2)) + "]";
}

ArrayDecoderPtr fixed_size_binary(const Message& body, const ArrayContext& context, unsigned depth) {
  return make_fixed_size_binary(decoder_of(body.message(1), context, depth), body.number(2));
}

std::string describe_fsst(const Message& body, unsigned depth) {
  return "fsst(" + describe(body.message(1), depth) + ")";
}

ArrayDecoderPtr fsst(const Message& body, const ArrayContext& context, unsigned depth) {
  return make_fsst(decoder_of(body.message(1), context, depth), body.bytes(2).value_or(Span{}));
}

// ---- dictionary ----------------------------------------------------------------------------------------

uint64_t index_bits(const Message& encoding, unsigned depth) {
  check(depth <= kDeepestArray, "encodings are nested too deep");
  Message::Alternative found = alternative_of(encoding);
  switch (found.number) {
    case kFlat:
      return found.body.number(1);
    case kBitpacked:
    case kForNonNeg:
      return found.body.number(2);
    case kNullable: {
      Message::Alternative nullable = found.body.alternative(kAllNulls);
      if (nullable.number == kNoNulls) return index_bits(nullable.body.message(1), depth + 1);
      [[fallthrough]];
    }
    default:
      unsupported("dictionary indices that are neither flat nor bit-packed");
  }
}

std::string describe_dictionary(const Message& body, unsigned depth) {
  return "dictionary[" + std::to_string(body.number(3)) + "](" + describe(body.message(1), depth) + ")";
}

ArrayDecoderPtr dictionary(const Message& body, const ArrayContext& context, unsigned depth) {
  ArrayDecoderPtr indices = decoder_of(body.message(1), context, depth);
  unsigned width = narrow(index_bits(body.message(1), depth) / 8);
  ArrayDecoderPtr items = decoder_of(body.message(2), context, depth);
  return make_dictionary(std::move(indices), width, std::move(items), body.number(3), !context.is_dictionary,
                         LeafType{context.type.kind, context.type.width, {}});
}

// ---- packed structs ------------------------------------------------------------------------------------

std::string describe_packed_struct(const Message& body, unsigned) {
  return "packed-struct[" + std::to_string(body.messages(1).size()) + "]";
}

ArrayDecoderPtr packed_struct(const Message& body, const ArrayContext& context, unsigned) {
  return make_flat(buffer_of(body.message(2), context), uint64_t{8} * context.type.width, Compression::kNone);
}

// ---- bit-packing ---------------------------------------------------------------------------------------

std::string describe_bitpacked(const Message& body, unsigned) {
  return "bitpacked" + std::to_string(body.number(2)) + "to" + std::to_string(body.number(1));
}

ArrayDecoderPtr bitpacked(const Message& body, const ArrayContext& context, unsigned) {
  return make_bitpacked(buffer_of(body.message(3), context), narrow(body.number(1)), narrow(body.number(2)),
                        body.number(4) != 0);
}

ArrayDecoderPtr bitpacked_for_non_neg(const Message& body, const ArrayContext& context, unsigned) {
  return make_bitpacked_for_non_neg(buffer_of(body.message(3), context), narrow(body.number(1)),
                                    narrow(body.number(2)));
}

// ---- constant; pylance neither writes nor reads it -------------------------------------------------------

std::string describe_constant(const Message&, unsigned) {
  return "constant";
}

ArrayDecoderPtr constant(const Message& body, const ArrayContext&, unsigned) {
  Span value = body.bytes(1).value_or(Span{});
  return make_constant({value.data, value.data + value.size});
}

// ---- the table -----------------------------------------------------------------------------------------

// By the number of the alternative in ArrayEncoding, from 1 on.
constexpr Array kTable[] = {
    {"flat", describe_flat, flat},
    {"nullable", describe_nullable, nullable},
    {"fixed_size_list", describe_fixed_size_list, fixed_size_list},
    {"list", describe_list, nullptr},
    {"struct", describe_struct, nullptr},
    {"binary", describe_binary, binary},
    {"dictionary", describe_dictionary, dictionary},
    {"fsst", describe_fsst, fsst},
    {"packed_struct", describe_packed_struct, packed_struct},
    {"bitpacked", describe_bitpacked, bitpacked},
    {"fixed_size_binary", describe_fixed_size_binary, fixed_size_binary},
    {"bitpacked_for_non_neg", describe_bitpacked, bitpacked_for_non_neg},
    {"constant", describe_constant, constant},
};

Message::Alternative alternative_of(const Message& encoding) {
  return encoding.alternative(std::size(kTable));
}

bool is_known(const Message::Alternative& alternative) {
  return alternative.number != 0 && alternative.number <= std::size(kTable);
}

ArrayDecoderPtr decoder_of(const Message& encoding, const ArrayContext& context, unsigned depth) {
  check(depth <= kDeepestArray, "encodings are nested too deep");
  Message::Alternative found = alternative_of(encoding);
  if (!is_known(found)) without_decoder(unknown_alternative("ArrayEncoding", found));
  const Array& kind = kTable[found.number - 1];
  if (!kind.decoder) without_decoder(kind.name);
  return inside(kind.name, [&] { return kind.decoder(found.body, context, depth + 1); });
}

std::string describe(const Message& encoding, unsigned depth) {
  check(depth <= kDeepestArray, "encodings are nested too deep");
  Message::Alternative found = alternative_of(encoding);
  if (found.number == 0) return "unknown";
  if (!is_known(found)) return unknown_alternative("ArrayEncoding", found);
  return kTable[found.number - 1].describe(found.body, depth + 1);
}

}  // namespace

ArrayDecoderPtr array_decoder(const Message& encoding, const ArrayContext& context) {
  return decoder_of(encoding, context, 0);
}

PagePtr open_array(const Message& encoding, uint64_t rows, const ArrayContext& context) {
  return make_page(rows, array_decoder(encoding, context), context.page_buffers);
}

PagePtr open_blob(const Message& encoding, uint64_t rows, const ArrayContext& context) {
  Message::Alternative found = alternative_of(encoding);
  if (found.number != kPackedStruct) return open_array(encoding, rows, context);
  return inside("blob", [&] {
    Range buffer = buffer_of(found.body.message(2), context);
    PagePtr descriptors = make_page(rows, make_flat(buffer, kDescriptorBits, Compression::kNone), {});
    const auto layer = static_cast<uint8_t>(RepDefLayer::kNullableItem);
    return make_blob(std::move(descriptors), {buffer}, {layer}, true);
  });
}

std::optional<Message> list_of(const Message& encoding) {
  Message::Alternative found = alternative_of(encoding);
  if (found.number != kList) return std::nullopt;
  return found.body;
}

std::string array_kind(const Message& encoding) {
  Message::Alternative found = alternative_of(encoding);
  return is_known(found) ? kTable[found.number - 1].name : "";
}

std::string describe_array(const Message& encoding) {
  return describe(encoding, 0);
}

}  // namespace lance::v2_0
