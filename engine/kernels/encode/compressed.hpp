#pragma once

#include <memory>

#include "encode/values.hpp"

namespace lance::encode {

enum class Scheme { kLz4 = 1, kZstd = 2 };

class Codec;

// What an LZ4 block may be weighed by, chunk by chunk.
struct BlockCosts {
  // Whether the first buffer of a chunk is values of 16 bytes, one after the other, which may become a
  // `UniformLayout`.
  bool wide_values = false;
  double bytes_per_ns = 0;  // so many bytes are worth a nanosecond of decoding
};

// Compresses the first buffer of every chunk of another encoding (format 2.1, General).
class CompressedValues final : public MiniBlockValues {
 public:
  CompressedValues(std::shared_ptr<MiniBlockValues> inner, Scheme scheme, int level, BlockCosts costs = {});
  uint64_t count() const override { return inner_->count(); }
  unsigned buffers() const override { return inner_->buffers(); }
  uint64_t chunk_length(uint64_t start) const override { return inner_->chunk_length(start); }
  void encode(uint64_t start, uint64_t length, unsigned buffer, Output& out) override;

  // The share of the chunks so far that have a `UniformLayout`.
  double uniform_share() const;

 private:
  std::shared_ptr<MiniBlockValues> inner_;
  std::shared_ptr<Codec> codec_;
  BlockCosts costs_;
  uint64_t blocks_ = 0, uniform_blocks_ = 0;
  Output plain_;
};

// One whole buffer compressed, as dictionaries and levels may be (format 2.1, General).
Output compress_block(const Bytes& plain, Scheme scheme, int level);

// Every value compressed on its own, as full-zip pages hold them. Returns nothing when a sample of the values
// says that less than `saving` (0 to 1) of the bytes would be saved.
std::shared_ptr<const VariableInput> compress_each(const VariableInput& input, Scheme scheme, int level,
                                                   double saving);

}  // namespace lance::encode
