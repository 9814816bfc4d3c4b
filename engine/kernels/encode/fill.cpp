#include "encode/fill.hpp"

namespace lance::encode {
namespace {

template <size_t kWidth>
void fill(const uint8_t* source, size_t width, const Levels& levels, uint8_t* target) {
  const size_t size = kWidth != 0 ? kWidth : width;  // a constant where it is known: copies become moves
  const uint8_t* last = nullptr;
  uint64_t leading = 0;
  levels.for_each_slot([&](uint64_t slot, bool null) {
    if (!null) last = source + slot * size;
    if (last == nullptr)
      ++leading;
    else
      std::memcpy(target + slot * size, last, size);
  });
  // Nulls before the first value repeat that value; a page of nulls only is all zero.
  for (uint64_t slot = leading; slot-- > 0;) {
    if (last == nullptr)
      std::memset(target + slot * size, 0, size);
    else
      std::memcpy(target + slot * size, target + leading * size, size);
  }
}

}  // namespace

Output fill_nulls(const Bytes& values, uint64_t bits, uint64_t offset, const Levels& levels) {
  require(bits % 8 == 0, "values have whole bytes");
  values.require_values(bits, offset, levels.slots);
  const size_t width = bits / 8;
  const uint8_t* source = values.data.data() + offset * width;
  Output out;
  uint8_t* target = out.extend(levels.slots * width);
  switch (width) {
    case 1:
      fill<1>(source, width, levels, target);
      break;
    case 2:
      fill<2>(source, width, levels, target);
      break;
    case 4:
      fill<4>(source, width, levels, target);
      break;
    case 8:
      fill<8>(source, width, levels, target);
      break;
    case 16:
      fill<16>(source, width, levels, target);
      break;
    default:
      fill<0>(source, width, levels, target);
  }
  return out;
}

}  // namespace lance::encode
