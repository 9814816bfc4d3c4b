#include "encode/jsonb.hpp"

#include <locale.h>
#ifdef __APPLE__
#include <xlocale.h>
#endif

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <optional>
#include <string>
#include <string_view>

#include "core/jsonb.hpp"

namespace lance::jsonb {
namespace {

// Positions in texts and in what they hold are kept in 32 bits.
constexpr uint64_t kMaxText = uint64_t{1} << 31;

bool is_digit(uint8_t c) {
  return c >= '0' && c <= '9';
}

// The value of a number as it is written, or nothing beyond the range of doubles.
std::optional<double> parse_double(const char* begin, const char* end) {
#ifdef __cpp_lib_to_chars
  double value;
  if (std::from_chars(begin, end, value).ec != std::errc()) return std::nullopt;
  return value;
#else  // Libraries without it, as on macOS; a locale of the process may have another decimal point.
  static const locale_t c_locale = newlocale(LC_ALL_MASK, "C", nullptr);
  const double value = strtod_l(std::string(begin, end).c_str(), nullptr, c_locale);
  if (std::isinf(value)) return std::nullopt;
  return value;
#endif
}

// A number beyond the range of doubles, as it is written: whether it is too large, and not too small.
bool overflows(std::string_view number) {
  int64_t magnitude = 0, exponent = 0;
  bool fraction = false, significant = false;
  size_t i = number[0] == '-';
  for (; i < number.size() && number[i] != 'e' && number[i] != 'E'; ++i) {
    if (number[i] == '.') {
      fraction = true;
      continue;
    }
    significant = significant || number[i] != '0';
    if (significant && !fraction) ++magnitude;
    if (!significant && fraction) --magnitude;
  }
  if (i < number.size()) {
    const bool negative = number[i + 1] == '-';
    for (i += 1 + !is_digit(static_cast<uint8_t>(number[i + 1])); i < number.size(); ++i) {
      exponent = std::min<int64_t>(10 * exponent + (number[i] - '0'), int64_t{1} << 40);
    }
    if (negative) exponent = -exponent;
  }
  return magnitude + exponent > 0;
}

}  // namespace

void Writer::append_value(Span text, encode::Output& output) {
  text_ = text;
  at_ = 0;
  nodes_.assign(1, {});
  bytes_.clear();
  if (text.size >= kMaxText) fail("the text is too long");
  if (!is_utf8(text)) fail("the text is not UTF-8");
  const uint32_t root = parse_value(0);
  if (peek() != 0 || at_ < text_.size) fail("there is more behind the value");
  const Node& node = nodes_[root];
  if (node.kind != kContainer) {
    store_big_endian(output.extend(4), kScalar, 4);
    put_entry(node.kind, node.length, output);
  }
  write(node, output);
}

// The next byte that is not white space, 0 at the end.
uint8_t Writer::peek() {
  while (at_ < text_.size) {
    const uint8_t c = text_.data[at_];
    if (c != ' ' && c != '\n' && c != '\r' && c != '\t') return c;
    ++at_;
  }
  return 0;
}

void Writer::expect(uint8_t wanted, const char* what) {
  if (peek() != wanted) fail(what);
  ++at_;
}

void Writer::fail(const char* what) const {
  throw Invalid(std::string(what) + " at byte " + std::to_string(at_));
}

uint32_t Writer::add(Node node) {
  if (node.length > kLengthMask) fail("a value is longer than the format allows");
  nodes_.push_back(node);
  return static_cast<uint32_t>(nodes_.size() - 1);
}

uint32_t Writer::parse_value(unsigned depth) {
  switch (peek()) {
    case '{':
      return parse_container(true, depth);
    case '[':
      return parse_container(false, depth);
    case '"': {
      uint32_t begin = 0, length = 0;
      parse_string(begin, length);
      return add({.kind = kString, .length = length, .first = begin});
    }
    case 't':
      return parse_constant("true", 4, kTrue);
    case 'f':
      return parse_constant("false", 5, kFalse);
    case 'n':
      return parse_constant("null", 4, kNull);
    default:
      return parse_number();
  }
}

uint32_t Writer::parse_constant(const char* word, size_t length, uint32_t kind) {
  if (text_.size - at_ < length || std::memcmp(text_.data + at_, word, length) != 0)
    fail("a value was expected");
  at_ += length;
  return add({.kind = kind});
}

uint32_t Writer::parse_container(bool is_object, unsigned depth) {
  if (depth > kMaxDepth) fail("containers are nested too deeply");
  ++at_;
  const uint8_t closing = is_object ? '}' : ']';
  const uint32_t container = add({.kind = kContainer, .header = is_object ? kObject : kArray});
  uint64_t count = 0, length = 4;
  uint32_t last = 0;
  if (peek() == closing) {
    ++at_;
  } else {
    while (true) {
      uint32_t key = 0, key_length = 0;
      if (is_object) {
        if (peek() != '"') fail("a key was expected");
        parse_string(key, key_length);
        expect(':', "a colon was expected");
      }
      const uint32_t child = parse_value(depth + 1);
      nodes_[child].key = key;
      nodes_[child].key_length = key_length;
      length += nodes_[child].length + key_length + (is_object ? 8 : 4);
      (last == 0 ? nodes_[container].first : nodes_[last].next) = child;
      last = child;
      ++count;
      const uint8_t after = peek();
      if (after != ',' && after != closing)
        fail(is_object ? "a comma or } was expected" : "a comma or ] was expected");
      ++at_;
      if (after == closing) break;
    }
  }
  if (count > kCountMask || length > kLengthMask) fail("a container is longer than the format allows");
  nodes_[container].header |= static_cast<uint32_t>(count);
  nodes_[container].length = length;
  if (is_object && count > 1) sort_by_key(container);
  return container;
}

void Writer::sort_by_key(uint32_t container) {
  const auto key = [&](uint32_t child) {
    const Node& node = nodes_[child];
    return std::string_view(reinterpret_cast<const char*>(bytes_.data()) + node.key, node.key_length);
  };
  order_.clear();
  for (uint32_t child = nodes_[container].first; child != 0; child = nodes_[child].next)
    order_.push_back(child);
  std::sort(order_.begin(), order_.end(),
            [&](uint32_t left, uint32_t right) { return key(left) < key(right); });
  for (size_t i = 1; i < order_.size(); ++i) {
    if (key(order_[i - 1]) == key(order_[i])) fail("an object has the same key twice, it ends");
    nodes_[order_[i - 1]].next = order_[i];
  }
  nodes_[container].first = order_.front();
  nodes_[order_.back()].next = 0;
}

void Writer::parse_string(uint32_t& begin, uint32_t& length) {
  ++at_;
  begin = static_cast<uint32_t>(bytes_.size());
  while (true) {
    uint64_t end = at_;
    while (end < text_.size && text_.data[end] >= 0x20 && text_.data[end] != '"' && text_.data[end] != '\\')
      ++end;
    bytes_.insert(bytes_.end(), text_.data + at_, text_.data + end);
    at_ = end;
    if (at_ == text_.size) fail("a string does not end");
    if (text_.data[at_] < 0x20) fail("a control character stands in a string");
    ++at_;
    if (text_.data[at_ - 1] == '"') break;
    parse_escape();
  }
  length = static_cast<uint32_t>(bytes_.size() - begin);
}

void Writer::parse_escape() {
  constexpr std::string_view kLetters = "\"\\/bfnrt", kMeaning = "\"\\/\b\f\n\r\t";
  if (at_ == text_.size) fail("a string does not end");
  const uint8_t letter = text_.data[at_++];
  if (letter != 'u') {
    const size_t found = kLetters.find(static_cast<char>(letter));
    if (found == std::string_view::npos) fail("an unknown escape ends");
    bytes_.push_back(static_cast<uint8_t>(kMeaning[found]));
    return;
  }
  uint32_t code = parse_hex();
  if (code >= 0xD800 && code < 0xE000) {
    const bool paired =
        code < 0xDC00 && text_.size - at_ >= 6 && text_.data[at_] == '\\' && text_.data[at_ + 1] == 'u';
    if (!paired) fail("half a surrogate pair ends");
    at_ += 2;
    const uint32_t low = parse_hex();
    if (low < 0xDC00 || low >= 0xE000) fail("half a surrogate pair ends");
    code = 0x10000 + ((code - 0xD800) << 10) + (low - 0xDC00);
  }
  const auto put = [&](uint32_t value) { bytes_.push_back(static_cast<uint8_t>(value)); };
  if (code < 0x80) return put(code);
  if (code < 0x800) {
    put(0xC0 | code >> 6);
  } else if (code < 0x10000) {
    put(0xE0 | code >> 12);
    put(0x80 | (code >> 6 & 0x3F));
  } else {
    put(0xF0 | code >> 18);
    put(0x80 | (code >> 12 & 0x3F));
    put(0x80 | (code >> 6 & 0x3F));
  }
  put(0x80 | (code & 0x3F));
}

uint32_t Writer::parse_hex() {
  if (text_.size - at_ < 4) fail("a string does not end");
  uint32_t code = 0;
  const auto* begin = reinterpret_cast<const char*>(text_.data + at_);
  const auto [end, error] = std::from_chars(begin, begin + 4, code, 16);
  if (error != std::errc() || end != begin + 4) fail("four hexadecimal digits were expected");
  at_ += 4;
  return code;
}

uint32_t Writer::parse_number() {
  const uint64_t start = at_;
  const auto byte = [&] { return at_ < text_.size ? text_.data[at_] : uint8_t{0}; };
  const auto digits = [&] {
    const uint64_t first = at_;
    while (is_digit(byte())) ++at_;
    if (at_ == first) fail(first == start ? "a value was expected" : "a digit was expected");
  };
  const bool negative = byte() == '-';
  at_ += negative;
  const uint64_t first = at_;
  digits();
  if (text_.data[first] == '0' && at_ > first + 1) fail("a number with leading zeros ends");
  const uint64_t whole = at_;
  if (byte() == '.') {
    ++at_;
    digits();
  }
  if (byte() == 'e' || byte() == 'E') {
    ++at_;
    if (byte() == '+' || byte() == '-') ++at_;
    digits();
  }
  const auto* text = reinterpret_cast<const char*>(text_.data);
  if (at_ == whole) {
    uint64_t value = 0;
    const bool fits = std::from_chars(text + first, text + whole, value).ec == std::errc();
    if (fits && value == 0) return add_number(kZero, 0, 0);
    if (fits && !negative) {
      return add_number(kUnsigned, value,
                        value >> 8 == 0    ? 1
                        : value >> 16 == 0 ? 2
                        : value >> 32 == 0 ? 4
                                           : 8);
    }
    constexpr uint64_t kSmallest = uint64_t{1} << 63;
    if (fits && value <= kSmallest) {
      const size_t width = value <= 0x80 ? 1 : value <= 0x8000 ? 2 : value <= 0x80000000 ? 4 : 8;
      return add_number(kSigned, 0 - value, width);
    }
  }
  std::optional<double> value = parse_double(text + start, text + at_);
  if (!value) {
    if (overflows({text + start, at_ - start})) fail("a number too large for 64 bits ends");
    value = negative ? -0.0 : 0.0;
  }
  return add_number(kFloat, std::bit_cast<uint64_t>(*value), 8);
}

uint32_t Writer::add_number(uint8_t kind, uint64_t bits, size_t width) {
  const auto begin = static_cast<uint32_t>(bytes_.size());
  bytes_.resize(begin + 1 + width);
  bytes_[begin] = kind;
  store_big_endian(bytes_.data() + begin + 1, bits, width);
  return add({.kind = kNumber, .length = 1 + width, .first = begin});
}

void Writer::put_entry(uint32_t kind, uint64_t length, encode::Output& output) const {
  store_big_endian(output.extend(4), kind | length, 4);
}

void Writer::write(const Node& node, encode::Output& output) const {
  if (node.kind != kContainer) return output.append(bytes_.data() + node.first, node.length);
  store_big_endian(output.extend(4), node.header, 4);
  const auto each = [&](const auto& visit) {
    for (uint32_t child = node.first; child != 0; child = nodes_[child].next) visit(nodes_[child]);
  };
  const bool is_object = (node.header & kContainerMask) == kObject;
  if (is_object) each([&](const Node& child) { put_entry(kString, child.key_length, output); });
  each([&](const Node& child) { put_entry(child.kind, child.length, output); });
  if (is_object) each([&](const Node& child) { output.append(bytes_.data() + child.key, child.key_length); });
  each([&](const Node& child) { write(child, output); });
}

}  // namespace lance::jsonb
