#include "search/graph_builder.hpp"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <exception>
#include <future>
#include <limits>
#include <mutex>
#include <random>
#include <stdexcept>

#include "search/top_k.hpp"

namespace lance {
namespace {

// Nodes whose links share a lock.
constexpr size_t kGuards = 4096;

class Builder {
 public:
  Builder(Metric metric, size_t dim, std::span<const float> vectors, const GraphOptions& options)
      : dot_(metric == Metric::kDot),
        dim_(dim),
        vectors_(vectors),
        rows_(vectors.size() / dim),
        options_(options),
        guards_(kGuards) {
    std::mt19937_64 random(42);
    std::uniform_real_distribution<double> uniform(1e-12, 1.0);
    const double scale = 1 / std::log(static_cast<double>(options.neighbours));
    levels_.resize(rows_);
    for (uint8_t& level : levels_)
      level = static_cast<uint8_t>(
          std::min<double>(options.levels - 1, std::floor(-std::log(uniform(random)) * scale)));
    links_.resize(options.levels);
    for (auto& level : links_) level.resize(rows_);
  }

  BuiltGraph build() {
    std::atomic<uint32_t> next{1};  // row 0 is there from the beginning
    std::exception_ptr failure;
    const auto work = [&] {
      try {
        Inserter inserter(*this);
        for (uint32_t row; (row = next++) < rows_;) inserter.insert(row);
      } catch (...) {
        const std::lock_guard lock(entry_guard_);
        failure = std::current_exception();
      }
    };
    {
      std::vector<std::future<void>> others;  // waits for its threads when destroyed
      for (uint32_t i = 1; i < options_.threads && rows_ > kGuards; ++i) {
        others.push_back(std::async(std::launch::async, work));
      }
      work();
    }
    if (failure) std::rethrow_exception(failure);
    return collected();
  }

 private:
  // What one thread needs to insert rows.
  class Inserter {
   public:
    explicit Inserter(Builder& graph) : graph_(graph), seen_(graph.rows_) {}

    void insert(uint32_t row) {
      std::unique_lock entry(graph_.entry_guard_);
      const uint32_t own = graph_.levels_[row], start = graph_.entry_, top = graph_.levels_[start];
      // Only a row that becomes the entry keeps others from beginning.
      if (own <= top) entry.unlock();
      uint32_t at = start;
      current_ = row;
      float near;
      graph_.distances_to(row, &at, 1, &near);
      for (uint32_t level = top; level > own; --level) {
        for (bool moved = true; moved;) {
          moved = false;
          read_links(level, at, false);
          for (size_t i = 0; i < numbers_.size(); ++i) {
            if (found_[i] < near) {
              near = found_[i];
              at = numbers_[i];
              moved = true;
            }
          }
        }
      }
      std::vector<Neighbour> starts{{near, at}};
      for (uint32_t level = std::min(own, top) + 1; level-- > 0;) {
        starts = candidates(row, level, starts);
        connect(row, level, graph_.selected(starts, graph_.options_.neighbours));
      }
      if (own > top) graph_.entry_ = row;
    }

   private:
    void connect(uint32_t row, uint32_t level, std::vector<Neighbour> chosen) {
      {
        const std::lock_guard lock(graph_.guard(row));
        // Others may have linked to it meanwhile.
        auto& own = graph_.links_[level][row];
        for (const Neighbour& link : own)
          if (std::none_of(chosen.begin(), chosen.end(), [&](const auto& c) { return c.row == link.row; }))
            chosen.push_back(link);
        own = chosen;
        if (own.size() > graph_.most(level)) own.resize(graph_.most(level));
      }
      for (const Neighbour& link : chosen) {
        const std::lock_guard lock(graph_.guard(static_cast<uint32_t>(link.row)));
        auto& back = graph_.links_[level][link.row];
        if (std::any_of(back.begin(), back.end(), [&](const auto& b) { return b.row == row; })) continue;
        back.push_back({link.distance, row});
        if (back.size() <= graph_.most(level)) continue;
        std::sort(back.begin(), back.end());
        back = graph_.selected(back, graph_.most(level));
      }
    }

