#include "text/analyzer.hpp"

#include <atomic>
#include <stdexcept>

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

Tokens Analyzer::split(const Texts& texts) {
  if (texts.offsets.empty()) throw std::invalid_argument("strings without offsets");
  const size_t strings = texts.offsets.size() - 1;
  if (!texts.valid.empty() && texts.valid.size() != strings) throw std::invalid_argument("other strings");
  const bool joined = !texts.boundaries.empty();
  const size_t documents = joined ? texts.boundaries.size() - 1 : strings;
  Tokens found;
  found.ends.reserve(documents);
  std::string lowered;
  for (size_t document = 0; document < documents; ++document) {
    const int64_t first = joined ? texts.boundaries[document] : static_cast<int64_t>(document);
    const int64_t last = joined ? texts.boundaries[document + 1] : first + 1;
    if (first < 0 || last < first || static_cast<uint64_t>(last) > strings)
      throw std::invalid_argument("documents outside of their strings");
    uint32_t begun = 0;
    for (auto number = static_cast<size_t>(first); number < static_cast<size_t>(last); ++number) {
      if (!texts.valid.empty() && !texts.valid[number]) continue;
      begun += tokenizer_.split(string_at(texts, number), [&](std::string_view token, uint32_t position) {
        if (lower_ascii_ && has_upper(token)) {
          lowered.assign(token);
          for (char& letter : lowered)
            if (letter >= 'A' && letter <= 'Z') letter = static_cast<char>(letter + 32);
          token = lowered;
        }
        found.raw.push_back(raw_.number_of(token));
        found.positions.push_back(begun + position);
      });
    }
    found.ends.push_back(found.raw.size());
  }
  return found;
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
