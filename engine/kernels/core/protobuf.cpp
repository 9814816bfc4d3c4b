#include "core/protobuf.hpp"

#include "core/messages.hpp"

namespace lance {

namespace {

constexpr uint32_t kVarint = 0, kLengthDelimited = 2;

// Reads one of the numbers of a packed list and moves on past it.
uint64_t read_varint(Span bytes, uint64_t& at) {
  uint64_t value = 0;
  for (unsigned shift = 0; shift < 64; shift += 7) {
    check(at < bytes.size, "a message ends inside a number");
    uint8_t byte = bytes.data[at++];
    check(shift < 63 || byte <= 1, "a number of a message has more than 64 bits");
    value |= uint64_t{byte & 0x7fu} << shift;
    if (byte < 0x80) return value;
  }
  throw CorruptData("a number of a message has more than 64 bits");
}

}  // namespace

template <typename Visit>
void Message::visit(Visit visit) const {
  MessageReader reader(bytes_);
  MessageField field;
  while (reader.next(field)) visit(field);
}

uint64_t Message::number(uint32_t field) const {
  uint64_t value = 0;
  visit([&](const MessageField& found) {
    if (found.number != field) return;
    check(found.wire_type == kVarint, "a field of a message is not a number");
    value = found.value;
  });
  return value;
}

std::optional<Span> Message::bytes(uint32_t field) const {
  std::optional<Span> bytes;
  visit([&](const MessageField& found) {
    if (found.number != field) return;
    check(found.wire_type == kLengthDelimited, "a field of a message has no length");
    check(!bytes, "a message says something twice");
    bytes = found.content;
  });
  return bytes;
}

std::string_view Message::text(uint32_t field) const {
  Span found = bytes(field).value_or(Span{});
  return {reinterpret_cast<const char*>(found.data), found.size};
}

Message Message::message(uint32_t field) const {
  return Message(bytes(field).value_or(Span{}));
}

std::vector<uint64_t> Message::numbers(uint32_t field) const {
  std::vector<uint64_t> values;
  visit([&](const MessageField& found) {
    if (found.number != field) return;
    if (found.wire_type == kVarint) {
      values.push_back(found.value);
      return;
    }
    check(found.wire_type == kLengthDelimited, "a field of a message is not a list of numbers");
    for (uint64_t at = 0; at < found.content.size;) values.push_back(read_varint(found.content, at));
  });
  return values;
}

std::vector<Message> Message::messages(uint32_t field) const {
  std::vector<Message> messages;
  visit([&](const MessageField& found) {
    if (found.number != field) return;
    check(found.wire_type == kLengthDelimited, "a field of a message is not a message");
    messages.emplace_back(found.content);
  });
  return messages;
}

Message::Alternative Message::alternative(uint32_t known) const {
  Alternative chosen;
  visit([&](const MessageField& found) {
    if (found.number > known) {
      if (chosen.number == 0) chosen.number = found.number;
      return;
    }
    check(found.wire_type == kLengthDelimited, "a field of a message is not a message");
    check(chosen.number == 0 || chosen.number > known, "a message says two things at once");
    chosen = {found.number, Message(found.content)};
  });
  return chosen;
}

}  // namespace lance
