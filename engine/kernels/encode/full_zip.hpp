#pragma once

#include <vector>

#include "encode/levels.hpp"
#include "encode/output.hpp"
#include "encode/values.hpp"

namespace lance::encode {

struct FullZipPage {
  Output data;
  Output repetition_index;  // row starts and the total; empty for fixed-width values without lists
  unsigned bits_rep = 0, bits_def = 0;
};

// Fixed-width rows of whole bytes (format 2.1, full-zip layout). `layers` holds the fixed-size lists around
// the values; where their items are null, each row carries that validity in front of its data. `bits` = 1 is
// allowed inside lists with rows of whole bytes.
FullZipPage encode_full_zip_fixed(const Bytes& values, uint64_t bits, uint64_t offset, uint64_t count,
                                  const std::vector<FixedSizeListLayer>& layers, const Levels& levels);

// Values of any length, each after its length.
FullZipPage encode_full_zip_variable(const VariableInput& input, const Levels& levels);

}  // namespace lance::encode
