#include "decode/jsonb.hpp"

#include <algorithm>
#include <bit>
#include <charconv>
#include <cmath>
#include <cstring>
#include <string>
#include <string_view>

#include "core/jsonb.hpp"

namespace lance::jsonb {
namespace {

// Decimal exponents between which numbers are written without one.
constexpr int kLeastPlain = -5, kMostPlain = 15;

void append(Bytes& text, std::string_view piece) {
  copy_bytes(text.extend(piece.size()), piece.data(), piece.size());
}

template <typename Number>
void append_integer(Bytes& text, Number value) {
  char digits[24];
  const auto end = std::to_chars(digits, digits + sizeof(digits), value).ptr;
  append(text, {digits, static_cast<size_t>(end - digits)});
}

// The shortest decimal form that reads back as the same number: 0.00001, 12.0, 1e+16.
void append_float(Bytes& text, double value) {
  if (!std::isfinite(value)) return append(text, "null");
  char scientific[32];
  const auto end =
      std::to_chars(scientific, scientific + sizeof(scientific), value, std::chars_format::scientific).ptr;
  std::string_view all(scientific, static_cast<size_t>(end - scientific));
  char written[40];
  char* to = written;
  const auto put = [&to](std::string_view piece) {
    std::memcpy(to, piece.data(), piece.size());
    to += piece.size();
  };
  if (all[0] == '-') {
    put("-");
    all.remove_prefix(1);
  }
  const size_t e = all.find('e');
  char digits[24];
  size_t count = 0;
  for (char c : all.substr(0, e)) {
    if (c != '.') digits[count++] = c;
  }
  const bool negative = all[e + 1] == '-';
  int exponent = 0;
  std::from_chars(all.data() + e + 2, all.data() + all.size(), exponent);
  if (negative) exponent = -exponent;
  const std::string_view significant(digits, count);
  if (exponent < kLeastPlain || exponent > kMostPlain) {
    put(significant.substr(0, 1));
    if (count > 1) {
      put(".");
      put(significant.substr(1));
    }
    put(negative ? "e-" : "e+");
    to = std::to_chars(to, written + sizeof(written), std::abs(exponent)).ptr;
  } else if (exponent < 0) {
    put("0.");
    put(std::string_view("00000").substr(0, static_cast<size_t>(-exponent - 1)));
    put(significant);
  } else {
    const auto whole = static_cast<size_t>(exponent) + 1;
    put(significant.substr(0, whole));
    for (size_t i = count; i < whole; ++i) put("0");
    put(".");
    put(count > whole ? significant.substr(whole) : "0");
  }
  append(text, {written, static_cast<size_t>(to - written)});
}

void append_number(Bytes& text, Span number) {
  require_valid(number.size > 0, "a number without bytes");
  const uint8_t kind = number.data[0];
  const uint64_t width = number.size - 1;
  if (kind == kZero || kind == kNan || kind == kInfinity || kind == kMinusInfinity) {
    require_valid(width == 0, "a number with more bytes than its kind has");
    return append(text, kind == kZero ? "0" : "null");
  }
  require_valid(kind == kSigned || kind == kUnsigned || kind == kFloat, "a number of an unknown kind");
  require_valid(width == 8 || (kind != kFloat && (width == 1 || width == 2 || width == 4)),
                "a number of an impossible width");
  uint64_t bits = 0;
  for (uint64_t i = 1; i <= width; ++i) bits = bits << 8 | number.data[i];
  if (kind == kUnsigned) return append_integer(text, bits);
  if (kind == kFloat) return append_float(text, std::bit_cast<double>(bits));
  const unsigned unused = 64 - 8 * static_cast<unsigned>(width);
  append_integer(text, static_cast<int64_t>(bits << unused) >> unused);
}

constexpr uint64_t kEachByte = 0x0101010101010101, kHighBits = 0x80 * kEachByte;

// Whether one of eight bytes is a control character, a quote or a backslash. A byte without high bit minus
// 0x20 has one if it was below; the others are zero after the exclusive or. Borrows only follow such bytes.
bool any_escaped(uint64_t word) {
  const uint64_t quotes = word ^ (kEachByte * '"'), backslashes = word ^ (kEachByte * '\\');
  return ((((word - kEachByte * 0x20) & ~word) | ((quotes - kEachByte) & ~quotes) |
           ((backslashes - kEachByte) & ~backslashes)) &
          kHighBits) != 0;
}

// Less than eight bytes as a word, in any order, and some of them twice.
uint64_t short_word(const uint8_t* at, uint64_t size) {
  if (size >= 4) return load<uint32_t>(at) | uint64_t{load<uint32_t>(at + size - 4)} << 32;
  if (size == 0) return kEachByte * ' ';
  return at[0] | uint64_t{at[size / 2]} << 8 | uint64_t{at[size - 1]} << 16 | (kEachByte * ' ') << 24;
}

uint8_t* put_escaped(uint8_t* to, uint8_t c) {
  *to++ = '\\';
  constexpr std::string_view kSpecial = "\b\f\n\r\t\"\\", kLetters = "bfnrt\"\\";
  if (const size_t found = kSpecial.find(static_cast<char>(c)); found != std::string_view::npos) {
    *to++ = static_cast<uint8_t>(kLetters[found]);
    return to;
  }
  constexpr std::string_view kHex = "0123456789abcdef";
  for (const char digit : {'u', '0', '0', kHex[c >> 4], kHex[c & 15]}) *to++ = static_cast<uint8_t>(digit);
  return to;
}

void append_escaped(Bytes& text, Span string) {
  constexpr uint64_t kMostPerByte = 6;
  const size_t before = text.size();
  uint8_t* const begin = text.extend(kMostPerByte * string.size + 2);
  uint8_t* to = begin;
  *to++ = '"';
  for (uint64_t i = 0; i < string.size; ++i) {
    const uint8_t c = string.data[i];
    if (c >= 0x20 && c != '"' && c != '\\') [[likely]]
      *to++ = c;
    else
      to = put_escaped(to, c);
  }
  *to++ = '"';
  text.shrink_to(before + static_cast<size_t>(to - begin));
}

// Nearly all strings are copied as they are, by words, of which the last two may overlap.
void append_string(Bytes& text, Span string) {
  const size_t before = text.size();
  const uint64_t size = string.size;
  const uint8_t* const from = string.data;
  uint8_t* const to = text.extend(size + 2);
  uint64_t seen = 0;
  bool escaped = false;
  const auto look_at = [&](uint64_t word) {
    seen |= word;
    escaped |= any_escaped(word);
  };
  if (size >= 8) {
    for (uint64_t at = 0; at < size; at += 8) {
      const uint64_t place = std::min(at, size - 8), word = load<uint64_t>(from + place);
      look_at(word);
      store(to + 1 + place, word);
    }
  } else {
    look_at(short_word(from, size));
    if (size >= 4) {
      store(to + 1, load<uint32_t>(from));
      store(to + size - 3, load<uint32_t>(from + size - 4));
    } else {
      for (uint64_t i = 0; i < size; ++i) to[1 + i] = from[i];
    }
  }
  if (escaped || (seen & kHighBits) != 0) [[unlikely]] {
    require_valid(is_utf8(string), "a string that is not UTF-8");
    if (escaped) {
      text.shrink_to(before);
      return append_escaped(text, string);
    }
  }
  to[0] = to[1 + size] = '"';
}

void append_container(Bytes& text, Span container, unsigned depth);

void append_child(Bytes& text, uint32_t kind, Span content, unsigned depth) {
  switch (kind) {
    case kString:
      return append_string(text, content);
    case kNumber:
      return append_number(text, content);
    case kContainer:
      return append_container(text, content, depth + 1);
    default:
      require_valid(kind == kNull || kind == kTrue || kind == kFalse, "a value of an unknown kind");
      require_valid(content.size == 0, "a constant with bytes");
      append(text, kind == kNull ? "null" : kind == kTrue ? "true" : "false");
  }
}

// The children of a container: entries, and what is after them.
class Children {
 public:
  Children(Span container, uint64_t entries) : entries_(container.sub(4, 4 * entries)) {
    content_ = container.from(4 + 4 * entries);
  }

