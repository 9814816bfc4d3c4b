#include "encode/compressed.hpp"

// Declares LZ4_compress_fast_extState_fastReset, which does not clear its table for every small buffer.
#define LZ4_STATIC_LINKING_ONLY
#include <lz4.h>
#include <zstd.h>

#include <algorithm>

#include "encode/uniform_block.hpp"
#include "encode/variable_builder.hpp"

namespace lance::encode {
namespace {

// A sample of whole values, spread over the page.
constexpr uint64_t kSampleValues = 16;

// What a decoder needs for a sequence of LZ4, whose place it learns from the one before, and for a value of a
// `UniformLayout`.
constexpr double kSequenceNs = 4.5, kUniformNs = 0.7;

// Puts values of 16 bytes in place of the LZ4 block from `begin` on, which holds them, where that pays.
bool replace_by_uniform(std::span<const uint8_t> plain, double bytes_per_ns, size_t begin, Output& out) {
  const unsigned literals = uniform_literals(plain);
  if (literals == 0 || literals > UniformLayout::kMostLiterals) return false;
  const uint64_t count = plain.size() / UniformLayout::kValue, size = UniformLayout{literals}.size(count);
  const std::span<const uint8_t> block{out.data() + begin, out.size() - begin};
  const auto cost = [&](uint64_t bytes, double ns) { return static_cast<double>(bytes) + bytes_per_ns * ns; };
  if (cost(size, kUniformNs * static_cast<double>(count)) >
      cost(block.size(), kSequenceNs * static_cast<double>(count_sequences(block))))
    return false;
  out.shrink(begin);
  write_uniform(plain, literals, out);
  return true;
}

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

CompressedValues::CompressedValues(std::shared_ptr<MiniBlockValues> inner, Scheme scheme, int level,
                                   BlockCosts costs)
    : inner_(std::move(inner)), codec_(std::make_shared<Codec>(scheme, level)), costs_(costs) {
  require(inner_ != nullptr, "an encoding to compress is missing");
  costs_.wide_values &= scheme == Scheme::kLz4;
}

double CompressedValues::uniform_share() const {
  return blocks_ ? static_cast<double>(uniform_blocks_) / static_cast<double>(blocks_) : 0;
}

void CompressedValues::encode(uint64_t start, uint64_t length, unsigned buffer, Output& out) {
  if (buffer != 0) {
    inner_->encode(start, length, buffer, out);
    return;
  }
  plain_.shrink(0);
  inner_->encode(start, length, buffer, plain_);
  const size_t begin = out.size() + sizeof(uint32_t);  // after the length
  const std::span<const uint8_t> plain{plain_.data(), plain_.size()};
  codec_->compress(plain, out);
  ++blocks_;
  uniform_blocks_ += costs_.wide_values && replace_by_uniform(plain, costs_.bytes_per_ns, begin, out);
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
