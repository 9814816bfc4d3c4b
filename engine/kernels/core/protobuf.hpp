#pragma once

#include <cstdint>
#include <optional>
#include <stdexcept>
#include <vector>

#include "core/span.hpp"

namespace lance {

// Something that only the interpreter can read, or say what is wrong with.
struct NotUnderstood : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// The fields of a protobuf message, looked for in its bytes when they are asked for. Throws CorruptData for
// what is malformed, NotUnderstood for what has another wire type than asked for, or is there twice and must
// not be.
class Message {
 public:
  explicit Message(Span bytes) : bytes_(bytes) {}

  // A number; 0 where it is absent, the last one where there are several.
  uint64_t number(uint32_t field) const;
  // A string or the bytes of a message; nothing where it is absent.
  std::optional<Span> bytes(uint32_t field) const;
  bool has(uint32_t field) const { return bytes(field).has_value(); }
  // A message that has to be there.
  Message message(uint32_t field) const;
  // All values of a repeated field, numbers packed or not.
  std::vector<uint64_t> numbers(uint32_t field) const;
  std::vector<Message> messages(uint32_t field) const;
  // The number of the only field that is there.
  uint32_t alternative() const;

 private:
  // Calls visit(field) for every field in turn.
  template <typename Visit>
  void visit(Visit visit) const;

  Span bytes_;
};

}  // namespace lance
