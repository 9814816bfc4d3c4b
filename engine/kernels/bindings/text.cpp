// Full text: cutting it into tokens, building and searching inverted indices.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <optional>
#include <stdexcept>
#include <tuple>

#include "bindings/arrays.hpp"
#include "bindings/bindings.hpp"
#include "text/analyzer.hpp"
#include "text/occurrences.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace lance {
namespace {

using Longs = InputArray<int64_t>;

template <typename T>
std::span<const T> span_of(const InputArray<T>& array) {
  return {array.data(), array.size()};
}

template <typename T>
OutputArray<T> array_of(const std::vector<T>& values) {
  Owned<T> out(values.size());
  std::copy(values.begin(), values.end(), out.data());
  return out.array();
}

using FilteredTokens = nb::typed<nb::list, std::optional<nb::bytes>>;

// Tokens come back as bytes: those of damaged files are not UTF-8.
nb::typed<nb::list, nb::bytes> bytes_of(const std::vector<std::string>& tokens) {
  nb::typed<nb::list, nb::bytes> found;
  for (const std::string& token : tokens) found.append(nb::bytes(token.data(), token.size()));
  return found;
}

std::vector<std::optional<std::string>> optional_tokens(const FilteredTokens& filtered) {
  std::vector<std::optional<std::string>> tokens;
  for (const nb::handle& token : filtered) {
    if (token.is_none()) {
      tokens.emplace_back();
    } else {
      const auto bytes = nb::cast<nb::bytes>(token);
      tokens.emplace_back(std::string(bytes.c_str(), bytes.size()));
    }
  }
  return tokens;
}

Tokens split(Analyzer& analyzer, Longs offsets, Bytes bytes, std::optional<Bytes> valid,
             std::optional<Longs> boundaries) {
  Texts texts{span_of(offsets), span_of(bytes), {}, {}};
  if (valid) texts.valid = span_of(*valid);
  if (boundaries) {
    if (boundaries->size() == 0) throw std::invalid_argument("documents without boundaries");
    texts.boundaries = span_of(*boundaries);
  }
  nb::gil_scoped_release nogil;
  return analyzer.split(texts);
}

Tokens split_documents(Analyzer& analyzer, Longs offsets, Bytes bytes, std::optional<Bytes> valid) {
  Texts values{span_of(offsets), span_of(bytes), {}, {}};
  if (valid) values.valid = span_of(*valid);
  nb::gil_scoped_release nogil;
  return analyzer.split_documents(values);
}

void bind_analysis(nb::module_& m) {
  nb::enum_<BaseTokenizer>(m, "BaseTokenizer")
      .value("SIMPLE", BaseTokenizer::kSimple)
      .value("WHITESPACE", BaseTokenizer::kWhitespace)
      .value("RAW", BaseTokenizer::kRaw)
      .value("NGRAM", BaseTokenizer::kNgram);
  nb::class_<Tokens>(m, "Tokens", "The tokens of some documents.")
      .def_prop_ro("count", [](const Tokens& self) { return self.raw.size(); });
  nb::class_<Analyzer>(m, "Analyzer",
                       "Cuts texts into tokens. Each new token is filtered once, by the caller: see "
                       "`unresolved`. Not for several threads at once.")
      .def(
          "__init__",
          [](Analyzer* self, BaseTokenizer base, Bytes alphabet, uint64_t max_bytes, uint32_t min_ngram,
             uint32_t max_ngram, bool prefix_only, bool lower_ascii) {
            TokenizerOptions options;
            options.base = base;
            options.alphabet.assign(alphabet.data(), alphabet.data() + alphabet.size());
            options.max_bytes = max_bytes;
            options.min_ngram = std::max(1u, min_ngram);
            options.max_ngram = max_ngram;
            options.prefix_only = prefix_only;
            new (self) Analyzer(std::move(options), lower_ascii);
          },
          "base"_a, "alphabet"_a, "max_bytes"_a, "min_ngram"_a, "max_ngram"_a, "prefix_only"_a,
          "lower_ascii"_a)
      .def("split", &split, "offsets"_a, "bytes"_a, "valid"_a.none(), "boundaries"_a.none(),
           "The tokens of strings; `boundaries` are those of documents, as numbers of strings.")
      .def("split_documents", &split_documents, "offsets"_a, "bytes"_a, "valid"_a.none(),
           "The tokens path,type,value of binary JSON documents; unresolved ones begin with the length of "
           "what is before the word.")
      .def("number_kept", &Analyzer::number_kept, "tokens"_a,
           "Set the positions of tokens to those among the ones that filters kept.")
      .def(
          "unresolved", [](const Analyzer& self) { return bytes_of(self.unresolved()); },
          "The tokens that were not filtered yet.")
      .def(
          "resolve", [](Analyzer& self, FilteredTokens filtered) { self.resolve(optional_tokens(filtered)); },
          "filtered"_a, "What filters made of the unresolved tokens; None drops one.")
      .def(
          "term",
          [](Analyzer& self, nb::bytes term) { return self.finals().number_of({term.c_str(), term.size()}); },
          "token"_a, "The number of a filtered token.")
      .def(
          "tokens",
          [](const Analyzer& self, const Tokens& tokens) {
            self.require_resolved();
            nb::typed<nb::list, nb::typed<nb::tuple, nb::bytes, int>> found;
            for (size_t i = 0; i < tokens.raw.size(); ++i) {
              const uint32_t term = self.final_of(tokens.raw[i]);
              if (term == Analyzer::kDropped) continue;
              const std::string_view token = self.finals().at(term);
              found.append(nb::make_tuple(nb::bytes(token.data(), token.size()), tokens.positions[i]));
            }
            return found;
          },
          "tokens"_a, "Filtered tokens with their positions.")
      .def_prop_ro("nbytes", &Analyzer::nbytes);
  nb::class_<Phrase>(m, "Phrase", "Terms in this order, at ascending offsets from each other.")
      .def(
          "__init__",
          [](Phrase* self, std::vector<uint32_t> terms, std::vector<uint32_t> offsets, uint32_t slop) {
            if (terms.size() != offsets.size()) throw std::invalid_argument("terms without a place");
            new (self) Phrase{std::move(terms), std::move(offsets), slop};
          },
          "terms"_a, "offsets"_a, "slop"_a);
  nb::class_<Occurrences>(m, "Occurrences", "Which documents have some terms, and how often.")
      .def(nb::init<>())
      .def(
          "add",
          [](Occurrences& self, const Analyzer& analyzer, const Tokens& tokens, Ids rows, uint32_t terms,
             const Phrase* phrase) {
            if (phrase)
              for (const uint32_t term : phrase->terms)
                if (term >= terms) throw std::invalid_argument("a phrase of other terms");
            nb::gil_scoped_release nogil;
            self.add(analyzer, tokens, span_of(rows), terms, phrase);
          },
          "analyzer"_a, "tokens"_a, "rows"_a, "terms"_a, "phrase"_a.none(),
          "Look for the first `terms` terms of the analyzer.")
      .def_ro("documents", &Occurrences::documents)
      .def_ro("tokens", &Occurrences::tokens)
      .def(
          "found",
          [](const Occurrences& self) {
            return std::make_tuple(array_of(self.rows), array_of(self.lengths), array_of(self.counts),
                                   array_of(self.has_phrase));
          },
          "Row ids, lengths, counts per term and whether the phrase is there, of documents with a term.");
}

}  // namespace

void bind_text(nb::module_& m) {
  bind_analysis(m);
}

}  // namespace lance
