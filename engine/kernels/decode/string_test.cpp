#include <algorithm>
#include <cstring>
#include <numeric>

#include "decode/fsst.hpp"
#include "decode/value_test.hpp"

namespace lance {

namespace {

// A state for every byte of the pieces, the one that accepts, and a dead one must fit into a byte.
constexpr size_t kMaxStates = 250;

// Length of the longest proper prefix of `text` that ends at each place (Knuth, Morris and Pratt).
std::vector<size_t> borders(const std::string& text) {
  std::vector<size_t> found(text.size() + 1, 0);
  for (size_t i = 1, length = 0; i < text.size(); ++i) {
    while (length && text[i] != text[length]) length = found[length];
    if (text[i] == text[length]) ++length;
    found[i + 1] = length;
  }
  return found;
}

}  // namespace

StringTest::StringTest(std::vector<std::string> pieces, bool at_start, bool at_end, bool negate,
                       bool ignore_case)
    : pieces_(std::move(pieces)),
      at_start_(at_start),
      at_end_(at_end),
      negate_(negate),
      ignore_case_(ignore_case) {
  if (ignore_case_)
    for (std::string& piece : pieces_)
      for (char& byte : piece)
        if (byte >= 'A' && byte <= 'Z') byte = static_cast<char>(byte - 'A' + 'a');
  size_t states = 2;
  for (const std::string& piece : pieces_) states += piece.size();
  if (states > kMaxStates) throw std::invalid_argument("the text to look for is too long");
  if (pieces_.empty()) {
    if (at_start_ && at_end_) throw std::invalid_argument("equality needs a value");
    at_end_ = false;
  }
  size_t dead = states - 1;
  next_.resize(states);
  if (at_start_ && !pieces_.empty()) dead_ = static_cast<int>(dead);
  next_[dead].fill(static_cast<uint8_t>(dead));
  size_t base = 0;
  for (size_t k = 0; k < pieces_.size(); ++k) {
    const std::string& piece = pieces_[k];
    bool anchored = k == 0 && at_start_;
    std::vector<size_t> border = borders(piece);
    bool last = k + 1 == pieces_.size();
    // The state after the piece is the first of the next one, or the one that accepts.
    for (size_t j = 0; j <= piece.size(); ++j) {
      bool complete = j == piece.size();
      if (complete && !(last && at_end_)) break;
      Row& row = next_[base + j];
      if (anchored)
        row.fill(static_cast<uint8_t>(dead));
      else
        for (unsigned byte = 0; byte < 256; ++byte) {
          size_t length = complete ? border[j] : j;
          while (length && static_cast<uint8_t>(piece[length]) != byte) length = border[length];
          bool advances = !piece.empty() && static_cast<uint8_t>(piece[length]) == byte;
          row[byte] = static_cast<uint8_t>(base + length + advances);
        }
      if (anchored && !complete) row[static_cast<uint8_t>(piece[j])] = static_cast<uint8_t>(base + j + 1);
    }
    base += piece.size();
  }
  accept_ = static_cast<uint8_t>(base);
  absorbing_ = !at_end_;
  if (absorbing_) next_[accept_].fill(accept_);
  if (ignore_case_)
    for (Row& row : next_) std::copy_n(row.begin() + 'a', 26, row.begin() + 'A');
}

bool StringTest::accepts(const uint8_t* bytes, uint64_t size) const {
  uint8_t state = 0;
  for (uint64_t i = 0; i < size; ++i) {
    state = next_[state][bytes[i]];
    if (state == dead_ || (absorbing_ && state == accept_)) break;
  }
  return state == accept_;
}

template <typename Offset>
void StringTest::test_plain(const uint8_t* bytes, const uint8_t* offsets, uint64_t count, Bits& out) const {
  auto offset = [&](uint64_t i) { return load<Offset>(offsets + i * sizeof(Offset)); };
  if (pieces_.size() == 1 && at_start_ && at_end_ && !ignore_case_) {
    const std::string& wanted = pieces_.front();
    return append_tests(out, count, [&](uint64_t i) {
      uint64_t from = offset(i), size = offset(i + 1) - from;
      bool same = size == wanted.size() && (size == 0 || std::memcmp(bytes + from, wanted.data(), size) == 0);
      return same != negate_;
    });
  }
  if (pieces_.empty() || at_start_ || ignore_case_ || pieces_.front().empty() || count == 0)
    return append_tests(out, count, [&](uint64_t i) {
      return accepts(bytes + offset(i), offset(i + 1) - offset(i)) != negate_;
    });
  // The first piece is looked for in all strings at once; most lack it.
  const std::string& first = pieces_.front();
  const uint8_t* end = bytes + offset(count);
  const uint8_t* hit = bytes + offset(0);
  auto search = [&](const uint8_t* from) {
    if (from >= end) return end;
    const void* found = memmem(from, static_cast<size_t>(end - from), first.data(), first.size());
    return found ? static_cast<const uint8_t*>(found) : end;
  };
  hit = hit == end ? end : search(hit);
  append_tests(out, count, [&](uint64_t i) {
    const uint8_t* stop = bytes + offset(i + 1);
    if (hit >= stop) return negate_;
    bool found = accepts(bytes + offset(i), offset(i + 1) - offset(i));
    hit = search(stop);
    return found != negate_;
  });
}

Remembered<std::vector<StringTest::Row>>::Pointer StringTest::symbols_of(const FsstTable& table) const {
  return coded_.of(table.identity(), [&] {
    auto rows = std::make_unique<std::vector<Row>>(next_.size());
    for (size_t state = 0; state < next_.size(); ++state)
      for (unsigned code = 0; code < FsstTable::kEscape; ++code) {
        Span symbol = table.symbol(static_cast<uint8_t>(code));
        auto reached = static_cast<uint8_t>(state);
        for (uint64_t i = 0; i < symbol.size; ++i) reached = next_[reached][symbol.data[i]];
        (*rows)[state][code] = reached;
      }
    return rows;
  });
}

template <typename Offset>
void StringTest::test_coded(const FsstTable& table, const uint8_t* bytes, const uint8_t* offsets,
                            uint64_t count, Bits& out) const {
  const auto rows = symbols_of(table);
  const Row* next = rows->data();
  const int dead = dead_;
  const int stop = absorbing_ ? accept_ : dead_;
  append_tests(out, count, [&](uint64_t i) {
    const uint8_t* at = bytes + load<Offset>(offsets + i * sizeof(Offset));
    const uint8_t* end = bytes + load<Offset>(offsets + (i + 1) * sizeof(Offset));
    uint8_t state = 0;
    while (at < end && state != dead && state != stop) {
      uint8_t code = *at++;
      if (code != FsstTable::kEscape) [[likely]] {
        state = next[state][code];
        continue;
      }
      check(at < end, "an FSST value ends inside an escape");
      state = next_[state][*at++];
    }
    return (state == accept_) != negate_;
  });
}

void StringTest::test(const LeafValues& values, Bits& out) const {
  if (values.type().offset_width() == 4)
    test_plain<uint32_t>(values.data.data(), values.offsets.data(), values.length(), out);
  else
    test_plain<uint64_t>(values.data.data(), values.offsets.data(), values.length(), out);
}

template void StringTest::test_plain<uint32_t>(const uint8_t*, const uint8_t*, uint64_t, Bits&) const;
template void StringTest::test_plain<uint64_t>(const uint8_t*, const uint8_t*, uint64_t, Bits&) const;
template void StringTest::test_coded<uint32_t>(const FsstTable&, const uint8_t*, const uint8_t*, uint64_t,
                                               Bits&) const;
template void StringTest::test_coded<uint64_t>(const FsstTable&, const uint8_t*, const uint8_t*, uint64_t,
                                               Bits&) const;

}  // namespace lance
