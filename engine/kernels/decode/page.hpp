#pragma once

#include <algorithm>
#include <atomic>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "core/source.hpp"
#include "decode/block_decoder.hpp"
#include "decode/leaf.hpp"
#include "decode/levels.hpp"
#include "decode/string_numbers.hpp"
#include "decode/value_decoder.hpp"

namespace lance {

// A byte range of the file.
struct Range {
  uint64_t offset = 0;
  uint64_t length = 0;
};

// Everything decoded so far of one leaf column: values, and per layer of the path validity and offsets.
struct LeafOutput {
  LeafOutput(const LeafType& type, const std::vector<Layer>& path) : values(type) {
    for (const Layer& layer : path) layers.emplace_back(layer);
  }
  // Asks for strings as codes into a dictionary, which `values` then is. Its values may repeat: each page
  // brings its own.
  void as_codes() { coded = true; }
  // Asks for the outcome of a test instead of values.
  void as_matches(const ValueTest& by) { test = &by; }
  // Turns the values so far into matches.
  void test_values() {
    if (!test || !values.length()) return;
    test->test(values, matches);
    values.clear();
  }
  // Asks for decimals of 128 bits in 64 bits.
  void as_narrow() { narrow = true; }
  // Moves the values so far to `narrowed`.
  void narrow_values();
  // Asks for the numbers of strings in a list instead of values.
  void as_numbers(StringNumbers& of) { strings = &of; }
  // Turns the values so far, which are those of a page without a dictionary, into numbers.
  void number_values();
  // How much there is of everything.
  struct Mark {
    uint64_t rows, values, bytes, codes, narrowed, numbers;
  };
  Mark mark() const;
  // Of the `rows` since `before`, from one page, keeps only those in `mask`, which begins there.
  void keep(const Mark& before, RowMask mask, uint64_t rows, bool has_dictionary);
  // Codes for the values from `first` on, one each: what a page without a dictionary has.
  void add_identity_codes(uint64_t first);
  // Codes into the dictionary whose values begin at `base`.
  void add_codes(Span indices, unsigned index_width, uint64_t count, uint64_t base);

  LeafValues values;
  std::vector<LayerValues> layers;  // leaf first
  // Which rows of a run are wanted: of the others, codes are not looked up in a dictionary.
  const RowMask* sieve = nullptr;
  bool coded = false;
  Bytes codes;                          // int32 each
  const void* dictionary_of = nullptr;  // the page whose dictionary joined the values last
  uint64_t dictionary_base = 0;         // where this begins
  const ValueTest* test = nullptr;
  Bits matches;  // one per value tested
  bool narrow = false;
  Bytes narrowed;  // 64 bits each
  StringNumbers* strings = nullptr;
  Bytes numbers;     // `strings->width()` bytes each
  bool fits = true;  // whether all `narrowed` values have so few bits; those of nulls count too
};

// One page of a column. Immutable after `prepare`, which reads what every access needs (chunk index,
// dictionary, repetition index) once; all calls are safe from several threads.
class Page {
 public:
  Page(uint64_t rows, std::vector<Range> buffers, std::vector<uint8_t> layers)
      : rows_(rows), buffers_(std::move(buffers)), levels_(std::move(layers)) {
    check(rows <= UINT32_MAX, "a page claims an impossible number of rows");
  }
  virtual ~Page() = default;

  uint64_t rows() const { return rows_; }
  // Where everything of the page is, as far as known from its description.
  const std::vector<Range>& buffers() const { return buffers_; }
  // Whether the page itself has codes where these are requested; another makes a code for every value.
  virtual bool gives_codes() const { return false; }
  // Entries of the dictionary that the codes refer to, as its description says.
  virtual uint64_t dictionary_entries() const { return 0; }
  // The most bytes that the dictionary can decode to.
  virtual uint64_t dictionary_bytes(const Source&) const { return 0; }
  // There are no more distinct values than these.
  virtual uint64_t most_distinct() const { return rows_; }
  // Adds the strings of the dictionary, if there is one, to a list.
  virtual void number_dictionary(const Source&, StringNumbers&) const {}
  // Throws unless the page can be read as this type at this place of the schema.
  void bind(const LeafType& type, const std::vector<Layer>& path);
  // Byte ranges that `prepare` reads, and those that rows [begin, end) need on top.
  virtual std::vector<Range> metadata_ranges() const { return {}; }
  virtual std::vector<Range> data_ranges(const Source&, uint64_t begin, uint64_t end) const = 0;
  void prepare(const Source& source) const;

