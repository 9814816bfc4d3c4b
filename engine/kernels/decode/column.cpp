#include "decode/column.hpp"

#include <algorithm>

namespace lance {

namespace {

// Memory for what files claim is requested in advance only as far as a batch may reasonably go.
constexpr uint64_t kMostReserved = uint64_t{256} << 20;

// Distance of wanted rows up to which a run is decoded as a whole: beyond, values are picked one by one.
constexpr uint64_t kPickedDistance = 12;
// The same for strings, which are longer.
constexpr uint64_t kPickedStrings = 2;

}  // namespace

LeafColumn::LeafColumn(std::string name, LeafType type, std::vector<Layer> path, std::vector<PagePtr> pages,
                       std::vector<std::shared_ptr<const Source>> sources)
    : name_(std::move(name)),
      type_(std::move(type)),
      path_(std::move(path)),
      pages_(std::move(pages)),
      sources_(std::move(sources)) {
  uint64_t bytes = std::max<uint64_t>(type_.width, 1);
  for (uint64_t dim : type_.dims) {
    check(dim <= kMaxValueBytes / bytes, "the values of a column are impossibly wide");
    bytes *= std::max<uint64_t>(dim, 1);
  }
  check(bytes <= kMaxValueBytes, "the values of a column are impossibly wide");
  uint64_t rows = 0;
  for (size_t i = 0; i < pages_.size(); ++i) {
    starts_.push_back(rows);
    try {
      pages_[i]->bind(type_, path_);
    } catch (CorruptData& error) {
      error.column = name_;
      error.page = static_cast<int64_t>(i);
      throw;
    }
    rows += pages_[i]->rows();
    check(rows <= UINT32_MAX, "a file claims an impossible number of rows");
  }
  starts_.push_back(rows);
}

// Calls visit(page index, first row, end) with rows counted from the start of each page.
template <typename Visit>
void LeafColumn::visit_pages(uint64_t begin, uint64_t end, Visit visit) const {
  check(begin <= end && end <= rows(), "rows past the end of a column were asked for");
  auto after = std::upper_bound(starts_.begin(), starts_.end() - 1, begin);
  for (auto i = static_cast<size_t>(std::max<ptrdiff_t>(after - starts_.begin() - 1, 0));
       i < pages_.size() && starts_[i] < end; ++i) {
    try {
      uint64_t from = std::max(begin, starts_[i]), to = std::min(end, starts_[i + 1]);
      if (from < to) visit(i, from - starts_[i], to - starts_[i]);
    } catch (CorruptData& error) {
      error.column = name_;
      error.page = static_cast<int64_t>(i);
      throw;
    }
  }
}

void LeafColumn::reserve(uint64_t begin, uint64_t end, LeafOutput& out) const {
  uint64_t rows = end - begin;
  bool nested = std::any_of(path_.begin(), path_.end(), [](const Layer& layer) { return layer.list(); });
  if (!nested) {
    if (type_.kind == LeafKind::kFixed)
      out.values.data.reserve(std::min(rows * out.values.value_bytes(), kMostReserved));
    if (type_.variable())
      out.values.offsets.reserve(std::min((rows + 1) * type_.offset_width(), kMostReserved));
  }
  if (type_.variable()) {
    uint64_t bytes = 0;
    visit_pages(begin, end,
                [&](size_t i, uint64_t from, uint64_t to) { bytes += pages_[i]->expected_bytes(to - from); });
    out.values.data.reserve(std::min(bytes, kMostReserved));
  }
}

// Rows that are in one place of a mapped file as Arrow wants them are pointed at, not copied.
bool LeafColumn::alias(const RowRange& range, const Overlays& overlays, LeafOutput& out) const {
  uint64_t rows = range.end - range.begin;
  Span bytes;
  std::shared_ptr<const Source> owner;
  if (type_.variable()) {
    if (out.coded || out.strings || rows == 0) return false;
    visit_pages(range.begin, range.end, [&](size_t i, uint64_t from, uint64_t to) {
      const Source& source = overlaid(sources_[i], overlays);
      if (to - from != rows || !source.aliasable()) return;
      pages_[i]->prepare(source);
      bytes = pages_[i]->alias_strings(source, from, to, out);
      owner = sources_[i];
    });
    if (bytes.data) out.values.alias(bytes, std::move(owner), rows);
    return bytes.data != nullptr;
  }
  if (type_.kind != LeafKind::kFixed) return false;
  visit_pages(range.begin, range.end, [&](size_t i, uint64_t from, uint64_t to) {
    const Source& source = overlaid(sources_[i], overlays);
    if (to - from != rows || !source.aliasable()) return;
    bytes = pages_[i]->alias_range(source, from, to);
    owner = sources_[i];
  });
  bool usable = bytes.data && reinterpret_cast<uintptr_t>(bytes.data) % 8 == 0;
  if (!usable || bytes.size != rows * out.values.value_bytes()) return false;
  out.values.alias(bytes, std::move(owner), rows);
  for (LayerValues& layer : out.layers) layer.validity.append_valid(rows);
  uint64_t items = rows;
  for (size_t i = 0; i < type_.dims.size(); ++i)
    out.values.item_validity[i].append_valid(items *= type_.dims[i]);
  return true;
}

void LeafColumn::decode(const Selection& selection, const Overlays& overlays, LeafOutput& out,
                        Scratch& scratch) const {
  if (selection.by_rows) return decode_rows(selection.rows, overlays, out, scratch);
  if (selection.mask) return decode_wanted(selection.ranges[0], selection.mask, overlays, out, scratch);
  if (out.test) {
    out.matches.reserve(selection.count());  // at once: it would grow with every chunk, copying each time
    for (const RowRange& range : selection.ranges)
      reduce_range(range.begin, range.end, overlays, out, scratch);
    return;
  }
  if (out.narrow) {
    out.narrowed.reserve(std::min<uint64_t>(selection.count() * 8, kMostReserved));
    for (const RowRange& range : selection.ranges)
      reduce_range(range.begin, range.end, overlays, out, scratch);
    return;
  }
  if (out.strings)
    out.numbers.reserve(std::min<uint64_t>(selection.count() * out.strings->width(), kMostReserved));
  if (selection.ranges.size() == 1 && alias(selection.ranges[0], overlays, out)) return;
  for (const RowRange& range : selection.ranges) decode_range(range.begin, range.end, overlays, out, scratch);
}

// Run by run: what is not wanted is dropped while it is in the cache, or not decoded at all.
void LeafColumn::decode_wanted(const RowRange& range, RowMask mask, const Overlays& overlays, LeafOutput& out,
                               Scratch& scratch) const {
  const uint64_t wanted = mask.count(range.end - range.begin);
  if (out.narrow)
    out.narrowed.reserve(std::min(wanted * 8, kMostReserved));
  else if (out.strings)
    out.numbers.reserve(std::min(wanted * out.strings->width(), kMostReserved));
  else if (out.coded)
    out.codes.reserve(std::min(wanted * sizeof(int32_t), kMostReserved));
  else
    reserve(range.begin, range.begin + wanted, out);
  std::vector<uint32_t> rows;
  visit_pages(range.begin, range.end, [&](size_t i, uint64_t from, uint64_t to) {
    const Page& page = *pages_[i];
    const Source& source = overlaid(sources_[i], overlays);
    page.prepare(source);
    const uint64_t distance = type_.variable() && !page.gives_codes() ? kPickedStrings : kPickedDistance;
    for (uint64_t stop = from; from < to; from = stop) {
      stop = std::min(to, page.run_end(from));
      const RowMask own = mask.from(starts_[i] + from - range.begin);
      const uint64_t count = stop - from, kept = own.count(count);
      if (!kept) continue;
      if (kept * distance < count) {
        rows.clear();
        own.visit(count, [&](uint64_t row) { rows.push_back(static_cast<uint32_t>(from + row)); });
        page.decode_rows(source, rows.data(), rows.size(), out, scratch);
      } else {
        const LeafOutput::Mark before = out.mark();
        if (kept < count && page.gives_codes()) out.sieve = &own;
        page.decode_range(source, from, stop, out, scratch);
        if (kept < count) out.keep(before, own, count, page.gives_codes());
        out.sieve = nullptr;
      }
    }
  });
}

// In runs that stay in the cache between being decoded and being tested or made narrower.
void LeafColumn::reduce_range(uint64_t begin, uint64_t end, const Overlays& overlays, LeafOutput& out,
                              Scratch& scratch) const {
  visit_pages(begin, end, [&](size_t i, uint64_t from, uint64_t to) {
    const Source& source = overlaid(sources_[i], overlays);
    pages_[i]->prepare(source);
    for (uint64_t stop = from; from < to; from = stop) {
      stop = std::min(to, pages_[i]->run_end(from));
      pages_[i]->decode_range(source, from, stop, out, scratch);
      out.test_values();
    }
  });
}

void LeafColumn::decode_range(uint64_t begin, uint64_t end, const Overlays& overlays, LeafOutput& out,
                              Scratch& scratch) const {
  if (out.values.length() == 0 && !out.strings) reserve(begin, end, out);
  visit_pages(begin, end, [&](size_t i, uint64_t from, uint64_t to) {
    pages_[i]->decode_range(overlaid(sources_[i], overlays), from, to, out, scratch);
  });
}

void LeafColumn::decode_rows(std::span<const uint32_t> rows, const Overlays& overlays, LeafOutput& out,
                             Scratch& scratch) const {
  if (rows.empty()) return;
  std::vector<uint32_t> local;
  size_t next = 0;
  visit_pages(rows.front(), uint64_t{rows.back()} + 1, [&](size_t i, uint64_t, uint64_t) {
    local.clear();
    for (; next < rows.size() && rows[next] < starts_[i + 1]; ++next) {
      check(rows[next] >= starts_[i], "rows to take must ascend");
      local.push_back(static_cast<uint32_t>(rows[next] - starts_[i]));
    }
    if (local.empty()) return;
    const Source& source = overlaid(sources_[i], overlays);
    pages_[i]->prepare(source);
    pages_[i]->decode_rows(source, local.data(), local.size(), out, scratch);
    out.test_values();
  });
  check(next == rows.size(), "rows to take must ascend");
}

bool LeafColumn::gives_codes() const {
  return !pages_.empty() &&
         std::all_of(pages_.begin(), pages_.end(), [](const PagePtr& page) { return page->gives_codes(); });
}

uint64_t LeafColumn::dictionary_entries() const {
  uint64_t most = 0;
  for (const PagePtr& page : pages_) most = std::max(most, page->dictionary_entries());
  return most;
}

uint64_t LeafColumn::most_distinct() const {
  uint64_t total = 0;
  for (const PagePtr& page : pages_) total += page->most_distinct();
  return total;
}

uint64_t LeafColumn::plain_bytes() const {
  uint64_t total = 0;
  for (const PagePtr& page : pages_)
    if (!page->gives_codes() && page->most_distinct() > 1)
      for (const Range& range : page->buffers()) total += range.length;
  return total;
}

template <typename Visit>
void LeafColumn::visit_all(Visit visit) const {
  for (size_t i = 0; i < pages_.size(); ++i) {
    try {
      visit(*pages_[i], *sources_[i]);
    } catch (CorruptData& error) {
      error.column = name_;
      error.page = static_cast<int64_t>(i);
      throw;
    }
  }
}

uint64_t LeafColumn::dictionary_bytes() const {
  uint64_t total = 0;
  visit_all([&](const Page& page, const Source& source) { total += page.dictionary_bytes(source); });
  return total;
}

void LeafColumn::number_pages(StringNumbers& strings, bool dictionaries) const {
  Scratch scratch;
  visit_all([&](const Page& page, const Source& source) {
    if (page.gives_codes()) {
      if (dictionaries) page.number_dictionary(source, strings);
      return;
    }
    LeafOutput out(type_, path_);
    out.as_numbers(strings);
    page.decode_range(source, 0, page.most_distinct(), out, scratch);
  });
}

namespace {

// Rows that are picked one by one mostly need the same bytes as those before them.
void add_range(std::vector<Range>& ranges, const Range& range) {
  if (!ranges.empty()) {
    Range& last = ranges.back();
    if (range.offset >= last.offset && range.offset <= last.offset + last.length) {
      last.length = std::max(last.length, range.offset + range.length - last.offset);
      return;
    }
  }
  ranges.push_back(range);
}

}  // namespace

std::vector<Range> LeafColumn::metadata_ranges(std::span<const RowRange> rows) const {
  std::vector<Range> ranges;
  size_t next = 0;
  for (const RowRange& range : rows)
    visit_pages(range.begin, range.end, [&](size_t i, uint64_t, uint64_t) {
      if (i < next) return;
      next = i + 1;
      for (const Range& found : pages_[i]->metadata_ranges()) add_range(ranges, found);
    });
  return ranges;
}

std::vector<Range> LeafColumn::data_ranges(std::span<const RowRange> rows) const {
  std::vector<Range> ranges;
  for (const RowRange& range : rows)
    visit_pages(range.begin, range.end, [&](size_t i, uint64_t from, uint64_t to) {
      pages_[i]->prepare(*sources_[i]);
      for (const Range& found : pages_[i]->data_ranges(*sources_[i], from, to)) add_range(ranges, found);
    });
  return ranges;
}

std::vector<std::vector<Range>> LeafColumn::page_buffers() const {
  std::vector<std::vector<Range>> buffers;
  for (const PagePtr& page : pages_) buffers.push_back(page->buffers());
  return buffers;
}

namespace {

class AlteredField : public Field {
 public:
  AlteredField(FieldPtr inner, void (ArrayBuilder::*alter)()) : inner_(std::move(inner)), alter_(alter) {}

