#include "decode/uniform_block.hpp"

#include <algorithm>

namespace lance {
namespace {

using Layout = UniformLayout;

// Calls `act` with the number of literals as a constant: strides and masks are then constants, too.
template <typename Act>
auto with_literals(unsigned literals, Act act) {
  switch (literals) {
    case 1:
      return act.template operator()<1>();
    case 2:
      return act.template operator()<2>();
    case 3:
      return act.template operator()<3>();
    case 4:
      return act.template operator()<4>();
    case 5:
      return act.template operator()<5>();
    case 6:
      return act.template operator()<6>();
    case 7:
      return act.template operator()<7>();
    default:
      return act.template operator()<8>();
  }
}

constexpr uint64_t mask_of(unsigned literals) {
  return literals == 8 ? ~uint64_t{0} : (uint64_t{1} << 8 * literals) - 1;
}

// The sign of a value of 64 bits as the upper 64 bits of one of 128.
uint64_t extension(uint64_t low) {
  return static_cast<uint64_t>(static_cast<int64_t>(low) >> 63);
}

}  // namespace

UniformBlock::UniformBlock(Span input) {
  if (input.size < 4) return;
  const uint64_t bytes = load<uint32_t>(input.data);
  const Span block = input.from(4);
  const uint64_t count = bytes / Layout::kValue;
  if (bytes % Layout::kValue || count < Layout::kLeastValues || block.size < Layout::kRecords) return;
  const unsigned literals = block.data[1] - (Layout::kValue - 15);
  if (literals < 1 || literals > Layout::kMostLiterals) return;
  const Layout layout{literals};
  if (block.size != layout.size(count) || block.data[0] != layout.first_token()) return;
  const uint8_t* last = block.data + layout.last(count);
  if (load<uint16_t>(last - 4) != Layout::kValue || last[-2] != Layout::kLongLiterals ||
      last[-1] != Layout::kLastLength)
    return;
  block_ = block;
  layout_ = layout;
  count_ = count;
  low_ = load<uint64_t>(block.data + Layout::kFirst) & ~mask_of(literals);
  high_ = load<uint64_t>(block.data + Layout::kFirst + 8);
}

bool UniformBlock::uniform(uint64_t end) const {
  // Each record ends with the token of the next value, except for that of the last but one.
  const uint64_t records = std::min(end - 1, count_ - 3);
  return with_literals(layout_.literals, [&]<unsigned Literals>() {
    constexpr Layout layout{Literals};
    const uint32_t expected = Layout::kValue | uint32_t{layout.token()} << 16;
    const uint8_t* at = block_.data + Layout::kRecords + Literals;
    uint32_t wrong = 0;
#pragma GCC unroll 8
    for (uint64_t i = 0; i < records; ++i) wrong |= load<uint32_t>(at + i * layout.stride()) ^ expected;
    return !(wrong & 0xFFFFFF);
  });
}

// Calls `run` for the records of the values in [begin, end): with the number of their literals as a constant,
// where the first one is, and how many they are.
template <typename Run>
void UniformBlock::visit_records(uint64_t begin, uint64_t end, Run run) const {
  begin = std::max<uint64_t>(begin, 1);
  end = std::min(end, count_ - 1);
  if (begin >= end) return;
  const uint8_t* at = block_.data + Layout::kRecords + (begin - 1) * layout_.stride();
  with_literals(layout_.literals,
                [&]<unsigned Literals>() { run.template operator()<Literals>(at, end - begin); });
}

void UniformBlock::decode(uint64_t begin, uint64_t end, uint8_t* out) const {
  if (begin == 0 && end > 0) {
    copy_bytes(out, block_.data + Layout::kFirst, Layout::kValue);
    out += Layout::kValue;
  }
  visit_records(begin, end, [&]<unsigned Literals>(const uint8_t* at, uint64_t records) {
    constexpr uint64_t stride = Layout{Literals}.stride();
    const uint64_t low = low_, high = high_;
#pragma GCC unroll 8
    for (uint64_t i = 0; i < records; ++i) {
      store(out + 16 * i, (load<uint64_t>(at + i * stride) & mask_of(Literals)) | low);
      store(out + 16 * i + 8, high);
    }
    out += Layout::kValue * records;
  });
  if (end == count_ && begin < end) copy_bytes(out, block_.data + layout_.last(count_), Layout::kValue);
}

bool UniformBlock::narrow(uint64_t begin, uint64_t end, uint8_t* out) const {
  uint64_t excess = 0;
  const auto copy = [&](const uint8_t* value) {
    const uint64_t low = load<uint64_t>(value);
    excess |= load<uint64_t>(value + 8) ^ extension(low);
    store(out, low);
    out += 8;
  };
  if (begin == 0 && end > 0) copy(block_.data + Layout::kFirst);
  visit_records(begin, end, [&]<unsigned Literals>(const uint8_t* at, uint64_t records) {
    constexpr uint64_t stride = Layout{Literals}.stride();
    const uint64_t low = low_, high = high_;
    if constexpr (Literals < 8) excess |= high ^ extension(low);
#pragma GCC unroll 8
    for (uint64_t i = 0; i < records; ++i) {
      const uint64_t value = (load<uint64_t>(at + i * stride) & mask_of(Literals)) | low;
      if constexpr (Literals == 8) excess |= high ^ extension(value);
      store(out + 8 * i, value);
    }
    out += 8 * records;
  });
  if (end == count_ && begin < end) copy(block_.data + layout_.last(count_));
  return excess == 0;
}

void UniformBlock::value(uint64_t position, uint8_t* out) const {
  decode(position, position + 1, out);
}

}  // namespace lance
