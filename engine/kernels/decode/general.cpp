#include <lz4.h>
#include <zstd.h>

#include <algorithm>
#include <memory>
#include <new>

#include "core/uniform_layout.hpp"
#include "decode/value_decoder.hpp"

namespace lance {

namespace {

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

uint64_t declared_zstd_bytes(Span input) {
  if (!is_bare_zstd_frame(input)) return input.at<uint64_t>(0);
  const uint64_t declared = ZSTD_getFrameContentSize(input.data, input.size);
  check(declared != ZSTD_CONTENTSIZE_ERROR && declared != ZSTD_CONTENTSIZE_UNKNOWN,
        "a zstd frame does not tell its size");
  return declared;
}

void decompress_zstd(Span input, Bytes& out, uint64_t most) {
  if (input.size == 0) return;
  const uint64_t declared = declared_zstd_bytes(input);
  if (!is_bare_zstd_frame(input)) {
    input = input.from(8);
    uint64_t content = ZSTD_getFrameContentSize(input.data, input.size);
    check(content == ZSTD_CONTENTSIZE_UNKNOWN || content == declared,
          "a zstd frame contradicts its declared size");
  }
  check(declared <= most, "a compressed buffer claims more bytes than its values can have");
  // A frame of n bytes cannot hold more than its blocks can: at most 128 KiB for every 3-byte block header.
  check(declared / (128 << 10) <= input.size / 3 + 1,
        "a compressed buffer claims more bytes than it can hold");
  size_t size = ZSTD_decompressDCtx(zstd_context(), out.extend(declared), declared, input.data, input.size);
  check(!ZSTD_isError(size) && size == declared, "a zstd frame is damaged");
}

void decompress_lz4(Span input, Bytes& out, uint64_t most, uint64_t wanted) {
  uint64_t declared = input.at<uint32_t>(0);
  input = input.from(4);
  check(declared <= most, "a compressed buffer claims more bytes than its values can have");
  check(input.size <= kMostDecompressed && declared <= input.size * 255 + 64,
        "a compressed buffer claims more bytes than it can hold");
  wanted = std::min(wanted, declared);
  auto* from = reinterpret_cast<const char*>(input.data);
  uint8_t* bytes = out.extend(wanted);
  // Of a match at distance 0 the library leaves what was in memory before, if it expands a part only.
  if (wanted != declared) zero_bytes(bytes, wanted);
  auto* to = reinterpret_cast<char*>(bytes);
  int size = wanted == declared
                 ? LZ4_decompress_safe(from, to, static_cast<int>(input.size), static_cast<int>(declared))
                 : LZ4_decompress_safe_partial(from, to, static_cast<int>(input.size),
                                               static_cast<int>(wanted), static_cast<int>(wanted));
  check(size >= 0 && static_cast<uint64_t>(size) == wanted, "an LZ4 block is damaged");
}

// Only the first buffer of a chunk is compressed; the inner encoding reads the rest as they are.
class General : public ValueDecoder {
 public:
  General(Compression scheme, ValueDecoderPtr inner) : scheme_(scheme), inner_(std::move(inner)) {}

  size_t num_buffers() const override { return inner_->num_buffers(); }
  uint64_t most_bytes(uint64_t) const override { return kMostDecompressed; }
  void check_type(const LeafType& type) const override { inner_->check_type(type); }

  void decode(const Chunk& chunk, uint64_t skip, uint64_t count, LeafValues& out,
              Scratch& scratch) const override {
    if (!count) return;
    inner_->decode(expand(chunk, scratch, skip + count - 1), skip, count, out, scratch);
  }
  bool test(const Chunk& chunk, uint64_t skip, uint64_t count, const ValueTest& test, Bits& out,
            Scratch& scratch) const override {
    return test.strings() &&
           inner_->test(expand(chunk, scratch, skip + count), skip, count, test, out, scratch);
  }
  void gather(const Chunk& chunk, const uint32_t* positions, size_t count, LeafValues& out,
              Scratch& scratch) const override {
    inner_->gather(expand(chunk, scratch, positions[count - 1]), positions, count, out, scratch);
  }

 private:
  // The chunk as far as its values up to position `last` need it.
  Chunk expand(const Chunk& chunk, Scratch& scratch, uint64_t last) const {
    uint64_t wanted = last + 1 < chunk.num_values ? inner_->prefix_bytes(chunk, last) : kMostDecompressed;
    scratch.decompressed.clear();
    decompress(scheme_, chunk.buffers[0], scratch.decompressed, inner_->most_bytes(chunk.num_values), wanted);
    Chunk expanded = chunk;
    expanded.buffers[0] = {scratch.decompressed.data(), scratch.decompressed.size()};
    return expanded;
  }

  Compression scheme_;
  ValueDecoderPtr inner_;
};

}  // namespace

uint64_t declared_bytes(Compression scheme, Span input) {
  if (scheme != Compression::kZstd) return input.at<uint32_t>(0);
  return input.size == 0 ? 0 : declared_zstd_bytes(input);
}

void decompress(Compression scheme, Span input, Bytes& out, uint64_t most, uint64_t wanted) {
  most = std::min(most, kMostDecompressed);
  if (scheme == Compression::kZstd)
    decompress_zstd(input, out, most);
  else
    decompress_lz4(input, out, most, wanted);
}

ValueDecoderPtr make_general(Compression scheme, ValueDecoderPtr inner) {
  const bool uniform = scheme == Compression::kLz4 && inner->plain_bytes() == UniformLayout::kValue;
  auto general = std::make_shared<General>(scheme, std::move(inner));
  return uniform ? make_uniform(std::move(general)) : general;
}

}  // namespace lance
