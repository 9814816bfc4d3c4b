#define LANCE_UNPACK_LEVEL "avx512"
#define LANCE_UNPACK_TABLE unpack_table_avx512
#include "decode/unpack_level.hpp"
