#include <algorithm>

#include "decode/by_width.hpp"
#include "decode/value_decoder.hpp"

namespace lance {
namespace {

// A place between two runs.
struct Place {
  uint64_t run = 0;
  uint64_t position = 0;  // of the first value after the runs before `run`
};

// Moves to the place after the run that holds a position.
void pass(const Span& lengths, uint64_t runs, uint64_t position, Place& at) {
  for (; at.run + 8 <= runs; at.run += 8) {  // eight runs at once: the sums of neighbours, then of these
    auto word = load<uint64_t>(lengths.data + at.run);
    uint64_t pairs = (word & 0x00FF00FF00FF00FFu) + (word >> 8 & 0x00FF00FF00FF00FFu);
    uint64_t sum = pairs * 0x0001000100010001u >> 48;
    if (at.position + sum > position) break;
    at.position += sum;
  }
  while (at.position <= position) {
    check(at.run < runs, "run lengths add up to fewer values than the chunk holds");
    at.position += lengths.data[at.run++];
  }
}

// Values and their run lengths (1 to 255) in two buffers; longer runs repeat the value (format 2.1, RLE).
template <typename T>
class Rle : public ValueDecoder {
 public:
  size_t num_buffers() const override { return 2; }

  uint64_t most_bytes(uint64_t num_values) const override { return padded(num_values * sizeof(T)); }

  void check_type(const LeafType& type) const override {
    check(type.dims.empty() && type.kind == LeafKind::kFixed && type.width == sizeof(T),
          "the width of run-length coded values does not fit the type of the column");
  }

  void decode(const Chunk& chunk, uint64_t skip, uint64_t count, LeafValues& out, Scratch&) const override {
    const Span& values = chunk.buffers[0];
    const Span& lengths = chunk.buffers[1];
    uint64_t runs = std::min(values.size / sizeof(T), lengths.size);
    auto* target = reinterpret_cast<T*>(out.extend_fixed(count));
    uint64_t position = 0;
    uint64_t end = skip + count;
    uint64_t written = 0;
    for (uint64_t run = 0; run < runs && position < end; ++run) {
      uint64_t length = lengths.data[run];
      uint64_t from = std::max(position, skip);
      uint64_t to = std::min(position + length, end);  // some old writers let runs reach past the chunk
      position += length;
      if (from >= to) continue;
      T value = load<T>(values.data + run * sizeof(T));
      T* at = target + written;
      written += to - from;
      // Most runs are short: one fixed-size store, past their end if need be, beats a loop over the exact
      // length.
      constexpr uint64_t kAtOnce = kSlack / sizeof(T);
      for (uint64_t i = 0; i < kAtOnce; ++i) at[i] = value;
      if (to - from > kAtOnce) std::fill_n(at + kAtOnce, to - from - kAtOnce, value);
    }
    check(written == count, "run lengths add up to fewer values than the chunk holds");
  }

  uint64_t prefix_bytes(const Chunk& chunk, uint64_t last) const override {
    Place place;
    pass(chunk.buffers[1], chunk.buffers[1].size, last, place);
    return place.run * sizeof(T);
  }

  void gather(const Chunk& chunk, const uint32_t* positions, size_t count, LeafValues& out,
              Scratch&) const override {
    const Span& values = chunk.buffers[0];
    const Span& lengths = chunk.buffers[1];
    uint64_t runs = std::min(values.size / sizeof(T), lengths.size);
    auto* target = reinterpret_cast<T*>(out.extend_fixed(count));
    Place place;
    for (size_t i = 0; i < count; ++i) {
      pass(lengths, runs, positions[i], place);
      target[i] = load<T>(values.data + (place.run - 1) * sizeof(T));
    }
  }
};

}  // namespace

ValueDecoderPtr make_rle(uint64_t bits_per_value) {
  return for_bits<const ValueDecoder, Rle>(bits_per_value, kRunWidths);
}

}  // namespace lance