  uint32_t entry(uint64_t number) const {
    const uint32_t entry = load_big_endian(entries_.sub(4 * number, 4).data);
    require_valid((entry & 0x80000000) == 0, "an entry that holds an offset");
    return entry;
  }
  // Skips what an entry holds.
  Span take(uint32_t entry) {
    const uint64_t length = entry & kLengthMask;
    const Span taken = content_.sub(0, length);
    content_ = content_.from(length);
    return taken;
  }
  bool all_taken() const { return content_.size == 0; }

 private:
  Span entries_, content_;
};

// What the header of a container says.
struct Header {
  uint32_t kind;
  uint64_t count, entries;

  Header(Span container, unsigned depth) {
    require_valid(depth <= kMaxDepth, "containers are nested too deeply");
    const uint32_t header = load_big_endian(container.sub(0, 4).data);
    kind = header & kContainerMask;
    count = header & kCountMask;
    require_valid(kind == kArray || kind == kObject || (kind == kScalar && depth == 0),
                  "a container of an unknown kind");
    // Scalars say nothing about their one child.
    entries = kind == kScalar ? 1 : kind == kObject ? 2 * count : count;
  }
};

void append_container(Bytes& text, Span container, unsigned depth) {
  const auto [kind, count, entries] = Header(container, depth);
  Children children(container, entries);
  if (kind == kScalar) {
    const uint32_t entry = children.entry(0);
    require_valid((entry & ~kLengthMask) != kContainer, "a scalar that is none");
    append_child(text, entry & ~kLengthMask, children.take(entry), depth);
  } else if (kind == kArray) {
    append(text, "[");
    for (uint64_t i = 0; i < count; ++i) {
      if (i > 0) append(text, ",");
      const uint32_t entry = children.entry(i);
      append_child(text, entry & ~kLengthMask, children.take(entry), depth);
    }
    append(text, "]");
  } else {
    // All keys are before the first value.
    Children values = children;
    for (uint64_t i = 0; i < count; ++i) values.take(children.entry(i));
    append(text, "{");
    for (uint64_t i = 0; i < count; ++i) {
      if (i > 0) append(text, ",");
      const uint32_t key = children.entry(i), value = children.entry(count + i);
      require_valid((key & ~kLengthMask) == kString, "a key that is not a string");
      append_string(text, children.take(key));
      append(text, ":");
      append_child(text, value & ~kLengthMask, values.take(value), depth);
    }
    append(text, "}");
    children = values;
  }
  require_valid(children.all_taken(), "bytes after the last child of a container");
}

std::string_view view_of(Span bytes) {
  return {reinterpret_cast<const char*>(bytes.data), bytes.size};
}

// The members of an object that are wanted, and below these only some members again.
void append_members(Bytes& text, Span container, const Members& wanted, unsigned depth) {
  const auto [kind, count, entries] = Header(container, depth);
  if (kind != kObject) return append_container(text, container, depth);
  Children keys(container, entries), values = keys;
  for (uint64_t i = 0; i < count; ++i) values.take(keys.entry(i));
  append(text, "{");
  bool first = true;
  for (uint64_t i = 0; i < count; ++i) {
    const uint32_t key = keys.entry(i), value = keys.entry(count + i);
    const Span name = keys.take(key), content = values.take(value);
    const auto found = std::find_if(wanted.begin(), wanted.end(),
                                    [&](const Member& member) { return member.name == view_of(name); });
    if (found == wanted.end()) continue;
    require_valid((key & ~kLengthMask) == kString, "a key that is not a string");
    if (!first) append(text, ",");
    first = false;
    append_string(text, name);
    append(text, ":");
    if (found->below.empty() || (value & ~kLengthMask) != kContainer)
      append_child(text, value & ~kLengthMask, content, depth);
    else
      append_members(text, content, found->below, depth + 1);
  }
  append(text, "}");
}

// Visits leaves, with the path to where it is.
class Leaves {
 public:
  explicit Leaves(const std::function<void(const Leaf&)>& visit) : visit_(visit) {}

