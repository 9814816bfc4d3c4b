#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "core/span.hpp"

namespace lance {

// One field of a serialised protobuf message.
struct MessageField {
  uint64_t number;
  uint32_t wire_type;
  uint64_t begin;  // where its tag stands
  uint64_t end;    // where the next field begins
  uint64_t value;  // of a varint
  Span content;    // of a length-delimited field
};

// Reads the fields of a message one after the other; CorruptData where it cannot be one. Groups, which nobody
// writes any more, are fields without content.
class MessageReader {
 public:
  explicit MessageReader(Span message) : message_(message) {}

  bool next(MessageField& field);

 private:
  uint64_t varint();
  void skip_group(uint64_t number);
  void skip(uint64_t bytes);

  Span message_;
  uint64_t position_ = 0;
};

// The fields of fragments that are requested most often, by fragment.
struct FragmentSummary {
  uint64_t size;  // of the field of the manifest, its tag included
  uint64_t id;
  uint64_t rows;
  uint64_t deleted;
  uint64_t flags;

  static constexpr uint64_t kDeletions = 1, kSpilled = 2;
};

// The summaries of the DataFragment messages that are the fields of a message; checks all that is needed to
// parse them.
std::vector<FragmentSummary> summarize_fragments(Span message);

}  // namespace lance
