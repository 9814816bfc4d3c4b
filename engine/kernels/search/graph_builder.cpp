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

#include "search/graph_links.hpp"
#include "search/graph_repair.hpp"
#include "search/top_k.hpp"

namespace lance {
namespace {

// The number of nodes that share a lock for their links.
constexpr size_t kGuards = 4096;

std::vector<uint8_t> random_levels(size_t rows, const GraphOptions& options) {
  std::mt19937_64 random(42);
  std::uniform_real_distribution<double> uniform(1e-12, 1.0);
  const double scale = 1 / std::log(static_cast<double>(options.neighbours));
  std::vector<uint8_t> levels(rows);
  for (uint8_t& level : levels)
    level = static_cast<uint8_t>(
        std::min<double>(options.levels - 1, std::floor(-std::log(uniform(random)) * scale)));
  return levels;
}

class Builder {
 public:
  Builder(Metric metric, size_t dim, std::span<const float> vectors, const GraphOptions& options)
      : dot_(metric == Metric::kDot),
        dim_(dim),
        vectors_(vectors),
        rows_(vectors.size() / dim),
        options_(options),
        levels_(random_levels(rows_, options)),
        links_(levels_, options.neighbours),
        guards_(kGuards) {}

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
    connect_all_rows();
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

    // The rows nearest to one on level 0 among those that the entry leads to, nearest first.
    std::vector<Neighbour> near(uint32_t row) {
      current_ = row;
      float distance;
      graph_.distances_to(row, &graph_.entry_, 1, &distance);
      return candidates(row, 0, {{distance, graph_.entry_}});
    }

   private:
    void connect(uint32_t row, uint32_t level, std::vector<Neighbour> chosen) {
      {
        const std::lock_guard lock(graph_.guard(row));
        // Others may have linked to it meanwhile.
        std::vector<Neighbour> own = chosen;
        for (const Link& link : graph_.links_.of(level, row))
          if (own.size() < graph_.links_.most(level) &&
              std::none_of(chosen.begin(), chosen.end(), [&](const auto& c) { return c.row == link.row; }))
            own.push_back({link.distance, link.row});
        graph_.links_.replace(level, row, own);
        chosen = std::move(own);
      }
      for (const Neighbour& link : chosen) {
        const std::lock_guard lock(graph_.guard(static_cast<uint32_t>(link.row)));
        const auto other = static_cast<uint32_t>(link.row);
        const std::span<const Link> back = graph_.links_.of(level, other);
        if (std::any_of(back.begin(), back.end(), [&](const auto& b) { return b.row == row; })) continue;
        if (graph_.links_.add(level, other, {link.distance, row})) continue;
        crowded_.assign(1, {link.distance, row});
        for (const Link& held : back) crowded_.push_back({held.distance, held.row});
        std::sort(crowded_.begin(), crowded_.end());
        graph_.links_.replace(level, other, graph_.selected(crowded_, back.size()));
      }
    }

    // The rows that `from` links to, or those not seen before, and their distances to the row being inserted.
    void read_links(uint32_t level, uint32_t from, bool unseen) {
      numbers_.clear();
      {
        const std::lock_guard lock(graph_.guard(from));
        for (const Link& link : graph_.links_.of(level, from)) {
          if (unseen) {
            if (seen_[link.row] == mark_) continue;
            seen_[link.row] = mark_;
          }
          numbers_.push_back(link.row);
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
    std::vector<Neighbour> crowded_;
  };

  void connect_all_rows() {
    Inserter inserter(*this);
    GraphRepair repair(
        links_, rows_, entry_, [&](uint32_t row) { return inserter.near(row); },
        [&](uint32_t from, uint32_t to) {
          float distance;
          distances_to(from, &to, 1, &distance);
          return distance;
        });
    repair.run();
  }

  std::mutex& guard(uint32_t row) { return guards_[row % kGuards]; }

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
    const size_t count = links_.count();
    if (count > INT32_MAX) throw std::invalid_argument("a graph with too many links");
    graph.ids.reserve(links_.nodes());
    graph.offsets.reserve(links_.nodes() + 1);
    graph.neighbours.reserve(count);
    graph.distances.reserve(count);
    graph.offsets.push_back(0);
    for (uint32_t level = 0; level < options_.levels; ++level) {
      for (uint32_t row = 0; row < rows_; ++row) {
        if (levels_[row] < level) continue;
        graph.ids.push_back(row);
        for (const Link& link : links_.of(level, row)) {
          graph.neighbours.push_back(link.row);
          graph.distances.push_back(link.distance);
        }
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
  Links links_;
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
