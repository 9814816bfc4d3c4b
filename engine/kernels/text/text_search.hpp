#pragma once

#include <cstdint>
#include <span>

#include "search/row_set.hpp"
#include "search/top_k.hpp"
#include "text/occurrences.hpp"
#include "text/postings.hpp"

namespace lance {

// A term of a query in one part of an index. A term without documents has no postings.
struct SearchTerm {
  const Postings* postings;
  float weight;    // rarity, boost and the constant factor of BM25
  uint32_t group;  // the word of the query that it stands for, ascending
};

struct TextQuery {
  std::span<const SearchTerm> terms;
  uint32_t groups = 0;             // how many words a document needs; 0 for any
  const Phrase* phrase = nullptr;  // of all terms
  double mean_length = 1;          // of all documents
};

// Offers the documents that match to `best`, with their scores negated, if their rows are allowed. Windows of
// documents are left out where the best scores of blocks show that nothing in them can be among the best.
void search_text(const Documents& documents, const TextQuery& query, const RowSet& allowed, TopK& best);

}  // namespace lance
