#include "text/text_search.hpp"

#include <algorithm>
#include <vector>

namespace lance {
namespace {

constexpr uint32_t kWindow = 4096;
// Sums in another order may be a little greater than bounds.
constexpr float kSlack = 1.00001f;

struct Cursor {
  const SearchTerm* term;
  size_t at = 0, end = 0;  // the documents of the window
  float bound = 0;

  std::span<const uint32_t> docs() const { return term->postings->docs(); }
  bool has_left() const { return at < docs().size(); }
  uint32_t doc() const { return docs()[at]; }

  // The first document from `from` on that is at least `doc`; near ones are found fast.
  size_t seek(size_t from, uint64_t doc) const {
    const auto all = docs();
    size_t step = 1, low = from, high = from;
    while (high < all.size() && all[high] < doc) {
      low = high + 1;
      high += step;
      step *= 2;
    }
    high = std::min(high, all.size());
    return static_cast<size_t>(std::lower_bound(all.begin() + static_cast<int64_t>(low),
                                                all.begin() + static_cast<int64_t>(high), doc) -
                               all.begin());
  }

  void enter(uint64_t begin, float factor) {
    at = seek(at, begin);
    end = seek(at, begin + kWindow);
    float most = 0;
    if (at < end)
      for (size_t block = at / Postings::kBlock; block <= (end - 1) / Postings::kBlock; ++block)
        most = std::max(most, term->postings->best_of_block(block));
    bound = most * factor * term->weight;
  }
};

class Search {
 public:
  Search(const Documents& documents, const TextQuery& query, const RowSet& allowed, TopK& best)
      : documents_(documents), query_(query), allowed_(allowed), best_(best) {
    for (const SearchTerm& term : query.terms)
      if (term.postings) cursors_.push_back({&term});
    // Scores of blocks are those with the lengths of this part.
    factor_ = kSlack * static_cast<float>(std::max(1.0, query.mean_length / documents.mean_length));
    per_token_ = static_cast<float>(0.9 / query.mean_length);
    scores_.resize(kWindow);
    matched_.resize(kWindow);
  }

  void run() {
    uint64_t begin = 0;
    while (next_window(begin)) {
      window(begin);
      for (Cursor& cursor : cursors_) cursor.at = cursor.end;
      begin += kWindow;
    }
  }

 private:
  // The first window from `begin` on in which a document may match.
  bool next_window(uint64_t& begin) {
    constexpr uint64_t kEnd = ~uint64_t{0};
    uint64_t found = query_.groups ? begin : kEnd;
    if (query_.groups) {
      size_t at = 0;
      for (uint32_t group = 0; group < query_.groups; ++group) {
        uint64_t first = kEnd;
        for (; at < cursors_.size() && cursors_[at].term->group == group; ++at)
          if (cursors_[at].has_left()) first = std::min<uint64_t>(first, cursors_[at].doc());
        found = std::max(found, first);
      }
    } else {
      for (const Cursor& cursor : cursors_)
        if (cursor.has_left()) found = std::min<uint64_t>(found, cursor.doc());
    }
    begin = found / kWindow * kWindow;
    return found != kEnd;
  }

  void window(uint64_t begin) {
    float total = 0;
    for (Cursor& cursor : cursors_) {
      cursor.enter(begin, factor_);
      total += cursor.bound;
    }
    if (!best_.admits(-total)) return;
    touched_.clear();
    if (query_.groups) {
      if (!match_all(begin)) return;
    } else {
      match_any(begin);
    }
    for (const uint32_t place : touched_) {
      const uint64_t doc = begin + place;
      const bool matches = !query_.groups || matched_[place] == query_.groups;
      const float score = scores_[place];
      scores_[place] = 0;
      matched_[place] = 0;
      if (!matches || !best_.admits(-score) || !allowed_.contains(documents_.rows[doc])) continue;
      if (query_.phrase && !has_phrase(static_cast<uint32_t>(doc))) continue;
      best_.push(-score, documents_.rows[doc]);
    }
  }

