#define LANCE_UNPACK_LEVEL "avx2"
#define LANCE_UNPACK_TABLE unpack_table_avx2
#include "decode/unpack_level.hpp"
