#include "text/postings.hpp"

#include <algorithm>

namespace lance {

Postings::Postings(const PostingLayout& layout, std::span<const int64_t> block_ends, Span blocks,
                   uint32_t count, const Documents& documents) {
  check(layout.block_size == 128 || layout.block_size == 256, "posting lists have blocks of another size");
  check(!block_ends.empty(), "a posting list has no blocks");
  check(count <= documents.rows.size(), "a term is in more documents than there are");
  const uint64_t expected = (uint64_t{count} + layout.block_size - 1) / layout.block_size;
  check(block_ends.size() - 1 == expected, "a posting list has another number of blocks than it should");
  docs_.reserve(count);
  frequencies_.reserve(count);
  for (size_t block = 0; block < expected; ++block) {
    const int64_t begin = block_ends[block], end = block_ends[block + 1];
    check(begin >= 0 && end >= begin, "the blocks of a posting list do not ascend");
    const auto left = static_cast<uint32_t>(count - docs_.size());
    read_block(blocks.sub(static_cast<uint64_t>(begin), static_cast<uint64_t>(end - begin)),
               std::min(left, layout.block_size), layout.block_size, layout.tail, docs_, frequencies_);
  }
  for (size_t i = 0; i < docs_.size(); ++i) {
    check(docs_[i] < documents.rows.size(), "a posting list has a document that is not there");
    check(i == 0 || docs_[i] > docs_[i - 1], "the documents of a posting list do not ascend");
    check(frequencies_[i] != 0, "a posting list has a document without the term");
    const auto often = static_cast<float>(frequencies_[i]);
    const float factor = often / (often + norm_of(documents.lengths[docs_[i]], documents.mean_length));
    if (i % kBlock == 0) best_.push_back(0);
    best_.back() = std::max(best_.back(), factor);
  }
}

void Postings::set_starts() {
  starts_.resize(docs_.size() + 1);
  for (size_t i = 0; i < docs_.size(); ++i) starts_[i + 1] = starts_[i] + frequencies_[i];
  check(starts_.back() == positions_.size(), "a posting list has other positions than occurrences");
}

void Postings::read_shared_positions(const PostingLayout& layout, std::span<const uint32_t> offsets,
                                     Span bytes) {
  const size_t blocks = (docs_.size() + layout.block_size - 1) / layout.block_size;
  check(offsets.size() == blocks, "the positions of a posting list are those of other blocks");
  for (size_t block = 0; block < blocks; ++block) {
    const uint64_t begin = offsets[block], end = block + 1 < blocks ? offsets[block + 1] : bytes.size;
    check(begin <= end, "the positions of a posting list do not ascend");
    const size_t first = block * layout.block_size;
    const size_t count = std::min<size_t>(layout.block_size, docs_.size() - first);
    read_positions(bytes.sub(begin, end - begin), std::span(frequencies_).subspan(first, count),
                   layout.packed_positions, positions_);
  }
  set_starts();
}

void Postings::read_own_positions(std::span<const int64_t> documents, std::span<const int64_t> ends,
                                  Span bytes) {
  check(documents.size() == docs_.size() + 1, "a posting list has the positions of other documents");
  const auto binary = [&](int64_t number) {
    check(number >= 0 && static_cast<size_t>(number) + 1 < ends.size(), "positions that are not there");
    const int64_t begin = ends[static_cast<size_t>(number)], end = ends[static_cast<size_t>(number) + 1];
    check(begin >= 0 && end >= begin, "the positions of a posting list do not ascend");
    return bytes.sub(static_cast<uint64_t>(begin), static_cast<uint64_t>(end - begin));
  };
  for (size_t i = 0; i < docs_.size(); ++i) {
    int64_t next = documents[i];
    const uint32_t count = binary(next++).at<uint32_t>(0);
    check(count == frequencies_[i], "a posting list has other positions than occurrences");
    uint32_t done = 0;
    for (; count - done >= 128; done += 128) {
      ByteReader in(binary(next++));
      uint64_t reached = in.word();
      const uint32_t bits = in.byte();
      check(bits <= 32, "a block of numbers has more than 32 bits");
      uint32_t differences[128];
      unpack_lanes(in.take(packed_lanes_bytes(4, bits)), 4, bits, differences);
      for (const uint32_t difference : differences) {
        reached += difference;
        check(reached >> 32 == 0, "a position has more than 32 bits");
        positions_.push_back(static_cast<uint32_t>(reached));
      }
    }
    if (done < count) {
      ByteReader in(binary(next++));
      for (; done < count; ++done) positions_.push_back(in.word());
    }
    check(next == documents[i + 1], "a document has other positions than occurrences");
  }
  set_starts();
}

}  // namespace lance
