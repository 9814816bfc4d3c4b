// Bit-packing, run lengths and byte streams: fixed-width values of 8, 16, 32 or 64 bits.
#include "encode/integers.hpp"

#include <algorithm>
#include <limits>

#include "encode/bitpacking.hpp"
#include "encode/values.hpp"

namespace lance::encode {
namespace {

constexpr uint64_t kLongestRun = 255;

// Calls `visit(value, length)` for each run of at most 255 equal values.
template <typename T, typename Visit>
void for_each_run(const T* values, uint64_t count, Visit visit) {
  for (uint64_t i = 0; i < count;) {
    const uint64_t limit = std::min(count, i + kLongestRun);
    uint64_t j = i + 1;
    while (j < limit && values[j] == values[i]) ++j;
    visit(values[i], j - i);
    i = j;
  }
}

template <typename T>
uint64_t count_runs(const T* values, uint64_t count) {
  uint64_t runs = 0;
  for_each_run(values, count, [&runs](T, uint64_t) { ++runs; });
  return runs;
}

}  // namespace

IntegerStatistics integer_statistics(const Bytes& bytes, uint64_t bits, uint64_t offset, uint64_t count) {
  bytes.require_values(bits, offset, count);
  return with_integer(bits, [&](auto zero) {
    using T = decltype(zero);
    const T* values = typed<T>(bytes, offset);
    IntegerStatistics statistics;
    uint64_t changes = 0;
    for (uint64_t start = 0; start < count; start += kPackedBlock) {
      const uint64_t length = std::min<uint64_t>(kPackedBlock, count - start);
      const T* block = values + start;
      statistics.packed_bytes += sizeof(T) + packed_width(block, length) * kPackedBlock / 8;
      T block_changes = 0;  // at most 1024, but counted in T so that the loop vectorises; 8 bits need care
      if constexpr (sizeof(T) == 1) {
        for (uint64_t i = 1; i < length; ++i) changes += block[i] != block[i - 1];
      } else {
        for (uint64_t i = 1; i < length; ++i) block_changes += block[i] != block[i - 1];
        changes += block_changes;
      }
    }
    const uint64_t raw = count * sizeof(T);
    if ((changes + 1) * (sizeof(T) + 1) >= raw) {
      statistics.run_bytes = std::numeric_limits<uint64_t>::max();
    } else {
      uint64_t runs = 0;
      for (uint64_t start = 0; start < count; start += kChunkValues)
        runs += count_runs(values + start, std::min(kChunkValues, count - start));
      statistics.run_bytes = runs * (sizeof(T) + 1);
    }
    return statistics;
  });
}

BitpackedValues::BitpackedValues(Bytes bytes, uint64_t bits, uint64_t offset, uint64_t count)
    : bytes_(std::move(bytes)), bits_(bits), offset_(offset), count_(count) {
  bytes_.require_values(bits, offset, count);
  with_integer(bits, [&](auto zero) { typed<decltype(zero)>(bytes_, offset); });
}

void BitpackedValues::encode(uint64_t start, uint64_t length, unsigned, Output& out) {
  with_integer(bits_, [&](auto zero) {
    using T = decltype(zero);
    const T* values = typed<T>(bytes_, offset_) + start;
    T padded[kPackedBlock];
    if (length < kPackedBlock) {
      std::copy_n(values, length, padded);
      std::fill_n(padded + length, kPackedBlock - length, T{0});
      values = padded;
    }
    T words[kPackedBlock];
    const unsigned width = packed_width(values, kPackedBlock);
    pack_block(values, width, words);
    out.put(static_cast<T>(width));
    out.append(words, width * kPackedBlock / 8);
  });
}

RunLengthValues::RunLengthValues(Bytes bytes, uint64_t bits, uint64_t offset, uint64_t count)
    : bytes_(std::move(bytes)), bits_(bits), offset_(offset), count_(count) {
  bytes_.require_values(bits, offset, count);
  with_integer(bits, [&](auto zero) { typed<decltype(zero)>(bytes_, offset); });
}

uint64_t RunLengthValues::chunk_length(uint64_t start) const {
  return with_integer(bits_, [&](auto zero) {
    using T = decltype(zero);
    const T* values = typed<T>(bytes_, offset_) + start;
    uint64_t length = std::min(kChunkValues, count_ - start);
    if (count_runs(values, length) * (sizeof(T) + 1) <= kFixedChunkBytes) return length;
    for (length = kChunkValues / 2; length > 2; length /= 2)
      if (length < count_ - start && count_runs(values, length) * (sizeof(T) + 1) <= kFixedChunkBytes) break;
    return length;
  });
}

void RunLengthValues::encode(uint64_t start, uint64_t length, unsigned buffer, Output& out) {
  if (buffer == 1) {
    out.append(lengths_.data(), lengths_.size());
    return;
  }
  lengths_.shrink(0);
  with_integer(bits_, [&](auto zero) {
    using T = decltype(zero);
    for_each_run(typed<T>(bytes_, offset_) + start, length, [&](T value, uint64_t run) {
      out.put(value);
      lengths_.put(static_cast<uint8_t>(run));
    });
  });
}

}  // namespace lance::encode
