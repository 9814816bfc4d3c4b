#pragma once

#include <memory>
#include <utility>

#include "encode/output.hpp"
#include "encode/values.hpp"

namespace lance::encode {

class SymbolMatcher;

// Codes values with a table of up to 255 symbols of 1 to 8 bytes (format 2.1, FSST).
class FsstCoder {
 public:
  // Finds symbols in a sample of the values. Returns nothing when it says that less than a tenth would be
  // saved.
  static std::shared_ptr<const FsstCoder> train(const VariableInput& input);

  // What part of the bytes of the values is left, by a sample other than the one the symbols are from.
  double share() const { return share_; }
  std::shared_ptr<const VariableInput> encode(const VariableInput& input) const;
  // 2312 bytes, as the page layout carries them.
  Output symbol_table() const;

 private:
  FsstCoder(std::shared_ptr<const SymbolMatcher> matcher, double share)
      : matcher_(std::move(matcher)), share_(share) {}

  std::shared_ptr<const SymbolMatcher> matcher_;
  double share_;
};

}  // namespace lance::encode
