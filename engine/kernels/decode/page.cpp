#include "decode/page.hpp"

#include "decode/by_width.hpp"
#include "decode/dictionary.hpp"
#include "decode/narrow.hpp"

namespace lance {

namespace {

template <typename Index>
void widen_codes(const uint8_t* indices, uint64_t count, uint64_t base, int32_t* out) {
  for (uint64_t i = 0; i < count; ++i)
    out[i] = static_cast<int32_t>(base + load<Index>(indices + i * sizeof(Index)));
}

}  // namespace

void LeafOutput::add_codes(Span indices, unsigned index_width, uint64_t count, uint64_t base) {
  check(count <= indices.size / index_width, "there are fewer dictionary indices than values");
  auto* target = reinterpret_cast<int32_t*>(codes.extend(count * sizeof(int32_t)));
  of_width(indices.data, index_width,
           [&]<typename Index>(const Index*) { widen_codes<Index>(indices.data, count, base, target); });
}

void LeafOutput::narrow_values() {
  const uint64_t count = values.length();
  if (!narrow || !count) return;
  check(values.data.size() == count * 16, "a column of decimals is shorter than its rows");
  fits &= lance::narrow_values(values.data.data(), narrowed.extend(count * 8), count);
  values.clear();
}

void LeafOutput::number_values() {
  const uint64_t count = values.length();
  if (!strings || !count) return;
  const LeafType& type = values.type();
  const Dictionary all(std::move(values), count);
  values = LeafValues(type);
  strings->number(all, numbers);
}

void LeafOutput::add_identity_codes(uint64_t first) {
  uint64_t count = values.length() - first;
  auto* target = reinterpret_cast<int32_t*>(codes.extend(count * sizeof(int32_t)));
  for (uint64_t i = 0; i < count; ++i) target[i] = static_cast<int32_t>(first + i);
}

void Page::bind(const LeafType& type, const std::vector<Layer>& path) {
  levels_.check_path(path);
  check_type(type);
  type_ = type;
}

void Page::prepare(const Source& source) const {
  std::call_once(prepared_, [&] {
    for (const Range& range : metadata_ranges()) source.require(range.offset, range.length);
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
  uint64_t values = out.values.length();
  decode(source, begin, end, out, scratch);
  if (out.coded && !gives_codes()) out.add_identity_codes(values);
  out.narrow_values();
  out.number_values();
  if (type_.variable() && !out.test && !out.strings && !out.sieve) {
    seen_rows_.fetch_add(end - begin, std::memory_order_relaxed);
    seen_bytes_.fetch_add(out.values.data.size() - before, std::memory_order_relaxed);
  }
}

void Page::decode_rows(const Source& source, const uint32_t* rows, size_t count, LeafOutput& out,
                       Scratch& scratch) const {
  prepare(source);
  uint64_t values = out.values.length();
  gather(source, rows, count, out, scratch);
  if (out.coded && !gives_codes()) out.add_identity_codes(values);
  out.narrow_values();
  out.number_values();
}

void Page::gather(const Source& source, const uint32_t* rows, size_t count, LeafOutput& out,
                  Scratch& scratch) const {
  for (size_t i = 0; i < count;) {
    size_t run = 1;
    while (i + run < count && rows[i + run] == rows[i] + run) ++run;
    check(uint64_t{rows[i]} + run <= rows_, "rows past the end of a page were asked for");
    decode_picked(source, rows[i], uint64_t{rows[i]} + run, out, scratch);
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