  // Appends rows [begin, end).
  void decode_range(const Source& source, uint64_t begin, uint64_t end, LeafOutput& out,
                    Scratch& scratch) const;
  // Appends the rows at ascending positions; a position may repeat.
  void decode_rows(const Source& source, const uint32_t* rows, size_t count, LeafOutput& out,
                   Scratch& scratch) const;
  // Points at the bytes of rows [begin, end) when they are in the file as Arrow wants them; else an empty
  // span.
  virtual Span alias_range(const Source&, uint64_t, uint64_t) const { return {}; }
  // The same for the bytes of the strings of rows [begin, end); their offsets and validity are appended to
  // `out`, which has no values so far.
  virtual Span alias_strings(const Source&, uint64_t, uint64_t, LeafOutput&) const { return {}; }
  // The end of a run of rows from `row` on that is well tested at once: its values stay in the cache, and no
  // chunk is decoded twice.
  virtual uint64_t run_end(uint64_t row) const { return std::min(rows_, row + kRunRows); }
  // Bytes of string data that rows [begin, end) will probably decode to.
  uint64_t expected_bytes(uint64_t rows) const;

 protected:
  static constexpr uint64_t kRunRows = 8192;

  virtual void check_type(const LeafType& type) const = 0;
  // May be called again where it failed before, as for bytes that had to be fetched.
  virtual void load(const Source&, Scratch&) const {}
  virtual void decode(const Source& source, uint64_t begin, uint64_t end, LeafOutput& out,
                      Scratch& scratch) const = 0;
  // The same for a range that was picked out of the page.
  virtual void decode_picked(const Source& source, uint64_t begin, uint64_t end, LeafOutput& out,
                             Scratch& scratch) const {
    decode(source, begin, end, out, scratch);
  }
  // By default range by range.
  virtual void gather(const Source& source, const uint32_t* rows, size_t count, LeafOutput& out,
                      Scratch& scratch) const;
  Span buffer(const Source& source, size_t index) const {
    check(index < buffers_.size(), "a page has fewer buffers than its layout needs");
    return source.view(buffers_[index].offset, buffers_[index].length);
  }
  Range buffer_range(size_t index) const {
    check(index < buffers_.size(), "a page has fewer buffers than its layout needs");
    return buffers_[index];
  }

  uint64_t rows_;
  std::vector<Range> buffers_;
  LevelMap levels_;
  LeafType type_;

 private:
  mutable std::once_flag prepared_;
  mutable std::atomic<uint64_t> seen_rows_{0};
  mutable std::atomic<uint64_t> seen_bytes_{0};
};

using PagePtr = std::shared_ptr<Page>;

struct MiniBlockDescription {
  uint64_t rows = 0;
  std::vector<Range> buffers;
  std::vector<uint8_t> layers;
  BlockDecoderPtr rep;
  BlockDecoderPtr def;
  ValueDecoderPtr values;
  BlockDecoderPtr dictionary;  // null: the values are the values
  uint64_t dictionary_items = 0;
  unsigned index_width = 0;  // bytes of a dictionary index
  uint64_t num_buffers = 0;
  uint64_t num_items = 0;
  bool large_chunks = false;
  bool repetition_index = false;
};
PagePtr make_mini_block(MiniBlockDescription description);

// Per-value compression of a full-zip page.
enum class ZipCodec : uint8_t { kPlain, kFsst, kLz4, kZstd };

// One field of the rows of a variable packed struct: so many bytes, or a length and the bytes.
struct PackedField {
  uint64_t bytes = 0;
  unsigned length_bytes = 0;  // 0: fixed width
  ZipCodec codec = ZipCodec::kPlain;
  std::vector<uint8_t> symbol_table;
  // Fixed-size lists, outermost first: whether a validity bitmap of their items is in front of the bytes.
  std::vector<uint64_t> dims;
  std::vector<bool> has_validity;
};

struct FullZipDescription {
  uint64_t rows = 0;
  std::vector<Range> buffers;
  std::vector<uint8_t> layers;
  unsigned bits_rep = 0;
  unsigned bits_def = 0;
  // Fixed-width values.
  uint64_t bits_per_value = 0;
  std::vector<uint64_t> dims;
  std::vector<bool> has_validity;
  uint64_t bits_per_item = 0;  // 0: every item is null and no data follows the validity
  // Variable-width values.
  unsigned bits_per_offset = 0;  // 0: fixed width
  ZipCodec codec = ZipCodec::kPlain;
  std::vector<uint8_t> symbol_table;
  std::vector<PackedField> packed;  // not empty: values are rows of a packed struct
};
PagePtr make_full_zip(FullZipDescription description);

struct ConstantDescription {
  uint64_t rows = 0;
  std::vector<Range> buffers;
  std::vector<uint8_t> layers;
  std::vector<uint8_t> inline_value;
  bool has_inline_value = false;
  BlockDecoderPtr rep;  // null: raw u16
  BlockDecoderPtr def;
  uint64_t num_rep = 0;
  uint64_t num_def = 0;
};
PagePtr make_constant(ConstantDescription description);

// `descriptors` holds 16-byte (position, size) pairs in `buffers`; `v2_0` picks how that version marks nulls.
PagePtr make_blob(PagePtr descriptors, std::vector<Range> buffers, std::vector<uint8_t> layers, bool v2_0);

}  // namespace lance
