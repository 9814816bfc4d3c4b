// Included once per instruction set; the compiler vectorises the same plain loops for each.

#include "decode/range_test.hpp"

namespace lance {
namespace {

// One comparison: what is below the range wraps around to the top.
template <typename T>
void in_range(const uint8_t* values, T low, T span, uint8_t* __restrict out) {
  typedef T Unaligned __attribute__((aligned(1), may_alias));
  const auto* __restrict at = reinterpret_cast<const Unaligned*>(values);
  for (unsigned i = 0; i < kTestedAtOnce; ++i) out[i] = static_cast<T>(at[i] - low) <= span;
}

template <typename T>
void is_any(const uint8_t* values, const T* wanted, unsigned count, uint8_t* __restrict out) {
  typedef T Unaligned __attribute__((aligned(1), may_alias));
  const auto* __restrict at = reinterpret_cast<const Unaligned*>(values);
  T found[kTestedAtOnce];
  for (unsigned i = 0; i < kTestedAtOnce; ++i) found[i] = at[i] == wanted[0];
  for (unsigned k = 1; k < count; ++k)
    for (unsigned i = 0; i < kTestedAtOnce; ++i) found[i] |= static_cast<T>(at[i] == wanted[k]);
  for (unsigned i = 0; i < kTestedAtOnce; ++i) out[i] = static_cast<uint8_t>(found[i]);
}

// Gives up at the first part with a hit, so that dense hits cost little.
constexpr unsigned kPart = 128;

template <typename T>
bool holds_range(const uint8_t* values, T low, T span) {
  typedef T Unaligned __attribute__((aligned(1), may_alias));
  const auto* at = reinterpret_cast<const Unaligned*>(values);
  for (unsigned part = 0; part < kSearchedAtOnce; part += kPart) {
    T found = 0;
    for (unsigned i = 0; i < kPart; ++i) found |= static_cast<T>(static_cast<T>(at[part + i] - low) <= span);
    if (found) return true;
  }
  return false;
}

// In halves of 32 bits, of which twice as many are shifted at once.
template <typename T>
bool is_marked(const uint8_t* codes, uint64_t marks, T size, uint8_t* __restrict out) {
  typedef T Unaligned __attribute__((aligned(1), may_alias));
  const auto* __restrict at = reinterpret_cast<const Unaligned*>(codes);
  const auto low = static_cast<uint32_t>(marks), high = static_cast<uint32_t>(marks >> 32);
  T most = 0;
  for (unsigned i = 0; i < kTestedAtOnce; ++i) most = at[i] > most ? at[i] : most;
  uint32_t found[kTestedAtOnce];
  for (unsigned i = 0; i < kTestedAtOnce; ++i) {
    const auto code = static_cast<uint32_t>(at[i]);
    found[i] = (code & 32 ? high : low) >> (code & 31) & 1;
  }
  for (unsigned i = 0; i < kTestedAtOnce; ++i) out[i] = static_cast<uint8_t>(found[i]);
  return most < size;
}

}  // namespace

extern const RangeTests LANCE_RANGE_TESTS;
const RangeTests LANCE_RANGE_TESTS = {
    {in_range<uint8_t>, in_range<uint16_t>, in_range<uint32_t>, in_range<uint64_t>},
    {is_any<uint8_t>, is_any<uint16_t>, is_any<uint32_t>, is_any<uint64_t>},
    {holds_range<uint8_t>, holds_range<uint16_t>, holds_range<uint32_t>, holds_range<uint64_t>},
    {is_marked<uint8_t>, is_marked<uint16_t>, is_marked<uint32_t>, is_marked<uint64_t>}};

}  // namespace lance
