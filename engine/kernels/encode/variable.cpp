#include <algorithm>

#include "encode/values.hpp"

namespace lance::encode {

VariableInput::VariableInput(Bytes offsets, Bytes data, unsigned offset_bits, uint64_t offset, uint64_t count,
                             const Levels* levels)
    : offsets_(std::move(offsets)), data_(std::move(data)), offset_bits_(offset_bits), count_(count) {
  require(offset_bits == 32 || offset_bits == 64, "offsets have 32 or 64 bits");
  if (count == 0) return;
  offsets_.require_values(offset_bits, offset, count + 1);
  first_ = offsets_.data.data() + offset * (offset_bits / 8);
  uint64_t previous = at(0);
  for (uint64_t i = 0; i < count; ++i) {
    const uint64_t next = at(i + 1);
    require(next >= previous, "offsets decrease");
    longest_ = std::max(longest_, next - previous);
    previous = next;
  }
  require(previous <= data_.data.size(), "offsets point behind the data");
  total_bytes_ = previous - at(0);
  if (levels == nullptr || !levels->has_nulls()) return;

  require(levels->slots == count, "levels and values disagree about the number of slots");
  uint64_t hidden = 0;
  levels->for_each_slot([&](uint64_t slot, bool null) {
    if (null) hidden += at(slot + 1) - at(slot);
  });
  if (hidden == 0) return;
  total_bytes_ -= hidden;
  longest_ = 0;
  null_.resize(count);
  levels->for_each_slot([&](uint64_t slot, bool null) {
    null_[slot] = null;
    longest_ = std::max(longest_, length(slot));
  });
}

VariableValues::VariableValues(std::shared_ptr<const VariableInput> input, uint64_t chunk_bytes)
    : input_(std::move(input)), chunk_bytes_(chunk_bytes) {
  require(input_ != nullptr, "values to encode are missing");
}

uint64_t VariableValues::chunk_length(uint64_t start) const {
  const uint64_t width = input_->offset_bits() / 8, remaining = count() - start;
  uint64_t taken = 0, bytes = 0, best = 2;
  for (uint64_t next = 2; next <= kChunkValues / 2; next *= 2) {
    const uint64_t stop = std::min(next, remaining);
    while (taken < stop) bytes += input_->length(start + taken++);
    if (taken == remaining) {
      // Everything left fits, or is too little to be cut any further.
      if ((taken + 1) * width + bytes <= chunk_bytes_ || remaining <= 2) return remaining;
      return best;
    }
    if (next > 2 && (next + 1) * width + bytes > chunk_bytes_) return best;
    best = next;
  }
  return best;
}

void VariableValues::encode(uint64_t start, uint64_t length, unsigned, Output& out) {
  const size_t begin = out.size();
  const VariableInput& input = *input_;
  const auto write = [&](auto zero) {
    using T = decltype(zero);
    uint64_t bytes = 0;
    for (uint64_t i = 0; i < length; ++i) bytes += input.length(start + i);
    const uint64_t header = (length + 1) * sizeof(T);
    require(header + bytes <= uint64_t{1} << 31, "too many bytes for one chunk");
    uint8_t* offsets = out.extend(header + bytes);
    uint8_t* target = offsets + header;
    T end = static_cast<T>(header);
    std::memcpy(offsets, &end, sizeof(T));
    for (uint64_t i = 0; i < length; ++i) {
      const uint64_t size = input.length(start + i);
      if (!input.contiguous() && size != 0) std::memcpy(target, input[start + i].data(), size);
      target += size;
      end += static_cast<T>(size);
      std::memcpy(offsets + (i + 1) * sizeof(T), &end, sizeof(T));
    }
    if (input.contiguous() && bytes != 0) std::memcpy(offsets + header, input[start].data(), bytes);
    out.pad(begin, sizeof(T), 0x48);
  };
  if (input.offset_bits() == 32)
    write(uint32_t{0});
  else
    write(uint64_t{0});
}

}  // namespace lance::encode
