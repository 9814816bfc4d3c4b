#pragma once

#include <optional>
#include <vector>

#include "decode/fsst.hpp"
#include "decode/page.hpp"

namespace lance {

// How single values are compressed (format 2.1, full-zip).
class ValueCodec {
 public:
  ValueCodec() = default;
  ValueCodec(ZipCodec codec, const std::vector<uint8_t>& symbol_table);
  // Appends what a stored value stands for.
  void append(Span value, Bytes& out) const;

 private:
  ZipCodec codec_ = ZipCodec::kPlain;
  std::optional<FsstTable> table_;
};

// The rows of a variable packed struct (format 2.2). They are decoded to rows of one shape, whatever the
// page: fields of fixed width as they are, fixed-size lists after a bitmap for each dimension, others after
// their length in 8 bytes.
class PackedRow {
 public:
  void add(const PackedField& field);
  void append(Span row, Bytes& out) const;

 private:
  struct Field {
    uint64_t bytes;
    unsigned length_bytes;
    ValueCodec codec;
    std::vector<std::pair<uint64_t, bool>> bitmaps;  // bytes, and whether they are stored
  };
  std::vector<Field> fields_;
};

// Splits decoded rows into the children of the struct; rows without bytes are null.
std::vector<LeafValues> unpack_rows(const LeafValues& rows, const std::vector<LeafType>& children);

}  // namespace lance
