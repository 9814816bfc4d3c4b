#pragma once

#include <memory>
#include <optional>

#include "encode/output.hpp"
#include "encode/values.hpp"

namespace lance::encode {

struct FsstPage {
  Output symbol_table;  // 2312 bytes as the page layout carries them
  std::shared_ptr<const VariableInput> values;
};

// Codes every value with a table of up to 255 symbols of 1 to 8 bytes trained on a sample of them
// (format 2.1, FSST). Returns nothing when the sample says that less than a tenth would be saved.
std::optional<FsstPage> encode_fsst(const VariableInput& input);

}  // namespace lance::encode
