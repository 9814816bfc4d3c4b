#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "text/analyzer.hpp"
#include "text/postings.hpp"
#include "text/vocabulary.hpp"

namespace lance {

// Posting lists of some terms, laid out for a file.
struct PostingColumns {
  std::vector<uint8_t> blocks;
  std::vector<int64_t> block_ends{0};
  std::vector<int32_t> lists{0};  // blocks of each term
  std::vector<float> best;
  std::vector<uint32_t> lengths;
  std::vector<uint8_t> positions;
  std::vector<int64_t> position_ends{0};
  std::vector<uint32_t> position_offsets;  // per block
};

// A part of an index while it is built: documents are added, in any order, then it is sorted by term.
class IndexBuilder {
 public:
  explicit IndexBuilder(bool with_positions) : with_positions_(with_positions) {}

  // Documents as they were cut; those without tokens are left out.
  void add(const Analyzer& analyzer, const Tokens& tokens, std::span<const uint64_t> rows);

  // A document of another index, without its terms yet. Returns its number.
  uint32_t add_document(uint64_t row, uint32_t length);
  // A term of another index: `numbers` are those of its documents here, or kGone.
  static constexpr uint32_t kGone = ~uint32_t{0};
  void add_postings(std::string_view term, const Postings& postings, std::span<const uint32_t> numbers);

  // Everything of another builder.
  void take(const IndexBuilder& other);

  // Sorts what was added; nothing may be added afterwards. Terms are in the order of their bytes then.
  void finish();
  uint32_t terms() const { return static_cast<uint32_t>(order_.size()); }
  std::string_view term(uint32_t number) const { return terms_.at(order_[number]); }
  PostingColumns columns(uint32_t first, uint32_t last) const;
  // The first term after `first` whose posting list ends more than this many documents later.
  uint32_t cut(uint32_t first, uint64_t documents) const;

  const std::vector<uint64_t>& rows() const { return rows_; }
  const std::vector<uint32_t>& lengths() const { return lengths_; }
  uint64_t nbytes() const {
    return terms_.nbytes() + 12 * rows_.size() + 20 * entry_terms_.size() + 8 * positions_.size();
  }

 private:
  uint32_t term_of(uint32_t number, const Analyzer& analyzer);

  bool with_positions_;
  Vocabulary terms_;
  std::vector<uint64_t> rows_;
  std::vector<uint32_t> lengths_;
  uint64_t total_ = 0;
  // One entry for each term of each document, in the order of documents.
  std::vector<uint32_t> entry_terms_, entry_docs_, entry_counts_, positions_;
  // Of terms: the document and entry that had it last.
  std::vector<uint32_t> last_doc_;
  std::vector<uint64_t> last_entry_;
  // Terms here by their number in the analyzer whose documents are added.
  std::vector<uint32_t> known_;
  uint64_t analyzer_ = 0;
  // Sorted: terms by their bytes, entries by term.
  std::vector<uint32_t> order_;
  std::vector<uint64_t> starts_, position_starts_;
};

}  // namespace lance
