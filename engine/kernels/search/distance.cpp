#include "search/distance.hpp"

#include <cstring>

#include "decode/unpack.hpp"

namespace lance {

extern const DistanceTable distance_table_baseline;
#ifdef LANCE_X86_LEVELS
extern const DistanceTable distance_table_avx2;
extern const DistanceTable distance_table_avx512;
#endif

const DistanceTable* distances_at(const char* level) {
  if (!unpack_table_at(level)) return nullptr;
#ifdef LANCE_X86_LEVELS
  // Processors with AVX2 have these two as well, virtual machines may hide them.
  const bool fused = __builtin_cpu_supports("fma") && __builtin_cpu_supports("f16c");
  if (!std::strcmp(level, "avx512")) return fused ? &distance_table_avx512 : nullptr;
  if (!std::strcmp(level, "avx2")) return fused ? &distance_table_avx2 : nullptr;
#endif
  return &distance_table_baseline;
}

std::vector<float> pack_panels(const float* centroids, size_t count, size_t dim, size_t width) {
  std::vector<float> panels((count + width - 1) / width * width * dim);
  for (size_t c = 0; c < count; ++c)
    for (size_t d = 0; d < dim; ++d)
      panels[(c / width * dim + d) * width + c % width] = centroids[c * dim + d];
  return panels;
}

const DistanceTable& distances() {
  static const DistanceTable& table = []() -> const DistanceTable& {
    const DistanceTable* found = distances_at(unpack_table().level);
    return found ? *found : distance_table_baseline;
  }();
  return table;
}

}  // namespace lance
