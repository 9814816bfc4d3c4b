#define LANCE_DISTANCE_TABLE distance_table_avx2
#define LANCE_VECTOR_BYTES 32
#include "search/distance_level.hpp"
