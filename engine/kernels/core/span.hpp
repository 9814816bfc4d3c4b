#pragma once

#include <bit>
#include <cstdint>
#include <cstring>

#include "core/errors.hpp"

namespace lance {

static_assert(std::endian::native == std::endian::little, "the format is little endian and read in place");

template <typename T>
inline T load(const void* at) {
  T value;
  std::memcpy(&value, at, sizeof(T));
  return value;
}

template <typename T>
inline void store(void* at, T value) {
  std::memcpy(at, &value, sizeof(T));
}

// memcpy and memset to zero that accept null pointers for zero bytes: empty buffers have no address.
inline void copy_bytes(void* to, const void* from, uint64_t size) {
  if (size != 0) std::memcpy(to, from, size);
}
inline void zero_bytes(void* to, uint64_t size) {
  if (size != 0) std::memset(to, 0, size);
}

inline uint64_t pad_to(uint64_t size, uint64_t alignment) {
  return (size + alignment - 1) / alignment * alignment;
}

// Borrowed bytes; every access is checked against the end.
struct Span {
  const uint8_t* data = nullptr;
  uint64_t size = 0;

  Span sub(uint64_t offset, uint64_t length) const {
    check(offset <= size && length <= size - offset, "a buffer ends before the data it should hold");
    return {data + offset, length};
  }
  Span from(uint64_t offset) const {
    check(offset <= size, "a buffer ends before the data it should hold");
    return {data + offset, size - offset};
  }
  template <typename T>
  T at(uint64_t offset) const {
    check(offset <= size && sizeof(T) <= size - offset, "a buffer ends before the data it should hold");
    return load<T>(data + offset);
  }
};

}  // namespace lance
