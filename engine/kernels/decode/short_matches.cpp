#include "decode/short_matches.hpp"

#include <array>
#include <cstring>

namespace lance {
namespace {

constexpr uint64_t kWord = 8;
// Blocks end with so many literals, the last match begins so many bytes before their end, and so many bytes
// follow its literals. Other blocks are left to the library.
constexpr uint64_t kLastLiterals = 5, kLastMatch = 12, kAfterLiterals = 2 + 1 + kLastLiterals;
// Of so many sequences most must be short.
constexpr uint64_t kSample = 64;

// For each number of bytes from 0 to 16: a mask of these in the first and the second word.
constexpr auto kMasks = [] {
  std::array<std::array<uint64_t, 2>, 2 * kWord + 1> masks{};
  for (uint64_t bytes = 0; bytes < masks.size(); ++bytes)
    for (uint64_t i = 0; i < bytes; ++i) masks[bytes][i / kWord] |= uint64_t{0xFF} << (8 * (i % kWord));
  return masks;
}();

uint64_t blended(uint64_t mask, const uint8_t* inside, const uint8_t* outside) {
  return (load<uint64_t>(inside) & mask) | (load<uint64_t>(outside) & ~mask);
}

class Expansion {
 public:
  Expansion(Span input, uint8_t* out, uint64_t size)
      : at_(input.data), end_(input.data + input.size), begin_(out), to_(out), stop_(out + size) {}

  bool run() {
    for (uint64_t sequences = 0, others = 1;; ++others) {
      sequences += short_sequences();
      if (others > kSample && others > sequences) return false;
      if (!literals()) return false;
      if (at_ == end_) return to_ == stop_;
      if (!match()) return false;
    }
  }

 private:
  uint64_t left() const { return static_cast<uint64_t>(end_ - at_); }
  uint64_t room() const { return static_cast<uint64_t>(stop_ - to_); }
  uint64_t written() const { return static_cast<uint64_t>(to_ - begin_); }

  // Expands sequences of a token, up to 12 literals and a match of at most two words, which is no longer than
  // its distance; returns how many there were. Uses local copies of the members, because writing bytes may
  // change members.
  uint64_t short_sequences() {
    const uint8_t* at = at_;
    uint8_t* to = to_;
    uint64_t count = 0;
    for (; static_cast<uint64_t>(end_ - at) >= 1 + 2 * kWord + kAfterLiterals &&
           static_cast<uint64_t>(stop_ - to) >= 2 * kWord + kLastMatch;
         ++count) {
      const uint64_t literals = *at >> 4, length = literals + (*at & 15) + 4;
      if (length > 2 * kWord) break;  // also where a length goes on in other bytes: 15 + 4
      const uint64_t distance = load<uint16_t>(at + 1 + literals);
      if (distance > static_cast<uint64_t>(to - begin_)) break;
      const uint8_t* from = to - distance;
      if (length <= kWord && distance >= kWord) {
        store(to, blended(kMasks[literals][0], at + 1, from));
      } else if (distance >= 2 * kWord) {
        const uint64_t first = blended(kMasks[literals][0], at + 1, from);
        const uint64_t second = blended(kMasks[literals][1], at + 1 + kWord, from + kWord);
        store(to, first);
        store(to + kWord, second);
      } else {
        break;
      }
      at += 1 + literals + 2;
      to += length;
    }
    at_ = at;
    to_ = to;
    return count;
  }

  static void store(uint8_t* to, uint64_t word) { std::memcpy(to, &word, kWord); }

  bool more(uint64_t& length) {
    if (length != 15) return true;
    uint8_t byte = 255;
    while (byte == 255) {
      if (at_ == end_) return false;
      byte = *at_++;
      length += byte;
    }
    return true;
  }

  bool literals() {
    if (at_ == end_) return false;
    token_ = *at_++;
    uint64_t count = token_ >> 4;
    if (!more(count) || count > left() || count > room()) return false;
    copy_bytes(to_, at_, count);
    at_ += count;
    to_ += count;
    return true;
  }

  bool match() {
    if (left() < kAfterLiterals || room() < kLastMatch) return false;
    const uint64_t distance = load<uint16_t>(at_);
    at_ += 2;
    uint64_t count = token_ & 15;
    if (!more(count)) return false;
    count += 4;
    if (distance == 0 || distance > written() || count + kLastLiterals > room()) return false;
    const uint8_t* from = to_ - distance;
    if (distance >= count) {
      copy_bytes(to_, from, count);
    } else {
      for (uint64_t i = 0; i < count; ++i) to_[i] = from[i];
    }
    to_ += count;
    return true;
  }

  const uint8_t* at_;
  const uint8_t* end_;
  uint8_t* begin_;
  uint8_t* to_;
  uint8_t* stop_;
  uint8_t token_ = 0;
};

}  // namespace

bool expand_short_matches(Span input, uint8_t* out, uint64_t size) {
  return Expansion(input, out, size).run();
}

}  // namespace lance