  ArrayBuilder decode(const Selection& selection, const Overlays& overlays, Scratch& scratch) const override {
    ArrayBuilder array = inner_->decode(selection, overlays, scratch);
    (array.*alter_)();
    return array;
  }
  bool takes_masks() const override { return inner_->takes_masks(); }

 private:
  FieldPtr inner_;
  void (ArrayBuilder::*alter_)();
};

}  // namespace

FieldPtr make_altered_field(FieldPtr inner, void (ArrayBuilder::*alter)()) {
  return std::make_shared<AlteredField>(std::move(inner), alter);
}

bool Columns::take_masks() const {
  return std::all_of(fields_.begin(), fields_.end(),
                     [](const FieldPtr& field) { return field->takes_masks(); });
}

Columns Columns::narrowed(const std::vector<uint32_t>& indices) const {
  std::vector<FieldPtr> fields = fields_;
  for (uint32_t index : indices) {
    FieldPtr narrow = fields.at(index)->narrowed();
    fields.at(index) = narrow ? narrow : make_altered_field(fields.at(index), &ArrayBuilder::narrow_decimals);
  }
  return Columns(std::move(fields));
}

void Columns::decode(const Selection& selection, const Overlays& overlays, ArrowArray& out) const {
  thread_local Scratch scratch;
  uint64_t rows = selection.count();
  ArrayBuilder root(rows);
  root.add_all_valid();
  for (const FieldPtr& field : fields_) {
    ArrayBuilder child = field->decode(selection, overlays, scratch);
    check(child.length() == rows, "a column has another number of rows than its table");
    root.add_child(std::move(child));
  }
  root.move_to(out);
}

}  // namespace lance
