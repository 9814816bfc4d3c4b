#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>

namespace lance {

// A number that no other object of the process has or had. The address of an object identifies it
// only as long as it lives: the next one may be in the same place.
class Identity {
 public:
  Identity() : number_(next_.fetch_add(1, std::memory_order_relaxed)) {}
  uint64_t number() const { return number_; }

 private:
  static inline std::atomic<uint64_t> next_{0};
  uint64_t number_;
};

// What was computed from objects with an identity, for the last of them; threads may share it.
template <typename Result>
class Remembered {
 public:
  using Pointer = std::shared_ptr<const Result>;

  // The result for an object, which `compute()` makes as a unique_ptr where it is not known.
  template <typename Compute>
  Pointer of(const Identity& object, Compute compute) {
    std::lock_guard lock(mutex_);
    if (const auto found = results_.find(object.number()); found != results_.end()) return found->second;
    Pointer result = compute();
    if (results_.size() >= kMost) results_.clear();
    results_.emplace(object.number(), result);
    return result;
  }

 private:
  static constexpr size_t kMost = 4096;

  std::mutex mutex_;
  std::unordered_map<uint64_t, Pointer> results_;
};

}  // namespace lance
