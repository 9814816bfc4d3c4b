#pragma once

#include <cstdint>

#include "encode/levels.hpp"
#include "encode/output.hpp"
#include "encode/values.hpp"

namespace lance::encode {

// How the rep or def levels of a page are stored.
struct LevelEncoding {
  bool present = false;
  bool packed = false;  // out-of-line bit-packing of `width` bits, else 16-bit values
  unsigned width = 16;
};

struct MiniBlockPage {
  Output chunk_metadata;
  Output chunk_data;
  Output repetition_index;  // two u64 per chunk; empty without lists
  LevelEncoding rep, def;
  uint64_t chunks = 0;
};

// Entries that the levels of one page piece may count so that any chunk of it fits (format 2.1, level
// budget).
uint64_t level_budget(const Levels& levels);

// Assembles a page from chunks (format 2.1, mini-block layout). `large_chunks` selects the 32-bit words
// of 2.2.
MiniBlockPage encode_mini_block(MiniBlockValues& values, const Levels& levels, bool large_chunks);

}  // namespace lance::encode