  float score(const Cursor& cursor, size_t at, uint32_t doc) const {
    const auto often = static_cast<float>(cursor.term->postings->frequencies()[at]);
    const float norm = 0.3f + per_token_ * static_cast<float>(documents_.lengths[doc]);
    return cursor.term->weight * often / (often + norm);
  }

  void match_any(uint64_t begin) {
    order_.clear();
    for (const Cursor& cursor : cursors_)
      if (cursor.at < cursor.end) order_.push_back(&cursor);
    std::sort(order_.begin(), order_.end(),
              [](const Cursor* left, const Cursor* right) { return left->bound < right->bound; });
    // Documents that have only these are not good enough.
    size_t weak = 0;
    float rest = 0;
    while (weak < order_.size() && !best_.admits(-(rest + order_[weak]->bound)))
      rest += order_[weak++]->bound;
    for (size_t i = weak; i < order_.size(); ++i) {
      const Cursor& cursor = *order_[i];
      for (size_t at = cursor.at; at < cursor.end; ++at) {
        const uint32_t doc = cursor.docs()[at];
        const auto place = static_cast<uint32_t>(doc - begin);
        if (!matched_[place]) {
          matched_[place] = 1;
          touched_.push_back(place);
        }
        scores_[place] += score(cursor, at, doc);
      }
    }
    if (!weak) return;
    for (const uint32_t place : touched_) {
      if (!best_.admits(-(scores_[place] + rest) * kSlack)) continue;
      const auto doc = static_cast<uint32_t>(begin + place);
      for (size_t i = 0; i < weak; ++i) {
        const Cursor& cursor = *order_[i];
        const auto docs = cursor.docs().subspan(cursor.at, cursor.end - cursor.at);
        const auto found = std::lower_bound(docs.begin(), docs.end(), doc);
        if (found != docs.end() && *found == doc)
          scores_[place] += score(cursor, cursor.at + static_cast<size_t>(found - docs.begin()), doc);
      }
    }
  }

  // matched_ becomes the number of words, of those in the order of the query, that a document has.
  bool match_all(uint64_t begin) {
    size_t at_cursor = 0;
    for (uint32_t group = 0; group < query_.groups; ++group) {
      bool any = false;
      for (; at_cursor < cursors_.size() && cursors_[at_cursor].term->group == group; ++at_cursor) {
        const Cursor& cursor = cursors_[at_cursor];
        any |= cursor.at < cursor.end;
        for (size_t at = cursor.at; at < cursor.end; ++at) {
          const uint32_t doc = cursor.docs()[at];
          const auto place = static_cast<uint32_t>(doc - begin);
          if (matched_[place] < group) continue;
          if (matched_[place] == group) {
            if (group == 0) touched_.push_back(place);
            matched_[place] = group + 1;
          }
          scores_[place] += score(cursor, at, doc);
        }
      }
      if (!any) {
        for (const uint32_t place : touched_) scores_[place] = 0, matched_[place] = 0;
        return false;
      }
    }
    return true;
  }

  bool has_phrase(uint32_t doc) const {
    std::vector<std::span<const uint32_t>> positions;
    for (const uint32_t number : query_.phrase->terms) {
      const Postings& postings = *query_.terms[number].postings;
      const auto docs = postings.docs();
      const auto found = std::lower_bound(docs.begin(), docs.end(), doc);
      if (found == docs.end() || *found != doc) return false;
      positions.push_back(postings.positions(static_cast<size_t>(found - docs.begin())));
    }
    return query_.phrase->in(positions);
  }

  const Documents& documents_;
  const TextQuery& query_;
  const RowSet& allowed_;
  TopK& best_;
  std::vector<Cursor> cursors_;
  std::vector<const Cursor*> order_;
  float factor_, per_token_;
  std::vector<float> scores_;
  std::vector<uint32_t> matched_, touched_;
};

}  // namespace

void search_text(const Documents& documents, const TextQuery& query, const RowSet& allowed, TopK& best) {
  if (query.phrase)
    for (const SearchTerm& term : query.terms)
      if (!term.postings) return;
  Search(documents, query, allowed, best).run();
}

}  // namespace lance
