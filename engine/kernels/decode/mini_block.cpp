#include <algorithm>
#include <bit>

#include "decode/dictionary.hpp"
#include "decode/page.hpp"

namespace lance {
namespace {

// What one decoded chunk header says (format 2.1, mini-block chunk).
struct OpenChunk {
  Chunk values;
  uint64_t num_levels = 0;
  const uint16_t* rep = nullptr;
  const uint16_t* def = nullptr;
};

// Dictionary indices on their way, and where their dictionary begins among the values.
struct Indices {
  LeafValues values;
  uint64_t base;
};

class MiniBlock : public Page {
 public:
  explicit MiniBlock(MiniBlockDescription d)
      : Page(d.rows, std::move(d.buffers), std::move(d.layers)), d_(std::move(d)) {
    check(d_.num_buffers == d_.values->num_buffers(),
          "a page declares another number of buffers than its encoding has");
    check(!d_.rep || d_.rep->bits() == 16, "repetition levels must be 16 bits wide");
    check(!d_.def || d_.def->bits() == 16, "definition levels must be 16 bits wide");
    check(levels_.has_lists() == d_.repetition_index, "a page of lists needs a repetition index");
    check(levels_.has_lists() == (d_.rep != nullptr), "a page of lists needs repetition levels");
    check(levels_.has_lists() || d_.num_items == rows_, "a page holds another number of values than rows");
    check(d_.num_items <= UINT32_MAX, "a page claims an impossible number of rows");
    if (d_.dictionary) {
      check(d_.index_width == 1 || d_.index_width == 2 || d_.index_width == 4 || d_.index_width == 8,
            "dictionary indices must be 8, 16, 32 or 64 bits wide");
      index_type_ = {LeafKind::kFixed, d_.index_width, {}};
    }
  }

  std::vector<Range> metadata_ranges() const override {
    std::vector<Range> ranges{buffer_range(0)};
    for (size_t i = 2; i < buffers_.size(); ++i) ranges.push_back(buffers_[i]);
    return ranges;
  }

  std::vector<Range> data_ranges(const Source&, uint64_t begin, uint64_t end) const override {
    if (begin >= end) return {};
    auto [first, last] = levels_.has_lists() ? chunks_of_lists(begin, end) : chunks_of_values(begin, end);
    return {{buffer_range(1).offset + byte_start_[first], byte_start_[last] - byte_start_[first]}};
  }

  uint64_t run_end(uint64_t row) const override {
    constexpr uint64_t kAtLeast = 2048;
    if (value_start_.size() < 2 || row + kAtLeast >= rows_) return rows_;
    return value_start_[chunk_of(row + kAtLeast - 1) + 1];
  }

  bool gives_codes() const override { return d_.dictionary != nullptr; }

  uint64_t dictionary_entries() const override { return d_.dictionary ? d_.dictionary_items : 0; }

  uint64_t dictionary_bytes(const Source& source) const override {
    return d_.dictionary ? d_.dictionary->most_bytes(buffer(source, 2), d_.dictionary_items) : 0;
  }

  uint64_t most_distinct() const override { return d_.dictionary ? d_.dictionary_items : rows_; }

  void number_dictionary(const Source& source, StringNumbers& strings) const override {
    prepare(source);
    if (dictionary_) strings.of(*dictionary_);
  }

  void gather(const Source& source, const uint32_t* rows, size_t count, LeafOutput& out,
              Scratch& scratch) const override {
    if (levels_.has_lists()) return Page::gather(source, rows, count, out, scratch);
    Indices indices{LeafValues(index_type_), begin_codes(out)};
    scratch.def.clear();
    for (size_t i = 0; i < count;) {
      check(rows[i] < rows_, "rows past the end of a page were asked for");
      size_t chunk = chunk_of(rows[i]);
      uint32_t first = value_start_[chunk], end = value_start_[chunk + 1];
      scratch.positions.clear();
      for (; i < count && rows[i] < end; ++i) scratch.positions.push_back(rows[i] - first);
      OpenChunk open = open_chunk(source, chunk, scratch);
      const uint32_t* positions = scratch.positions.data();
      size_t wanted = scratch.positions.size();
      if (open.def)
        for (size_t k = 0; k < wanted; ++k) scratch.def.push_back(open.def[positions[k]]);
      if (dictionary_) {
        d_.values->gather(open.values, positions, wanted, indices.values, scratch);
        if (indices.values.length() >= kIndicesAtOnce) look_up(indices.values, out, indices.base);
      } else {
        d_.values->gather(open.values, positions, wanted, out.values, scratch);
      }
    }
    if (dictionary_) look_up(indices.values, out, indices.base);
    levels_.unravel(nullptr, d_.def ? scratch.def.data() : nullptr, count, count, out.layers);
  }

