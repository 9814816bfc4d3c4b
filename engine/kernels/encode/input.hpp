#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <memory>
#include <span>
#include <stdexcept>
#include <utility>

namespace lance::encode {

static_assert(std::endian::native == std::endian::little,
              "values are copied to the file as they are in memory");

// The caller handed in buffers that contradict their stated lengths, or values no page can hold.
struct InvalidInput : std::invalid_argument {
  using std::invalid_argument::invalid_argument;
};

inline void require(bool ok, const char* what) {
  if (!ok) [[unlikely]]
    throw InvalidInput(what);
}

// A read-only byte range together with whatever keeps it alive.
struct Bytes {
  std::span<const uint8_t> data;
  std::shared_ptr<const void> owner;

  // Checks that values [offset, offset + count) of `bits` each are inside the buffer.
  void require_values(uint64_t bits, uint64_t offset, uint64_t count) const {
    constexpr uint64_t kLimit = uint64_t{1} << 48;  // keeps the product below 2^128
    require(bits >= 1 && bits <= kLimit && offset <= kLimit && count <= kLimit, "value range out of bounds");
    const unsigned __int128 end = static_cast<unsigned __int128>(offset + count) * bits;
    require((end + 7) / 8 <= data.size(), "buffer is shorter than its values");
  }
};

template <typename T>
inline T load(const uint8_t* at) {
  T value;
  std::memcpy(&value, at, sizeof(T));
  return value;
}

// An Arrow validity bitmap (LSB first, 1 = valid) starting at bit `offset`; no buffer means "all valid".
class Bitmap {
 public:
  Bitmap() = default;
  Bitmap(Bytes bytes, uint64_t offset, uint64_t count) : bytes_(std::move(bytes)), offset_(offset) {
    if (!bytes_.data.empty()) bytes_.require_values(1, offset, count);
  }

  bool present() const { return !bytes_.data.empty(); }
  bool operator[](uint64_t index) const {
    const uint64_t bit = offset_ + index;
    return (bytes_.data[bit >> 3] >> (bit & 7)) & 1;
  }
  const uint8_t* data() const { return bytes_.data.data(); }
  uint64_t offset() const { return offset_; }

 private:
  Bytes bytes_;
  uint64_t offset_ = 0;
};

}  // namespace lance::encode
