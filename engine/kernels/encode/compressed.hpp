#pragma once

#include <memory>

#include "encode/values.hpp"

namespace lance::encode {

enum class Scheme { kLz4 = 1, kZstd = 2 };

class Codec;

// Compresses the first buffer of every chunk of another encoding (format 2.1, General).
class CompressedValues final : public MiniBlockValues {
 public:
  CompressedValues(std::shared_ptr<MiniBlockValues> inner, Scheme scheme, int level);
  uint64_t count() const override { return inner_->count(); }
  unsigned buffers() const override { return inner_->buffers(); }
  uint64_t chunk_length(uint64_t start) const override { return inner_->chunk_length(start); }
  void encode(uint64_t start, uint64_t length, unsigned buffer, Output& out) override;

 private:
  std::shared_ptr<MiniBlockValues> inner_;
  std::shared_ptr<Codec> codec_;
  Output plain_;
};

// One whole buffer compressed, as dictionaries and levels may be (format 2.1, General).
Output compress_block(const Bytes& plain, Scheme scheme, int level);

// Every value compressed on its own, as full-zip pages hold them. Returns nothing when a sample of the values
// says that less than `saving` (0 to 1) of the bytes would be saved.
std::shared_ptr<const VariableInput> compress_each(const VariableInput& input, Scheme scheme, int level,
                                                   double saving);

}  // namespace lance::encode
