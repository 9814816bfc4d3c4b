#include "core/memory.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <new>
#include <vector>

namespace lance {
namespace {

constexpr size_t kSmall = 256 << 10;   // below this malloc is as good
constexpr size_t kHugePage = 2 << 20;  // from here on blocks are mapped and aligned for huge pages

// Four size classes per power of two bound the waste to a quarter and make recycling likely.
size_t size_class(size_t bytes) {
  size_t step = std::bit_floor(bytes) / 4;
  size_t rounded = (bytes + step - 1) / step * step;
  return rounded >= kHugePage ? (rounded + kHugePage - 1) / kHugePage * kHugePage : rounded;
}

uint8_t* map_huge(size_t bytes) {
  size_t reserved = bytes + kHugePage;
  void* area = mmap(nullptr, reserved, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (area == MAP_FAILED) throw std::bad_alloc();
  auto begin = reinterpret_cast<uintptr_t>(area);
  uintptr_t aligned = (begin + kHugePage - 1) / kHugePage * kHugePage;
  if (aligned > begin) munmap(area, aligned - begin);
  size_t tail = begin + reserved - (aligned + bytes);
  if (tail > 0) munmap(reinterpret_cast<void*>(aligned + bytes), tail);
  madvise(reinterpret_cast<void*>(aligned), bytes, MADV_HUGEPAGE);
  return reinterpret_cast<uint8_t*>(aligned);
}

class Cache {
 public:
  uint8_t* take(size_t size) {
    std::lock_guard lock(mutex_);
    auto found = free_.find(size);
    if (found == free_.end() || found->second.empty()) return nullptr;
    uint8_t* data = found->second.back();
    found->second.pop_back();
    bytes_ -= size;
    return data;
  }

  bool give(uint8_t* data, size_t size) {
    std::lock_guard lock(mutex_);
    if (bytes_ + size > limit_) return false;
    free_[size].push_back(data);
    bytes_ += size;
    return true;
  }

  void set_limit(size_t bytes) {
    std::lock_guard lock(mutex_);
    limit_ = bytes;
    for (auto& [size, blocks] : free_) {
      while (bytes_ > limit_ && !blocks.empty()) {
        destroy(blocks.back(), size);
        blocks.pop_back();
        bytes_ -= size;
      }
    }
  }

  size_t bytes() {
    std::lock_guard lock(mutex_);
    return bytes_;
  }

  static void destroy(uint8_t* data, size_t size) {
    if (size >= kHugePage)
      munmap(data, size);
    else
      std::free(data);
  }

 private:
  std::mutex mutex_;
  std::map<size_t, std::vector<uint8_t*>> free_;
  size_t bytes_ = 0;
  size_t limit_ = 256 << 20;
};

Cache& cache() {
  static Cache* instance = new Cache;  // never destroyed: arrays may outlive static destruction
  return *instance;
}

}  // namespace

Allocation allocate(size_t bytes) {
  size_t wanted = bytes + kSlack;
  if (wanted < kSmall) {
    size_t rounded = (wanted + 63) / 64 * 64;
    auto* data = static_cast<uint8_t*>(std::aligned_alloc(64, rounded));
    if (!data) throw std::bad_alloc();
    return {data, rounded - kSlack};
  }
  size_t size = size_class(wanted);
  uint8_t* data = cache().take(size);
  if (!data) {
    data = size >= kHugePage ? map_huge(size) : static_cast<uint8_t*>(std::aligned_alloc(64, size));
    if (!data) throw std::bad_alloc();
  }
  return {data, size - kSlack};
}

void release(Allocation allocation) noexcept {
  if (!allocation.data) return;
  size_t size = allocation.capacity + kSlack;
  if (size < kSmall) {
    std::free(allocation.data);
  } else if (!cache().give(allocation.data, size)) {
    Cache::destroy(allocation.data, size);
  }
}

size_t cached_bytes() {
  return cache().bytes();
}
void set_cache_limit(size_t bytes) {
  cache().set_limit(bytes);
}

void Bytes::grow(size_t capacity) {
  Allocation larger = allocate(capacity);
  if (size_) std::memcpy(larger.data, memory_.data, size_);
  release(memory_);
  memory_ = larger;
}

void Bytes::grow_for(size_t bytes) {
  grow(std::max(size_ + bytes, memory_.capacity + memory_.capacity / 2));
}

}  // namespace lance
