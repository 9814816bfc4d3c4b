#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace lance {

enum class Metric : uint8_t { kL2, kCosine, kDot, kHamming };

// What the elements of stored vectors are. Half precision and bytes are widened to float before they are
// used.
enum class Element : uint8_t { kFloat16, kFloat32, kFloat64, kInt8, kUInt8 };

inline constexpr size_t element_bytes(Element element) {
  switch (element) {
    case Element::kFloat16:
      return 2;
    case Element::kFloat32:
      return 4;
    case Element::kFloat64:
      return 8;
    default:
      return 1;
  }
}

// out[q * stride + r] for every query q and row r, both dense matrices with `dim` columns.
template <typename T>
using Pairwise = void (*)(const T* queries, size_t num_queries, const T* rows, size_t num_rows, size_t dim,
                          T* out, size_t stride);

template <typename T>
struct DistancesOf {
  Pairwise<T> squared_l2;
  Pairwise<T> dot;
  void (*squared_norms)(const T* rows, size_t num_rows, size_t dim, T* out);
};

// One instruction set's kernels. Nothing needs to be aligned.
struct DistanceTable {
  DistancesOf<float> f32;
  DistancesOf<double> f64;
  void (*widen_half)(const uint8_t* values, size_t count, float* out);
  void (*widen_i8)(const int8_t* values, size_t count, float* out);
  void (*widen_u8)(const uint8_t* values, size_t count, float* out);
  // Sums over codes of one byte, per row of `dim` codes: squared differences, and products with floats.
  void (*code_l2)(const uint8_t* query, const uint8_t* rows, size_t num_rows, size_t dim, float* out);
  void (*code_dot)(const float* query, const uint8_t* rows, size_t num_rows, size_t dim, float* out);
  // out[r] += table[column[r]] for codes of one column.
  void (*add_looked_up)(const float* table, const uint8_t* column, size_t num_rows, float* out);
  // For every row the centroid that is nearest by L2, or with `dot` by inner product, and how near: the
  // squared distance, or minus the product. `panels` are centroids as `pack_panels` lays them out.
  void (*nearest_centroids)(const float* rows, size_t num_rows, size_t dim, const float* panels, size_t count,
                            bool dot, uint32_t* labels, float* found);
  // The distances of a vector to those rows of a matrix whose numbers are listed: squared L2, or the inner
  // product.
  void (*listed_l2)(const float* vector, const float* rows, const uint32_t* numbers, size_t count, size_t dim,
                    float* out);
  void (*listed_dot)(const float* vector, const float* rows, const uint32_t* numbers, size_t count,
                     size_t dim, float* out);
  size_t panel_width;  // centroids of a panel
  // The number of bits that differ, per row of `bytes` bytes.
  void (*hamming)(const uint8_t* query, const uint8_t* rows, size_t num_rows, size_t bytes, float* out);
};

// Those of the fastest level of this processor, or of the one that LANCE_SQL_SIMD names.
const DistanceTable& distances();
// A certain level, for tests; nullptr where the processor lacks it.
const DistanceTable* distances_at(const char* level);

// Centroids as panels: [count / width, rounded up][dim][width].
std::vector<float> pack_panels(const float* centroids, size_t count, size_t dim, size_t width);

}  // namespace lance
