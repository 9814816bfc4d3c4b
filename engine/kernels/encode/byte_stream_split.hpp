#pragma once

#include <utility>

#include "encode/values.hpp"

namespace lance::encode {

// The j-th bytes of all values are stored together; 32 or 64 bits.
class ByteStreamSplitValues final : public MiniBlockValues {
 public:
  ByteStreamSplitValues(Bytes bytes, uint64_t bits, uint64_t offset, uint64_t count)
      : bytes_(std::move(bytes)), bits_(bits), offset_(offset), count_(count) {
    require(bits == 32 || bits == 64, "byte streams take values of 32 or 64 bits");
    bytes_.require_values(bits, offset, count);
  }
  uint64_t count() const override { return count_; }
  unsigned buffers() const override { return 1; }
  uint64_t chunk_length(uint64_t start) const override {
    return remaining_or(count_, start, bits_ == 32 ? 1024 : 512);
  }
  void encode(uint64_t start, uint64_t length, unsigned, Output& out) override {
    const uint64_t width = bits_ / 8;
    const uint8_t* values = bytes_.data.data() + (offset_ + start) * width;
    uint8_t* target = out.extend(length * width);
    for (uint64_t byte = 0; byte < width; ++byte)
      for (uint64_t i = 0; i < length; ++i) *target++ = values[i * width + byte];
  }

 private:
  Bytes bytes_;
  uint64_t bits_, offset_, count_;
};

}  // namespace lance::encode
