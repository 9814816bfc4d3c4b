#pragma once

#include <algorithm>
#include <cstdint>
#include <span>
#include <stdexcept>
#include <vector>

namespace lance {

// Row ids that may be found, as ascending disjoint ranges [first, end).
class RowSet {
 public:
  RowSet(std::span<const uint64_t> firsts, std::span<const uint64_t> ends)
      : firsts_(firsts.begin(), firsts.end()), ends_(ends.begin(), ends.end()) {
    if (firsts_.size() != ends_.size()) throw std::invalid_argument("ranges without an end");
    for (size_t i = 0; i < firsts_.size(); ++i) {
      if (ends_[i] < firsts_[i] || (i && firsts_[i] < ends_[i - 1]))
        throw std::invalid_argument("ranges are not in ascending order");
      count_ += ends_[i] - firsts_[i];
    }
  }

  uint64_t count() const { return count_; }

  bool contains(uint64_t row) const {
    const auto after = std::upper_bound(firsts_.begin(), firsts_.end(), row);
    return after != firsts_.begin() && row < ends_[static_cast<size_t>(after - firsts_.begin()) - 1];
  }

 private:
  std::vector<uint64_t> firsts_, ends_;
  uint64_t count_ = 0;
};

}  // namespace lance
