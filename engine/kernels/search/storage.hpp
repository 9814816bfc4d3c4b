#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "search/distance.hpp"

namespace lance {

// The distances of one query to the vectors of one partition.
class Scorer {
 public:
  virtual ~Scorer() = default;
  // Of rows [begin, end).
  virtual void range(size_t begin, size_t end, float* out) const = 0;
  // Of rows here and there, which exist.
  virtual void listed(std::span<const uint32_t> rows, float* out) const {
    for (size_t i = 0; i < rows.size(); ++i) range(rows[i], rows[i] + 1, out + i);
  }
  // Of the row `row`, which exists.
  float one(uint32_t row) const {
    float distance;
    range(row, row + 1, &distance);
    return distance;
  }
};

// Vectors of one partition as an index stores them. Memory that is not copied must outlive it.
class Storage {
 public:
  virtual ~Storage() = default;
  virtual size_t rows() const = 0;
  virtual size_t dim() const = 0;
  // `query` has `dim()` floats.
  virtual std::unique_ptr<Scorer> scorer(std::span<const float> query) const = 0;
};

// As they are; bytes with Metric::kHamming. The vectors of Metric::kCosine have the length 1.
std::unique_ptr<Storage> flat_storage(Metric metric, Element element, size_t dim,
                                      std::span<const uint8_t> vectors);

// One byte per element, from `low` at 0 to `high` at 255.
std::unique_ptr<Storage> scalar_storage(Metric metric, size_t dim, float low, float high,
                                        std::span<const uint8_t> codes);

// Codebooks of product quantization: [parts][centroids][dim / parts] floats.
struct Codebook {
  Metric metric;
  size_t dim, parts, centroids;
  std::vector<float> values;

  Codebook(Metric metric, size_t dim, size_t parts, unsigned bits, std::span<const float> values);
  size_t part_dim() const { return dim / parts; }
  // [parts][centroids]: what each code of a vector adds to its distance from a query.
  std::vector<float> table(const float* query) const;
};

// `codes`: [code bytes of a vector][rows] if `transposed`, else [rows][code bytes]. With L2 and cosine,
// vectors are differences from `centroid`.
std::unique_ptr<Storage> product_storage(std::shared_ptr<const Codebook> codebook,
                                         std::span<const float> centroid, std::span<const uint8_t> codes,
                                         bool transposed, bool by_row);

}  // namespace lance
