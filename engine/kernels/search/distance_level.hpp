// Included once per instruction set: plain C++ over vectors of LANCE_VECTOR_BYTES bytes.

#if defined(__F16C__) || defined(__AVX2__)
#include <immintrin.h>
#endif

#include <bit>
#include <cstring>
#include <limits>

#include "search/distance.hpp"

namespace lance {
namespace {

template <typename T>
struct Lanes {
  static constexpr size_t kCount = LANCE_VECTOR_BYTES / sizeof(T);
  typedef T Vector __attribute__((vector_size(LANCE_VECTOR_BYTES)));

  static Vector load(const T* values) {
    Vector loaded;
    std::memcpy(&loaded, values, sizeof(loaded));
    return loaded;
  }

  static T sum(Vector values) {
    T lanes[kCount];
    std::memcpy(lanes, &values, sizeof(lanes));
    for (size_t width = kCount / 2; width; width /= 2)
      for (size_t i = 0; i < width; ++i) lanes[i] += lanes[i + width];
    return lanes[0];
  }
};

template <typename T>
struct SquaredL2 {
  template <typename V>
  static V step(V query, V row) {
    V difference = query - row;
    return difference * difference;
  }
};

template <typename T>
struct Dot {
  template <typename V>
  static V step(V query, V row) {
    return query * row;
  }
};

// `Queries` x `Rows` pairs at once: what is loaded serves all of them, and their sums do not wait for each
// other.
template <typename T, typename Step, size_t Queries, size_t Rows>
inline void tile(const T* queries, const T* rows, size_t dim, T* out, size_t stride) {
  using L = Lanes<T>;
  typename L::Vector sums[Queries][Rows] = {};
  size_t d = 0;
  for (; d + L::kCount <= dim; d += L::kCount) {
    typename L::Vector loaded[Rows];
    for (size_t r = 0; r < Rows; ++r) loaded[r] = L::load(rows + r * dim + d);
    for (size_t q = 0; q < Queries; ++q) {
      const typename L::Vector query = L::load(queries + q * dim + d);
      for (size_t r = 0; r < Rows; ++r) sums[q][r] += Step::step(query, loaded[r]);
    }
  }
  for (size_t q = 0; q < Queries; ++q) {
    for (size_t r = 0; r < Rows; ++r) {
      T total = L::sum(sums[q][r]);
      for (size_t i = d; i < dim; ++i) total += Step::step(queries[q * dim + i], rows[r * dim + i]);
      out[q * stride + r] = total;
    }
  }
}

template <typename T, typename Step, size_t Queries>
inline void band(const T* queries, const T* rows, size_t num_rows, size_t dim, T* out, size_t stride) {
  size_t r = 0;
  for (; r + 4 <= num_rows; r += 4) tile<T, Step, Queries, 4>(queries, rows + r * dim, dim, out + r, stride);
  for (; r < num_rows; ++r) tile<T, Step, Queries, 1>(queries, rows + r * dim, dim, out + r, stride);
}

template <typename T, typename Step>
void pairwise(const T* queries, size_t num_queries, const T* rows, size_t num_rows, size_t dim, T* out,
              size_t stride) {
  size_t q = 0;
  for (; q + 4 <= num_queries; q += 4)
    band<T, Step, 4>(queries + q * dim, rows, num_rows, dim, out + q * stride, stride);
  for (; q < num_queries; ++q)
    band<T, Step, 1>(queries + q * dim, rows, num_rows, dim, out + q * stride, stride);
}

template <typename T>
void squared_norms(const T* rows, size_t num_rows, size_t dim, T* out) {
  for (size_t r = 0; r < num_rows; ++r) {
    const T* row = rows + r * dim;
    tile<T, Dot<T>, 1, 1>(row, row, dim, out + r, 1);
  }
}

inline float widened(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000) << 16;
  const uint32_t exponent = (half >> 10) & 0x1f;
  const uint32_t mantissa = half & 0x3ff;
  if (exponent == 0) {
    const float tiny = static_cast<float>(mantissa) * 0x1p-24f;
    return sign ? -tiny : tiny;
  }
  const uint32_t wide = exponent == 0x1f ? 0xff : exponent + 112;
  return std::bit_cast<float>(sign | wide << 23 | mantissa << 13);
}

void widen_half(const uint8_t* values, size_t count, float* out) {
  size_t i = 0;
#ifdef __F16C__
  for (; i + 8 <= count; i += 8) {
    const __m128i halves = _mm_loadu_si128(reinterpret_cast<const __m128i*>(values + 2 * i));
    _mm256_storeu_ps(out + i, _mm256_cvtph_ps(halves));
  }
#endif
  for (; i < count; ++i) {
    uint16_t half;
    std::memcpy(&half, values + 2 * i, sizeof(half));
    out[i] = widened(half);
  }
}

template <typename T>
void widen(const T* values, size_t count, float* out) {
  for (size_t i = 0; i < count; ++i) out[i] = static_cast<float>(values[i]);
}

void code_l2(const uint8_t* query, const uint8_t* rows, size_t num_rows, size_t dim, float* out) {
  for (size_t r = 0; r < num_rows; ++r) {
    const uint8_t* row = rows + r * dim;
    uint64_t total = 0;
    // A sum of this many squares of bytes fits 32 bits.
    for (size_t begin = 0; begin < dim; begin += 32768) {
      const size_t end = dim - begin < 32768 ? dim : begin + 32768;
      uint32_t sum = 0;
      size_t d = begin;
#ifdef __AVX2__
      __m256i sums = _mm256_setzero_si256();
      for (; d + 16 <= end; d += 16) {
        const __m256i difference = _mm256_sub_epi16(
            _mm256_cvtepu8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(query + d))),
            _mm256_cvtepu8_epi16(_mm_loadu_si128(reinterpret_cast<const __m128i*>(row + d))));
        sums = _mm256_add_epi32(sums, _mm256_madd_epi16(difference, difference));
      }
      uint32_t lanes[8];
      std::memcpy(lanes, &sums, sizeof(lanes));
      for (uint32_t lane : lanes) sum += lane;
#endif
      for (; d < end; ++d) {
        const int difference = static_cast<int>(query[d]) - static_cast<int>(row[d]);
        sum += static_cast<uint32_t>(difference * difference);
      }
      total += sum;
    }
    out[r] = static_cast<float>(total);
  }
}

