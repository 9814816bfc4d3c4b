#include "decode/column.hpp"

#include <algorithm>

#include "decode/arrow_export.hpp"

namespace lance {

LeafColumn::LeafColumn(std::string name, LeafType type, std::vector<LayerKind> path,
                       std::vector<PagePtr> pages, std::shared_ptr<const Source> source)
    : name_(std::move(name)),
      type_(std::move(type)),
      path_(std::move(path)),
      pages_(std::move(pages)),
      source_(std::move(source)) {
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

const Source& LeafColumn::source_for(const Overlays& overlays) const {
  for (const auto& [base, overlay] : overlays)
    if (base == source_) return *overlay;
  return *source_;
}

void LeafColumn::reserve(uint64_t begin, uint64_t end, LeafOutput& out) const {
  uint64_t rows = end - begin;
  bool nested =
      std::any_of(path_.begin(), path_.end(), [](LayerKind kind) { return kind != LayerKind::kItem; });
  if (!nested) {
    if (type_.kind == LeafKind::kFixed) out.values.data.reserve(rows * out.values.value_bytes());
    if (type_.variable()) out.values.offsets.reserve((rows + 1) * type_.offset_width());
  }
  if (type_.variable()) {
    uint64_t bytes = 0;
    visit_pages(begin, end,
                [&](size_t i, uint64_t from, uint64_t to) { bytes += pages_[i]->expected_bytes(to - from); });
    out.values.data.reserve(bytes);
  }
}

// Rows that stand in a mapped file as Arrow wants them are pointed at, not copied.
bool LeafColumn::alias(const Page& page, const Source& source, uint64_t begin, uint64_t end,
                       LeafOutput& out) const {
  Span bytes = page.alias_range(source, begin, end);
  if (!bytes.data || reinterpret_cast<uintptr_t>(bytes.data) % 8 != 0) return false;
  uint64_t rows = end - begin;
  out.values.alias(bytes, source_, rows);
  for (LayerValues& layer : out.layers) layer.validity.append_valid(rows);
  uint64_t items = rows;
  for (size_t i = 0; i < type_.dims.size(); ++i)
    out.values.item_validity[i].append_valid(items *= type_.dims[i]);
  return true;
}

void LeafColumn::decode_range(uint64_t begin, uint64_t end, const Overlays& overlays, LeafOutput& out,
                              Scratch& scratch) const {
  const Source& source = source_for(overlays);
  bool reserved = false;
  visit_pages(begin, end, [&](size_t i, uint64_t from, uint64_t to) {
    if (to - from == end - begin && alias(*pages_[i], source, from, to, out)) return;
    if (!std::exchange(reserved, true)) reserve(begin, end, out);
    pages_[i]->decode_range(source, from, to, out, scratch);
  });
}

void LeafColumn::decode_rows(const uint32_t* rows, size_t count, const Overlays& overlays, LeafOutput& out,
                             Scratch& scratch) const {
  if (!count) return;
  const Source& source = source_for(overlays);
  std::vector<uint32_t> local;
  size_t next = 0;
  visit_pages(rows[0], uint64_t{rows[count - 1]} + 1, [&](size_t i, uint64_t, uint64_t) {
    local.clear();
    for (; next < count && rows[next] < starts_[i + 1]; ++next) {
      check(rows[next] >= starts_[i], "rows to take must ascend");
      local.push_back(static_cast<uint32_t>(rows[next] - starts_[i]));
    }
    if (local.empty()) return;
    pages_[i]->prepare(source);
    pages_[i]->decode_rows(source, local.data(), local.size(), out, scratch);
  });
  check(next == count, "rows to take must ascend");
}

std::vector<Range> LeafColumn::metadata_ranges(uint64_t begin, uint64_t end) const {
  std::vector<Range> ranges;
  visit_pages(begin, end, [&](size_t i, uint64_t, uint64_t) {
    for (const Range& range : pages_[i]->metadata_ranges()) ranges.push_back(range);
  });
  return ranges;
}

std::vector<Range> LeafColumn::data_ranges(uint64_t begin, uint64_t end) const {
  std::vector<Range> ranges;
  visit_pages(begin, end, [&](size_t i, uint64_t from, uint64_t to) {
    pages_[i]->prepare(*source_);
    for (const Range& range : pages_[i]->data_ranges(from, to)) ranges.push_back(range);
  });
  return ranges;
}

namespace {

void collect_leaves(const Node& node, std::vector<LeafColumnPtr>& leaves) {
  if (node.leaf) leaves.push_back(node.leaf);
  for (const NodePtr& child : node.children) collect_leaves(*child, leaves);
}

Scratch& thread_scratch() {
  thread_local Scratch scratch;
  return scratch;
}

}  // namespace

Columns::Columns(std::vector<NodePtr> fields) : fields_(std::move(fields)) {
  for (const NodePtr& field : fields_) collect_leaves(*field, leaves_);
}

void Columns::decode_range(uint64_t begin, uint64_t end, const Overlays& overlays, ArrowArray& out) const {
  check(begin <= end, "a range of rows ends before it begins");
  std::vector<LeafOutput> outputs;
  outputs.reserve(leaves_.size());
  for (const LeafColumnPtr& leaf : leaves_) {
    outputs.emplace_back(leaf->type(), leaf->path());
    leaf->decode_range(begin, end, overlays, outputs.back(), thread_scratch());
  }
  assemble(outputs, end - begin, out);
}

void Columns::decode_rows(const uint32_t* rows, size_t count, const Overlays& overlays,
                          ArrowArray& out) const {
  std::vector<LeafOutput> outputs;
  outputs.reserve(leaves_.size());
  for (const LeafColumnPtr& leaf : leaves_) {
    outputs.emplace_back(leaf->type(), leaf->path());
    leaf->decode_rows(rows, count, overlays, outputs.back(), thread_scratch());
  }
  assemble(outputs, count, out);
}

void Columns::assemble(std::vector<LeafOutput>& outputs, uint64_t rows, ArrowArray& out) const {
  ArrayBuilder root(rows);
  Validity all_valid;
  all_valid.append_valid(rows);
  root.add_validity(all_valid);
  size_t leaf = 0;
  for (const NodePtr& field : fields_) {
    ArrayBuilder child = export_node(*field, 0, outputs, leaf, rows);
    check(child.length() == rows, "a column has another number of rows than its table");
    root.add_child(std::move(child));
  }
  root.move_to(out);
}

}  // namespace lance
