#pragma once

#include <cstdint>
#include <cstring>
#include <stdexcept>

#include "core/span.hpp"

// The binary form of JSON values: a header word, an entry word for every child, then what the children hold,
// all big endian. Objects have the entries of all keys, ascending by their bytes, before those of all values.
namespace lance::jsonb {

// Header: what the container is in the top three bits, how many children it has in the others.
inline constexpr uint32_t kArray = 0x80000000, kObject = 0x40000000, kScalar = 0x20000000;
inline constexpr uint32_t kContainerMask = 0xE0000000, kCountMask = 0x1FFFFFFF;

// Entry: what the child is, and how many bytes it takes after the entries.
inline constexpr uint32_t kNull = 0, kString = 0x10000000, kNumber = 0x20000000, kFalse = 0x30000000,
                          kTrue = 0x40000000, kContainer = 0x50000000;
inline constexpr uint32_t kLengthMask = 0x0FFFFFFF;

// Numbers begin with a byte that says how to read the rest.
inline constexpr uint8_t kZero = 0x00, kNan = 0x10, kInfinity = 0x20, kMinusInfinity = 0x30, kSigned = 0x40,
                         kUnsigned = 0x50, kFloat = 0x60;

// The maximum nesting of containers, as in the official implementation.
inline constexpr unsigned kMaxDepth = 1000;

// What is wrong with one of many values.
struct Invalid : std::runtime_error {
  using std::runtime_error::runtime_error;
  uint64_t row = 0;  // of those that were given
};

inline void require_valid(bool ok, const char* what) {
  if (!ok) [[unlikely]]
    throw Invalid(what);
}

inline uint32_t load_big_endian(const uint8_t* at) {
  return __builtin_bswap32(load<uint32_t>(at));
}

inline void store_big_endian(uint8_t* at, uint64_t value, size_t width) {
  for (size_t i = 0; i < width; ++i) at[i] = static_cast<uint8_t>(value >> (8 * (width - 1 - i)));
}

// Whether the bytes are UTF-8: shortest forms only, no surrogates, nothing past U+10FFFF.
inline bool is_utf8(Span text) {
  uint64_t at = 0;
  while (at < text.size) {
    if (text.size - at >= 8 && (load<uint64_t>(text.data + at) & 0x8080808080808080) == 0) {
      at += 8;
      continue;
    }
    const uint8_t lead = text.data[at];
    if (lead < 0x80) {
      ++at;
      continue;
    }
    const unsigned more = lead >= 0xF0 ? 3 : lead >= 0xE0 ? 2 : 1;
    if (lead < 0xC2 || lead > 0xF4 || text.size - at <= more) return false;
    for (unsigned i = 1; i <= more; ++i) {
      if ((text.data[at + i] & 0xC0) != 0x80) return false;
    }
    const uint8_t second = text.data[at + 1];
    if ((lead == 0xE0 && second < 0xA0) || (lead == 0xED && second >= 0xA0) ||
        (lead == 0xF0 && second < 0x90) || (lead == 0xF4 && second >= 0x90)) {
      return false;
    }
    at += more + 1;
  }
  return true;
}

}  // namespace lance::jsonb