void code_dot(const float* query, const uint8_t* rows, size_t num_rows, size_t dim, float* out) {
  constexpr size_t kLanes = Lanes<float>::kCount;
  for (size_t r = 0; r < num_rows; ++r) {
    const uint8_t* row = rows + r * dim;
    float sums[kLanes] = {};
    size_t d = 0;
    for (; d + kLanes <= dim; d += kLanes)
      for (size_t i = 0; i < kLanes; ++i) sums[i] += query[d + i] * static_cast<float>(row[d + i]);
    float total = 0;
    for (size_t i = 0; i < kLanes; ++i) total += sums[i];
    for (; d < dim; ++d) total += query[d] * static_cast<float>(row[d]);
    out[r] = total;
  }
}

void add_looked_up(const float* table, const uint8_t* column, size_t num_rows, float* out) {
  size_t r = 0;
#ifdef __AVX512F__
  for (; r + 16 <= num_rows; r += 16) {
    // With masks of all lanes: the plain intrinsics of GCC 12 begin with a register that is not set.
    const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(column + r));
    const __m512i codes = _mm512_maskz_cvtepu8_epi32(0xffff, bytes);
    const __m512 found = _mm512_mask_i32gather_ps(_mm512_setzero_ps(), 0xffff, codes, table, 4);
    _mm512_storeu_ps(out + r, _mm512_add_ps(_mm512_loadu_ps(out + r), found));
  }
#endif
  for (; r < num_rows; ++r) out[r] += table[column[r]];
}

template <typename Step, size_t Rows>
inline void listed_tile(const float* vector, const float* const (&rows)[Rows], size_t dim, float* out) {
  using L = Lanes<float>;
  L::Vector sums[Rows] = {};
  size_t d = 0;
  for (; d + L::kCount <= dim; d += L::kCount) {
    const L::Vector loaded = L::load(vector + d);
    for (size_t r = 0; r < Rows; ++r) sums[r] += Step::step(loaded, L::load(rows[r] + d));
  }
  for (size_t r = 0; r < Rows; ++r) {
    out[r] = L::sum(sums[r]);
    for (size_t i = d; i < dim; ++i) out[r] += Step::step(vector[i], rows[r][i]);
  }
}

template <typename Step>
void listed(const float* vector, const float* rows, const uint32_t* numbers, size_t count, size_t dim,
            float* out) {
  size_t i = 0;
  for (; i + 4 <= count; i += 4) {
    for (size_t next = i + 4; next < count && next < i + 8; ++next)
      __builtin_prefetch(rows + size_t{numbers[next]} * dim);
    const float* const four[4] = {rows + size_t{numbers[i]} * dim, rows + size_t{numbers[i + 1]} * dim,
                                  rows + size_t{numbers[i + 2]} * dim, rows + size_t{numbers[i + 3]} * dim};
    listed_tile<Step>(vector, four, dim, out + i);
  }
  for (; i < count; ++i) {
    const float* const one[1] = {rows + size_t{numbers[i]} * dim};
    listed_tile<Step>(vector, one, dim, out + i);
  }
}

constexpr size_t kPanelVectors = 4;
constexpr size_t kPanelWidth = kPanelVectors * Lanes<float>::kCount;

