#pragma once

#include <memory>
#include <span>
#include <vector>

#include "search/storage.hpp"

namespace lance {

// A random rotation: rounds of sign changes and Walsh-Hadamard transforms, or a matrix.
class Rotation {
 public:
  // `signs`: four rounds of ceil(dim / 8) bytes. `matrix`: dim x dim floats, row by row. One of them is
  // empty.
  Rotation(size_t dim, std::span<const uint8_t> signs, std::span<const float> matrix);

  size_t dim() const { return dim_; }
  std::vector<float> apply(std::span<const float> vector) const;

 private:
  void transform(float* values, size_t count) const;

  size_t dim_;
  std::vector<uint8_t> signs_;
  std::vector<float> matrix_;
};

// Codes of rotated vectors as a file has them, for a partition.
struct RotatedCodes {
  unsigned bits;  // of a code: 1 to 8
  std::span<const uint8_t> first_bits;
  bool packed;                          // whether the first bits are in blocks of 32 vectors
  std::span<const uint8_t> other_bits;  // in blocks of 64 dimensions; empty with one bit
  std::span<const float> add, scale;    // per vector: what turns an inner product into a distance
};

std::unique_ptr<Storage> rotated_storage(Metric metric, std::shared_ptr<const Rotation> rotation,
                                         std::span<const float> centroid, const RotatedCodes& codes);

}  // namespace lance
