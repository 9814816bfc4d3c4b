#include "decode/unpack.hpp"

#include <cstdlib>
#include <initializer_list>

namespace lance {

extern const UnpackTable unpack_table_baseline;
#ifdef LANCE_X86_LEVELS
extern const UnpackTable unpack_table_avx2;
extern const UnpackTable unpack_table_avx512;
#endif

const UnpackTable* unpack_table_at(const char* level) {
#ifdef LANCE_X86_LEVELS
  if (!std::strcmp(level, "avx512")) {
    bool supported = __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                     __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq");
    return supported ? &unpack_table_avx512 : nullptr;
  }
  if (!std::strcmp(level, "avx2")) return __builtin_cpu_supports("avx2") ? &unpack_table_avx2 : nullptr;
#endif
  return std::strcmp(level, "baseline") ? nullptr : &unpack_table_baseline;
}

namespace {

const UnpackTable& choose() {
  if (const char* forced = std::getenv("LANCE_SQL_SIMD"))
    if (const UnpackTable* table = unpack_table_at(forced)) return *table;
  for (const char* level : {"avx512", "avx2"})
    if (const UnpackTable* table = unpack_table_at(level)) return *table;
  return unpack_table_baseline;
}

}  // namespace

const UnpackTable& unpack_table() {
  static const UnpackTable& table = choose();
  return table;
}

}  // namespace lance
