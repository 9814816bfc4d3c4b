#include "decode/value_decoder.hpp"

namespace lance {

void ValueDecoder::gather(const Chunk& chunk, const uint32_t* positions, size_t count, LeafValues& out,
                          Scratch& scratch) const {
  for (size_t i = 0; i < count;) {
    size_t run = 1;
    while (i + run < count && positions[i + run] == positions[i] + run) ++run;
    decode(chunk, positions[i], run, out, scratch);
    i += run;
  }
}

}  // namespace lance
