#include "encode/fsst.hpp"

#include <algorithm>
#include <array>
#include <limits>

#include "encode/variable_builder.hpp"

namespace lance::encode {
namespace {

constexpr size_t kMaxSymbols = 255;
constexpr unsigned kMaxLength = 8;
constexpr uint8_t kEscape = 255;
constexpr size_t kSampleBytes = 16384;
constexpr size_t kSamplePieces = 64;
constexpr int kRounds = 6;
constexpr size_t kTableBytes = 2312;

struct Symbol {
  uint64_t bytes = 0;  // first byte lowest, zero padded
  unsigned length = 0;

  bool operator==(const Symbol&) const = default;
};

uint64_t low_bytes(unsigned count) {
  return count >= 8 ? ~uint64_t{0} : (uint64_t{1} << (8 * count)) - 1;
}

// Up to eight bytes from `at`, where only `available` bytes exist.
uint64_t load_word(const uint8_t* at, size_t available) {
  if (available >= 8) [[likely]]
    return load<uint64_t>(at);
  uint64_t word = 0;
  std::memcpy(&word, at, available);
  return word;
}

}  // namespace

// Finds the symbol to code next: one candidate of three bytes or more, chosen by the first three, then those
// of two bytes and one.
class SymbolMatcher {
 public:
  // Position in `symbols()`, or kNone for a byte that has to be escaped.
  static constexpr uint16_t kNone = 256;
  struct Match {
    uint16_t symbol;
    unsigned length;
  };

  SymbolMatcher() {
    short_.fill(kNone);
    long_.fill({0, kNone, 9});
  }

  const std::vector<Symbol>& symbols() const { return symbols_; }

  // Adds a symbol unless it would hide one that was added before.
  void add(const Symbol& symbol) {
    const uint16_t number = static_cast<uint16_t>(symbols_.size());
    if (symbol.length >= 3) {
      Long& slot = long_[hash(symbol.bytes)];
      if (slot.symbol != kNone) return;
      slot = {symbol.bytes, number, static_cast<uint16_t>(symbol.length)};
    } else if (symbol.length == 2) {
      short_[symbol.bytes] = number | kTwoBytes;
    } else {
      for (size_t next = 0; next < 256; ++next) {
        uint16_t& slot = short_[symbol.bytes | next << 8];
        if ((slot & kTwoBytes) == 0) slot = number;
      }
      single_[symbol.bytes] = number + 1;
    }
    symbols_.push_back(symbol);
  }

  // `word` holds the next eight bytes, `remaining` of which belong to the value.
  Match find(uint64_t word, size_t remaining) const {
    const Long& candidate = long_[hash(word)];
    const uint64_t difference = (word ^ candidate.bytes) & kMasks[candidate.length];
    // Selected without a branch: which length comes next is unpredictable.
    const bool fits = (difference == 0) & (candidate.length <= remaining);
    const uint16_t found = short_[word & 0xFFFF];
    const unsigned symbol = fits ? candidate.symbol : found & (kTwoBytes - 1);
    const unsigned length = fits ? candidate.length : 1 + (found >> kTwoBytesShift);
    if (length > remaining) [[unlikely]] {
      const uint16_t single = single_[word & 0xFF];
      return {single == 0 ? kNone : static_cast<uint16_t>(single - 1), 1};
    }
    return {static_cast<uint16_t>(symbol), length};
  }

 private:
  struct Long {
    uint64_t bytes;
    uint16_t symbol, length;
  };
  static constexpr unsigned kTwoBytesShift = 12;
  static constexpr uint16_t kTwoBytes = 1 << kTwoBytesShift;
  static constexpr std::array<uint64_t, 10> kMasks = {0,
                                                      0xFF,
                                                      0xFFFF,
                                                      0xFFFFFF,
                                                      0xFFFFFFFF,
                                                      0xFFFFFFFFFF,
                                                      0xFFFFFFFFFFFF,
                                                      0xFFFFFFFFFFFFFF,
                                                      ~uint64_t{0},
                                                      ~uint64_t{0}};
  static size_t hash(uint64_t word) { return ((word & 0xFFFFFF) * 0x9E3779B1u >> 15) & 2047; }

  std::array<Long, 2048> long_;
  std::array<uint16_t, 65536> short_;
  std::array<uint16_t, 256> single_{};  // symbol number + 1
  std::vector<Symbol> symbols_;
};

namespace {

using Sample = std::vector<std::span<const uint8_t>>;

// Evenly spaced pieces of the values, about 16 KiB in all; those of the other sample are half-way between.
Sample take_sample(const VariableInput& input, bool other) {
  Sample sample;
  const uint64_t count = input.count();
  const uint64_t pieces = std::min<uint64_t>(count, kSamplePieces);
  for (uint64_t piece = 0; piece < pieces; ++piece) {
    size_t budget = kSampleBytes / pieces;
    const uint64_t stop = (piece + 1) * count / pieces;
    for (uint64_t i = (2 * piece + other) * count / (2 * pieces); i < stop && budget > 0; ++i) {
      const auto value = input[i].first(std::min(input[i].size(), budget));
      if (!value.empty()) sample.push_back(value);
      budget -= value.size();
    }
  }
  return sample;
}

// What candidates for symbols save, in all the ways in which they come about.
class Gains {
 public:
  void clear() {
    candidates_.clear();
    slots_.assign(kSlots, kFree);
  }

