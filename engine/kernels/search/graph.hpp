#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "search/storage.hpp"
#include "search/top_k.hpp"

namespace lance {

// A navigable graph over the rows of a partition. Checked when made: every number in it is that of a row.
class Graph {
 public:
  // Level l has the nodes ids[level_ends[l - 1] .. level_ends[l]), node i the neighbours
  // neighbours[offsets[i] .. offsets[i + 1]). Level 0 has every row at its own place.
  Graph(size_t rows, uint32_t entry, std::span<const uint64_t> level_ends, std::span<const uint32_t> ids,
        std::span<const int32_t> offsets, std::span<const uint32_t> neighbours);

  size_t rows() const { return rows_; }

  // Calls `visit(row, distance)` for every row whose distance was looked at on level 0. The search goes on as
  // long as there is a row nearer than the farthest of the `ef` nearest.
  template <typename Visit>
  void search(const Scorer& scorer, size_t ef, Visit visit) const;

 private:
  std::span<const uint32_t> neighbours(size_t level, uint32_t row) const;

  size_t rows_;
  uint32_t entry_;
  std::vector<uint64_t> level_ends_;
  std::vector<int32_t> offsets_;
  std::vector<uint32_t> neighbours_;
  std::vector<std::unordered_map<uint32_t, uint32_t>> upper_;  // per level from 1 on: row -> node
};

template <typename Visit>
void Graph::search(const Scorer& scorer, size_t ef, Visit visit) const {
  if (rows_ == 0) return;
  std::vector<uint32_t> next;
  std::vector<float> found;
  uint32_t at = entry_;
  float nearest = scorer.one(at);
  for (size_t level = level_ends_.size() - 1; level > 0; --level) {
    for (bool moved = true; moved;) {
      moved = false;
      const std::span<const uint32_t> linked = neighbours(level, at);
      found.resize(linked.size());
      scorer.listed(linked, found.data());
      for (size_t i = 0; i < linked.size(); ++i) {
        if (found[i] < nearest) {
          nearest = found[i];
          at = linked[i];
          moved = true;
        }
      }
    }
  }
  std::vector<bool> seen(rows_);
  std::vector<Neighbour> open{{nearest, at}}, best{{nearest, at}};
  const auto farther = [](const Neighbour& left, const Neighbour& right) { return right < left; };
  seen[at] = true;
  visit(at, nearest);
  while (!open.empty()) {
    std::pop_heap(open.begin(), open.end(), farther);
    const Neighbour current = open.back();
    open.pop_back();
    if (best.size() >= ef && current.distance > best.front().distance) break;
    next.clear();
    for (uint32_t row : neighbours(0, static_cast<uint32_t>(current.row))) {
      if (seen[row]) continue;
      seen[row] = true;
      next.push_back(row);
    }
    found.resize(next.size());
    scorer.listed(next, found.data());
    for (size_t i = 0; i < next.size(); ++i) {
      visit(next[i], found[i]);
      if (best.size() >= ef && !(found[i] < best.front().distance)) continue;
      open.push_back({found[i], next[i]});
      std::push_heap(open.begin(), open.end(), farther);
      best.push_back({found[i], next[i]});
      std::push_heap(best.begin(), best.end());
      if (best.size() > ef) {
        std::pop_heap(best.begin(), best.end());
        best.pop_back();
      }
    }
  }
}

}  // namespace lance