 protected:
  void check_type(const LeafType& type) const override {
    d_.values->check_type(d_.dictionary ? index_type_ : type);
  }

  void load(const Source& source, Scratch& scratch) const override {
    load_chunks(buffer(source, 0));
    if (d_.dictionary)
      dictionary_ = std::make_unique<Dictionary>(type_, *d_.dictionary, buffer(source, 2),
                                                 d_.dictionary_items, scratch);
    if (d_.repetition_index) load_repetition_index(buffer(source, d_.dictionary ? 3 : 2));
  }

  void decode(const Source& source, uint64_t begin, uint64_t end, LeafOutput& out,
              Scratch& scratch) const override {
    Indices indices{LeafValues(index_type_), begin_codes(out)};
    if (levels_.has_lists())
      decode_lists(source, begin, end, out, indices, scratch);
    else
      decode_values(source, begin, end, out, indices, scratch);
    if (!dictionary_) return;
    if (out.sieve) indices.values.keep(0, 0, *out.sieve);
    look_up(indices.values, out, indices.base);
  }

 private:
  static constexpr uint64_t kIndicesAtOnce =
      8192;  // stay in the first-level cache between unpacking and looking up

  static constexpr uint64_t kPrefetch = 4096;

  void load_chunks(Span words) const {
    const uint64_t word_size = d_.large_chunks ? 4 : 2;
    uint64_t chunks = words.size / word_size;
    check(words.size % word_size == 0, "the chunk index of a page ends inside a word");
    check(chunks > 0 || d_.num_items == 0, "a page has values but no chunks");
    value_start_.clear();
    byte_start_.clear();
    value_start_.reserve(chunks + 1);
    byte_start_.reserve(chunks + 1);
    uint64_t values = 0, bytes = 0;
    for (uint64_t i = 0; i < chunks; ++i) {
      uint32_t word = d_.large_chunks ? words.at<uint32_t>(i * 4) : words.at<uint16_t>(i * 2);
      value_start_.push_back(static_cast<uint32_t>(values));
      byte_start_.push_back(bytes);
      unsigned log2 = word & 15;
      bytes += (uint64_t{word >> 4} + 1) * 8;
      if (i + 1 == chunks) {
        check(values <= d_.num_items, "the chunks of a page hold more values than the page");
        values = d_.num_items;
      } else {
        check(log2 > 0, "a chunk other than the last has no number of values");
        values += uint64_t{1} << log2;
        check(values <= d_.num_items, "the chunks of a page hold more values than the page");
        uniform_ = i == 0 ? log2 : (uniform_ == log2 ? log2 : 0);
      }
    }
    check(bytes <= buffer_range(1).length, "the chunks of a page run past its data");
    value_start_.push_back(static_cast<uint32_t>(values));
    byte_start_.push_back(bytes);
  }

  // Turns (rows that end, entries left over) per chunk into the first row that starts in each chunk.
  void load_repetition_index(Span index) const {
    uint64_t chunks = byte_start_.size() - 1;
    check(index.size >= chunks * 16, "the repetition index of a page is shorter than its chunks");
    row_start_.clear();
    continues_.clear();
    row_start_.reserve(chunks + 1);
    uint64_t row = 0;
    bool open = false;
    for (uint64_t i = 0; i < chunks; ++i) {
      row_start_.push_back(static_cast<uint32_t>(row));
      continues_.push_back(open);
      uint64_t ended = index.at<uint64_t>(i * 16);
      bool partial = index.at<uint64_t>(i * 16 + 8) > 0;
      uint64_t started = ended + partial;
      check(started >= open && ended <= rows_, "the repetition index of a page contradicts itself");
      row += started - open;
      check(row <= rows_, "the repetition index of a page has more rows than the page");
      open = partial;
    }
    check(row == rows_, "the repetition index of a page has fewer rows than the page");
    row_start_.push_back(static_cast<uint32_t>(row));
  }

  size_t chunk_of(uint64_t value) const {
    if (uniform_) return std::min<size_t>(value >> uniform_, value_start_.size() - 2);
    auto after = std::upper_bound(value_start_.begin(), value_start_.end(), value);
    return static_cast<size_t>(after - value_start_.begin()) - 1;
  }

  std::pair<size_t, size_t> chunks_of_values(uint64_t begin, uint64_t end) const {
    return {chunk_of(begin), chunk_of(end - 1) + 1};
  }

