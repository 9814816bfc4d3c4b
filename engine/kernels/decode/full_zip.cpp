#include <algorithm>

#include "decode/by_width.hpp"
#include "decode/packed_row.hpp"
#include "decode/page.hpp"

namespace lance {
namespace {

// Levels and value of each entry side by side (format 2.1, full-zip).
class FullZip : public Page {
 public:
  explicit FullZip(FullZipDescription d)
      : Page(d.rows, std::move(d.buffers), std::move(d.layers)), d_(std::move(d)) {
    check(d_.bits_rep <= 16 && d_.bits_def <= 16, "a full-zip page has levels of more than 16 bits");
    unsigned bits = d_.bits_rep + d_.bits_def;
    control_ = bits == 0 ? 0 : bits <= 8 ? 1 : bits <= 16 ? 2 : 4;
    check(!levels_.has_lists() || d_.bits_rep > 0, "a full-zip page of lists lacks repetition levels");
    check(levels_.has_lists() || d_.bits_rep == 0, "a full-zip page without lists has repetition levels");
    indexed_ = variable() || d_.bits_rep > 0;
    if (variable()) {
      check(d_.bits_per_offset == 32 || d_.bits_per_offset == 64, "value lengths must be 32 or 64 bits wide");
      codec_ = ValueCodec(d_.codec, d_.symbol_table);
      for (const PackedField& field : d_.packed) packed_.add(field);
    } else {
      measure_value();
    }
  }

  std::vector<Range> metadata_ranges() const override {
    return indexed_ ? std::vector<Range>{buffer_range(1)} : std::vector<Range>{};
  }

  std::vector<Range> data_ranges(const Source&, uint64_t begin, uint64_t end) const override {
    if (begin >= end) return {};
    return {range_of_rows(begin, end)};
  }

  Span alias_range(const Source& source, uint64_t begin, uint64_t end) const override {
    bool plain = !indexed_ && control_ == 0 && validity_bytes_ == 0 && d_.bits_per_item % 8 == 0 &&
                 type_.kind == LeafKind::kFixed && d_.bits_per_item > 0 && source.aliasable();
    if (!plain) return {};
    Range bytes = range_of_rows(begin, end);
    return source.view(bytes.offset, bytes.length);
  }

 protected:
  bool variable() const { return d_.bits_per_offset != 0; }

  void check_type(const LeafType& type) const override {
    if (!d_.packed.empty()) {
      check(type.kind == LeafKind::kVariable64, "a packed struct stands where values of another type should");
      return;
    }
    if (variable()) {
      check(type.variable() && type.offset_width() * 8 == d_.bits_per_offset,
            "the width of value lengths does not fit the type of the column");
      return;
    }
    // Where all items are null, the encoding may end above layers that the type has.
    bool shorter = d_.bits_per_item == 0 && d_.dims.size() < type.dims.size();
    check(std::equal(d_.dims.begin(), d_.dims.end(), type.dims.begin(),
                     shorter ? type.dims.begin() + static_cast<ptrdiff_t>(d_.dims.size()) : type.dims.end()),
          "a fixed-size list page does not fit the type of the column");
    if (type.kind == LeafKind::kNull) {
      check(!type.dims.empty() && d_.bits_per_item == 0, "values stand where nothing but nulls should");
      return;
    }
    bool bits = type.kind == LeafKind::kBits;
    check(bits || type.kind == LeafKind::kFixed, "fixed-width values stand where strings should");
    uint64_t wanted = !bits               ? uint64_t{type.width} * 8
                      : type.dims.empty() ? 8
                                          : 1;  // a lone boolean takes a byte
    check(d_.bits_per_item == 0 || d_.bits_per_item == wanted,
          "the width of values does not fit the type of the column");
  }

  void load(const Source& source, Scratch&) const override {
    if (!indexed_) return;
    Span index = buffer(source, 1);
    index_width_ = index.size / (rows_ + 1);
    check(index.size % (rows_ + 1) == 0 &&
              (index_width_ == 1 || index_width_ == 2 || index_width_ == 4 || index_width_ == 8),
          "the repetition index of a page does not have one entry per row");
    index_ = index;
    if (!source.aliasable()) {  // fetched segments go away; a mapping stays
      index_copy_.clear();
      copy_bytes(index_copy_.extend(index.size), index.data, index.size);
      index_ = {index_copy_.data(), index.size};
    }
  }

