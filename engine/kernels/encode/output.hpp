#pragma once

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

namespace lance::encode {

// A growing byte buffer that does not zero what it is about to overwrite.
class Output {
 public:
  Output() = default;
  Output(Output&& other) noexcept { swap(other); }
  Output& operator=(Output&& other) noexcept {
    swap(other);
    return *this;
  }
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;
  ~Output() { std::free(data_); }

  size_t size() const { return size_; }
  uint8_t* data() { return data_; }
  const uint8_t* data() const { return data_; }

  void reserve(size_t capacity) {
    if (capacity <= capacity_) return;
    void* grown = std::realloc(data_, capacity);
    if (grown == nullptr) throw std::bad_alloc();
    data_ = static_cast<uint8_t*>(grown);
    capacity_ = capacity;
  }

  // Room for `count` more bytes, which the caller fills; valid until the next call.
  uint8_t* extend(size_t count) {
    if (size_ + count > capacity_) [[unlikely]]
      grow(size_ + count);
    uint8_t* at = data_ + size_;
    size_ += count;
    return at;
  }

  // Returns the end of what `extend` handed out.
  void shrink(size_t size) { size_ = size < size_ ? size : size_; }

  void append(const void* bytes, size_t count) {
    if (count != 0) std::memcpy(extend(count), bytes, count);
  }

  template <typename T>
  void put(T value) {
    std::memcpy(extend(sizeof(T)), &value, sizeof(T));
  }

  // Fills up to a multiple of `alignment` counted from `start`.
  void pad(size_t start, size_t alignment, uint8_t filler) {
    const size_t gap = (alignment - (size_ - start) % alignment) % alignment;
    if (gap != 0) std::memset(extend(gap), filler, gap);
  }

  // Hands the allocation over; it must be released with std::free.
  std::pair<uint8_t*, size_t> release() {
    return {std::exchange(data_, nullptr), (capacity_ = 0, std::exchange(size_, 0))};
  }

 private:
  [[gnu::noinline]] void grow(size_t needed) { reserve(needed + needed / 2 + 64); }

  void swap(Output& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    std::swap(capacity_, other.capacity_);
  }

  uint8_t* data_ = nullptr;
  size_t size_ = 0;
  size_t capacity_ = 0;
};

}  // namespace lance::encode
