#include "text/token_set.hpp"

#include <algorithm>
#include <numeric>

#include "text/tokenizer.hpp"
#include "text/transducer.hpp"

namespace lance {
namespace {

// More bytes than any index has: what claims them is damaged.
constexpr uint64_t kMostBytes = uint64_t{1} << 33;

struct Node {
  bool final = false;
  uint64_t final_output = 0;
  uint32_t transitions = 0;
  // Of several transitions: where their parts end, towards lower addresses.
  uint64_t inputs = 0, deltas = 0, outputs = 0, start = 0;
  uint32_t delta_bytes = 0, output_bytes = 0;
  // Of one transition.
  bool single = false;
  uint8_t input = 0;
  uint64_t target = 0, output = 0;
};

class Transducer {
 public:
  explicit Transducer(Span bytes) : bytes_(bytes) {
    check(bytes.size >= 36, "a set of tokens ends before its footer");
    check(bytes.at<uint64_t>(0) == 3, "a set of tokens is of another version");
    // Tokens before the footer: number of keys, root and checksum.
    root = bytes.at<uint64_t>(bytes.size - 12);
    keys = bytes.at<uint64_t>(bytes.size - 20);
    limit_ = bytes.size - 20;
  }

  uint64_t root = 0, keys = 0;

  Node node(uint64_t address) const {
    Node found;
    if (address == 0) {
      found.final = true;
      return found;
    }
    check(address < limit_, "a node of a set of tokens is not in it");
    const uint8_t state = byte(address);
    if (state & 0x80) {
      found.single = true;
      found.transitions = 1;
      uint64_t at = address;
      const uint32_t common = state & 0x3f;
      found.input = common ? static_cast<uint8_t>(kCommonLetters[common - 1]) : byte(--at);
      if (state & 0x40) {
        found.target = below(at, 1);
        return found;
      }
      const uint8_t sizes = byte(below(at, 1));
      const uint64_t deltas = below(at, 1), outputs = below(deltas, sizes >> 4);
      found.start = below(outputs, sizes & 15);
      found.output = number(found.start, sizes & 15);
      found.target = target(found.start, number(outputs, sizes >> 4));
      return found;
    }
    uint64_t at = address;
    found.final = state & 0x40;
    found.transitions = state & 0x3f;
    if (found.transitions == 0) {
      at = below(at, 1);
      found.transitions = byte(at) == 1 ? 256 : byte(at);
    }
    at = below(at, 1);
    const uint8_t sizes = byte(at);
    found.delta_bytes = sizes >> 4;
    found.output_bytes = sizes & 15;
    if (found.transitions > 32) at = below(at, 256);
    found.inputs = at;
    found.deltas = below(at, found.transitions);
    found.outputs = below(found.deltas, uint64_t{found.transitions} * found.delta_bytes);
    found.start = below(found.outputs, uint64_t{found.transitions} * found.output_bytes);
    if (found.final && found.output_bytes) {
      found.start = below(found.start, found.output_bytes);
      found.final_output = number(found.start, found.output_bytes);
    }
    return found;
  }

  struct Transition {
    uint8_t input;
    uint64_t target, output;
  };

  Transition transition(const Node& node, uint32_t number_of) const {
    if (node.single) return {node.input, node.target, node.output};
    const uint64_t place = number_of + 1;
    const uint64_t delta = number(below(node.deltas, place * node.delta_bytes), node.delta_bytes);
    const uint64_t output = number(below(node.outputs, place * node.output_bytes), node.output_bytes);
    return {byte(below(node.inputs, place)), target(node.start, delta), output};
  }

 private:
  uint8_t byte(uint64_t at) const { return bytes_.at<uint8_t>(at); }

  static uint64_t below(uint64_t at, uint64_t count) {
    check(count <= at, "a node of a set of tokens begins before it");
    return at - count;
  }

  uint64_t number(uint64_t at, uint32_t size) const {
    check(size <= 8, "a number in a set of tokens has more than 64 bits");
    const Span found = bytes_.sub(at, size);
    uint64_t value = 0;
    for (uint32_t i = 0; i < size; ++i) value |= uint64_t{found.data[i]} << (8 * i);
    return value;
  }

  // Targets are always before the node: there are no circles.
  static uint64_t target(uint64_t start, uint64_t delta) { return delta ? below(start, delta) : 0; }

