#define LANCE_DISTANCE_TABLE distance_table_baseline
#define LANCE_VECTOR_BYTES 16
#include "search/distance_level.hpp"
