#include "decode/range_test.hpp"

#include <cstring>

#include "decode/unpack.hpp"

namespace lance {

extern const RangeTests range_tests_baseline;
#ifdef LANCE_X86_LEVELS
extern const RangeTests range_tests_avx2;
extern const RangeTests range_tests_avx512;
#endif

const RangeTests& range_tests() {
  static const RangeTests& tests = []() -> const RangeTests& {
#ifdef LANCE_X86_LEVELS
    if (!std::strcmp(unpack_table().level, "avx512")) return range_tests_avx512;
    if (!std::strcmp(unpack_table().level, "avx2")) return range_tests_avx2;
#endif
    return range_tests_baseline;
  }();
  return tests;
}

}  // namespace lance
