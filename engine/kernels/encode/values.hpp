#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "encode/input.hpp"
#include "encode/levels.hpp"
#include "encode/output.hpp"

namespace lance::encode {

// Sizes that the format's own writers keep to: 4096 values and 8 KiB of fixed-width, 4 KiB of variable-width
// data.
inline constexpr uint64_t kChunkValues = 4096;
inline constexpr uint64_t kFixedChunkBytes = 8186;
inline constexpr uint64_t kVariableChunkBytes = 4096;

// The values of one mini-block page, encoded chunk by chunk (format 2.1, compressive encodings in mini-block
// context).
class MiniBlockValues {
 public:
  virtual ~MiniBlockValues() = default;

  virtual uint64_t count() const = 0;
  virtual unsigned buffers() const = 0;
  // How many values the chunk that begins at `start` takes: all that remain, or a power of two >= 2.
  virtual uint64_t chunk_length(uint64_t start) const = 0;
  // Appends buffer number `buffer` of the chunk [start, start + length). Buffers are requested in order.
  virtual void encode(uint64_t start, uint64_t length, unsigned buffer, Output& out) = 0;
};

// `limit` values unless fewer remain.
inline uint64_t remaining_or(uint64_t count, uint64_t start, uint64_t limit) {
  return count - start <= limit ? count - start : limit;
}

// Bytes of all values when encoded, estimated from `chunks` chunks spread over them; exact when these are
// all.
uint64_t estimated_bytes(MiniBlockValues& values, uint64_t chunks);

// Fixed-width values as they are; `bits` is 1 or a multiple of 8. Chunks stay below `chunk_bytes`.
class FlatValues final : public MiniBlockValues {
 public:
  FlatValues(Bytes bytes, uint64_t bits, uint64_t offset, uint64_t count,
             uint64_t chunk_bytes = kFixedChunkBytes);
  uint64_t count() const override { return count_; }
  unsigned buffers() const override { return 1; }
  uint64_t chunk_length(uint64_t start) const override { return remaining_or(count_, start, chunk_); }
  void encode(uint64_t start, uint64_t length, unsigned buffer, Output& out) override;

 private:
  Bytes bytes_;
  uint64_t bits_, offset_, count_, chunk_;
};

// Integers of 8, 16, 32 or 64 bits in blocks of 1024, each with its own width in front.
class BitpackedValues final : public MiniBlockValues {
 public:
  BitpackedValues(Bytes bytes, uint64_t bits, uint64_t offset, uint64_t count);
  uint64_t count() const override { return count_; }
  unsigned buffers() const override { return 1; }
  uint64_t chunk_length(uint64_t start) const override { return remaining_or(count_, start, 1024); }
  void encode(uint64_t start, uint64_t length, unsigned buffer, Output& out) override;

 private:
  Bytes bytes_;
  uint64_t bits_, offset_, count_;
};

// Runs of equal values of 8, 16, 32 or 64 bits: buffer 0 the values, buffer 1 the lengths (1..255).
class RunLengthValues final : public MiniBlockValues {
 public:
  RunLengthValues(Bytes bytes, uint64_t bits, uint64_t offset, uint64_t count);
  uint64_t count() const override { return count_; }
  unsigned buffers() const override { return 2; }
  uint64_t chunk_length(uint64_t start) const override;
  void encode(uint64_t start, uint64_t length, unsigned buffer, Output& out) override;

 private:
  Bytes bytes_;
  uint64_t bits_, offset_, count_;
  Output lengths_;
};

// Strings and binaries as Arrow holds them. Null slots count as empty, whatever the offsets say.
class VariableInput {
 public:
  VariableInput(Bytes offsets, Bytes data, unsigned offset_bits, uint64_t offset, uint64_t count,
                const Levels* levels);

  unsigned offset_bits() const { return offset_bits_; }
  uint64_t count() const { return count_; }
  uint64_t total_bytes() const { return total_bytes_; }
  uint64_t longest() const { return longest_; }
  std::span<const uint8_t> operator[](uint64_t index) const {
    if (!null_.empty() && null_[index]) return {};
    const uint64_t from = at(index);
    return {data_.data.data() + from, static_cast<size_t>(at(index + 1) - from)};
  }
  uint64_t length(uint64_t index) const {
    return !null_.empty() && null_[index] ? 0 : at(index + 1) - at(index);
  }
  // End of the buffer that the values are in: up to here bytes may be read.
  const uint8_t* data_end() const { return data_.data.data() + data_.data.size(); }
  // True when the bytes of consecutive values are one after the other without gaps.
  bool contiguous() const { return null_.empty(); }

 private:
  uint64_t at(uint64_t index) const {
    return offset_bits_ == 32 ? static_cast<uint64_t>(load<int32_t>(first_ + index * 4))
                              : static_cast<uint64_t>(load<int64_t>(first_ + index * 8));
  }

  Bytes offsets_, data_;
  unsigned offset_bits_;
  const uint8_t* first_ = nullptr;
  uint64_t count_;
  std::vector<uint8_t> null_;  // empty when no null slot owns bytes
  uint64_t total_bytes_ = 0, longest_ = 0;
};

// Offsets and bytes in one buffer; offsets count from its start. Chunks of more than two values keep to
// `chunk_bytes`.
class VariableValues final : public MiniBlockValues {
 public:
  explicit VariableValues(std::shared_ptr<const VariableInput> input,
                          uint64_t chunk_bytes = kVariableChunkBytes);
  uint64_t count() const override { return input_->count(); }
  unsigned buffers() const override { return 1; }
  uint64_t chunk_length(uint64_t start) const override;
  void encode(uint64_t start, uint64_t length, unsigned buffer, Output& out) override;

 private:
  std::shared_ptr<const VariableInput> input_;
  uint64_t chunk_bytes_;
};

// One layer of fixed-size lists: its dimension and, where items are null, their validity.
struct FixedSizeListLayer {
  uint64_t dimension;
  Bitmap validity;
};

// Rows of fixed-size lists, outermost layer first: one bitmap per layer with null items, then the flat items.
class FixedSizeListValues final : public MiniBlockValues {
 public:
  FixedSizeListValues(std::vector<FixedSizeListLayer> layers, Bytes items, uint64_t item_bits,
                      uint64_t offset, uint64_t count);
  uint64_t count() const override { return count_; }
  unsigned buffers() const override;
  uint64_t chunk_length(uint64_t start) const override { return remaining_or(count_, start, chunk_); }
  void encode(uint64_t start, uint64_t length, unsigned buffer, Output& out) override;

 private:
  std::vector<FixedSizeListLayer> layers_;
  Bytes items_;
  uint64_t item_bits_, offset_, count_, items_per_row_ = 1, chunk_;
};

// Copies `count` bits from bit `from` of `source` to the start of `target`; the rest of the last byte is
// zero.
void copy_bits(const uint8_t* source, uint64_t from, uint64_t count, uint8_t* target);

}  // namespace lance::encode
