#pragma once

#include <cstddef>
#include <cstdint>
#include <numeric>
#include <span>
#include <stdexcept>
#include <utility>
#include <vector>

#include "search/top_k.hpp"

namespace lance {

// As compact as in files: graphs have dozens of them for each row.
struct Link {
  float distance;
  uint32_t row;
};

// The links of all nodes in one piece of memory, with room for the most that each may have.
class Links {
 public:
  // `levels`: the highest level of each row, up to which it is a node.
  Links(const std::vector<uint8_t>& levels, size_t neighbours)
      : neighbours_(neighbours), rows_(levels.size()) {
    uppers_.reserve(rows_);
    size_t uppers = 0;
    for (const uint8_t level : levels) {
      uppers_.push_back(static_cast<uint32_t>(uppers));
      uppers += level;
    }
    if (uppers > UINT32_MAX) throw std::invalid_argument("a graph with too many nodes");
    links_.resize((2 * rows_ + uppers) * neighbours_);
    counts_.resize(rows_ + uppers);
  }

  size_t most(uint32_t level) const { return neighbours_ * (level == 0 ? 2 : 1); }

  std::span<const Link> of(uint32_t level, uint32_t row) const {
    return {links_.data() + begin(level, row), counts_[node(level, row)]};
  }

  // False where there is no room for another one.
  bool add(uint32_t level, uint32_t row, Link link) {
    uint32_t& count = counts_[node(level, row)];
    if (count == most(level)) return false;
    links_[begin(level, row) + count++] = link;
    return true;
  }

  // In place of the one that was added last; there must be one.
  Link exchange_last(uint32_t level, uint32_t row, Link link) {
    return std::exchange(links_[begin(level, row) + counts_[node(level, row)] - 1], link);
  }

  // There must be room for all of `chosen`.
  void replace(uint32_t level, uint32_t row, const std::vector<Neighbour>& chosen) {
    Link* out = links_.data() + begin(level, row);
    for (const Neighbour& link : chosen) *out++ = {link.distance, static_cast<uint32_t>(link.row)};
    counts_[node(level, row)] = static_cast<uint32_t>(chosen.size());
  }

  size_t count() const { return std::accumulate(counts_.begin(), counts_.end(), size_t{0}); }
  size_t nodes() const { return counts_.size(); }

 private:
  size_t node(uint32_t level, uint32_t row) const {
    return level == 0 ? row : rows_ + uppers_[row] + level - 1;
  }
  size_t begin(uint32_t level, uint32_t row) const {
    return level == 0 ? 2 * row * neighbours_ : (rows_ + node(level, row)) * neighbours_;
  }

  size_t neighbours_, rows_;
  std::vector<uint32_t> uppers_;  // of the rows before, the number of nodes above level 0
  std::vector<Link> links_;
  std::vector<uint32_t> counts_;
};

}  // namespace lance
