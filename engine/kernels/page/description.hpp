#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "core/errors.hpp"
#include "core/protobuf.hpp"

namespace lance {

// What the tables of layouts and encodings share: how the alternatives of a message are found in them, and
// how a refusal says which encoding it is about.

// No writer nests the encodings of 2.1 and 2.2, or the arrays of 2.0, this deep.
inline constexpr unsigned kDeepest = 16, kDeepestArray = 32;

[[noreturn]] void unsupported(const std::string& what);
// For an encoding that nothing here decodes.
[[noreturn]] void without_decoder(const std::string& name);

// What to call an alternative that the tables do not have: `type` is the name of the message.
std::string unknown_alternative(const char* type, const Message::Alternative& alternative);

// Text of a file as error messages may show it.
std::string printable(std::string_view text);

// Adds an encoding in front of those that the error already has.
template <typename Error>
void prepend_encoding(Error& error, const char* name) {
  error.encoding = error.encoding.empty() ? name : std::string(name) + " > " + error.encoding;
}

// Calls build(); what it refuses is about the encoding `name`.
template <typename Build>
auto inside(const char* name, Build build) {
  try {
    return build();
  } catch (CorruptData& error) {
    prepend_encoding(error, name);
    throw;
  } catch (Unsupported& error) {
    prepend_encoding(error, name);
    throw;
  }
}

}  // namespace lance