// The distances of `Rows` rows to the centroids of a panel.
template <bool kDot, size_t Rows>
inline void panel_distances(const float* rows, size_t dim, const float* panel,
                            Lanes<float>::Vector (&sums)[Rows][kPanelVectors]) {
  using L = Lanes<float>;
  for (auto& row : sums)
    for (auto& sum : row) sum = L::Vector{};
  for (size_t d = 0; d < dim; ++d) {
    L::Vector loaded[kPanelVectors];
    for (size_t v = 0; v < kPanelVectors; ++v) loaded[v] = L::load(panel + d * kPanelWidth + v * L::kCount);
    for (size_t r = 0; r < Rows; ++r) {
      const L::Vector value = L::Vector{} + rows[r * dim + d];
      for (size_t v = 0; v < kPanelVectors; ++v) {
        if constexpr (kDot) {
          sums[r][v] -= value * loaded[v];
        } else {
          const L::Vector difference = value - loaded[v];
          sums[r][v] += difference * difference;
        }
      }
    }
  }
}

template <bool kDot, size_t Rows>
inline void nearest_of(const float* rows, size_t dim, const float* panels, size_t count, uint32_t* labels,
                       float* found) {
  using L = Lanes<float>;
  typedef int32_t Numbers __attribute__((vector_size(LANCE_VECTOR_BYTES)));
  L::Vector best[Rows];
  Numbers best_vector[Rows];
  for (size_t r = 0; r < Rows; ++r) {
    best[r] = L::Vector{} + std::numeric_limits<float>::infinity();
    best_vector[r] = Numbers{};
  }
  int32_t number = 0;
  for (size_t begin = 0; begin < count; begin += kPanelWidth, panels += dim * kPanelWidth) {
    L::Vector sums[Rows][kPanelVectors];
    panel_distances<kDot, Rows>(rows, dim, panels, sums);
    for (size_t v = 0; v < kPanelVectors; ++v, ++number) {
      const size_t first = begin + v * L::kCount;
      if (first >= count) break;
      if (first + L::kCount > count)  // what fills the last panel is not a centroid
        for (size_t r = 0; r < Rows; ++r)
          for (size_t i = count - first; i < L::kCount; ++i)
            sums[r][v][i] = std::numeric_limits<float>::infinity();
      for (size_t r = 0; r < Rows; ++r) {
        const auto nearer = sums[r][v] < best[r];
        best[r] = nearer ? sums[r][v] : best[r];
        best_vector[r] = nearer ? Numbers{} + number : best_vector[r];
      }
    }
  }
  for (size_t r = 0; r < Rows; ++r) {
    found[r] = std::numeric_limits<float>::infinity();
    labels[r] = 0;
    for (size_t i = 0; i < L::kCount; ++i) {
      if (best[r][i] < found[r]) {
        found[r] = best[r][i];
        labels[r] = static_cast<uint32_t>(static_cast<size_t>(best_vector[r][i]) * L::kCount + i);
      }
    }
  }
}

template <bool kDot>
void nearest_rows(const float* rows, size_t num_rows, size_t dim, const float* panels, size_t count,
                  uint32_t* labels, float* found) {
  size_t r = 0;
  for (; r + 4 <= num_rows; r += 4)
    nearest_of<kDot, 4>(rows + r * dim, dim, panels, count, labels + r, found + r);
  for (; r < num_rows; ++r) nearest_of<kDot, 1>(rows + r * dim, dim, panels, count, labels + r, found + r);
}

void nearest_centroids(const float* rows, size_t num_rows, size_t dim, const float* panels, size_t count,
                       bool dot, uint32_t* labels, float* found) {
  (dot ? nearest_rows<true> : nearest_rows<false>)(rows, num_rows, dim, panels, count, labels, found);
}

void hamming(const uint8_t* query, const uint8_t* rows, size_t num_rows, size_t bytes, float* out) {
  for (size_t r = 0; r < num_rows; ++r) {
    const uint8_t* row = rows + r * bytes;
    uint64_t bits = 0;
    size_t b = 0;
    for (; b + 8 <= bytes; b += 8) {
      uint64_t left, right;
      std::memcpy(&left, query + b, 8);
      std::memcpy(&right, row + b, 8);
      bits += static_cast<uint64_t>(std::popcount(left ^ right));
    }
    for (; b < bytes; ++b)
      bits += static_cast<uint64_t>(std::popcount(static_cast<uint8_t>(query[b] ^ row[b])));
    out[r] = static_cast<float>(bits);
  }
}

}  // namespace

extern const DistanceTable LANCE_DISTANCE_TABLE;
const DistanceTable LANCE_DISTANCE_TABLE = {
    {pairwise<float, SquaredL2<float>>, pairwise<float, Dot<float>>, squared_norms<float>},
    {pairwise<double, SquaredL2<double>>, pairwise<double, Dot<double>>, squared_norms<double>},
    widen_half,
    widen<int8_t>,
    widen<uint8_t>,
    code_l2,
    code_dot,
    add_looked_up,
    nearest_centroids,
    listed<SquaredL2<float>>,
    listed<Dot<float>>,
    kPanelWidth,
    hamming,
};

}  // namespace lance
