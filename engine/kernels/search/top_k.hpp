#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <vector>

namespace lance {

struct Neighbour {
  float distance;
  uint64_t row;

  // Ties go to the smaller row id, so that results do not depend on the order of arrival.
  friend bool operator<(const Neighbour& left, const Neighbour& right) {
    return left.distance < right.distance || (left.distance == right.distance && left.row < right.row);
  }
};

// The k nearest rows of one query, of those with lower <= distance < upper; NaN means no bound. NaN
// is not a distance either.
class TopK {
 public:
  TopK(size_t k, float lower, float upper) : k_(k), lower_(lower), upper_(upper) {}

  // Whether a row at this distance could still belong to the result; false for NaN.
  bool admits(float distance) const { return distance <= worst_ && !(distance < lower_); }

  void push(float distance, uint64_t row) {
    if (!admits(distance) || distance >= upper_) return;
    const Neighbour found{distance, row};
    if (rows_.size() < k_) {
      rows_.push_back(found);
      std::push_heap(rows_.begin(), rows_.end());
    } else {
      if (k_ == 0 || !(found < rows_.front())) return;
      std::pop_heap(rows_.begin(), rows_.end());
      rows_.back() = found;
      std::push_heap(rows_.begin(), rows_.end());
    }
    if (rows_.size() == k_) worst_ = rows_.front().distance;
  }

  void merge(const TopK& other) {
    for (const Neighbour& found : other.rows_) push(found.distance, found.row);
  }

  size_t size() const { return rows_.size(); }
  size_t k() const { return k_; }

  // Nearest first.
  std::vector<Neighbour> sorted() const {
    std::vector<Neighbour> rows = rows_;
    std::sort(rows.begin(), rows.end());
    return rows;
  }

 private:
  size_t k_;
  float lower_, upper_;
  float worst_ = std::numeric_limits<float>::infinity();
  std::vector<Neighbour> rows_;  // a heap, the farthest in front
};

}  // namespace lance