    // The rows that `from` links to, or those not seen before, and their distances to the row being inserted.
    void read_links(uint32_t level, uint32_t from, bool unseen) {
      numbers_.clear();
      {
        const std::lock_guard lock(graph_.guard(from));
        for (const Neighbour& link : graph_.links_[level][from]) {
          if (unseen) {
            if (seen_[link.row] == mark_) continue;
            seen_[link.row] = mark_;
          }
          numbers_.push_back(static_cast<uint32_t>(link.row));
        }
      }
      found_.resize(numbers_.size());
      graph_.distances_to(current_, numbers_.data(), numbers_.size(), found_.data());
    }

    // Those nearest to `row` on a level, nearest first.
    std::vector<Neighbour> candidates(uint32_t row, uint32_t level, const std::vector<Neighbour>& starts) {
      ++mark_;
      const size_t most = graph_.options_.candidates;
      const auto farther = [](const Neighbour& left, const Neighbour& right) { return right < left; };
      std::vector<Neighbour> open = starts, best = starts;
      std::make_heap(open.begin(), open.end(), farther);
      std::make_heap(best.begin(), best.end());
      seen_[row] = mark_;
      for (const Neighbour& start : starts) seen_[start.row] = mark_;
      while (!open.empty()) {
        std::pop_heap(open.begin(), open.end(), farther);
        const Neighbour current = open.back();
        open.pop_back();
        if (best.size() >= most && current.distance > best.front().distance) break;
        read_links(level, static_cast<uint32_t>(current.row), true);
        for (size_t i = 0; i < numbers_.size(); ++i) {
          if (best.size() >= most && !(found_[i] < best.front().distance)) continue;
          open.push_back({found_[i], numbers_[i]});
          std::push_heap(open.begin(), open.end(), farther);
          best.push_back({found_[i], numbers_[i]});
          std::push_heap(best.begin(), best.end());
          if (best.size() > most) {
            std::pop_heap(best.begin(), best.end());
            best.pop_back();
          }
        }
      }
      std::sort_heap(best.begin(), best.end());
      return best;
    }

    Builder& graph_;
    std::vector<uint32_t> seen_;
    uint32_t mark_ = 0, current_ = 0;
    std::vector<uint32_t> numbers_;
    std::vector<float> found_;
  };

  std::mutex& guard(uint32_t row) { return guards_[row % kGuards]; }
  size_t most(uint32_t level) const { return options_.neighbours * (level == 0 ? 2 : 1); }

  void distances_to(uint32_t row, const uint32_t* numbers, size_t count, float* out) const {
    const DistanceTable& kernels = distances();
    const auto listed = dot_ ? kernels.listed_dot : kernels.listed_l2;
    listed(vectors_.data() + row * dim_, vectors_.data(), numbers, count, dim_, out);
    for (size_t i = 0; i < count; ++i) {
      if (dot_) out[i] = 1 - out[i];
      // Sums that overflow may be NaN, which has no place in an order.
      if (std::isnan(out[i])) out[i] = std::numeric_limits<float>::infinity();
    }
  }

  // Up to `most` of `near`, which is sorted: first those not nearer to one that was taken than to the node
  // itself, since these lead into other directions.
  std::vector<Neighbour> selected(const std::vector<Neighbour>& near, size_t most) const {
    if (near.size() <= most) return near;
    std::vector<Neighbour> taken, rest;
    std::vector<uint32_t> numbers;
    std::vector<float> found(most);
    for (const Neighbour& candidate : near) {
      if (taken.size() >= most) break;
      distances_to(static_cast<uint32_t>(candidate.row), numbers.data(), numbers.size(), found.data());
      const auto end = found.begin() + static_cast<std::ptrdiff_t>(numbers.size());
      if (std::any_of(found.begin(), end, [&](float other) { return other < candidate.distance; })) {
        rest.push_back(candidate);
      } else {
        taken.push_back(candidate);
        numbers.push_back(static_cast<uint32_t>(candidate.row));
      }
    }
    for (const Neighbour& candidate : rest) {
      if (taken.size() >= most) break;
      taken.push_back(candidate);
    }
    return taken;
  }

  BuiltGraph collected() const {
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

  bool dot_;
  size_t dim_;
  std::span<const float> vectors_;
  size_t rows_;
  GraphOptions options_;
  std::vector<uint8_t> levels_;
  std::vector<std::vector<std::vector<Neighbour>>> links_;  // by level and row
  std::vector<std::mutex> guards_;
  std::mutex entry_guard_;
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
