// Inverted indices: building and searching them.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <tuple>

#include "bindings/arrays.hpp"
#include "bindings/bindings.hpp"
#include "text/builder.hpp"
#include "text/text_search.hpp"
#include "text/token_set.hpp"
#include "text/transducer.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace lance {
namespace {

using Longs = InputArray<int64_t>;
using Words = InputArray<uint32_t>;

template <typename T>
std::span<const T> span_of(const InputArray<T>& array) {
  return {array.data(), array.size()};
}

Span bytes_of(const Bytes& array) {
  return {array.data(), array.size()};
}

template <typename T>
OutputArray<T> array_of(std::span<const T> values) {
  Owned<T> out(values.size());
  std::copy(values.begin(), values.end(), out.data());
  return out.array();
}

template <typename T>
OutputArray<T> array_of(const std::vector<T>& values) {
  return array_of(std::span<const T>(values));
}

std::string_view view_of(const nb::bytes& bytes) {
  return {bytes.c_str(), bytes.size()};
}
nb::bytes bytes_from(std::string_view token) {
  return nb::bytes(token.data(), token.size());
}

// The documents of a part of an index.
class TextPart {
 public:
  TextPart(Ids rows, Words lengths, bool rounded)
      : rows_(span_of(rows).begin(), span_of(rows).end()),
        lengths_(span_of(lengths).begin(), span_of(lengths).end()) {
    check(rows_.size() == lengths_.size(), "documents without a length");
    total_ = std::accumulate(lengths_.begin(), lengths_.end(), uint64_t{0});
    if (rounded)
      for (uint32_t& length : lengths_) length = rounded_length(length);
  }

  Documents documents() const {
    const double count = static_cast<double>(rows_.size());
    return {rows_, lengths_, total_ ? static_cast<double>(total_) / count : 1.0};
  }
  uint64_t total() const { return total_; }
  uint64_t nbytes() const { return 12 * rows_.size(); }

 private:
  std::vector<uint64_t> rows_;
  std::vector<uint32_t> lengths_;
  uint64_t total_;
};

class BestTexts {
 public:
  explicit BestTexts(std::optional<uint64_t> k)
      : best_(k ? static_cast<size_t>(*k) : std::numeric_limits<size_t>::max(), kNone, kNone) {}

  void search(const TextPart& part, const std::vector<const Postings*>& postings, Floats weights,
              Words groups, uint32_t needed, const Phrase* phrase, double mean_length,
              const RowSet& allowed) {
    if (weights.size() != postings.size() || groups.size() != postings.size() || !(mean_length > 0))
      throw std::invalid_argument("terms without a weight");
    std::vector<SearchTerm> terms;
    for (size_t i = 0; i < postings.size(); ++i) {
      if (i && groups.data()[i] < groups.data()[i - 1]) throw std::invalid_argument("groups do not ascend");
      terms.push_back({postings[i], weights.data()[i], groups.data()[i]});
    }
    if (phrase) {
      for (const uint32_t number : phrase->terms)
        if (number >= terms.size()) throw std::invalid_argument("a phrase of other terms");
      for (const SearchTerm& term : terms)
        if (term.postings && !term.postings->has_positions()) throw std::invalid_argument("no positions");
    }
    const Documents documents = part.documents();
    for (const SearchTerm& term : terms)
      if (term.postings && !term.postings->docs().empty() &&
          term.postings->docs().back() >= documents.rows.size())
        throw std::invalid_argument("postings of other documents");
    nb::gil_scoped_release nogil;
    search_text(documents, {terms, needed, phrase, mean_length}, allowed, best_);
  }

  std::tuple<OutputArray<uint64_t>, OutputArray<float>> result() const {
    const std::vector<Neighbour> found = best_.sorted();
    Owned<uint64_t> rows(found.size());
    Owned<float> scores(found.size());
    for (size_t i = 0; i < found.size(); ++i) {
      rows.data()[i] = found[i].row;
      scores.data()[i] = -found[i].distance;
    }
    return {rows.array(), scores.array()};
  }

