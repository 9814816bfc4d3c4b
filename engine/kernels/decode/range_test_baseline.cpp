#define LANCE_RANGE_TESTS range_tests_baseline
#include "decode/range_test_level.hpp"
