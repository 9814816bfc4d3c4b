#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "text/analyzer.hpp"

namespace lance {

// What a pass over documents finds of a few terms, which are the first ones of the analyzer's vocabulary.
struct Occurrences {
  uint64_t documents = 0;  // with tokens
  uint64_t tokens = 0;
  std::vector<uint64_t> rows;       // of documents with a term
  std::vector<uint32_t> lengths;    // of these
  std::vector<uint32_t> counts;     // per document, per term
  std::vector<uint8_t> has_phrase;  // of these, if a phrase is requested

  void add(const Analyzer& analyzer, const Tokens& tokens, std::span<const uint64_t> row_ids, uint32_t terms,
           const struct Phrase* phrase);
};

// Terms in an order: term numbers with their positions, ascending, and how many positions more there may be
// between the first and the last.
struct Phrase {
  std::vector<uint32_t> terms;
  std::vector<uint32_t> offsets;
  uint32_t slop = 0;

  // Whether the phrase is among the ascending positions of its terms.
  bool in(std::span<const std::span<const uint32_t>> positions) const;
};

}  // namespace lance