  void decode(const Source& source, uint64_t begin, uint64_t end, LeafOutput& out,
              Scratch& scratch) const override {
    Range bytes = range_of_rows(begin, end);
    decode_bytes(source.view(bytes.offset, bytes.length), end - begin, out, scratch);
  }

  void decode_picked(const Source& source, uint64_t begin, uint64_t end, LeafOutput& out,
                     Scratch& scratch) const override {
    Range bytes = range_of_rows(begin, end);
    decode_bytes(source.pick(bytes.offset, bytes.length, scratch.picked), end - begin, out, scratch);
  }

 private:
  void decode_bytes(Span bytes, uint64_t rows, LeafOutput& out, Scratch& scratch) const {
    if (variable())
      decode_variable(bytes, rows, out, scratch);
    else
      decode_fixed(bytes, rows, out, scratch);
  }

  // Bytes of one fixed-width value: a validity bitmap per nullable layer of items, then the items.
  void measure_value() {
    uint64_t items = 1;
    check(d_.dims.size() == d_.has_validity.size(), "a fixed-size list needs a dimension per layer");
    for (size_t layer = 0; layer < d_.dims.size(); ++layer) {
      check(d_.dims[layer] > 0 && items <= (uint64_t{1} << 31) / d_.dims[layer],
            "a fixed-size list is impossibly long");
      items *= d_.dims[layer];
      if (d_.has_validity[layer]) validity_bytes_ += bytes_for_bits(items);
    }
    check(d_.bits_per_item <= (uint64_t{1} << 32), "a fixed-width value is impossibly wide");
    uint64_t data_bits = items * d_.bits_per_item;
    check(data_bits % 8 == 0, "a full-zip value is not a whole number of bytes");
    data_bytes_ = data_bits / 8;
    check((validity_bytes_ + data_bytes_) * 8 == d_.bits_per_value,
          "a full-zip page contradicts its value width");
  }

  uint64_t row_offset(uint64_t row) const {
    if (!indexed_) return row * (control_ + validity_bytes_ + data_bytes_);
    return of_width(index_.data, index_width_, [&]<typename Index>(const Index*) -> uint64_t {
      return lance::load<Index>(index_.data + sizeof(Index) * row);
    });
  }

  Range range_of_rows(uint64_t begin, uint64_t end) const {
    uint64_t from = row_offset(begin), to = row_offset(end);
    Range data = buffer_range(0);
    check(from <= to && to <= data.length, "the rows of a full-zip page run past its data");
    return {data.offset + from, to - from};
  }

  // Reads one control word into the level arrays and says whether the entry owns a slot.
  bool read_levels(Span bytes, uint64_t& at, uint16_t& def, Scratch& scratch) const {
    uint32_t word = control_ == 1   ? bytes.at<uint8_t>(at)
                    : control_ == 2 ? bytes.at<uint16_t>(at)
                                    : bytes.at<uint32_t>(at);
    at += control_;
    def = static_cast<uint16_t>(word & ((uint32_t{1} << d_.bits_def) - 1));
    if (d_.bits_def) scratch.def.push_back(def);
    if (d_.bits_rep) scratch.rep.push_back(static_cast<uint16_t>(word >> d_.bits_def));
    return levels_.visible(def);
  }

  void finish_levels(uint64_t rows, uint64_t entries, uint64_t values, LeafOutput& out,
                     Scratch& scratch) const {
    if (d_.bits_rep) {
      uint64_t starts = 0;
      for (uint16_t rep : scratch.rep) starts += rep == levels_.max_rep();
      check(starts == rows && scratch.rep[0] == levels_.max_rep(),
            "a full-zip page contradicts its repetition index");
    } else {
      check(entries == rows, "a full-zip page contradicts its repetition index");
    }
    levels_.unravel(d_.bits_rep ? scratch.rep.data() : nullptr, d_.bits_def ? scratch.def.data() : nullptr,
                    entries, values, out.layers);
  }

