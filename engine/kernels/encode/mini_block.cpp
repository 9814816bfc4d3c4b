#include "encode/mini_block.hpp"

#include <algorithm>
#include <bit>

#include "encode/bitpacking.hpp"

namespace lance::encode {
namespace {

constexpr uint64_t kLevelBits = 131072;  // 16 KiB of levels per chunk
constexpr uint64_t kMaxEntries = 65535;  // counted in 16 bits
constexpr uint8_t kFiller = 0xFE;

LevelEncoding choose_level_encoding(const std::vector<uint16_t>& levels, uint16_t max) {
  LevelEncoding encoding{.present = !levels.empty()};
  const unsigned width = static_cast<unsigned>(std::bit_width(max));
  // A page of a few entries would only store the tail raw: report that.
  if (width < 16 && levels.size() > uint64_t{64} * width) {
    encoding.packed = true;
    encoding.width = width;
  }
  return encoding;
}

// Blocks of 1024, then the tail raw or as a padded block, whichever is shorter (out-of-line bit-packing).
void write_levels(const LevelEncoding& encoding, const uint16_t* levels, uint64_t count, Output& out) {
  if (!encoding.packed) {
    out.append(levels, count * 2);
    return;
  }
  const uint64_t words = uint64_t{64} * encoding.width;
  uint16_t packed[kPackedBlock];
  while (count >= kPackedBlock) {
    pack_block(levels, encoding.width, packed);
    out.append(packed, words * 2);
    levels += kPackedBlock;
    count -= kPackedBlock;
  }
  if (count <= words) {
    out.append(levels, count * 2);
  } else {
    uint16_t padded[kPackedBlock] = {};
    std::copy_n(levels, count, padded);
    pack_block(padded, encoding.width, packed);
    out.append(packed, words * 2);
  }
}

// First entry after `visible` visible ones counted from `entry`.
uint64_t entries_end(const Levels& levels, uint64_t entry, uint64_t visible) {
  if (levels.max_def == levels.max_visible) return entry + visible;
  while (visible != 0) visible -= levels.visible(entry++);
  return entry;
}

}  // namespace

uint64_t level_budget(const Levels& levels) {
  const uint64_t bits = std::bit_width(levels.max_rep) + std::bit_width(levels.max_def);
  return bits == 0 ? kMaxEntries : std::min(kMaxEntries, kLevelBits / bits);
}

MiniBlockPage encode_mini_block(MiniBlockValues& values, const Levels& levels, bool large_chunks) {
  const uint64_t count = values.count();
  require(count == levels.slots && count != 0, "levels and values disagree about the number of slots");
  MiniBlockPage page;
  page.rep = choose_level_encoding(levels.rep, levels.max_rep);
  page.def = choose_level_encoding(levels.def, levels.max_def);
  const uint64_t budget = level_budget(levels);
  const bool with_levels = page.rep.present || page.def.present;
  const size_t size_bytes = large_chunks ? 4 : 2;
  const uint64_t max_chunk_bytes = large_chunks ? uint64_t{1} << 31 : uint64_t{1} << 15;
  Output& out = page.chunk_data;

  uint64_t entry = 0;
  for (uint64_t start = 0; start < count;) {
    uint64_t length = values.chunk_length(start);
    const auto end_of = [&] {
      return start + length == count ? levels.entries : entries_end(levels, entry, length);
    };
    uint64_t end = with_levels ? end_of() : 0;
    while (with_levels && end - entry > budget && length > 2) {
      length = std::has_single_bit(length) ? length / 2 : std::bit_floor(length);
      end = end_of();
    }
    require(end - entry <= budget || !with_levels, "a row without values has too many levels for one chunk");
    const bool last = start + length == count;
    require(last || (std::has_single_bit(length) && length >= 2 && length <= 32768), "unusable chunk length");

    const size_t begin = out.size();
    out.put(static_cast<uint16_t>(with_levels ? end - entry : 0));
    const size_t sizes = out.size();
    out.extend((page.rep.present + page.def.present) * 2 + values.buffers() * size_bytes);
    out.pad(begin, 8, kFiller);
    size_t field = sizes;
    const auto record = [&](size_t from, size_t width) {
      const uint64_t size = out.size() - from;
      require(width == 4 ? size <= UINT32_MAX : size <= UINT16_MAX, "a buffer of a chunk is too long");
      std::memcpy(out.data() + field, &size, width);
      field += width;
      out.pad(begin, 8, kFiller);
    };
    for (const auto* kind : {&page.rep, &page.def}) {
      if (!kind->present) continue;
      const size_t from = out.size();
      const auto& level = kind == &page.rep ? levels.rep : levels.def;
      write_levels(*kind, level.data() + entry, end - entry, out);
      record(from, 2);
    }
    for (unsigned buffer = 0; buffer < values.buffers(); ++buffer) {
      const size_t from = out.size();
      values.encode(start, length, buffer, out);
      record(from, size_bytes);
    }

    const uint64_t bytes = out.size() - begin;
    require(bytes <= max_chunk_bytes, "a chunk is longer than its format allows");
    const uint64_t word = ((bytes / 8 - 1) << 4) | (last ? 0 : std::countr_zero(length));
    page.chunk_metadata.append(&word, large_chunks ? 4 : 2);
    ++page.chunks;

    if (page.rep.present) {
      uint64_t starts = 0, last_start = entry;
      for (uint64_t i = entry + 1; i < end; ++i) {
        if (levels.rep[i] != levels.max_rep) continue;
        ++starts;
        last_start = i;
      }
      const bool closed = end == levels.entries || levels.rep[end] == levels.max_rep;
      // `last_start` stays at the chunk's first entry when no row begins after it: then all entries are
      // open.
      const uint64_t index[2] = {starts + closed, closed ? 0 : end - last_start};
      page.repetition_index.append(index, sizeof(index));
    }
    entry = end;
    start += length;
  }
  return page;
}

}  // namespace lance::encode
