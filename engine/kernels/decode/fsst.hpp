#pragma once

#include <cstdint>
#include <memory>

#include "core/span.hpp"

namespace lance {

// Symbols of one FSST-coded page (format 2.1, FSST): at most 255 strings of 1 to 8 bytes; code 255 escapes a
// literal.
class FsstTable {
 public:
  explicit FsstTable(Span bytes);

  bool coded() const { return coded_; }
  // Longest output of `bytes` coded bytes, without the slack for whole-word stores.
  static uint64_t bound(uint64_t bytes) { return bytes * 8; }
  // Decodes into `out`, which must have room for bound(size) + 8 bytes; returns the end of the output.
  uint8_t* decode(const uint8_t* in, uint64_t size, uint8_t* out) const;

 private:
  static constexpr uint8_t kEscape = 255;
  bool coded_;
  uint64_t symbols_[256] = {};
  uint8_t lengths_[256] = {};
};

}  // namespace lance
