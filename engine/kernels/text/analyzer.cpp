#include "text/analyzer.hpp"

#include <atomic>
#include <cstring>
#include <stdexcept>

#include "decode/jsonb.hpp"

namespace lance {
namespace {

std::string_view string_at(const Texts& texts, size_t number) {
  const int64_t begin = texts.offsets[number], end = texts.offsets[number + 1];
  if (begin < 0 || end < begin || static_cast<uint64_t>(end) > texts.bytes.size())
    throw std::invalid_argument("strings outside of their bytes");
  return {reinterpret_cast<const char*>(texts.bytes.data()) + begin, static_cast<size_t>(end - begin)};
}

bool has_upper(std::string_view token) {
  bool found = false;
  for (const char letter : token) found |= letter >= 'A' && letter <= 'Z';
  return found;
}

}  // namespace

uint64_t Analyzer::next_identity() {
  static std::atomic<uint64_t> next{1};
  return next++;
}

std::string_view Analyzer::lowered(std::string_view token) {
  if (!lower_ascii_ || !has_upper(token)) return token;
  lowered_.assign(token);
  for (char& letter : lowered_)
    if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter + 32);
  return lowered_;
}

Tokens Analyzer::split(const Texts& texts) {
  if (texts.offsets.empty()) throw std::invalid_argument("strings without offsets");
  const size_t strings = texts.offsets.size() - 1;
  if (!texts.valid.empty() && texts.valid.size() != strings) throw std::invalid_argument("other strings");
  const bool joined = !texts.boundaries.empty();
  const size_t documents = joined ? texts.boundaries.size() - 1 : strings;
  Tokens found;
  found.ends.reserve(documents);
  for (size_t document = 0; document < documents; ++document) {
    const int64_t first = joined ? texts.boundaries[document] : static_cast<int64_t>(document);
    const int64_t last = joined ? texts.boundaries[document + 1] : first + 1;
    if (first < 0 || last < first || static_cast<uint64_t>(last) > strings)
      throw std::invalid_argument("documents outside of their strings");
    uint32_t begun = 0;
    for (auto number = static_cast<size_t>(first); number < static_cast<size_t>(last); ++number) {
      if (!texts.valid.empty() && !texts.valid[number]) continue;
      begun += tokenizer_.split(string_at(texts, number), [&](std::string_view token, uint32_t position) {
        found.raw.push_back(raw_.number_of(lowered(token)));
        found.positions.push_back(begun + position);
      });
    }
    found.ends.push_back(found.raw.size());
  }
  return found;
}

Tokens Analyzer::split_documents(const Texts& values) {
  if (values.offsets.empty()) throw std::invalid_argument("documents without offsets");
  const size_t documents = values.offsets.size() - 1;
  if (!values.valid.empty() && values.valid.size() != documents)
    throw std::invalid_argument("other documents");
  Tokens found;
  found.ends.reserve(documents);
  std::string raw;
  const auto visit = [&](const jsonb::Leaf& leaf) {
    raw.assign(4, '\0');
    raw += leaf.path;
    raw += ',';
    raw += leaf.is_string ? "str," : leaf.content;
    const size_t prefix = raw.size();
    const auto length = static_cast<uint32_t>(prefix - 4);
    std::memcpy(raw.data(), &length, 4);
    const auto add = [&] {
      found.raw.push_back(raw_.number_of(raw));
      found.positions.push_back(0);
    };
    if (!leaf.is_string) return add();
    tokenizer_.split(leaf.content, [&](std::string_view token, uint32_t) {
      raw.resize(prefix);
      raw += lowered(token);
      add();
    });
  };
  for (size_t document = 0; document < documents; ++document) {
    if (values.valid.empty() || values.valid[document]) {
      const std::string_view value = string_at(values, document);
      jsonb::each_leaf({reinterpret_cast<const uint8_t*>(value.data()), value.size()}, visit);
    }
    found.ends.push_back(found.raw.size());
  }
  return found;
}

void Analyzer::number_kept(Tokens& tokens) const {
  size_t at = 0;
  for (const uint64_t end : tokens.ends) {
    uint32_t position = 0;
    for (; at < end; ++at) {
      check(tokens.raw[at] < finals_.size(), "tokens that were not filtered");
      tokens.positions[at] = position;
      position += final_of(tokens.raw[at]) != kDropped;
    }
  }
}

std::vector<std::string> Analyzer::unresolved() const {
  std::vector<std::string> found;
  for (auto raw = static_cast<uint32_t>(finals_.size()); raw < raw_.size(); ++raw)
    found.emplace_back(raw_.at(raw));
  return found;
}

void Analyzer::resolve(const std::vector<std::optional<std::string>>& filtered) {
  if (filtered.size() != raw_.size() - finals_.size()) throw std::invalid_argument("other tokens");
  for (const auto& token : filtered) finals_.push_back(token ? terms_.number_of(*token) : kDropped);
}

}  // namespace lance
