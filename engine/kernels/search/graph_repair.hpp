#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "search/graph_links.hpp"
#include "search/top_k.hpp"

namespace lance {

// Adds links to level 0 of a graph until every row is reached from the entry, and reaches it. Rows lose their
// last incoming link where others are pruned, above all among vectors that are equal: a search would never
// find them.
class GraphRepair {
 public:
  // `near`: the rows nearest to one among those that the entry leads to, at least one.
  GraphRepair(Links& links, size_t rows, uint32_t entry, std::function<std::vector<Neighbour>(uint32_t)> near,
              std::function<float(uint32_t, uint32_t)> distance);

  void run();

 private:
  void lead_everywhere();
  bool lead_back();
  void link_to(uint32_t row);
  void mark_from(uint32_t row);

  Links& links_;
  size_t rows_;
  uint32_t entry_;
  std::function<std::vector<Neighbour>(uint32_t)> near_;
  std::function<float(uint32_t, uint32_t)> distance_;
  std::vector<bool> reached_;
  std::vector<uint32_t> open_;
};

}  // namespace lance
