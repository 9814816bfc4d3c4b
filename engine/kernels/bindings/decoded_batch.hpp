#pragma once

#include <cstdint>

#include "core/arrow_abi.hpp"

namespace lance {

// One decoded batch or array, waiting to be imported through the Arrow C data interface.
struct DecodedBatch {
  ArrowArray array{};
  uint64_t bytes_read = 0;  // of the files, as far as they were looked at
  DecodedBatch() = default;
  DecodedBatch(const DecodedBatch&) = delete;
  ~DecodedBatch() {
    if (array.release) array.release(&array);
  }
};

}  // namespace lance
