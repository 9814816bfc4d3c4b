#include "encode/compressed.hpp"

#include <lz4.h>
#include <zstd.h>

namespace lance::encode {

struct CompressedValues::Codec {
  Codec(Scheme which, int wanted) : scheme(which), level(wanted) {
    if (scheme != Scheme::kZstd) return;
    context = ZSTD_createCCtx();
    if (context == nullptr) throw std::bad_alloc();
  }
  Codec(const Codec&) = delete;
  Codec& operator=(const Codec&) = delete;
  ~Codec() { ZSTD_freeCCtx(context); }

  Scheme scheme;
  int level;
  ZSTD_CCtx* context = nullptr;
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
  require(plain_.size() <= LZ4_MAX_INPUT_SIZE, "a chunk is too long to compress");
  if (codec_->scheme == Scheme::kLz4) {
    out.put(static_cast<uint32_t>(plain_.size()));
    const int room = LZ4_compressBound(static_cast<int>(plain_.size()));
    uint8_t* target = out.extend(static_cast<size_t>(room));
    const int written =
        LZ4_compress_default(reinterpret_cast<const char*>(plain_.data()), reinterpret_cast<char*>(target),
                             static_cast<int>(plain_.size()), room);
    require(written > 0 || plain_.size() == 0, "LZ4 compression failed");
    out.shrink(out.size() - static_cast<size_t>(room - written));
  } else {
    out.put(static_cast<uint64_t>(plain_.size()));
    const size_t room = ZSTD_compressBound(plain_.size());
    uint8_t* target = out.extend(room);
    const size_t written =
        ZSTD_compressCCtx(codec_->context, target, room, plain_.data(), plain_.size(), codec_->level);
    require(!ZSTD_isError(written), "zstd compression failed");
    out.shrink(out.size() - (room - written));
  }
}

}  // namespace lance::encode
