#pragma once

#include <span>
#include <vector>

#include "search/distance.hpp"
#include "search/top_k.hpp"

namespace lance {

// Some query vectors, ready to be compared with stored vectors. Threads may share it.
class VectorQuery {
 public:
  // `values`: float (double for Element::kFloat64, bytes for Metric::kHamming), `dim` per query.
  VectorQuery(Metric metric, Element element, size_t dim, std::span<const uint8_t> values);

  size_t count() const { return count_; }
  size_t dim() const { return dim_; }
  size_t row_bytes() const { return dim_ * element_bytes(element_); }

  // out[q * rows + r]: the distances of all queries to `rows` stored vectors.
  void distances(const uint8_t* vectors, size_t rows, float* out) const;

  // Offers rows to the k nearest of each query; those whose byte in `valid` is zero are left out.
  void scan(const uint8_t* vectors, const uint64_t* ids, const uint8_t* valid, size_t rows,
            std::span<TopK> nearest) const;

 private:
  template <typename T>
  void compute(const DistancesOf<T>& kernels, const std::vector<T>& queries, const std::vector<T>& norms,
               const T* vectors, size_t rows, T* out) const;
  size_t block_rows() const;
  template <typename Visit>
  void by_block(const uint8_t* vectors, size_t rows, Visit visit) const;

  Metric metric_;
  Element element_;
  size_t dim_, count_;
  std::vector<float> floats_, float_norms_;
  std::vector<double> doubles_, double_norms_;
  std::vector<uint8_t> bytes_;
};

}  // namespace lance