  void add(const Symbol& symbol, uint64_t gain) {
    size_t at = place_of(symbol);
    while (slots_[at] != kFree && candidates_[slots_[at]].symbol != symbol)
      at = (at + 1) & (slots_.size() - 1);
    if (slots_[at] != kFree) {
      candidates_[slots_[at]].gain += gain;
      return;
    }
    slots_[at] = static_cast<uint32_t>(candidates_.size());
    candidates_.push_back({symbol, gain});
    if (candidates_.size() * 2 > slots_.size()) grow();
  }

  // Calls `visit` with one symbol after the other, those that save most first, until it has enough. Only as
  // many as may be wanted are put in order.
  template <typename Visit>
  void visit_best(Visit visit) {
    for (size_t done = 0; done < candidates_.size();) {
      const auto from = candidates_.begin() + static_cast<ptrdiff_t>(done);
      const size_t end = std::min(candidates_.size(), done + kAtOnce);
      const auto to = candidates_.begin() + static_cast<ptrdiff_t>(end);
      if (to != candidates_.end()) std::nth_element(from, to, candidates_.end(), better);
      std::sort(from, to, better);
      for (; done < end; ++done)
        if (!visit(candidates_[done].symbol)) return;
    }
  }

 private:
  struct Candidate {
    Symbol symbol;
    uint64_t gain;
  };
  static constexpr uint32_t kFree = UINT32_MAX;
  static constexpr size_t kSlots = 1 << 14;
  static constexpr size_t kAtOnce = 512;

  // Without ties, so that the same values always get the same table.
  static bool better(const Candidate& a, const Candidate& b) {
    if (a.gain != b.gain) return a.gain > b.gain;
    if (a.symbol.bytes != b.symbol.bytes) return a.symbol.bytes < b.symbol.bytes;
    return a.symbol.length < b.symbol.length;
  }

  size_t place_of(const Symbol& symbol) const {
    const uint64_t mixed = (symbol.bytes ^ uint64_t{symbol.length} << 59) * 0x9E3779B97F4A7C15;
    return mixed >> 40 & (slots_.size() - 1);
  }

  void grow() {
    slots_.assign(slots_.size() * 2, kFree);
    for (uint32_t i = 0; i < candidates_.size(); ++i) {
      size_t at = place_of(candidates_[i].symbol);
      while (slots_[at] != kFree) at = (at + 1) & (slots_.size() - 1);
      slots_[at] = i;
    }
  }

  std::vector<Candidate> candidates_;
  std::vector<uint32_t> slots_;
};

// How often codes, and pairs of neighbouring codes, occur. Codes below 256 are escaped bytes, the rest
// symbols.
class Counts {
 public:
  static constexpr size_t kCodes = 512;

  // Codes the sample; returns the number of bytes that takes.
  size_t count(const SymbolMatcher& matcher, const Sample& sample) {
    single_.assign(kCodes, 0);
    pair_.assign(kCodes * kCodes, 0);
    size_t coded = 0;
    sampled_ = 0;
    for (const auto& value : sample) {
      sampled_ += value.size();
      size_t previous = kCodes;
      for (size_t at = 0; at < value.size();) {
        const uint64_t word = load_word(value.data() + at, value.size() - at);
        const auto match = matcher.find(word, value.size() - at);
        const size_t byte = word & 0xFF;
        const size_t code = match.symbol == SymbolMatcher::kNone ? byte : 256 + match.symbol;
        coded += match.symbol == SymbolMatcher::kNone ? 2 : 1;
        ++single_[code];
        // Also consider to continue with one byte only: symbols then grow byte by byte.
        if (match.length > 1) ++single_[byte];
        if (previous != kCodes) {
          ++pair_[previous * kCodes + code];
          if (match.length > 1) ++pair_[previous * kCodes + byte];
        }
        previous = code;
        at += match.length;
      }
    }
    return coded;
  }

