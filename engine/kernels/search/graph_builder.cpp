#include "search/graph_builder.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <random>
#include <stdexcept>

#include "search/top_k.hpp"

namespace lance {
namespace {

class Builder {
 public:
  Builder(Metric metric, size_t dim, std::span<const float> vectors, const GraphOptions& options)
      : dot_(metric == Metric::kDot),
        dim_(dim),
        vectors_(vectors),
        rows_(vectors.size() / dim),
        options_(options) {
    std::mt19937_64 random(42);
    std::uniform_real_distribution<double> uniform(1e-12, 1.0);
    const double scale = 1 / std::log(static_cast<double>(options.neighbours));
    levels_.resize(rows_);
    for (uint8_t& level : levels_)
      level = static_cast<uint8_t>(
          std::min<double>(options.levels - 1, std::floor(-std::log(uniform(random)) * scale)));
    links_.resize(options.levels);
    for (uint32_t level = 0; level < options.levels; ++level) links_[level].resize(rows_);
    seen_.resize(rows_);
  }

  BuiltGraph build() {
    for (uint32_t row = 0; row < rows_; ++row) insert(row);
    BuiltGraph graph;
    graph.entry = entry_;
    graph.offsets.push_back(0);
    for (uint32_t level = 0; level < options_.levels; ++level) {
      for (uint32_t row = 0; row < rows_; ++row) {
        if (levels_[row] < level) continue;
        graph.ids.push_back(row);
        for (const Neighbour& link : links_[level][row]) {
          graph.neighbours.push_back(static_cast<uint32_t>(link.row));
          graph.distances.push_back(link.distance);
        }
        if (graph.neighbours.size() > INT32_MAX) throw std::invalid_argument("a graph with too many links");
        graph.offsets.push_back(static_cast<int32_t>(graph.neighbours.size()));
      }
      graph.level_ends.push_back(graph.ids.size());
    }
    return graph;
  }

 private:
  float distance(uint32_t left, uint32_t right) const {
    float found;
    const auto& kernels = distances().f32;
    (dot_ ? kernels.dot : kernels.squared_l2)(vectors_.data() + left * dim_, 1,
                                              vectors_.data() + right * dim_, 1, dim_, &found, 1);
    if (dot_) found = 1 - found;
    // Sums that overflow may be NaN, which has no place in an order.
    return std::isnan(found) ? std::numeric_limits<float>::infinity() : found;
  }

  void insert(uint32_t row) {
    if (row == 0) {
      entry_ = 0;
      return;
    }
    uint32_t at = entry_;
    const uint32_t own = levels_[row], top = levels_[entry_];
    float near = distance(row, at);
    for (uint32_t level = top; level > own; --level) {
      for (bool moved = true; moved;) {
        moved = false;
        for (const Neighbour& link : links_[level][at]) {
          const float found = distance(row, static_cast<uint32_t>(link.row));
          if (found < near) {
            near = found;
            at = static_cast<uint32_t>(link.row);
            moved = true;
          }
        }
      }
    }
    std::vector<Neighbour> starts{{near, at}};
    for (uint32_t level = std::min(own, top) + 1; level-- > 0;) {
      starts = candidates(row, level, starts);
      const size_t most = options_.neighbours;
      links_[level][row] = selected(starts, most);
      for (const Neighbour& link : links_[level][row]) {
        auto& back = links_[level][link.row];
        back.push_back({link.distance, row});
        const size_t limit = level == 0 ? 2 * most : most;
        if (back.size() > limit) {
          std::sort(back.begin(), back.end());
          back = selected(back, limit);
        }
      }
    }
    if (own > top) entry_ = row;
  }

  // Those nearest to `row` on a level, nearest first.
  std::vector<Neighbour> candidates(uint32_t row, uint32_t level, const std::vector<Neighbour>& starts) {
    ++mark_;
    const auto farther = [](const Neighbour& left, const Neighbour& right) { return right < left; };
    std::vector<Neighbour> open = starts, best = starts;
    std::make_heap(open.begin(), open.end(), farther);
    std::make_heap(best.begin(), best.end());
    for (const Neighbour& start : starts) seen_[start.row] = mark_;
    while (!open.empty()) {
      std::pop_heap(open.begin(), open.end(), farther);
      const Neighbour current = open.back();
      open.pop_back();
      if (best.size() >= options_.candidates && current.distance > best.front().distance) break;
      for (const Neighbour& link : links_[level][current.row]) {
        if (seen_[link.row] == mark_) continue;
        seen_[link.row] = mark_;
        const float found = distance(row, static_cast<uint32_t>(link.row));
        if (best.size() >= options_.candidates && !(found < best.front().distance)) continue;
        open.push_back({found, link.row});
        std::push_heap(open.begin(), open.end(), farther);
        best.push_back({found, link.row});
        std::push_heap(best.begin(), best.end());
        if (best.size() > options_.candidates) {
          std::pop_heap(best.begin(), best.end());
          best.pop_back();
        }
      }
    }
    std::sort_heap(best.begin(), best.end());
    return best;
  }

  // Up to `most` of `near`, which is sorted: those not nearer to one that was taken than to the node itself
  // first, since these lead into other directions.
  std::vector<Neighbour> selected(const std::vector<Neighbour>& near, size_t most) const {
    if (near.size() <= most) return near;
    std::vector<Neighbour> taken, rest;
    for (const Neighbour& candidate : near) {
      if (taken.size() >= most) break;
      const bool leads_on = std::all_of(taken.begin(), taken.end(), [&](const Neighbour& other) {
        return distance(static_cast<uint32_t>(candidate.row), static_cast<uint32_t>(other.row)) >=
               candidate.distance;
      });
      (leads_on ? taken : rest).push_back(candidate);
    }
    for (const Neighbour& candidate : rest) {
      if (taken.size() >= most) break;
      taken.push_back(candidate);
    }
    return taken;
  }

  bool dot_;
  size_t dim_;
  std::span<const float> vectors_;
  size_t rows_;
  GraphOptions options_;
  std::vector<uint8_t> levels_;
  std::vector<std::vector<std::vector<Neighbour>>> links_;
  std::vector<uint32_t> seen_;
  uint32_t mark_ = 0;
  uint32_t entry_ = 0;
};

}  // namespace

BuiltGraph build_graph(Metric metric, size_t dim, std::span<const float> vectors,
                       const GraphOptions& options) {
  if (dim == 0 || vectors.size() % dim || vectors.size() / dim > INT32_MAX)
    throw std::invalid_argument("vectors that are not whole");
  if (options.neighbours < 2 || options.candidates < options.neighbours || options.levels < 1 ||
      options.levels > 64)
    throw std::invalid_argument("options of a graph that make no sense");
  return Builder(metric, dim, vectors, options).build();
}

}  // namespace lance
