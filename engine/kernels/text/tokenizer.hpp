#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace lance {

// How text is cut into tokens, before any filter.
enum class BaseTokenizer : uint8_t { kSimple, kWhitespace, kRaw, kNgram };

struct TokenizerOptions {
  BaseTokenizer base = BaseTokenizer::kSimple;
  // A bit per code point that belongs to words; of the simple tokenizer. What is after the end does not.
  std::vector<uint8_t> alphabet;
  // Tokens of at least this many bytes are dropped; 0 means no limit.
  uint64_t max_bytes = 0;
  uint32_t min_ngram = 3, max_ngram = 3;
  bool prefix_only = false;
};

// A code point and the bytes that it takes; a byte that is not UTF-8 stands for itself and is not a letter.
struct CodePoint {
  uint32_t value;
  uint32_t bytes;
};

inline CodePoint code_point(std::string_view text, size_t at) {
  constexpr uint32_t kNone = 0x110000;
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[at + i]); };
  const uint8_t first = byte(0);
  if (first < 0x80) return {first, 1};
  const uint32_t length = first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : 2;
  if (first < 0xc2 || first > 0xf4 || length > text.size() - at) return {kNone, 1};
  uint32_t value = first & (0xffu >> (length + 1));
  for (uint32_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return {kNone, 1};
    value = value << 6 | (byte(i) & 0x3f);
  }
  return {value, length};
}

class Tokenizer {
 public:
  explicit Tokenizer(TokenizerOptions options) : options_(std::move(options)) {}

  // emit(token, position) for every token that is not too long. Returns how many positions there are.
  template <typename Emit>
  uint32_t split(std::string_view text, Emit&& emit) const {
    switch (options_.base) {
      case BaseTokenizer::kSimple:
        return runs(text, emit, [this](uint32_t point) { return is_letter(point); });
      case BaseTokenizer::kWhitespace:
        return runs(text, emit, [](uint32_t point) {
          return point != ' ' && point != '\t' && point != '\n' && point != '\r' && point != '\f';
        });
      case BaseTokenizer::kRaw:
        keep(text, 0, emit);
        return 1;
      case BaseTokenizer::kNgram:
        ngrams(text, emit);
        return 1;
    }
    return 0;
  }

 private:
  bool is_letter(uint32_t point) const {
    const size_t byte = point >> 3;
    return byte < options_.alphabet.size() && (options_.alphabet[byte] >> (point & 7) & 1);
  }

  template <typename Emit>
  void keep(std::string_view token, uint32_t position, Emit& emit) const {
    if (!options_.max_bytes || token.size() < options_.max_bytes) emit(token, position);
  }

  template <typename Emit, typename Inside>
  uint32_t runs(std::string_view text, Emit& emit, Inside inside) const {
    uint32_t position = 0;
    size_t begin = 0, at = 0;
    while (at < text.size()) {
      const CodePoint point = code_point(text, at);
      if (!inside(point.value)) {
        if (begin < at) keep(text.substr(begin, at - begin), position++, emit);
        begin = at + point.bytes;
      }
      at += point.bytes;
    }
    if (begin < at) keep(text.substr(begin), position++, emit);
    return position;
  }

  // All of the same position.
  template <typename Emit>
  void ngrams(std::string_view text, Emit& emit) const {
    std::vector<size_t> starts;
    for (size_t at = 0; at < text.size(); at += code_point(text, at).bytes) starts.push_back(at);
    starts.push_back(text.size());
    const size_t letters = starts.size() - 1;
    for (size_t first = 0; first < (options_.prefix_only ? size_t{1} : letters); ++first)
      for (size_t length = options_.min_ngram; length <= options_.max_ngram && length <= letters - first;
           ++length)
        keep(text.substr(starts[first], starts[first + length] - starts[first]), 0, emit);
  }

  TokenizerOptions options_;
};

}  // namespace lance
