#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace lance::encode {

__extension__ using Int128 = __int128;
__extension__ using Uint128 = unsigned __int128;

// A two's complement integer of 256 bits, as decimals hold it.
struct Int256 {
  std::array<uint64_t, 4> words;  // least significant first

  friend bool operator<(const Int256& left, const Int256& right) {
    if (left.words[3] != right.words[3])
      return static_cast<int64_t>(left.words[3]) < static_cast<int64_t>(right.words[3]);
    for (int word = 2; word >= 0; --word)
      if (left.words[word] != right.words[word]) return left.words[word] < right.words[word];
    return false;
  }
};

// Half-precision numbers have no arithmetic here; their bits order like integers once negative ones are
// flipped.
struct Float16 {
  uint16_t bits;

  friend bool operator<(Float16 left, Float16 right) { return left.key() < right.key(); }
  int key() const { return (bits & 0x8000) != 0 ? -static_cast<int>(bits & 0x7fff) : bits; }
};

inline bool is_nan(Float16 value) {
  return (value.bits & 0x7fff) > 0x7c00;
}
template <typename T>
inline bool is_nan(T value) {
  if constexpr (std::is_floating_point_v<T>)
    return value != value;
  else
    return false;
}

template <typename T>
inline constexpr bool kHasNan = std::is_floating_point_v<T> || std::is_same_v<T, Float16>;

// Order with NaN as the largest value, equal to itself.
template <typename T>
inline bool ordered_less(const T& left, const T& right) {
  if constexpr (kHasNan<T>) {
    if (is_nan(left)) return false;
    if (is_nan(right)) return true;
  }
  return left < right;
}

}  // namespace lance::encode