  void append_fixed(Span value, LeafValues& out) const {
    uint64_t at = 0, items = 1;
    for (size_t layer = 0; layer < d_.dims.size(); ++layer) {
      items *= d_.dims[layer];
      if (!d_.has_validity[layer]) {
        out.item_validity[layer].append_valid(items);
        continue;
      }
      out.item_validity[layer].append_bits(value.data + at, 0, items);
      at += bytes_for_bits(items);
    }
    for (size_t layer = d_.dims.size(); layer < type_.dims.size(); ++layer) {
      items *= type_.dims[layer];
      out.item_validity[layer].append_null(items);  // the encoding ends above layers of nothing but nulls
    }
    if (type_.kind == LeafKind::kBits) {
      if (d_.bits_per_item)
        out.extend_bits(value.data + at, 0, 1);
      else
        out.extend_same(false, 1);
    } else if (d_.bits_per_item) {
      std::memcpy(out.extend_fixed(1), value.data + at, data_bytes_);
    } else {
      zero_bytes(out.extend_fixed(1), out.value_bytes());
    }
  }

  void decode_fixed(Span bytes, uint64_t rows, LeafOutput& out, Scratch& scratch) const {
    uint64_t width = validity_bytes_ + data_bytes_;
    bool plain = type_.kind == LeafKind::kFixed && validity_bytes_ == 0 && d_.bits_per_item > 0;
    if (control_ == 0 && plain) {
      for (size_t layer = 0; layer < d_.dims.size(); ++layer) append_valid_items(layer, rows, out.values);
      copy_bytes(out.values.extend_fixed(rows), bytes.data, bytes.size);
      return levels_.unravel(nullptr, nullptr, rows, rows, out.layers);
    }
    scratch.rep.clear();
    scratch.def.clear();
    uint64_t entries = 0, values = 0, at = 0;
    while (at < bytes.size || (bytes.size == 0 && entries < rows)) {
      uint16_t def = 0;
      bool visible = control_ == 0 || read_levels(bytes, at, def, scratch);
      ++entries;
      if (!visible) continue;
      check(def != 0 || d_.bits_per_item != 0 || !type_.dims.empty(),
            "a value that is not null stands in a page of nothing but nulls");
      append_fixed(bytes.sub(at, width), out.values);
      at += width;
      ++values;
    }
    finish_levels(rows, entries, values, out, scratch);
  }

  void append_valid_items(size_t layer, uint64_t rows, LeafValues& out) const {
    uint64_t items = rows;
    for (size_t i = 0; i <= layer; ++i) items *= d_.dims[i];
    out.item_validity[layer].append_valid(items);
  }

  void append_value(Span value, Bytes& out) const {
    if (d_.packed.empty())
      codec_.append(value, out);
    else
      packed_.append(value, out);
  }

  template <typename Length>
  void decode_lengths(Span bytes, uint64_t rows, LeafOutput& out, Scratch& scratch) const {
    scratch.rep.clear();
    scratch.def.clear();
    uint64_t entries = 0, values = 0, at = 0;
    while (at < bytes.size) {
      uint16_t def = 0;
      bool visible = control_ == 0 || read_levels(bytes, at, def, scratch);
      ++entries;
      if (!visible) continue;
      if (def == 0) {
        uint64_t length = bytes.at<Length>(at);
        at += sizeof(Length);
        append_value(bytes.sub(at, length), out.values.data);
        at += length;
      }
      end_value(out.values);
      ++values;
    }
    finish_levels(rows, entries, values, out, scratch);
  }

  static void end_value(LeafValues& values) {
    if (values.type().kind == LeafKind::kVariable32) {
      check_offset_range<int32_t>(values.data.size());
      *values.extend_offsets<int32_t>(1) = static_cast<int32_t>(values.data.size());
    } else {
      *values.extend_offsets<int64_t>(1) = static_cast<int64_t>(values.data.size());
    }
  }

  void decode_variable(Span bytes, uint64_t rows, LeafOutput& out, Scratch& scratch) const {
    if (d_.bits_per_offset == 32)
      decode_lengths<uint32_t>(bytes, rows, out, scratch);
    else
      decode_lengths<uint64_t>(bytes, rows, out, scratch);
  }

  FullZipDescription d_;
  unsigned control_ = 0;  // bytes of a control word
  bool indexed_ = false;
  uint64_t validity_bytes_ = 0;
  uint64_t data_bytes_ = 0;
  ValueCodec codec_;
  PackedRow packed_;
  mutable uint64_t index_width_ = 0;
  mutable Span index_;
  mutable Bytes index_copy_;
};

}  // namespace

PagePtr make_full_zip(FullZipDescription description) {
  return std::make_shared<FullZip>(std::move(description));
}

}  // namespace lance
