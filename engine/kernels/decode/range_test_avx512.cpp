#define LANCE_RANGE_TESTS range_tests_avx512
#include "decode/range_test_level.hpp"
