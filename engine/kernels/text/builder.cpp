#include "text/builder.hpp"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>

namespace lance {
namespace {

constexpr uint32_t kNone = ~uint32_t{0};
constexpr uint32_t kBlock = 128;

}  // namespace

uint32_t IndexBuilder::term_of(uint32_t number, const Analyzer& analyzer) {
  if (number >= known_.size()) known_.resize(analyzer.finals().size(), kNone);
  if (known_[number] == kNone) known_[number] = terms_.number_of(analyzer.finals().at(number));
  return known_[number];
}

uint32_t IndexBuilder::add_document(uint64_t row, uint32_t length) {
  check(rows_.size() < kNone, "a part of an index has too many documents");
  rows_.push_back(row);
  lengths_.push_back(length);
  total_ += length;
  return static_cast<uint32_t>(rows_.size() - 1);
}

void IndexBuilder::add(const Analyzer& analyzer, const Tokens& tokens, std::span<const uint64_t> rows) {
  if (rows.size() != tokens.ends.size()) throw std::invalid_argument("other documents");
  analyzer.require_resolved();
  if (analyzer_ != analyzer.identity()) {
    analyzer_ = analyzer.identity();
    known_.clear();
  }
  uint64_t at = 0;
  for (size_t document = 0; document < rows.size(); ++document) {
    const uint64_t first = at, end = tokens.ends[document], first_entry = entry_terms_.size();
    const auto number = static_cast<uint32_t>(rows_.size());
    uint32_t length = 0;
    for (; at < end; ++at) {
      const uint32_t final = analyzer.final_of(tokens.raw[at]);
      if (final == Analyzer::kDropped) continue;
      ++length;
      const uint32_t term = term_of(final, analyzer);
      if (term >= last_doc_.size()) {
        last_doc_.resize(terms_.size(), kNone);
        last_entry_.resize(terms_.size());
      }
      if (last_doc_[term] == number) {
        ++entry_counts_[last_entry_[term]];
        continue;
      }
      last_doc_[term] = number;
      last_entry_[term] = entry_terms_.size();
      entry_terms_.push_back(term);
      entry_docs_.push_back(number);
      entry_counts_.push_back(1);
    }
    if (!length) continue;
    if (with_positions_) {
      std::vector<uint64_t> next(entry_terms_.size() - first_entry);
      uint64_t begin = positions_.size();
      for (size_t i = 0; i < next.size(); ++i) {
        next[i] = begin;
        begin += entry_counts_[first_entry + i];
      }
      positions_.resize(begin);
      for (uint64_t token = first; token < end; ++token) {
        const uint32_t final = analyzer.final_of(tokens.raw[token]);
        if (final == Analyzer::kDropped) continue;
        positions_[next[last_entry_[known_[final]] - first_entry]++] = tokens.positions[token];
      }
    }
    add_document(rows[document], length);
  }
}

void IndexBuilder::add_postings(std::string_view term, const Postings& postings,
                                std::span<const uint32_t> numbers) {
  if (with_positions_ && !postings.has_positions()) throw std::invalid_argument("no positions");
  const uint32_t number = terms_.number_of(term);
  for (size_t i = 0; i < postings.docs().size(); ++i) {
    const uint32_t document = numbers[postings.docs()[i]];
    if (document == kGone) continue;
    entry_terms_.push_back(number);
    entry_docs_.push_back(document);
    entry_counts_.push_back(postings.frequencies()[i]);
    if (with_positions_) {
      const auto found = postings.positions(i);
      positions_.insert(positions_.end(), found.begin(), found.end());
    }
  }
}

void IndexBuilder::take(const IndexBuilder& other) {
  if (other.with_positions_ != with_positions_) throw std::invalid_argument("other positions");
  const auto base = static_cast<uint32_t>(rows_.size());
  check(rows_.size() + other.rows_.size() < kNone, "a part of an index has too many documents");
  std::vector<uint32_t> numbers(other.terms_.size());
  for (uint32_t term = 0; term < other.terms_.size(); ++term)
    numbers[term] = terms_.number_of(other.terms_.at(term));
  for (const uint32_t term : other.entry_terms_) entry_terms_.push_back(numbers[term]);
  for (const uint32_t document : other.entry_docs_) entry_docs_.push_back(base + document);
  entry_counts_.insert(entry_counts_.end(), other.entry_counts_.begin(), other.entry_counts_.end());
  positions_.insert(positions_.end(), other.positions_.begin(), other.positions_.end());
  rows_.insert(rows_.end(), other.rows_.begin(), other.rows_.end());
  lengths_.insert(lengths_.end(), other.lengths_.begin(), other.lengths_.end());
  total_ += other.total_;
  last_doc_.clear();
  last_entry_.clear();
}

void IndexBuilder::finish() {
  // Terms that no document has any more are left out.
  std::vector<uint64_t> sizes(terms_.size() + 1), position_sizes(terms_.size() + 1);
  for (size_t i = 0; i < entry_terms_.size(); ++i) {
    ++sizes[entry_terms_[i]];
    position_sizes[entry_terms_[i]] += entry_counts_[i];
  }
  for (uint32_t term = 0; term < terms_.size(); ++term)
    if (sizes[term]) order_.push_back(term);
  std::sort(order_.begin(), order_.end(),
            [this](uint32_t left, uint32_t right) { return terms_.at(left) < terms_.at(right); });
  std::vector<uint64_t> next(terms_.size()), next_position(terms_.size());
  starts_.push_back(0);
  position_starts_.push_back(0);
  for (const uint32_t term : order_) {
    next[term] = starts_.back();
    next_position[term] = position_starts_.back();
    starts_.push_back(starts_.back() + sizes[term]);
    position_starts_.push_back(position_starts_.back() + position_sizes[term]);
  }
  std::vector<uint32_t> docs(entry_terms_.size()), counts(entry_terms_.size()), positions(positions_.size());
  uint64_t position = 0;
  for (size_t i = 0; i < entry_terms_.size(); ++i) {
    const uint32_t term = entry_terms_[i];
    docs[next[term]] = entry_docs_[i];
    counts[next[term]++] = entry_counts_[i];
    if (!with_positions_) continue;
    std::copy_n(positions_.begin() + static_cast<int64_t>(position), entry_counts_[i],
                positions.begin() + static_cast<int64_t>(next_position[term]));
    next_position[term] += entry_counts_[i];
    position += entry_counts_[i];
  }
  entry_docs_ = std::move(docs);
  entry_counts_ = std::move(counts);
  positions_ = std::move(positions);
  entry_terms_ = {};
}

uint32_t IndexBuilder::cut(uint32_t first, uint64_t documents) const {
  const uint64_t most = starts_[first] + documents;
  const auto end = std::upper_bound(starts_.begin() + first + 1, starts_.end() - 1, most);
  return static_cast<uint32_t>(end - starts_.begin());
}

PostingColumns IndexBuilder::columns(uint32_t first, uint32_t last) const {
  if (first > last || last > terms()) throw std::invalid_argument("terms that are not there");
  PostingColumns found;
  const auto documents = static_cast<double>(rows_.size());
  const double mean = rows_.empty() ? 1 : static_cast<double>(total_) / documents;
  for (uint32_t term = first; term < last; ++term) {
    const uint64_t begin = starts_[term], end = starts_[term + 1];
    const auto count = static_cast<double>(end - begin);
    const auto rarity = static_cast<float>(2.2 * std::log1p((documents - count + 0.5) / (count + 0.5)));
    float best = 0;
    uint64_t position = position_starts_[term];
    const uint64_t first_position = found.positions.size();
    for (uint64_t at = begin; at < end; at += kBlock) {
      const size_t size = std::min<uint64_t>(kBlock, end - at);
      const auto docs = std::span(entry_docs_).subspan(at, size);
      const auto counts = std::span(entry_counts_).subspan(at, size);
      float best_here = 0;
      for (size_t i = 0; i < size; ++i) {
        const auto often = static_cast<float>(counts[i]);
        best_here = std::max(best_here, often / (often + norm_of(lengths_[docs[i]], mean)));
      }
      // Rounding must not make it too small: searches skip by it.
      best_here *= rarity * 1.000001f;
      best = std::max(best, best_here);
      write_block(docs, counts, best_here, found.blocks);
      found.block_ends.push_back(static_cast<int64_t>(found.blocks.size()));
      if (!with_positions_) continue;
      const uint64_t total = std::accumulate(counts.begin(), counts.end(), uint64_t{0});
      found.position_offsets.push_back(static_cast<uint32_t>(found.positions.size() - first_position));
      write_positions(std::span(positions_).subspan(position, total), counts, found.positions);
      position += total;
    }
    found.position_ends.push_back(static_cast<int64_t>(found.positions.size()));
    found.lists.push_back(static_cast<int32_t>(found.block_ends.size() - 1));
    found.best.push_back(best);
    found.lengths.push_back(static_cast<uint32_t>(end - begin));
  }
  return found;
}

}  // namespace lance
