#include "page/description.hpp"

#include <algorithm>

namespace lance {

namespace {

constexpr size_t kLongestName = 200;

}  // namespace

void unsupported(const std::string& what) {
  throw Unsupported(what);
}

void without_decoder(const std::string& name) {
  Unsupported error("this file uses the encoding '" + name + "', no decoder is configured");
  error.missing = name;
  throw error;
}

std::string unknown_alternative(const char* type, const Message::Alternative& alternative) {
  if (alternative.number == 0) return std::string(type) + " of no kind";
  return std::string(type) + " number " + std::to_string(alternative.number);
}

std::string printable(std::string_view text) {
  std::string shown(text.substr(0, kLongestName));
  std::replace_if(shown.begin(), shown.end(), [](char c) { return c < ' ' || c > '~'; }, '?');
  return shown;
}

}  // namespace lance
