// Included once per instruction set; the compiler vectorises the same plain loops for each.
//
// A row of a block is contiguous both packed (word w of all lanes) and unpacked (lanes are consecutive
// values), so the inner loop over lanes is a straight vector loop whose shift is the same for every lane.

#include "decode/unpack.hpp"

namespace lance {
namespace {

template <typename T>
void unpack(const uint8_t* packed, unsigned width, T* __restrict out) {
  constexpr unsigned bits = sizeof(T) * 8;
  constexpr unsigned lanes = kBlockValues / bits;
  typedef T Unaligned __attribute__((aligned(1), may_alias));
  if (width == 0) {
    std::memset(out, 0, kBlockValues * sizeof(T));
    return;
  }
  const T mask = width == bits ? static_cast<T>(~T{0}) : static_cast<T>((T{1} << width) - 1);
  const auto* __restrict words = reinterpret_cast<const Unaligned*>(packed);
  for (unsigned row = 0; row < bits; ++row) {
    T* __restrict target = out + kRowGroupOrder[row / 8] * 16 + (row % 8) * 128;
    const unsigned bit = row * width;
    const auto* __restrict low = words + bit / bits * lanes;
    const unsigned shift = bit % bits;
    if (shift + width <= bits) {
      for (unsigned lane = 0; lane < lanes; ++lane) target[lane] = static_cast<T>(low[lane] >> shift) & mask;
    } else {
      const auto* __restrict high = low + lanes;
      const unsigned up = bits - shift;
      for (unsigned lane = 0; lane < lanes; ++lane)
        target[lane] = (static_cast<T>(low[lane] >> shift) | static_cast<T>(high[lane] << up)) & mask;
    }
  }
}

}  // namespace

extern const UnpackTable LANCE_UNPACK_TABLE;
const UnpackTable LANCE_UNPACK_TABLE = {LANCE_UNPACK_LEVEL, unpack<uint8_t>, unpack<uint16_t>,
                                        unpack<uint32_t>, unpack<uint64_t>};

}  // namespace lance
