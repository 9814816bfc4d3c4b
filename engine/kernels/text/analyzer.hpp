#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "text/tokenizer.hpp"
#include "text/vocabulary.hpp"

namespace lance {

// Strings of a batch, and which of them are one document.
struct Texts {
  std::span<const int64_t> offsets;  // one more than strings
  std::span<const uint8_t> bytes;
  std::span<const uint8_t> valid;       // a zero for what is null; empty if nothing is
  std::span<const int64_t> boundaries;  // of documents, as numbers of strings; empty if each string is one
};

// The tokens of documents, one after the other.
struct Tokens {
  std::vector<uint32_t> raw;
  std::vector<uint32_t> positions;
  std::vector<uint64_t> ends;  // per document
};

// Cuts texts into tokens. What filters make of a token depends on the token alone, so each different one is
// filtered once, by the caller: `unresolved` are the new ones, `resolve` takes what they become.
class Analyzer {
 public:
  static constexpr uint32_t kDropped = ~uint32_t{0};

  Analyzer(TokenizerOptions options, bool lower_ascii)
      : tokenizer_(std::move(options)), lower_ascii_(lower_ascii) {}

  Tokens split(const Texts& texts);
  // The same for binary JSON documents: path,type,value is a token for each word of a string, and for each
  // other value. The unresolved ones begin with four bytes that say how long path,type, is (or for other
  // values the whole), as filters are for words. `number_kept` sets the positions.
  Tokens split_documents(const Texts& values);
  // Number the tokens of each document, without those that filters dropped.
  void number_kept(Tokens& tokens) const;

  std::vector<std::string> unresolved() const;
  void resolve(const std::vector<std::optional<std::string>>& filtered);
  // Whether everything was resolved that `tokens` contain.
  void require_resolved() const { check(finals_.size() == raw_.size(), "tokens that were not filtered"); }

  // The number of the token that filters made from a raw one, or kDropped.
  uint32_t final_of(uint32_t raw) const { return finals_[raw]; }
  Vocabulary& finals() { return terms_; }
  const Vocabulary& finals() const { return terms_; }
  // No two analyzers have the same.
  uint64_t identity() const { return identity_; }
  uint64_t nbytes() const { return raw_.nbytes() + terms_.nbytes() + 4 * finals_.size(); }

 private:
  static uint64_t next_identity();
  std::string_view lowered(std::string_view token);

  uint64_t identity_ = next_identity();
  Tokenizer tokenizer_;
  bool lower_ascii_;
  std::string lowered_;
  Vocabulary raw_, terms_;
  std::vector<uint32_t> finals_;
};

}  // namespace lance
