#include "encode/uniform_block.hpp"

#include <bit>

#include "core/span.hpp"

namespace lance::encode {
namespace {

using Layout = UniformLayout;

}  // namespace

unsigned uniform_literals(std::span<const uint8_t> plain) {
  const uint64_t count = plain.size() / Layout::kValue;
  if (plain.size() % Layout::kValue || count < Layout::kLeastValues) return 0;
  const uint64_t low = load<uint64_t>(plain.data()), high = load<uint64_t>(plain.data() + 8);
  uint64_t low_differs = 1, high_differs = 0;  // a value has one literal at least
  for (uint64_t i = 1; i + 1 < count; ++i) {
    low_differs |= low ^ load<uint64_t>(plain.data() + 16 * i);
    high_differs |= high ^ load<uint64_t>(plain.data() + 16 * i + 8);
  }
  if (high_differs) return 0;
  return static_cast<unsigned>(std::bit_width(low_differs) + 7) / 8;
}

void write_uniform(std::span<const uint8_t> plain, unsigned literals, Output& out) {
  const Layout layout{literals};
  const uint64_t count = plain.size() / Layout::kValue;
  out.put(layout.first_token());
  out.put(layout.first_length());
  out.append(plain.data(), Layout::kValue);
  for (uint64_t i = 1; i + 1 < count; ++i) {
    out.append(plain.data() + i * Layout::kValue, literals);
    out.put(static_cast<uint16_t>(Layout::kValue));
    out.put(i + 2 < count ? layout.token() : Layout::kLongLiterals);
  }
  out.put(Layout::kLastLength);
  out.append(plain.data() + (count - 1) * Layout::kValue, Layout::kValue);
}

uint64_t count_sequences(std::span<const uint8_t> block) {
  const uint8_t* at = block.data();
  const uint8_t* end = at + block.size();
  const auto length = [&](uint64_t count) {
    if (count != 15) return count;
    uint8_t byte;
    do count += byte = *at++;
    while (byte == 255);
    return count;
  };
  uint64_t sequences = 0;
  while (at < end) {
    const uint8_t token = *at++;
    const uint64_t literals = length(token >> 4);
    at += literals;
    ++sequences;
    if (at == end) break;
    at += 2;
    length(token & 15);
  }
  return sequences;
}

}  // namespace lance::encode
