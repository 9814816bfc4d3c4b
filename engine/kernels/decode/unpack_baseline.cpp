#define LANCE_UNPACK_LEVEL "baseline"
#define LANCE_UNPACK_TABLE unpack_table_baseline
#include "decode/unpack_level.hpp"