  // Chunks from the one in which row `begin` starts to the one in which row `end - 1` ends.
  std::pair<size_t, size_t> chunks_of_lists(uint64_t begin, uint64_t end) const {
    size_t chunks = byte_start_.size() - 1;
    auto start_of = [&](uint64_t row) {
      auto after =
          std::upper_bound(row_start_.begin(), row_start_.begin() + static_cast<ptrdiff_t>(chunks), row);
      return static_cast<size_t>(after - row_start_.begin()) - 1;
    };
    size_t first = start_of(begin);
    if (end == rows_) return {first, chunks};
    size_t last = start_of(end);  // row `end` starts here; row `end - 1` may still end here
    bool needed = continues_[last] || row_start_[last] < end;
    return {first, needed ? last + 1 : last};
  }

  Span chunk_bytes(const Source& source, size_t chunk) const {
    return source.view(buffers_[1].offset + byte_start_[chunk], byte_start_[chunk + 1] - byte_start_[chunk]);
  }

  // The hardware only prefetches within a memory page, and many chunks are about as long as one.
  void prefetch(const Source& source, size_t chunk) const {
    if (!source.aliasable()) return;
    Span bytes = chunk_bytes(source, chunk);
    bytes_viewed -= bytes.size;  // it is looked at later
    for (uint64_t at = 0; at < std::min<uint64_t>(bytes.size, kPrefetch); at += 64)
      __builtin_prefetch(bytes.data + at);
  }

  OpenChunk open_chunk(const Source& source, size_t chunk, Scratch& scratch) const {
    Span bytes = chunk_bytes(source, chunk);
    OpenChunk open;
    uint64_t at = 0;
    auto next_u16 = [&] {
      uint64_t value = bytes.at<uint16_t>(at);
      at += 2;
      return value;
    };
    open.num_levels = next_u16();
    uint64_t rep_bytes = d_.rep ? next_u16() : 0;
    uint64_t def_bytes = d_.def ? next_u16() : 0;
    std::array<uint64_t, kMaxValueBuffers> sizes;
    for (uint64_t i = 0; i < d_.num_buffers; ++i) {
      if (d_.large_chunks) {
        sizes[i] = bytes.at<uint32_t>(at);
        at += 4;
      } else {
        sizes[i] = next_u16();
      }
    }
    auto next_buffer = [&](uint64_t size) {
      at = pad_to(at, 8);
      Span buffer = bytes.sub(at, size);
      at += size;
      return buffer;
    };
    scratch.levels.clear();
    if (d_.rep) d_.rep->decode(next_buffer(rep_bytes), open.num_levels, scratch.levels, scratch);
    if (d_.def) d_.def->decode(next_buffer(def_bytes), open.num_levels, scratch.levels, scratch);
    auto* levels = reinterpret_cast<const uint16_t*>(scratch.levels.data());
    if (d_.rep) {
      open.rep = levels;
      levels += open.num_levels;
    }
    if (d_.def) open.def = levels;
    open.values.num_values = value_start_[chunk + 1] - value_start_[chunk];
    open.values.num_buffers = d_.num_buffers;
    for (uint64_t i = 0; i < d_.num_buffers; ++i) open.values.buffers[i] = next_buffer(sizes[i]);
    if (!levels_.has_lists())
      check(!d_.def || open.num_levels == open.values.num_values,
            "a chunk has another number of levels than values");
    return open;
  }

  void decode_chunk_values(const Chunk& chunk, uint64_t skip, uint64_t count, LeafOutput& out,
                           Indices& indices, Scratch& scratch) const {
    if (!count) return;
    check(skip + count <= chunk.num_values, "a chunk holds fewer values than its levels claim");
    if (!dictionary_) {
      if (out.test && d_.values->test(chunk, skip, count, *out.test, out.matches, scratch)) return;
      if (out.narrow) {
        out.narrow_values();  // those of earlier chunks come first
        if (d_.values->narrow(chunk, skip, count, out.narrowed, out.fits)) return;
      }
      return d_.values->decode(chunk, skip, count, out.values, scratch);
    }
    d_.values->decode(chunk, skip, count, indices.values, scratch);
    if (!out.sieve && indices.values.length() >= kIndicesAtOnce) look_up(indices.values, out, indices.base);
  }

  // Where codes are requested, the dictionary joins the values once; gives the place of its first value
  // there.
  uint64_t begin_codes(LeafOutput& out) const {
    if (!dictionary_ || !out.coded || out.dictionary_of == this) return out.dictionary_base;
    out.dictionary_of = this;
    out.dictionary_base = out.values.length();
    dictionary_->append_to(out.values);
    return out.dictionary_base;
  }

