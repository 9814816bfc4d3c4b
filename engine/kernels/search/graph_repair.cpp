#include "search/graph_repair.hpp"

#include <utility>

namespace lance {

GraphRepair::GraphRepair(Links& links, size_t rows, uint32_t entry,
                         std::function<std::vector<Neighbour>(uint32_t)> near,
                         std::function<float(uint32_t, uint32_t)> distance)
    : links_(links), rows_(rows), entry_(entry), near_(std::move(near)), distance_(std::move(distance)) {}

void GraphRepair::run() {
  if (rows_ < 2) return;
  lead_everywhere();
  // A link that is exchanged for one back may have been the only one to its row.
  if (lead_back()) lead_everywhere();
}

void GraphRepair::lead_everywhere() {
  reached_.assign(rows_, false);
  mark_from(entry_);
  for (uint32_t row = 0; row < rows_; ++row) {
    if (reached_[row]) continue;
    link_to(row);
    mark_from(row);
  }
}

// Searches begin at any node of the upper levels, not only at the entry. True if links were exchanged.
bool GraphRepair::lead_back() {
  std::vector<size_t> ends(rows_ + 1);
  for (uint32_t row = 0; row < rows_; ++row)
    for (const Link& link : links_.of(0, row)) ++ends[link.row + 1];
  for (size_t row = 0; row < rows_; ++row) ends[row + 1] += ends[row];
  std::vector<uint32_t> sources(ends[rows_]);
  {
    std::vector<size_t> next(ends.begin(), ends.end() - 1);
    for (uint32_t row = 0; row < rows_; ++row)
      for (const Link& link : links_.of(0, row)) sources[next[link.row]++] = row;
  }
  std::vector<bool> leads(rows_);
  const auto mark = [&](uint32_t row) {
    leads[row] = true;
    open_.push_back(row);
    while (!open_.empty()) {
      const uint32_t at = open_.back();
      open_.pop_back();
      for (size_t i = ends[at]; i < ends[at + 1]; ++i) {
        if (leads[sources[i]]) continue;
        leads[sources[i]] = true;
        open_.push_back(sources[i]);
      }
    }
  };
  mark(entry_);
  bool exchanged = false;
  for (uint32_t row = 0; row < rows_; ++row) {
    if (leads[row]) continue;
    uint32_t to = entry_;
    for (const Neighbour& candidate : near_(row)) {
      if (!leads[candidate.row]) continue;
      to = static_cast<uint32_t>(candidate.row);
      break;
    }
    const Link link{distance_(row, to), to};
    if (!links_.add(0, row, link)) {
      links_.exchange_last(0, row, link);
      exchanged = true;
    }
    mark(row);
  }
  return exchanged;
}

// From the nearest row that has room. Where none has, the row comes between one and its neighbour, so that
// nothing that was reached is lost.
void GraphRepair::link_to(uint32_t row) {
  const std::vector<Neighbour> near = near_(row);
  for (const Neighbour& candidate : near)
    if (links_.add(0, static_cast<uint32_t>(candidate.row), {candidate.distance, row})) return;
  const Neighbour& from = near.front();
  const Link next = links_.exchange_last(0, static_cast<uint32_t>(from.row), {from.distance, row});
  const Link on{distance_(row, next.row), next.row};
  if (!links_.add(0, row, on)) links_.exchange_last(0, row, on);
}

void GraphRepair::mark_from(uint32_t row) {
  reached_[row] = true;
  open_.push_back(row);
  while (!open_.empty()) {
    const uint32_t at = open_.back();
    open_.pop_back();
    for (const Link& link : links_.of(0, at)) {
      if (reached_[link.row]) continue;
      reached_[link.row] = true;
      open_.push_back(link.row);
    }
  }
}

}  // namespace lance
