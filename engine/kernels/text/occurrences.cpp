#include "text/occurrences.hpp"

#include <algorithm>
#include <stdexcept>

namespace lance {

bool Phrase::in(std::span<const std::span<const uint32_t>> positions) const {
  if (positions.empty()) return false;
  for (const uint32_t start : positions[0]) {
    // Positions as they would be if the phrase began at 0; each at least as far as the one before.
    const int64_t begin = int64_t{start} - offsets[0];
    int64_t reached = begin;
    bool fits = true;
    for (size_t i = 1; fits && i < positions.size(); ++i) {
      const int64_t least = reached + offsets[i];
      const auto next = std::lower_bound(positions[i].begin(), positions[i].end(), least,
                                         [](uint32_t at, int64_t wanted) { return int64_t{at} < wanted; });
      fits = next != positions[i].end();
      if (fits) reached = int64_t{*next} - offsets[i];
    }
    if (fits && reached - begin <= int64_t{slop}) return true;
  }
  return false;
}

void Occurrences::add(const Analyzer& analyzer, const Tokens& found, std::span<const uint64_t> row_ids,
                      uint32_t terms, const Phrase* phrase) {
  if (row_ids.size() != found.ends.size()) throw std::invalid_argument("other documents");
  analyzer.require_resolved();
  std::vector<std::vector<uint32_t>> places(phrase ? terms : 0);
  uint64_t at = 0;
  for (size_t document = 0; document < found.ends.size(); ++document) {
    const size_t base = counts.size();
    counts.resize(base + terms);
    uint32_t length = 0, hits = 0;
    for (auto& list : places) list.clear();
    for (; at < found.ends[document]; ++at) {
      const uint32_t term = analyzer.final_of(found.raw[at]);
      if (term == Analyzer::kDropped) continue;
      ++length;
      if (term >= terms) continue;
      ++hits;
      ++counts[base + term];
      if (phrase) places[term].push_back(found.positions[at]);
    }
    documents += length != 0;
    tokens += length;
    if (!hits) {
      counts.resize(base);
      continue;
    }
    rows.push_back(row_ids[document]);
    lengths.push_back(length);
    if (phrase) {
      std::vector<std::span<const uint32_t>> lists;
      for (const uint32_t term : phrase->terms) lists.emplace_back(places[term]);
      has_phrase.push_back(phrase->in(lists));
    }
  }
}

}  // namespace lance
