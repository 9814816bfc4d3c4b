#define LANCE_DISTANCE_TABLE distance_table_avx512
#define LANCE_VECTOR_BYTES 64
#include "search/distance_level.hpp"
