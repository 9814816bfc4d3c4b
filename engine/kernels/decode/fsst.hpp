#pragma once

#include <cstdint>
#include <memory>

#include "core/memory.hpp"
#include "core/remembered.hpp"
#include "core/span.hpp"

namespace lance {

// Symbols of one FSST-coded page (format 2.1, FSST): at most 255 strings of 1 to 8 bytes; code 255 escapes a
// literal.
class FsstTable {
 public:
  static constexpr uint8_t kEscape = 255;

  explicit FsstTable(Span bytes);

  bool coded() const { return coded_; }
  const Identity& identity() const { return identity_; }
  // Longest output of `bytes` coded bytes, without the slack for whole-word stores.
  static uint64_t bound(uint64_t bytes) { return bytes * 8; }
  // What a code other than the escape stands for; nothing where the table has no such code.
  Span symbol(uint8_t code) const {
    return {reinterpret_cast<const uint8_t*>(&symbols_[code]), lengths_[code]};
  }
  // Decodes into `out`, which must have room for bound(size) + 8 bytes; returns the end of the output.
  uint8_t* decode(const uint8_t* in, uint64_t size, uint8_t* out) const;
  // Appends what one value decodes to.
  void append(Span codes, Bytes& out) const;

  // Decodes values that are one after the other, whose codes end at ascending `ends` (count + 1 of them,
  // the first is the start of the first value) of `codes`. Appends the values to `out` and where each ends
  // there to `targets`. `scratch` is overwritten.
  template <typename Offset>
  void decode_values(const uint8_t* codes, const uint8_t* ends, uint64_t count, Bytes& out, Offset* targets,
                     Bytes& scratch) const;

 private:
  static constexpr uint64_t kStream = 32 << 10;  // codes to decode at once
  static constexpr uint32_t kInsideEscape = uint32_t{1} << 31;
  uint64_t decoded_size(const uint8_t* in, uint64_t size) const;
  uint64_t decode_stream(const uint8_t* in, uint64_t size, uint8_t* out, uint32_t* places) const;

  Identity identity_;
  bool coded_;
  uint64_t symbols_[256] = {};
  uint8_t lengths_[256] = {};
};

}  // namespace lance