 private:
  static constexpr float kNone = std::numeric_limits<float>::quiet_NaN();
  TopK best_;
};

void bind_builder(nb::module_& m) {
  nb::class_<IndexBuilder>(m, "IndexBuilder",
                           "A part of an inverted index while it is built. Not for several threads at once.")
      .def(nb::init<bool>(), "with_positions"_a)
      .def(
          "add",
          [](IndexBuilder& self, const Analyzer& analyzer, const Tokens& tokens, Ids rows) {
            nb::gil_scoped_release nogil;
            self.add(analyzer, tokens, span_of(rows));
          },
          "analyzer"_a, "tokens"_a, "rows"_a, "Documents as they were cut, with their row ids.")
      .def(
          "add_documents",
          [](IndexBuilder& self, Ids rows, Words lengths) {
            if (rows.size() != lengths.size()) throw std::invalid_argument("documents without a length");
            const size_t first = self.rows().size();
            for (size_t i = 0; i < rows.size(); ++i) self.add_document(rows.data()[i], lengths.data()[i]);
            return first;
          },
          "rows"_a, "lengths"_a, "Documents of another index; returns the number of the first one here.")
      .def(
          "add_postings",
          [](IndexBuilder& self, nb::bytes term, const Postings& postings, Words numbers) {
            if (!postings.docs().empty() && postings.docs().back() >= numbers.size())
              throw std::invalid_argument("postings of other documents");
            for (const uint32_t number : span_of(numbers))
              if (number != IndexBuilder::kGone && number >= self.rows().size())
                throw std::invalid_argument("documents that are not there");
            nb::gil_scoped_release nogil;
            self.add_postings(view_of(term), postings, span_of(numbers));
          },
          "term"_a, "postings"_a, "numbers"_a,
          "A term of another index; `numbers` are those of its documents here, 2**32 - 1 for those left out.")
      .def("take", &IndexBuilder::take, "other"_a, nb::call_guard<nb::gil_scoped_release>(),
           "Everything of another builder.")
      .def("finish", &IndexBuilder::finish, nb::call_guard<nb::gil_scoped_release>(),
           "Sort what was added; nothing may be added afterwards.")
      .def("cut", &IndexBuilder::cut, "first"_a, "documents"_a,
           "The end of terms from `first` on whose posting lists have about so many documents.")
      .def(
          "columns",
          [](const IndexBuilder& self, uint32_t first, uint32_t last) {
            PostingColumns found;
            {
              nb::gil_scoped_release nogil;
              found = self.columns(first, last);
            }
            return std::make_tuple(array_of(found.blocks), array_of(found.block_ends), array_of(found.lists),
                                   array_of(found.best), array_of(found.lengths), array_of(found.positions),
                                   array_of(found.position_ends), array_of(found.position_offsets));
          },
          "first"_a, "last"_a,
          "Bytes and ends of blocks, blocks per term, best scores, documents per term; bytes of positions, "
          "their ends per term, their begins per block.")
      .def(
          "transducer",
          [](const IndexBuilder& self) {
            std::vector<uint8_t> bytes;
            uint64_t total = 0;
            {
              nb::gil_scoped_release nogil;
              bytes = transducer_of(self.terms(), [&](uint32_t term) { return self.term(term); });
              for (uint32_t term = 0; term < self.terms(); ++term) total += self.term(term).size();
            }
            return std::make_tuple(array_of(bytes), total);
          },
          "The terms as a finite-state transducer, and how many bytes they have together.")
      .def_prop_ro("terms", &IndexBuilder::terms)
      .def("rows", [](const IndexBuilder& self) { return array_of(self.rows()); })
      .def("lengths", [](const IndexBuilder& self) { return array_of(self.lengths()); })
      .def_prop_ro("nbytes", &IndexBuilder::nbytes);
}

void bind_reading(nb::module_& m) {
  nb::class_<TokenSet>(m, "TokenSet", "The tokens of a part of an index, ascending.")
      .def_static(
          "listed",
          [](Longs ends, Bytes bytes, Words numbers, uint32_t limit) {
            if (ends.size() == 0) throw std::invalid_argument("tokens without an end");
            return TokenSet(span_of(ends), bytes_of(bytes), span_of(numbers), limit);
          },
          "ends"_a, "bytes"_a, "numbers"_a, "limit"_a)
      .def_static(
          "transducer",
          [](Bytes bytes, uint32_t limit, uint64_t total) {
            nb::gil_scoped_release nogil;
            return TokenSet(bytes_of(bytes), limit, total);
          },
          "bytes"_a, "limit"_a, "total"_a)
      .def("__len__", &TokenSet::size)
      .def(
          "find", [](const TokenSet& self, nb::bytes token) { return self.find(view_of(token)); }, "token"_a,
          "The number of a token, None if it is not among them.")
      .def(
          "entry",
          [](const TokenSet& self, size_t place) {
            if (place >= self.size()) throw std::out_of_range("tokens");
            return std::make_tuple(bytes_from(self.at(place)), self.number(place));
          },
          "place"_a, "A token and its number.")
      .def(
          "similar",
          [](const TokenSet& self, nb::bytes token, uint32_t distance, uint32_t prefix, size_t most) {
            nb::typed<nb::list, nb::bytes> found;
            for (const std::string& other : self.similar(view_of(token), distance, prefix, most))
              found.append(bytes_from(other));
            return found;
          },
          "token"_a, "distance"_a, "prefix"_a, "most"_a, "Tokens that differ in a few letters.")
      .def_prop_ro("nbytes", &TokenSet::nbytes);
  nb::class_<TextPart>(m, "TextPart", "The documents of a part of an index: their row ids and lengths.")
      .def(nb::init<Ids, Words, bool>(), "rows"_a, "lengths"_a, "rounded"_a)
      .def_prop_ro("documents", [](const TextPart& self) { return self.documents().rows.size(); })
      .def_prop_ro("tokens", &TextPart::total)
      .def_prop_ro("nbytes", &TextPart::nbytes);
  nb::class_<Postings>(m, "Postings",
                       "The documents that have a term. CorruptFileError if the bytes are damaged.")
      .def(
          "__init__",
          [](Postings* self, const TextPart& part, uint32_t block_size, bool varint_tail, Longs block_ends,
             Bytes blocks, uint32_t count) {
            const PostingLayout layout{block_size, varint_tail ? PostingTail::kVarint : PostingTail::kFixed,
                                       true};
            new (self) Postings(layout, span_of(block_ends), bytes_of(blocks), count, part.documents());
          },
          "part"_a, "block_size"_a, "varint_tail"_a, "block_ends"_a, "blocks"_a, "count"_a)
      .def(
          "read_shared_positions",
          [](Postings& self, uint32_t block_size, bool packed, Words offsets, Bytes bytes) {
            self.read_shared_positions({block_size, PostingTail::kFixed, packed}, span_of(offsets),
                                       bytes_of(bytes));
          },
          "block_size"_a, "packed"_a, "offsets"_a, "bytes"_a)
      .def(
          "read_own_positions",
          [](Postings& self, Longs documents, Longs ends, Bytes bytes) {
            self.read_own_positions(span_of(documents), span_of(ends), bytes_of(bytes));
          },
          "documents"_a, "ends"_a, "bytes"_a)
      .def_prop_ro("has_positions", &Postings::has_positions)
      .def_prop_ro("nbytes", &Postings::nbytes);
  nb::class_<BestTexts>(m, "BestTexts",
                        "The `k` documents with the best scores; ties go to the lower row id.")
      .def(nb::init<std::optional<uint64_t>>(), "k"_a.none())
      .def("search", &BestTexts::search, "part"_a, "postings"_a, "weights"_a, "groups"_a, "needed"_a,
           "phrase"_a.none(), "mean_length"_a, "allowed"_a,
           "Offer the documents of a part that have a term of each of `needed` groups, or any if that is 0.")
      .def("result", &BestTexts::result, "Row ids and scores, best first.");
}

}  // namespace

void bind_text_index(nb::module_& m) {
  bind_builder(m);
  bind_reading(m);
}

}  // namespace lance
