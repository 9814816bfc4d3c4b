#pragma once

#include <memory>
#include <span>

#include "search/graph.hpp"
#include "search/row_set.hpp"
#include "search/storage.hpp"
#include "search/top_k.hpp"

namespace lance {

// The rows of one partition of an index. The row ids must outlive it.
class Partition {
 public:
  Partition(std::unique_ptr<Storage> storage, std::span<const uint64_t> row_ids);
  void set_graph(std::unique_ptr<Graph> graph);

  size_t rows() const { return row_ids_.size(); }
  size_t dim() const { return storage_->dim(); }

  // Offers the rows in `allowed`. A graph is not followed where few of them are: `ef` is what it is searched
  // with.
  void search(std::span<const float> query, const RowSet& allowed, bool few, size_t ef, TopK& nearest) const;

 private:
  std::unique_ptr<Storage> storage_;
  std::unique_ptr<Graph> graph_;
  std::span<const uint64_t> row_ids_;
};

}  // namespace lance
