#include <lz4.h>
#include <zstd.h>

#include <memory>
#include <new>

#include "decode/value_decoder.hpp"

namespace lance {

namespace {

constexpr uint64_t kMaxDecompressed = uint64_t{1} << 31;

bool is_bare_zstd_frame(Span input) {
  return input.size < 8 || (load<uint32_t>(input.data) == 0xFD2FB528u && !(input.data[4] & 0x10));
}

struct FreeContext {
  void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
};

// One for each thread: making one takes longer than decompressing a chunk.
ZSTD_DCtx* zstd_context() {
  thread_local std::unique_ptr<ZSTD_DCtx, FreeContext> context(ZSTD_createDCtx());
  if (context == nullptr) throw std::bad_alloc();
  return context.get();
}

void decompress_zstd(Span input, Bytes& out) {
  if (input.size == 0) return;
  uint64_t declared;
  if (is_bare_zstd_frame(input)) {
    declared = ZSTD_getFrameContentSize(input.data, input.size);
    check(declared != ZSTD_CONTENTSIZE_ERROR && declared != ZSTD_CONTENTSIZE_UNKNOWN,
          "a zstd frame does not tell its size");
  } else {
    declared = input.at<uint64_t>(0);
    input = input.from(8);
    uint64_t content = ZSTD_getFrameContentSize(input.data, input.size);
    check(content == ZSTD_CONTENTSIZE_UNKNOWN || content == declared,
          "a zstd frame contradicts its declared size");
  }
  check(declared <= kMaxDecompressed, "a compressed buffer claims an impossible size");
  // A frame of n bytes cannot hold more than its blocks can: at most 128 KiB for every 3-byte block header.
  check(declared / (128 << 10) <= input.size / 3 + 1,
        "a compressed buffer claims more bytes than it can hold");
  size_t size = ZSTD_decompressDCtx(zstd_context(), out.extend(declared), declared, input.data, input.size);
  check(!ZSTD_isError(size) && size == declared, "a zstd frame is damaged");
}

void decompress_lz4(Span input, Bytes& out) {
  uint64_t declared = input.at<uint32_t>(0);
  input = input.from(4);
  check(declared <= kMaxDecompressed && declared <= input.size * 255 + 64 && input.size <= kMaxDecompressed,
        "a compressed buffer claims more bytes than it can hold");
  int size = LZ4_decompress_safe(reinterpret_cast<const char*>(input.data),
                                 reinterpret_cast<char*>(out.extend(declared)), static_cast<int>(input.size),
                                 static_cast<int>(declared));
  check(size >= 0 && static_cast<uint64_t>(size) == declared, "an LZ4 block is damaged");
}

// Only the first buffer of a chunk is compressed; the inner encoding reads the rest as they are.
class General : public ValueDecoder {
 public:
  General(Compression scheme, ValueDecoderPtr inner) : scheme_(scheme), inner_(std::move(inner)) {}

  size_t num_buffers() const override { return inner_->num_buffers(); }
  void check_type(const LeafType& type) const override { inner_->check_type(type); }

  void decode(const Chunk& chunk, uint64_t skip, uint64_t count, LeafValues& out,
              Scratch& scratch) const override {
    inner_->decode(expand(chunk, scratch), skip, count, out, scratch);
  }
  void gather(const Chunk& chunk, const uint32_t* positions, size_t count, LeafValues& out,
              Scratch& scratch) const override {
    inner_->gather(expand(chunk, scratch), positions, count, out, scratch);
  }

 private:
  Chunk expand(const Chunk& chunk, Scratch& scratch) const {
    scratch.decompressed.clear();
    decompress(scheme_, chunk.buffers[0], scratch.decompressed);
    Chunk expanded = chunk;
    expanded.buffers[0] = {scratch.decompressed.data(), scratch.decompressed.size()};
    return expanded;
  }

  Compression scheme_;
  ValueDecoderPtr inner_;
};

}  // namespace

void decompress(Compression scheme, Span input, Bytes& out) {
  if (scheme == Compression::kZstd)
    decompress_zstd(input, out);
  else
    decompress_lz4(input, out);
}

ValueDecoderPtr make_general(Compression scheme, ValueDecoderPtr inner) {
  return std::make_shared<General>(scheme, std::move(inner));
}

}  // namespace lance
