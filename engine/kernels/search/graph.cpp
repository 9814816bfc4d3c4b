#include "search/graph.hpp"

#include <stdexcept>

namespace lance {

Graph::Graph(size_t rows, uint32_t entry, std::span<const uint64_t> level_ends, std::span<const uint32_t> ids,
             std::span<const int32_t> offsets, std::span<const uint32_t> neighbours)
    : rows_(rows),
      entry_(entry),
      level_ends_(level_ends.begin(), level_ends.end()),
      offsets_(offsets.begin(), offsets.end()),
      neighbours_(neighbours.begin(), neighbours.end()) {
  const auto check = [](bool sound) {
    if (!sound) throw std::invalid_argument("a graph that contradicts itself");
  };
  check(!level_ends.empty() && level_ends[0] == rows && level_ends.back() == ids.size());
  check(offsets.size() == ids.size() + 1 && offsets[0] == 0);
  check(static_cast<size_t>(offsets.back()) == neighbours.size() && (rows == 0 || entry < rows));
  for (size_t i = 0; i < ids.size(); ++i) check(offsets[i] <= offsets[i + 1] && ids[i] < rows);
  for (size_t i = 0; i < rows; ++i) check(ids[i] == i);
  for (uint32_t neighbour : neighbours) check(neighbour < rows);
  for (size_t level = 1; level < level_ends.size(); ++level) {
    check(level_ends[level] >= level_ends[level - 1]);
    auto& places = upper_.emplace_back();
    for (uint64_t node = level_ends[level - 1]; node < level_ends[level]; ++node)
      places.emplace(ids[node], static_cast<uint32_t>(node));
  }
}

std::span<const uint32_t> Graph::neighbours(size_t level, uint32_t row) const {
  size_t node = row;
  if (level > 0) {
    const auto found = upper_[level - 1].find(row);
    if (found == upper_[level - 1].end()) return {};
    node = found->second;
  }
  return {neighbours_.data() + offsets_[node], neighbours_.data() + offsets_[node + 1]};
}

}  // namespace lance
