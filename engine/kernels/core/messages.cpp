// Protobuf messages as bytes: parsed without creating objects for fields that are not requested.
#include "core/messages.hpp"

#include "core/jsonb.hpp"

namespace lance {
namespace {

using jsonb::is_utf8;

constexpr uint32_t kVarint = 0, kFixed64 = 1, kBytes = 2, kGroup = 3, kGroupEnd = 4, kFixed32 = 5;
constexpr uint64_t kMaxFieldNumber = (1u << 29) - 1;
constexpr uint64_t kFragments = 2;  // of a manifest
constexpr int kMaxGroups = 100;

void check_packed(Span values) {
  for (uint64_t i = 0; i < values.size;) {
    uint64_t length = 1;
    while (i < values.size && (values.data[i] & 0x80) != 0) ++i, ++length;
    check(i < values.size && length <= 10, "a number in a message does not end");
    ++i;
  }
}

// Submessages that are not needed here, such as map entries of strings.
void check_fields(Span message) {
  MessageReader reader(message);
  MessageField field;
  while (reader.next(field)) {
  }
}

void check_data_file(Span message) {
  MessageReader reader(message);
  MessageField field;
  while (reader.next(field)) {
    if (field.wire_type != kBytes) continue;
    if (field.number == 1) check(is_utf8(field.content), "a file name that is not UTF-8");
    if (field.number == 2 || field.number == 3) check_packed(field.content);
  }
}

uint64_t deleted_rows(Span message, uint64_t before) {
  MessageReader reader(message);
  MessageField field;
  while (reader.next(field)) {
    if (field.number == 4 && field.wire_type == kVarint) before = field.value;
  }
  return before;
}

void check_metadata(Span entry) {
  MessageReader reader(entry);
  MessageField field;
  while (reader.next(field)) {
    if (field.wire_type == kBytes && (field.number == 1 || field.number == 2)) {
      check(is_utf8(field.content), "metadata of a fragment that is not UTF-8");
    }
  }
}

FragmentSummary summarize(Span message, uint64_t size) {
  FragmentSummary found{size, 0, 0, 0, 0};
  MessageReader reader(message);
  MessageField field;
  while (reader.next(field)) {
    if (field.wire_type == kVarint) {
      if (field.number == 1) found.id = field.value;
      if (field.number == 4) found.rows = field.value;
    } else if (field.wire_type == kBytes) {
      switch (field.number) {
        case 2:
          check_data_file(field.content);
          break;
        case 3:
          found.deleted = deleted_rows(field.content, found.deleted);
          found.flags |= FragmentSummary::kDeletions;
          break;
        case 12:
        case 13:
        case 14:
          check_fields(field.content);
          found.flags |= FragmentSummary::kSpilled;
          break;
        case 16:
          check_metadata(field.content);
          break;
        default:
          break;
      }
    }
  }
  return found;
}

}  // namespace

bool MessageReader::next(MessageField& field) {
  if (position_ == message_.size) return false;
  field.begin = position_;
  const uint64_t tag = varint();
  field.number = tag >> 3;
  field.wire_type = static_cast<uint32_t>(tag & 7);
  field.value = 0;
  field.content = {};
  check(field.number >= 1 && field.number <= kMaxFieldNumber, "a message has a field without a number");
  switch (field.wire_type) {
    case kVarint:
      field.value = varint();
      break;
    case kFixed64:
      skip(8);
      break;
    case kBytes: {
      const uint64_t length = varint();
      field.content = message_.sub(position_, length);
      position_ += length;
      break;
    }
    case kGroup:
      skip_group(field.number);
      break;
    case kFixed32:
      skip(4);
      break;
    default:
      check(false, "a message has a field of an unknown kind");
  }
  field.end = position_;
  return true;
}

uint64_t MessageReader::varint() {
  uint64_t value = 0;
  for (int shift = 0; shift < 70; shift += 7) {
    const auto byte = message_.at<uint8_t>(position_++);
    value |= shift < 64 ? static_cast<uint64_t>(byte & 0x7F) << shift : 0;
    if (byte < 0x80) return value;
  }
  check(false, "a number in a message does not end");
  return 0;
}

void MessageReader::skip(uint64_t bytes) {
  message_.sub(position_, bytes);
  position_ += bytes;
}

void MessageReader::skip_group(uint64_t number) {
  std::vector<uint64_t> open{number};
  while (!open.empty()) {
    check(open.size() <= kMaxGroups, "the groups of a message are nested too deeply");
    const uint64_t tag = varint();
    switch (tag & 7) {
      case kVarint:
        varint();
        break;
      case kFixed64:
        skip(8);
        break;
      case kBytes:
        skip(varint());
        break;
      case kGroup:
        open.push_back(tag >> 3);
        break;
      case kGroupEnd:
        check(tag >> 3 == open.back(), "a group of a message ends as another one");
        open.pop_back();
        break;
      case kFixed32:
        skip(4);
        break;
      default:
        check(false, "a message has a field of an unknown kind");
    }
  }
}

std::vector<FragmentSummary> summarize_fragments(Span message) {
  std::vector<FragmentSummary> found;
  MessageReader reader(message);
  MessageField field;
  while (reader.next(field)) {
    check(field.number == kFragments && field.wire_type == kBytes, "a field that is not a fragment");
    found.push_back(summarize(field.content, field.end - field.begin));
  }
  return found;
}

}  // namespace lance
