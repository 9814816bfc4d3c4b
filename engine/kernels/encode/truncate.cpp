#include "encode/truncate.hpp"

#include <cstdint>

namespace lance::encode {
namespace {

constexpr uint32_t kInvalid = ~uint32_t{0};
constexpr uint32_t kLastCharacter = 0x10ffff;
constexpr uint32_t kFirstSurrogate = 0xd800, kAfterSurrogates = 0xe000;

bool continues(char byte) {
  return (static_cast<uint8_t>(byte) & 0xc0) == 0x80;
}

// Reads the character that starts at `at` and moves past it.
uint32_t next_character(std::string_view text, size_t& at) {
  const auto first = static_cast<uint8_t>(text[at++]);
  if (first < 0x80) return first;
  const int more = first >= 0xf0 ? 3 : first >= 0xe0 ? 2 : first >= 0xc0 ? 1 : -1;
  if (more < 0 || first > 0xf4) return kInvalid;
  uint32_t code = first & (0x3f >> more);
  for (int byte = 0; byte < more; ++byte) {
    if (at == text.size() || !continues(text[at])) return kInvalid;
    code = code << 6 | (static_cast<uint8_t>(text[at++]) & 0x3f);
  }
  constexpr uint32_t kLeast[] = {0, 0x80, 0x800, 0x10000};
  const bool surrogate = code >= kFirstSurrogate && code < kAfterSurrogates;
  return code < kLeast[more] || code > kLastCharacter || surrogate ? kInvalid : code;
}

bool is_utf8(std::string_view text) {
  for (size_t at = 0; at < text.size();)
    if (next_character(text, at) == kInvalid) return false;
  return true;
}

void append_character(std::string& text, uint32_t code) {
  if (code < 0x80) {
    text += static_cast<char>(code);
    return;
  }
  const int more = code < 0x800 ? 1 : code < 0x10000 ? 2 : 3;
  text += static_cast<char>((0xffff00 >> (more + 1) & 0xff) | code >> 6 * more);
  for (int byte = more - 1; byte >= 0; --byte) text += static_cast<char>(0x80 | (code >> 6 * byte & 0x3f));
}

// Where the last character of valid text starts.
size_t last_character(std::string_view text) {
  size_t at = text.size() - 1;
  while (at > 0 && continues(text[at])) --at;
  return at;
}

// The start of `value`, ending with a whole character.
std::string_view prefix(std::string_view value, size_t limit, bool text) {
  if (value.size() <= limit) return value;
  size_t end = limit;
  if (text)
    while (end > 0 && continues(value[end])) --end;
  return value.substr(0, end);
}

}  // namespace

std::optional<std::string> truncated_minimum(std::string_view value, size_t limit, bool text) {
  const std::string_view kept = prefix(value, limit, text);
  if (text && !is_utf8(kept)) return std::nullopt;
  return std::string(kept);
}

std::optional<std::string> truncated_maximum(std::string_view value, size_t limit, bool text) {
  std::string kept(prefix(value, limit, text));
  if (text && !is_utf8(kept)) return std::nullopt;
  if (kept.size() == value.size()) return kept;
  while (!kept.empty()) {
    if (!text) {
      if (kept.back() != '\xff') {
        ++kept.back();
        return kept;
      }
      kept.pop_back();
      continue;
    }
    size_t at = last_character(kept);
    const size_t start = at;
    const uint32_t code = next_character(kept, at);
    kept.resize(start);
    if (code != kLastCharacter) {
      append_character(kept, code + 1 == kFirstSurrogate ? kAfterSurrogates : code + 1);
      return kept;
    }
  }
  return std::nullopt;
}

}  // namespace lance::encode