  void of_container(Span container, unsigned depth) {
    const Header header(container, depth);
    Children children(container, header.entries), values = children;
    const bool is_object = header.kind == kObject;
    if (is_object)  // all keys are before the first value
      for (uint64_t i = 0; i < header.count; ++i) values.take(children.entry(i));
    const uint64_t count = is_object ? header.count : header.entries;
    for (uint64_t i = 0; i < count; ++i) {
      const size_t outside = path_.size();
      if (is_object) {
        const uint32_t key = children.entry(i);
        require_valid((key & ~kLengthMask) == kString, "a key that is not a string");
        if (outside) path_ += '.';
        path_ += view_of(valid_string(children.take(key)));
      }
      const uint32_t entry = children.entry(is_object ? count + i : i);
      of_child(entry & ~kLengthMask, values.take(entry), depth);
      path_.resize(outside);
    }
    require_valid(values.all_taken(), "bytes after the last child of a container");
  }

 private:
  static Span valid_string(Span string) {
    require_valid(is_utf8(string), "a string that is not UTF-8");
    return string;
  }

  void of_child(uint32_t kind, Span content, unsigned depth) {
    switch (kind) {
      case kString:
        return visit_({path_, view_of(valid_string(content)), true});
      case kNumber: {
        Bytes text;
        append(text, "number,");
        append_number(text, content);
        return visit_({path_, {reinterpret_cast<const char*>(text.data()), text.size()}, false});
      }
      case kContainer:
        return of_container(content, depth + 1);
      default:
        require_valid(kind == kNull || kind == kTrue || kind == kFalse, "a value of an unknown kind");
        require_valid(content.size == 0, "a constant with bytes");
        visit_({path_, kind == kNull ? "null,null" : kind == kTrue ? "bool,true" : "bool,false", false});
    }
  }

  const std::function<void(const Leaf&)>& visit_;
  std::string path_;
};

}  // namespace

void each_leaf(Span value, const std::function<void(const Leaf&)>& visit) {
  try {
    Leaves(visit).of_container(value, 0);
  } catch (const CorruptData& error) {
    throw Invalid(error.what());
  }
}

void append_text(Span value, const Members& wanted, Bytes& text) {
  try {
    if (wanted.empty())
      append_container(text, value, 0);
    else
      append_members(text, value, wanted, 0);
  } catch (const CorruptData& error) {
    throw Invalid(error.what());
  }
}

}  // namespace lance::jsonb
