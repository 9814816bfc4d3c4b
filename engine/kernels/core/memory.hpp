#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

namespace lance {

// Every allocation can be written this many bytes past its size, so that kernels may store whole words.
inline constexpr size_t kSlack = 64;

struct Allocation {
  uint8_t* data = nullptr;
  size_t capacity = 0;
};

// Output memory. Large blocks are recycled and advised to use huge pages: faulting in fresh 4 KiB pages costs
// as much as decoding into them.
Allocation allocate(size_t bytes);
void release(Allocation allocation) noexcept;
// Bytes that wait to be used again: at most `bytes`, or the difference to the most that was recently in use,
// up to `most`.
size_t cached_bytes();
void set_cache_limit(size_t bytes, size_t most);

// A growable, 64-byte aligned byte buffer.
class Bytes {
 public:
  Bytes() = default;
  Bytes(Bytes&& other) noexcept
      : memory_(std::exchange(other.memory_, {})), size_(std::exchange(other.size_, 0)) {}
  Bytes& operator=(Bytes&& other) noexcept {
    std::swap(memory_, other.memory_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~Bytes() { release(memory_); }

  uint8_t* data() { return memory_.data; }
  const uint8_t* data() const { return memory_.data; }
  size_t size() const { return size_; }
  size_t capacity() const { return memory_.capacity; }

  void reserve(size_t capacity) {
    if (capacity > memory_.capacity) [[unlikely]]
      grow(capacity);
  }
  // Makes room for `bytes` more and returns where they go.
  uint8_t* extend(size_t bytes) {
    if (size_ + bytes > memory_.capacity) [[unlikely]]
      grow_for(bytes);
    uint8_t* at = memory_.data + size_;
    size_ += bytes;
    return at;
  }
  // Returns what `extend` reserved beyond what was needed.
  void shrink_to(size_t size) { size_ = size; }
  void clear() { size_ = 0; }

 private:
  void grow(size_t capacity);
  void grow_for(size_t bytes);

  Allocation memory_;
  size_t size_ = 0;
};

}  // namespace lance
