#include "search/partition.hpp"

#include <stdexcept>

namespace lance {
namespace {

constexpr size_t kBlockRows = 1024;

}  // namespace

Partition::Partition(std::unique_ptr<Storage> storage, std::span<const uint64_t> row_ids)
    : storage_(std::move(storage)), row_ids_(row_ids) {
  if (storage_->rows() != row_ids.size()) throw std::invalid_argument("vectors and rows of different length");
}

void Partition::set_graph(std::unique_ptr<Graph> graph) {
  if (graph->rows() != rows()) throw std::invalid_argument("a graph over other rows");
  graph_ = std::move(graph);
}

void Partition::search(std::span<const float> query, const RowSet& allowed, bool few, size_t ef,
                       TopK& nearest) const {
  if (query.size() != dim()) throw std::invalid_argument("a query of another length");
  const std::unique_ptr<Scorer> scorer = storage_->scorer(query);
  const auto offer = [&](size_t row, float distance) {
    if (nearest.admits(distance) && allowed.contains(row_ids_[row])) nearest.push(distance, row_ids_[row]);
  };
  if (graph_ && !few) {
    graph_->search(*scorer, ef, offer);
    return;
  }
  float found[kBlockRows];
  for (size_t begin = 0; begin < rows(); begin += kBlockRows) {
    const size_t end = std::min(rows(), begin + kBlockRows);
    scorer->range(begin, end, found);
    for (size_t row = begin; row < end; ++row) offer(row, found[row - begin]);
  }
}

}  // namespace lance