  // The table of the symbols and pairs that save most.
  std::unique_ptr<SymbolMatcher> best_symbols(const SymbolMatcher& matcher) {
    gains_.clear();
    // In a large sample, most of what occurs does so once or twice, and says nothing.
    const unsigned least = sampled_ > kSampleBytes / 2 ? 3 : 1;
    const auto symbol_of = [&](size_t code) {
      return code < 256 ? Symbol{code, 1} : matcher.symbols()[code - 256];
    };
    for (size_t first = 0; first < kCodes; ++first) {
      if (single_[first] == 0) continue;
      const Symbol left = symbol_of(first);
      // A byte without a symbol costs two bytes: single bytes are worth more than their length.
      gains_.add(left, uint64_t{single_[first]} * (left.length == 1 ? 8 : left.length));
      if (left.length == kMaxLength) continue;
      const uint16_t* pairs = &pair_[first * kCodes];
      for (size_t second = 0; second < kCodes; ++second) {
        // Few pairs occur: four at a time are passed over.
        if (second % 4 == 0 && load<uint64_t>(reinterpret_cast<const uint8_t*>(pairs + second)) == 0) {
          second += 3;
          continue;
        }
        if (pairs[second] < least) continue;
        const Symbol right = symbol_of(second);
        const unsigned length = std::min(kMaxLength, left.length + right.length);
        const uint64_t bytes = (left.bytes | right.bytes << (8 * left.length)) & low_bytes(length);
        gains_.add({bytes, length}, uint64_t{pairs[second]} * length);
      }
    }
    auto next = std::make_unique<SymbolMatcher>();
    gains_.visit_best([&](const Symbol& symbol) {
      next->add(symbol);
      return next->symbols().size() < kMaxSymbols;
    });
    return next;
  }

 private:
  size_t sampled_ = 0;
  std::vector<uint32_t> single_;
  std::vector<uint16_t> pair_;  // the sample is shorter than 2^16 bytes
  Gains gains_;
};

struct Trained {
  std::unique_ptr<SymbolMatcher> matcher;
  size_t plain = 0, coded = std::numeric_limits<size_t>::max();
};

Trained train(const Sample& sample) {
  Trained best;
  for (const auto& value : sample) best.plain += value.size();
  auto matcher = std::make_unique<SymbolMatcher>();
  Counts counts;
  for (int round = 0;; ++round) {
    const size_t coded = counts.count(*matcher, sample);
    std::unique_ptr<SymbolMatcher> next;
    if (round < kRounds) next = counts.best_symbols(*matcher);
    if (coded < best.coded) {
      best.coded = coded;
      best.matcher = std::move(matcher);
    }
    if (!next) return best;
    matcher = std::move(next);
  }
}

size_t coded_size(std::span<const uint8_t> value, const SymbolMatcher& matcher) {
  size_t coded = 0;
  for (size_t at = 0; at < value.size();) {
    const auto match = matcher.find(load_word(value.data() + at, value.size() - at), value.size() - at);
    coded += match.symbol == SymbolMatcher::kNone ? 2 : 1;
    at += match.length;
  }
  return coded;
}

void write_symbol_table(const std::vector<Symbol>& symbols, Output& out) {
  uint8_t* table = out.extend(kTableBytes);
  std::memset(table, 0, kTableBytes);
  table[0] = static_cast<uint8_t>(symbols.size());
  table[3] = 1;
  std::memcpy(table + 4, "TSSF", 4);
  for (size_t i = 0; i < symbols.size(); ++i) {
    std::memcpy(table + 8 + 8 * i, &symbols[i].bytes, 8);
    table[8 + 8 * symbols.size() + i] = static_cast<uint8_t>(symbols[i].length);
  }
}

std::shared_ptr<const VariableInput> code_values(const VariableInput& input, const SymbolMatcher& matcher) {
  VariableBuilder coded(input.offset_bits(), input.count());
  Output& bytes = coded.bytes();
  bytes.reserve(input.total_bytes() / 2 + 64);
  const uint8_t* const readable = input.data_end();
  for (uint64_t i = 0; i < input.count(); ++i) {
    const auto value = input[i];
    const uint8_t* at = value.data();
    size_t remaining = value.size();
    const size_t begin = bytes.size();
    uint8_t* const target = bytes.extend(2 * remaining + 1);
    uint8_t* out = target;
    while (remaining > 0) {
      const uint64_t word = load_word(at, static_cast<size_t>(readable - at));
      const auto match = matcher.find(word, remaining);
      const bool escaped = match.symbol == SymbolMatcher::kNone;
      out[0] = escaped ? kEscape : static_cast<uint8_t>(match.symbol);
      out[1] = static_cast<uint8_t>(word);
      out += 1 + escaped;
      at += match.length;
      remaining -= match.length;
    }
    bytes.shrink(begin + static_cast<size_t>(out - target));
    coded.end_value();
  }
  return coded.finish();
}

}  // namespace

std::shared_ptr<const FsstCoder> FsstCoder::train(const VariableInput& input) {
  const Sample sample = take_sample(input, false);
  if (sample.empty()) return nullptr;
  Trained trained = encode::train(sample);
  if (trained.coded * 10 > trained.plain * 9) return nullptr;
  Sample other = take_sample(input, true);
  if (other.empty()) other = sample;
  size_t plain = 0, coded = 0;
  for (const auto& value : other) {
    plain += value.size();
    coded += coded_size(value, *trained.matcher);
  }
  const double share = static_cast<double>(coded) / static_cast<double>(plain);
  return std::shared_ptr<const FsstCoder>(new FsstCoder(std::move(trained.matcher), share));
}

std::shared_ptr<const VariableInput> FsstCoder::encode(const VariableInput& input) const {
  return code_values(input, *matcher_);
}

Output FsstCoder::symbol_table() const {
  Output table;
  write_symbol_table(matcher_->symbols(), table);
  return table;
}

}  // namespace lance::encode
