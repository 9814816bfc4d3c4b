#include "search/query.hpp"

#include <cmath>
#include <cstring>
#include <stdexcept>

namespace lance {
namespace {

// Rows of a block, widened where they have to be, and their distances stay in the first-level cache.
constexpr size_t kBlockBytes = 16 << 10;

template <typename T>
std::vector<T> copied(std::span<const uint8_t> values) {
  std::vector<T> copy(values.size() / sizeof(T));
  if (!copy.empty()) std::memcpy(copy.data(), values.data(), copy.size() * sizeof(T));
  return copy;
}

}  // namespace

VectorQuery::VectorQuery(Metric metric, Element element, size_t dim, std::span<const uint8_t> values)
    : metric_(metric), element_(element), dim_(dim) {
  const bool bits = metric == Metric::kHamming;
  if (bits && element_bytes(element) != 1) throw std::invalid_argument("only bytes have a Hamming distance");
  const size_t width = bits ? 1 : element == Element::kFloat64 ? 8 : 4;
  if (dim == 0 || dim > (size_t{1} << 32) || values.size() % (dim * width))
    throw std::invalid_argument("the values of a query do not fill whole vectors");
  count_ = values.size() / (dim * width);
  if (bits) {
    bytes_ = copied<uint8_t>(values);
  } else if (element == Element::kFloat64) {
    doubles_ = copied<double>(values);
    double_norms_.resize(count_);
    lance::distances().f64.squared_norms(doubles_.data(), count_, dim, double_norms_.data());
  } else {
    floats_ = copied<float>(values);
    float_norms_.resize(count_);
    lance::distances().f32.squared_norms(floats_.data(), count_, dim, float_norms_.data());
  }
}

template <typename T>
void VectorQuery::compute(const DistancesOf<T>& kernels, const std::vector<T>& queries,
                          const std::vector<T>& norms, const T* vectors, size_t rows, T* out) const {
  if (metric_ == Metric::kL2) {
    kernels.squared_l2(queries.data(), count_, vectors, rows, dim_, out, rows);
    return;
  }
  kernels.dot(queries.data(), count_, vectors, rows, dim_, out, rows);
  if (metric_ == Metric::kDot) {
    for (size_t i = 0; i < count_ * rows; ++i) out[i] = 1 - out[i];
    return;
  }
  std::vector<T> lengths(rows);
  kernels.squared_norms(vectors, rows, dim_, lengths.data());
  for (T& length : lengths) length = std::sqrt(length);
  for (size_t q = 0; q < count_; ++q) {
    const T own = std::sqrt(norms[q]);
    // A vector of zeros has no direction: 0 / 0 is NaN.
    for (size_t r = 0; r < rows; ++r) out[q * rows + r] = 1 - out[q * rows + r] / (own * lengths[r]);
  }
}

size_t VectorQuery::block_rows() const {
  const size_t width = dim_ * (metric_ == Metric::kHamming ? 1 : element_ == Element::kFloat64 ? 8 : 4);
  return std::max<size_t>(4, kBlockBytes / width / 4 * 4);
}

template <typename Visit>
void VectorQuery::by_block(const uint8_t* vectors, size_t rows, Visit visit) const {
  const DistanceTable& table = lance::distances();
  const size_t step = block_rows(), width = row_bytes();
  std::vector<float> widened, out(step * count_);
  std::vector<double> wide, wide_out;
  for (size_t begin = 0; begin < rows; begin += step) {
    const size_t count = std::min(step, rows - begin), values = count * dim_;
    const uint8_t* block = vectors + begin * width;
    if (metric_ == Metric::kHamming) {
      for (size_t q = 0; q < count_; ++q)
        table.hamming(bytes_.data() + q * dim_, block, count, dim_, out.data() + q * count);
      visit(begin, count, out.data());
      continue;
    }
    if (element_ == Element::kFloat64) {
      const double* source = reinterpret_cast<const double*>(block);
      if (reinterpret_cast<uintptr_t>(block) % alignof(double)) {
        wide.resize(step * dim_);
        std::memcpy(wide.data(), block, values * sizeof(double));
        source = wide.data();
      }
      wide_out.resize(step * count_);
      compute(table.f64, doubles_, double_norms_, source, count, wide_out.data());
      for (size_t i = 0; i < count * count_; ++i) out[i] = static_cast<float>(wide_out[i]);
      visit(begin, count, out.data());
      continue;
    }
    const float* source = reinterpret_cast<const float*>(block);
    const bool is_float = element_ == Element::kFloat32;
    if (!is_float || reinterpret_cast<uintptr_t>(block) % alignof(float)) {
      widened.resize(step * dim_);
      if (is_float)
        std::memcpy(widened.data(), block, values * sizeof(float));
      else if (element_ == Element::kFloat16)
        table.widen_half(block, values, widened.data());
      else if (element_ == Element::kInt8)
        table.widen_i8(reinterpret_cast<const int8_t*>(block), values, widened.data());
      else
        table.widen_u8(block, values, widened.data());
      source = widened.data();
    }
    compute(table.f32, floats_, float_norms_, source, count, out.data());
    visit(begin, count, out.data());
  }
}

void VectorQuery::distances(const uint8_t* vectors, size_t rows, float* out) const {
  by_block(vectors, rows, [&](size_t begin, size_t count, const float* found) {
    for (size_t q = 0; q < count_; ++q)
      std::memcpy(out + q * rows + begin, found + q * count, count * sizeof(float));
  });
}

void VectorQuery::scan(const uint8_t* vectors, const uint64_t* ids, const uint8_t* valid, size_t rows,
                       std::span<TopK> nearest) const {
  by_block(vectors, rows, [&](size_t begin, size_t count, const float* found) {
    for (size_t q = 0; q < count_; ++q) {
      TopK& best = nearest[q];
      for (size_t r = 0; r < count; ++r) {
        const float distance = found[q * count + r];
        if (best.admits(distance) && (!valid || valid[begin + r])) best.push(distance, ids[begin + r]);
      }
    }
  });
}

}  // namespace lance
