#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <vector>

#include "core/span.hpp"

namespace lance {

// The fields of a protobuf message, looked for in its bytes when they are requested; what is absent has its
// default. Throws CorruptData for what is malformed, has another wire type than requested, or is there twice
// and must not be.
class Message {
 public:
  Message() = default;
  explicit Message(Span bytes) : bytes_(bytes) {}

  // A number; 0 where it is absent, the last one where there are several.
  uint64_t number(uint32_t field) const;
  // A string or the bytes of a message; nothing where it is absent.
  std::optional<Span> bytes(uint32_t field) const;
  std::string_view text(uint32_t field) const;
  bool has(uint32_t field) const { return bytes(field).has_value(); }
  Message message(uint32_t field) const;
  // All values of a repeated field, numbers packed or not.
  std::vector<uint64_t> numbers(uint32_t field) const;
  std::vector<Message> messages(uint32_t field) const;

  // The contents of a message that is one of several.
  struct Alternative;
  // One of the fields 1 to `known`, all of them messages. If none is present, the number of a field that was
  // added to the format later; 0 where there is nothing at all.
  Alternative alternative(uint32_t known) const;

 private:
  // Calls visit(field) for every field in turn.
  template <typename Visit>
  void visit(Visit visit) const;

  Span bytes_;
};

struct Message::Alternative {
  uint64_t number = 0;
  Message body;
};

}  // namespace lance
