#pragma once

#include <cstdint>
#include <string_view>

#include "decode/page.hpp"

namespace lance {

// The last bytes of a data file of version 2.x: where its tables are, and how long.
struct Footer {
  static constexpr uint64_t kSize = 40;

  uint64_t column_table = 0;
  uint64_t global_table = 0;
  uint32_t num_global_buffers = 0;
  uint32_t num_columns = 0;
  std::string_view version;  // as users know it, such as "2.1"
};

// From the last bytes of a file of `file_size` bytes. Unsupported for a version that is not known.
Footer parse_footer(Span tail, uint64_t file_size);

// Position and size, from an entry of a table of offsets of a file of `file_size` bytes.
Range parse_table_entry(Span entry, uint64_t file_size);

}  // namespace lance
