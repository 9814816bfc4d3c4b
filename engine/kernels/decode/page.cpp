#include "decode/page.hpp"

namespace lance {

void Page::bind(const LeafType& type, const std::vector<Layer>& path) {
  levels_.check_path(path);
  check_type(type);
  type_ = type;
}

void Page::prepare(const Source& source) const {
  std::call_once(prepared_, [&] {
    Scratch scratch;
    load(source, scratch);
  });
}

void Page::decode_range(const Source& source, uint64_t begin, uint64_t end, LeafOutput& out,
                        Scratch& scratch) const {
  check(begin <= end && end <= rows_, "rows past the end of a page were asked for");
  if (begin == end) return;
  prepare(source);
  uint64_t before = out.values.data.size();
  decode(source, begin, end, out, scratch);
  if (type_.variable()) {
    seen_rows_.fetch_add(end - begin, std::memory_order_relaxed);
    seen_bytes_.fetch_add(out.values.data.size() - before, std::memory_order_relaxed);
  }
}

void Page::decode_rows(const Source& source, const uint32_t* rows, size_t count, LeafOutput& out,
                       Scratch& scratch) const {
  for (size_t i = 0; i < count;) {
    size_t run = 1;
    while (i + run < count && rows[i + run] == rows[i] + run) ++run;
    decode_range(source, rows[i], uint64_t{rows[i]} + run, out, scratch);
    i += run;
  }
}

uint64_t Page::expected_bytes(uint64_t rows) const {
  uint64_t seen = seen_rows_.load(std::memory_order_relaxed);
  if (!seen) {
    uint64_t stored = 0;
    for (const Range& range : buffers_) stored += range.length;
    return rows_ ? stored / rows_ * rows + 64 : 0;
  }
  // A little more than the mean: growing means copying.
  return static_cast<uint64_t>(static_cast<double>(seen_bytes_.load(std::memory_order_relaxed)) /
                               static_cast<double>(seen) * static_cast<double>(rows) * 1.04) +
         64;
}

}  // namespace lance
