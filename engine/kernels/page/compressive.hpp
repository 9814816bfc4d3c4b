#pragma once

#include <string>
#include <vector>

#include "core/protobuf.hpp"
#include "decode/page.hpp"

namespace lance {

// The compressive encodings of versions 2.1 and 2.2: what a `CompressiveEncoding` message says. Their table
// is in compressive.cpp. All of these throw CorruptData or Unsupported.

// As the values of the chunks of a mini-block page.
ValueDecoderPtr value_decoder(const Message& encoding);
// As one whole buffer: levels, or a dictionary.
BlockDecoderPtr block_decoder(const Message& encoding);
// The same for field number `field` of a message; null where it is absent.
BlockDecoderPtr optional_block(const Message& message, uint32_t field);
// Like the values of a full-zip page, each stored individually.
void read_single_values(const Message& encoding, FullZipDescription& page);
// Bits of one decoded value of fixed width.
uint64_t value_bits(const Message& encoding);
// Name, parameters and nested encodings, such as "fsst(variable)".
std::string describe_compressive(const Message& encoding);

}  // namespace lance
