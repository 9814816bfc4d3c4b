#pragma once

#include <cstdint>

namespace lance {

// Where everything is in an LZ4 block of values of 16 bytes of which each, but for the first and the last, is
// one sequence: its low bytes as literals, and a match with the others of the value before. All sequences
// are equally long, so that the place of a value follows from its position. To LZ4 it is a block like others.
//
//   token, length, first value | literals, distance, token | ... | literals, distance, token |
//   length, last value
//
// The first token counts the literals of the first two values; the last one is that of the last value.
struct UniformLayout {
  static constexpr uint64_t kValue = 16;
  // With more than the low half of a value in literals there is little to gain.
  static constexpr unsigned kMostLiterals = 8;
  static constexpr uint64_t kLeastValues = 3;
  static constexpr uint64_t kFirst = 2, kRecords = kFirst + kValue;
  static constexpr uint8_t kLongLiterals = 0xF0;  // a token whose literal count continues in the next byte
  static constexpr uint8_t kLastLength = kValue - 15;

  unsigned literals;  // 1 to kMostLiterals

  constexpr uint64_t stride() const { return literals + 3; }
  constexpr uint8_t match() const { return static_cast<uint8_t>(kValue - 4 - literals); }
  constexpr uint8_t first_token() const { return kLongLiterals | match(); }
  constexpr uint8_t first_length() const { return static_cast<uint8_t>(kValue + literals - 15); }
  constexpr uint8_t token() const { return static_cast<uint8_t>(literals << 4 | match()); }
  constexpr uint64_t last(uint64_t count) const { return kRecords + (count - 2) * stride() + 1; }
  constexpr uint64_t size(uint64_t count) const { return last(count) + kValue; }
};

}  // namespace lance