  void look_up(LeafValues& indices, LeafOutput& out, uint64_t base) const {
    Span codes{indices.data.data(), indices.data.size()};
    if (out.test) {
      const auto entries = out.test->entries(*dictionary_, type_);
      dictionary_->match(codes, d_.index_width, indices.length(), entries->data(), out.matches);
    } else if (out.narrow) {
      out.fits &= dictionary_->gather_narrow(codes, d_.index_width, indices.length(), out.narrowed);
    } else if (out.strings) {
      dictionary_->gather_numbers(codes, d_.index_width, indices.length(), *out.strings->of(*dictionary_),
                                  out.strings->width(), out.numbers);
    } else if (out.coded) {
      dictionary_->check_codes(codes, d_.index_width, indices.length());
      out.add_codes(codes, d_.index_width, indices.length(), base);
    } else {
      dictionary_->gather(codes, d_.index_width, indices.length(), out.values);
    }
    indices = LeafValues(index_type_, std::move(indices.data));
  }

  void decode_values(const Source& source, uint64_t begin, uint64_t end, LeafOutput& out, Indices& indices,
                     Scratch& scratch) const {
    auto [first, last] = chunks_of_values(begin, end);
    scratch.def.clear();
    for (size_t chunk = first; chunk < last; ++chunk) {
      if (chunk + 2 < last) prefetch(source, chunk + 2);
      OpenChunk open = open_chunk(source, chunk, scratch);
      uint64_t skip = begin > value_start_[chunk] ? begin - value_start_[chunk] : 0;
      uint64_t stop = std::min<uint64_t>(end, value_start_[chunk + 1]) - value_start_[chunk];
      uint64_t count = stop - skip;
      if (open.def) scratch.def.insert(scratch.def.end(), open.def + skip, open.def + stop);
      decode_chunk_values(open.values, skip, count, out, indices, scratch);
    }
    levels_.unravel(nullptr, d_.def ? scratch.def.data() : nullptr, end - begin, end - begin, out.layers);
  }

  void decode_lists(const Source& source, uint64_t begin, uint64_t end, LeafOutput& out, Indices& indices,
                    Scratch& scratch) const {
    auto [first, last] = chunks_of_lists(begin, end);
    scratch.rep.clear();
    scratch.def.clear();
    uint64_t values = 0;
    uint64_t rows_seen = 0;  // starts of wanted rows met so far
    const uint16_t row_start = static_cast<uint16_t>(levels_.max_rep());
    for (size_t chunk = first; chunk < last; ++chunk) {
      if (chunk + 2 < last) prefetch(source, chunk + 2);
      OpenChunk open = open_chunk(source, chunk, scratch);
      check(continues_[chunk] || open.num_levels == 0 || open.rep[0] == row_start,
            "a chunk does not start with the row that the repetition index names");
      uint64_t from = 0, skipped = 0;
      if (chunk == first) {
        uint64_t row = row_start_[chunk];
        for (;; ++from) {
          check(from < open.num_levels, "a row does not start in the chunk that the repetition index names");
          if (open.rep[from] == row_start && row++ == begin) break;
          skipped += visible(open, from);
        }
      }
      uint64_t to = open.num_levels;
      if (chunk + 1 == last) {
        for (to = from; to < open.num_levels; ++to)
          if (open.rep[to] == row_start && rows_seen++ == end - begin) break;
      } else {
        rows_seen += to - from - count_at_most(open.rep + from, to - from, row_start - 1u);
      }
      uint64_t count =
          open.def ? count_at_most(open.def + from, to - from, levels_.max_visible()) : to - from;
      scratch.rep.insert(scratch.rep.end(), open.rep + from, open.rep + to);
      if (open.def) scratch.def.insert(scratch.def.end(), open.def + from, open.def + to);
      decode_chunk_values(open.values, skipped, count, out, indices, scratch);
      values += count;
    }
    check(rows_seen >= end - begin, "a page holds fewer rows than its repetition index claims");
    levels_.unravel(scratch.rep.data(), d_.def ? scratch.def.data() : nullptr, scratch.rep.size(), values,
                    out.layers);
  }

  uint64_t visible(const OpenChunk& open, uint64_t entry) const {
    return !open.def || levels_.visible(open.def[entry]);
  }

  MiniBlockDescription d_;
  LeafType index_type_{LeafKind::kFixed, 1, {}};
  mutable unsigned uniform_ = 0;  // log2 of the values per chunk where all but the last agree
  mutable std::vector<uint32_t> value_start_;
  mutable std::vector<uint64_t> byte_start_;
  mutable std::vector<uint32_t> row_start_;
  mutable std::vector<bool> continues_;
  mutable std::unique_ptr<Dictionary> dictionary_;
};

}  // namespace

PagePtr make_mini_block(MiniBlockDescription description) {
  check(description.values != nullptr, "a mini-block page lacks a value encoding");
  return std::make_shared<MiniBlock>(std::move(description));
}

}  // namespace lance
