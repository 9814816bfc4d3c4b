#pragma once

#include <cstdint>
#include <vector>

#include "search/storage.hpp"

namespace lance {

struct GraphOptions {
  uint32_t neighbours;  // of a node on the upper levels; twice as many on level 0
  uint32_t candidates;  // that are looked at for a new node
  uint32_t levels;      // at most
  uint32_t threads;     // with several, the links depend on who comes first
};

// A graph as index files have it: nodes by level; level 0 has all rows in order.
struct BuiltGraph {
  uint32_t entry = 0;
  std::vector<uint64_t> level_ends;
  std::vector<uint32_t> ids;
  std::vector<int32_t> offsets;
  std::vector<uint32_t> neighbours;
  std::vector<float> distances;
};

// Hierarchical navigable small world. `vectors`: float, one per row; distances are those of `metric`.
BuiltGraph build_graph(Metric metric, size_t dim, std::span<const float> vectors,
                       const GraphOptions& options);

}  // namespace lance
