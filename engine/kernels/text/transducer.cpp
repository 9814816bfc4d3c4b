#include "text/transducer.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <ranges>
#include <utility>

#include "core/errors.hpp"

namespace lance {
namespace {

// Tokens that begin alike, up to where they part.
struct Branch {
  uint32_t first, last;
  size_t begin, end;  // the bytes that they share, after those that lead here
  uint32_t next;      // the first token that is not below yet
  struct Way {
    uint8_t letter;
    uint64_t target;
    uint32_t output;
  };
  std::vector<Way> ways;
};

uint32_t bytes_for(uint64_t value) {
  return std::max(1u, (static_cast<uint32_t>(std::bit_width(value)) + 7) / 8);
}

class Writer {
 public:
  Writer() {
    number(3, 8);
    number(0, 8);
  }

  // A node with one way to the node before it, or to the end of a token. Its address.
  uint64_t link(uint8_t letter, uint64_t target) {
    const size_t common = kCommonLetters.find(static_cast<char>(letter));
    const bool is_common = common != std::string_view::npos;
    if (target == 0) {
      bytes_.push_back(0);     // no distance,
      bytes_.push_back(0x10);  // which has one byte
    }
    if (!is_common) bytes_.push_back(letter);
    bytes_.push_back(static_cast<uint8_t>((target == 0 ? 0x80 : 0xc0) | (is_common ? common + 1 : 0)));
    return bytes_.size() - 1;
  }

  uint64_t node(bool is_final, const std::vector<Branch::Way>& ways) {
    const uint64_t start = bytes_.size();
    const auto distance = [&](const Branch::Way& way) { return way.target ? start - way.target : 0; };
    uint64_t furthest = 0, most = 0;
    for (const auto& way : ways) {
      furthest = std::max(furthest, distance(way));
      most = std::max<uint64_t>(most, way.output);
    }
    const uint32_t distance_bytes = ways.empty() ? 0 : bytes_for(furthest);
    const uint32_t output_bytes = most ? bytes_for(most) : 0;
    if (is_final) number(0, output_bytes);
    if (output_bytes)
      for (const auto& way : ways | std::views::reverse) number(way.output, output_bytes);
    for (const auto& way : ways | std::views::reverse) number(distance(way), distance_bytes);
    for (const auto& way : ways | std::views::reverse) bytes_.push_back(way.letter);
    if (ways.size() > 32) {
      std::array<uint8_t, 256> places;
      places.fill(255);
      for (size_t place = 0; place < ways.size(); ++place)
        places[ways[place].letter] = static_cast<uint8_t>(place);
      bytes_.insert(bytes_.end(), places.begin(), places.end());
    }
    bytes_.push_back(static_cast<uint8_t>(distance_bytes << 4 | output_bytes));
    const bool is_short = !ways.empty() && ways.size() < 64;
    if (!is_short) bytes_.push_back(static_cast<uint8_t>(ways.size() == 256 ? 1 : ways.size()));
    bytes_.push_back(static_cast<uint8_t>((is_final ? 0x40 : 0) | (is_short ? ways.size() : 0)));
    return bytes_.size() - 1;
  }

  std::vector<uint8_t> finish(uint64_t keys, uint64_t root) {
    number(keys, 8);
    number(root, 8);
    uint32_t sum = ~0u;
    for (const uint8_t byte : bytes_) {
      sum ^= byte;
      for (int bit = 0; bit < 8; ++bit) sum = sum >> 1 ^ (sum & 1 ? 0x82f63b78u : 0);
    }
    number(std::rotr(~sum, 15) + 0xa282ead8u, 4);
    return std::move(bytes_);
  }

 private:
  void number(uint64_t value, uint32_t size) {
    for (uint32_t i = 0; i < size; ++i) bytes_.push_back(static_cast<uint8_t>(value >> (8 * i)));
  }

  std::vector<uint8_t> bytes_;
};

}  // namespace

std::vector<uint8_t> transducer_of(uint32_t count, const std::function<std::string_view(uint32_t)>& token) {
  const auto branch = [&](uint32_t first, uint32_t last, size_t begin) {
    size_t end = begin;
    if (first < last) {
      const std::string_view low = token(first), high = token(last - 1);
      check(first + 1 == last || low < high, "the tokens of a set do not ascend");
      end = static_cast<size_t>(std::ranges::mismatch(low, high).in1 - low.begin());
    }
    const bool is_final = first < last && token(first).size() == end;
    return Branch{first, last, begin, end, first + is_final, {}};
  };
  Writer writer;
  std::vector<Branch> path;
  path.push_back(branch(0, count, 0));
  for (;;) {
    Branch& top = path.back();
    if (top.next < top.last) {
      const char letter = token(top.next)[top.end];
      const auto others = std::views::iota(top.next + 1, top.last);
      const auto after = std::ranges::partition_point(
          others, [&](uint32_t place) { return token(place)[top.end] == letter; });
      const uint32_t last = top.next + 1 + static_cast<uint32_t>(after - others.begin());
      path.push_back(branch(top.next, last, top.end + 1));
      continue;
    }
    const bool is_final = top.first < top.last && token(top.first).size() == top.end;
    const bool is_root = path.size() == 1;
    // The end of a token that begins no other has no node.
    uint64_t address = 0;
    if (!top.ways.empty() || !is_final || (is_root && top.end == 0))
      address = writer.node(is_final, top.ways);
    for (size_t at = top.end; at-- > top.begin;)
      address = writer.link(static_cast<uint8_t>(token(top.first)[at]), address);
    if (is_root) return writer.finish(count, address);
    const Branch below = std::move(top);
    path.pop_back();
    Branch& parent = path.back();
    const auto letter = static_cast<uint8_t>(token(below.first)[parent.end]);
    parent.ways.push_back({letter, address, below.first - parent.first});
    parent.next = below.last;
  }
}

}  // namespace lance
