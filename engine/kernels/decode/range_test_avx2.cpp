#define LANCE_RANGE_TESTS range_tests_avx2
#include "decode/range_test_level.hpp"