  Span bytes_;
  uint64_t limit_;
};

std::vector<uint32_t> letters(std::string_view token) {
  std::vector<uint32_t> found;
  for (size_t at = 0; at < token.size();) {
    const CodePoint point = code_point(token, at);
    found.push_back(point.value);
    at += point.bytes;
  }
  return found;
}

bool similar_letters(const std::vector<uint32_t>& left, const std::vector<uint32_t>& right, uint32_t distance,
                     uint32_t prefix) {
  const size_t fixed = std::min<size_t>(prefix, left.size());
  if (right.size() < fixed ||
      !std::equal(left.begin(), left.begin() + static_cast<int64_t>(fixed), right.begin()))
    return false;
  const size_t longer = std::max(left.size(), right.size()), shorter = std::min(left.size(), right.size());
  if (longer - shorter > distance) return false;
  std::vector<uint32_t> row(right.size() + 1);
  std::iota(row.begin(), row.end(), 0u);
  for (size_t i = 1; i <= left.size(); ++i) {
    uint32_t diagonal = row[0], least = row[0] = static_cast<uint32_t>(i);
    for (size_t j = 1; j <= right.size(); ++j) {
      const uint32_t changed = diagonal + (left[i - 1] != right[j - 1]);
      diagonal = row[j];
      row[j] = std::min({changed, row[j] + 1, row[j - 1] + 1});
      least = std::min(least, row[j]);
    }
    if (least > distance) return false;
  }
  return row.back() <= distance;
}

}  // namespace

TokenSet::TokenSet(std::span<const int64_t> ends, Span bytes, std::span<const uint32_t> numbers,
                   uint32_t limit) {
  check(ends.size() == numbers.size() + 1, "a set of tokens has other tokens than numbers");
  for (size_t i = 0; i < numbers.size(); ++i) {
    check(ends[i] >= 0 && ends[i + 1] >= ends[i], "the tokens of a set do not ascend");
    const Span token =
        bytes.sub(static_cast<uint64_t>(ends[i]), static_cast<uint64_t>(ends[i + 1] - ends[i]));
    check(numbers[i] < limit, "a token has a number without a posting list");
    bytes_.append(reinterpret_cast<const char*>(token.data), token.size);
    ends_.push_back(bytes_.size());
    numbers_.push_back(numbers[i]);
    check(i == 0 || at(i - 1) < at(i), "the tokens of a set do not ascend");
  }
}

TokenSet::TokenSet(Span bytes, uint32_t limit, uint64_t total) {
  const Transducer transducer(bytes);
  check(transducer.keys <= limit && total <= kMostBytes,
        "a set of tokens has more of them than posting lists");
  // Nodes with ways that were not gone yet, and the bytes that lead to them.
  struct Level {
    Node node;
    uint32_t next;
    uint64_t output;
    size_t length;
  };
  std::vector<Level> path;
  std::string token;
  const auto enter = [&](uint64_t address, uint64_t output) {
    const Node node = transducer.node(address);
    check(node.final || node.transitions, "a node of a set of tokens has no way on");
    if (node.final) {
      const uint64_t number = output + node.final_output;
      check(numbers_.size() < transducer.keys && number < limit,
            "a token has a number without a posting list");
      bytes_.append(token);
      check(bytes_.size() <= total, "a set of tokens is larger than it says");
      ends_.push_back(bytes_.size());
      numbers_.push_back(static_cast<uint32_t>(number));
      const size_t last = numbers_.size() - 1;
      check(last == 0 || at(last - 1) < at(last), "the tokens of a set do not ascend");
    }
    if (node.transitions) path.push_back({node, 0, output, token.size()});
  };
  if (transducer.keys == 0) return;
  enter(transducer.root, 0);
  while (!path.empty()) {
    Level& level = path.back();
    token.resize(level.length);
    const auto next = transducer.transition(level.node, level.next++);
    const uint64_t output = level.output + next.output;
    if (level.next == level.node.transitions) path.pop_back();
    token.push_back(static_cast<char>(next.input));
    check(token.size() <= total, "a set of tokens is larger than it says");
    enter(next.target, output);
  }
  check(numbers_.size() == transducer.keys, "a set of tokens has fewer of them than it says");
}

std::optional<uint32_t> TokenSet::find(std::string_view token) const {
  size_t low = 0, high = size();
  while (low < high) {
    const size_t middle = (low + high) / 2;
    if (at(middle) < token) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  if (low == size() || at(low) != token) return std::nullopt;
  return numbers_[low];
}

std::vector<std::string> TokenSet::similar(std::string_view token, uint32_t distance, uint32_t prefix,
                                           size_t most) const {
  const std::vector<uint32_t> wanted = letters(token);
  std::vector<std::string> found;
  for (size_t place = 0; place < size() && found.size() < most; ++place) {
    const std::string_view other = at(place);
    // A letter has up to four bytes.
    if (other.size() > 4 * (wanted.size() + distance) || 4 * (other.size() + distance) < token.size())
      continue;
    if (similar_letters(wanted, letters(other), distance, prefix)) found.emplace_back(other);
  }
  return found;
}

}  // namespace lance
