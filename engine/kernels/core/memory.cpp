#include "core/memory.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <new>
#include <set>
#include <unordered_map>
#include <vector>

#include "core/span.hpp"

namespace lance {
namespace {

#ifdef LANCE_SANITIZE
constexpr size_t kSmall = SIZE_MAX;  // the sanitizer only watches what malloc returns
#else
constexpr size_t kSmall = 64 << 10;  // below this malloc is as good
#endif
constexpr size_t kHugePage = 2 << 20;  // from here on a block has its own mapping
constexpr size_t kRegion = 8 << 20;    // smaller blocks are carved from regions of this size and alignment

// Four size classes per power of two bound the waste to a quarter and make recycling likely.
size_t size_class(size_t bytes) {
  size_t step = std::bit_floor(bytes) / 4;
  size_t rounded = (bytes + step - 1) / step * step;
  return rounded >= kHugePage ? (rounded + kHugePage - 1) / kHugePage * kHugePage : rounded;
}

// Aligned memory that is faulted in by huge pages where the system allows it.
uint8_t* map_huge(size_t bytes, size_t alignment) {
  size_t reserved = bytes + alignment;
  void* area = mmap(nullptr, reserved, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (area == MAP_FAILED) throw std::bad_alloc();
  auto begin = reinterpret_cast<uintptr_t>(area);
  uintptr_t aligned = (begin + alignment - 1) / alignment * alignment;
  if (aligned > begin) munmap(area, aligned - begin);
  size_t tail = begin + reserved - (aligned + bytes);
  if (tail > 0) munmap(reinterpret_cast<void*>(aligned + bytes), tail);
#ifdef MADV_HUGEPAGE  // Linux
  madvise(reinterpret_cast<void*>(aligned), bytes, MADV_HUGEPAGE);
#endif
  return reinterpret_cast<uint8_t*>(aligned);
}

// Equal blocks in one mapping.
struct Region {
  uint8_t* base;
  size_t block;
  std::vector<uint8_t*> free;
  size_t blocks() const { return kRegion / block; }
};

// The most that was recently in use: in the current span of time or the one before.
class RecentPeak {
 public:
  void note(size_t used) {
    auto now = std::chrono::steady_clock::now();
    if (now - begin_ >= kSpan) {
      before_ = now - begin_ < 2 * kSpan ? current_ : 0;
      current_ = used;
      begin_ = now;
    }
    current_ = std::max(current_, used);
  }
  size_t bytes() const { return std::max(current_, before_); }
  void forget(size_t used) {
    current_ = used;
    before_ = 0;
  }

 private:
  static constexpr std::chrono::seconds kSpan{20};
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  size_t current_ = 0, before_ = 0;
};

// Memory that was used before and waits to be used again.
//
// What is in use and what waits are together bounded by the most that was recently in use, or by `limit` if
// that is more: so a stream that has little in flight keeps little, and a program that holds large results
// finds the memory of the last one for the next. Never more than `most` bytes wait; what waits beyond `limit`
// is the system's to take back when it runs short.
class Pool {
 public:
  uint8_t* take(size_t size) {
    std::lock_guard lock(mutex_);
    uint8_t* data = size < kHugePage ? take_block(size) : take_mapping(size);
    used_ += size;
    peak_.note(used_);
    trim();
    return data;
  }

  void give(uint8_t* data, size_t size) {
    std::lock_guard lock(mutex_);
    used_ -= size;
    waiting_ += size;
    peak_.note(used_);
    if (size < kHugePage) {
      give_block(data);
    } else {
      if (waiting_ > limit_ && waiting_ <= allowed()) offer_to_system(data, size);
      mappings_[size].push_back(data);
    }
    trim();
  }

  void set_limit(size_t limit, size_t most) {
    std::lock_guard lock(mutex_);
    limit_ = limit;
    most_ = std::max(limit, most);
    peak_.forget(used_);
    trim();
  }

  size_t waiting() {
    std::lock_guard lock(mutex_);
    return waiting_;
  }

 private:
  // How many bytes may wait.
  size_t allowed() const {
    size_t unused = std::max({peak_.bytes(), limit_, used_}) - used_;
    return std::min(unused, most_);
  }

  static void offer_to_system(uint8_t* data, size_t size) {
#ifdef MADV_FREE
    madvise(data, size, MADV_FREE);
#endif
  }

  // Returns what waits beyond the bound: large blocks first, of which few calls free much.
  void trim() {
    const size_t bound = allowed();
    if (waiting_ <= bound) return;
    for (auto sized = mappings_.rbegin(); sized != mappings_.rend(); ++sized) {
      auto& [size, blocks] = *sized;
      for (; waiting_ > bound && !blocks.empty(); blocks.pop_back()) {
        munmap(blocks.back(), size);
        waiting_ -= size;
      }
    }
    while (waiting_ > bound && !idle_.empty()) drop(*idle_.begin());
  }

  uint8_t* take_mapping(size_t size) {
    auto found = mappings_.find(size);
    if (found == mappings_.end() || found->second.empty()) return map_huge(size, kHugePage);
    uint8_t* data = found->second.back();
    found->second.pop_back();
    waiting_ -= size;
    return data;
  }

  uint8_t* take_block(size_t size) {
    auto& regions = usable_[size];
    if (regions.empty()) regions.push_back(add_region(size));
    Region* region = regions.back();
    idle_.erase(region);
    uint8_t* data = region->free.back();
    region->free.pop_back();
    if (region->free.empty()) regions.pop_back();
    waiting_ -= size;
    return data;
  }

  Region* add_region(size_t size) {
    uint8_t* base = map_huge(kRegion, kRegion);
    Region* region = &regions_.emplace(base, Region{base, size, {}}).first->second;
    // Handed out from the start of the region on: its huge pages fill one after the other.
    for (size_t i = region->blocks(); i-- > 0;) region->free.push_back(base + i * size);
    waiting_ += region->blocks() * size;
    return region;
  }

  void give_block(uint8_t* data) {
    auto base = reinterpret_cast<uint8_t*>(reinterpret_cast<uintptr_t>(data) / kRegion * kRegion);
    Region& region = regions_.at(base);
    if (region.free.empty()) usable_[region.block].push_back(&region);
    region.free.push_back(data);
    if (region.free.size() < region.blocks()) return;
    if (waiting_ > limit_) offer_to_system(base, kRegion);
    idle_.insert(&region);
  }

  void drop(Region* region) {
    std::erase(usable_[region->block], region);
    idle_.erase(region);
    waiting_ -= region->blocks() * region->block;
    uint8_t* base = region->base;
    regions_.erase(base);
    munmap(base, kRegion);
  }

  std::mutex mutex_;
  std::map<size_t, std::vector<uint8_t*>> mappings_;
  std::unordered_map<uint8_t*, Region> regions_;
  std::map<size_t, std::vector<Region*>> usable_;  // with a free block, by block size
  std::set<Region*> idle_;                         // no block in use
  RecentPeak peak_;
  size_t used_ = 0, waiting_ = 0;
  size_t limit_ = 96 << 20, most_ = 1 << 30;
};

Pool& pool() {
  static Pool* instance = new Pool;  // never destroyed: arrays may outlive static destruction
  return *instance;
}

}  // namespace

Allocation allocate(size_t bytes) {
  size_t wanted = bytes + kSlack;
  size_t rounded = (wanted + 63) / 64 * 64;
  if (rounded < kSmall) {  // as `release` will judge it
    auto* data = static_cast<uint8_t*>(std::aligned_alloc(64, rounded));
    if (!data) throw std::bad_alloc();
    return {data, rounded - kSlack};
  }
  size_t size = size_class(wanted);
  return {pool().take(size), size - kSlack};
}

void release(Allocation allocation) noexcept {
  if (!allocation.data) return;
  size_t size = allocation.capacity + kSlack;
  if (size < kSmall)
    std::free(allocation.data);
  else
    pool().give(allocation.data, size);
}

size_t cached_bytes() {
  return pool().waiting();
}
void set_cache_limit(size_t bytes, size_t most) {
  pool().set_limit(bytes, most);
}

void Bytes::grow(size_t capacity) {
  Allocation larger = allocate(capacity);
  copy_bytes(larger.data, memory_.data, size_);
  release(memory_);
  memory_ = larger;
}

void Bytes::grow_for(size_t bytes) {
  grow(std::max(size_ + bytes, memory_.capacity + memory_.capacity / 2));
}

}  // namespace lance
