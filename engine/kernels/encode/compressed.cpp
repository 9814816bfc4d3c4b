#include "encode/compressed.hpp"

// Declares LZ4_compress_fast_extState_fastReset, which does not clear its table for every small buffer.
#define LZ4_STATIC_LINKING_ONLY
#include <lz4.h>
#include <zstd.h>

#include <algorithm>

#include "encode/variable_builder.hpp"

namespace lance::encode {
namespace {

// A sample of whole values, spread over the page.
constexpr uint64_t kSampleValues = 16;

}  // namespace

// Writes one compressed buffer after its length: 32 bits for LZ4, 64 for zstd (format 2.1, General).
class Codec {
 public:
  Codec(Scheme scheme, int level) : scheme_(scheme), level_(level) {
    if (scheme == Scheme::kZstd) {
      context_ = ZSTD_createCCtx();
      if (context_ == nullptr) throw std::bad_alloc();
    } else {
      lz4_ = std::make_unique<LZ4_stream_t>();
      LZ4_initStream(lz4_.get(), sizeof(LZ4_stream_t));
    }
  }
  Codec(const Codec&) = delete;
  Codec& operator=(const Codec&) = delete;
  ~Codec() { ZSTD_freeCCtx(context_); }

  void compress(std::span<const uint8_t> plain, Output& out) {
    require(plain.size() <= LZ4_MAX_INPUT_SIZE, "a buffer is too long to compress");
    size_t room, written;
    if (scheme_ == Scheme::kLz4) {
      out.put(static_cast<uint32_t>(plain.size()));
      room = static_cast<size_t>(LZ4_compressBound(static_cast<int>(plain.size())));
      uint8_t* target = out.extend(room);
      const int result = LZ4_compress_fast_extState_fastReset(
          lz4_.get(), reinterpret_cast<const char*>(plain.data()), reinterpret_cast<char*>(target),
          static_cast<int>(plain.size()), static_cast<int>(room), 1);
      require(result > 0, "LZ4 compression failed");
      written = static_cast<size_t>(result);
    } else {
      out.put(static_cast<uint64_t>(plain.size()));
      room = ZSTD_compressBound(plain.size());
      uint8_t* target = out.extend(room);
      written = ZSTD_compressCCtx(context_, target, room, plain.data(), plain.size(), level_);
      require(!ZSTD_isError(written), "zstd compression failed");
    }
    out.shrink(out.size() - (room - written));
  }

 private:
  Scheme scheme_;
  int level_;
  ZSTD_CCtx* context_ = nullptr;
  std::unique_ptr<LZ4_stream_t> lz4_;
};

CompressedValues::CompressedValues(std::shared_ptr<MiniBlockValues> inner, Scheme scheme, int level)
    : inner_(std::move(inner)), codec_(std::make_shared<Codec>(scheme, level)) {
  require(inner_ != nullptr, "an encoding to compress is missing");
}

void CompressedValues::encode(uint64_t start, uint64_t length, unsigned buffer, Output& out) {
  if (buffer != 0) {
    inner_->encode(start, length, buffer, out);
    return;
  }
  plain_.shrink(0);
  inner_->encode(start, length, buffer, plain_);
  codec_->compress({plain_.data(), plain_.size()}, out);
}

Output compress_block(const Bytes& plain, Scheme scheme, int level) {
  Output out;
  Codec(scheme, level).compress(plain.data, out);
  return out;
}

std::shared_ptr<const VariableInput> compress_each(const VariableInput& input, Scheme scheme, int level,
                                                   double saving) {
  Codec codec(scheme, level);
  Output tried;
  uint64_t plain = 0;
  const uint64_t step = std::max<uint64_t>(1, input.count() / kSampleValues);
  for (uint64_t i = 0; i < input.count(); i += step) {
    plain += input.length(i);
    codec.compress(input[i], tried);
  }
  if (static_cast<double>(tried.size()) > static_cast<double>(plain) * (1 - saving)) return nullptr;
  VariableBuilder compressed(input.offset_bits(), input.count());
  for (uint64_t i = 0; i < input.count(); ++i) {
    codec.compress(input[i], compressed.bytes());
    compressed.end_value();
  }
  return compressed.finish();
}

}  // namespace lance::encode
