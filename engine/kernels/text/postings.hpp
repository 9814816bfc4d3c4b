#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "core/span.hpp"
#include "text/posting_blocks.hpp"

namespace lance {

// The documents of a part of an index: their row ids and lengths.
struct Documents {
  std::span<const uint64_t> rows;
  std::span<const uint32_t> lengths;
  double mean_length = 1;
};

// How the bytes of posting lists are laid out.
struct PostingLayout {
  uint32_t block_size = 128;
  PostingTail tail = PostingTail::kFixed;
  bool packed_positions = true;
};

// The documents of a term, how often it is in each of them, and where if that is known.
class Postings {
 public:
  // Documents whose best score is remembered.
  static constexpr uint32_t kBlock = 128;

  Postings(const PostingLayout& layout, std::span<const int64_t> block_ends, Span blocks, uint32_t count,
           const Documents& documents);

  // The positions of blocks, as the second version of the format has them.
  void read_shared_positions(const PostingLayout& layout, std::span<const uint32_t> offsets, Span bytes);
  // Those of every document, as the first one has them: per document binaries from ends[d] to ends[d + 1].
  void read_own_positions(std::span<const int64_t> documents, std::span<const int64_t> ends, Span bytes);

  std::span<const uint32_t> docs() const { return docs_; }
  std::span<const uint32_t> frequencies() const { return frequencies_; }
  bool has_positions() const { return !starts_.empty(); }
  std::span<const uint32_t> positions(size_t number) const {
    return std::span(positions_).subspan(starts_[number], frequencies_[number]);
  }
  // The largest factor of a score, without rarity, among documents of a block; with the mean length of the
  // part of the index.
  float best_of_block(size_t block) const { return best_[block]; }
  uint64_t nbytes() const {
    return 4 * (docs_.size() + frequencies_.size() + positions_.size() + best_.size()) + 8 * starts_.size();
  }

 private:
  void set_starts();

  std::vector<uint32_t> docs_, frequencies_, positions_;
  std::vector<uint64_t> starts_;
  std::vector<float> best_;
};

// k1 * (1 - b + b * length / mean): what a frequency is compared with.
inline float norm_of(uint32_t length, double mean_length) {
  return static_cast<float>(1.2 * (0.25 + 0.75 * length / mean_length));
}

}  // namespace lance
