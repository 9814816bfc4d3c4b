#include "decode/v2_0/nested_field.hpp"

#include <algorithm>
#include <mutex>

namespace lance::v2_0 {
namespace {

template <typename Offset>
class ListField : public Field {
 public:
  ListField(std::string name, std::vector<ListPage> pages, std::shared_ptr<const Source> source,
            FieldPtr items)
      : name_(std::move(name)),
        pages_(std::move(pages)),
        source_(std::move(source)),
        items_(std::move(items)) {
    uint64_t rows = 0, first_item = 0;
    for (const ListPage& page : pages_) {
      row_starts_.push_back(rows);
      item_starts_.push_back(first_item);
      check(page.rows <= UINT32_MAX && page.num_items <= UINT32_MAX,
            "a page claims an impossible number of rows");
      rows += page.rows;
      check(rows <= UINT32_MAX, "a file claims an impossible number of rows");
      first_item += page.num_items;
    }
    row_starts_.push_back(rows);
  }

  ArrayBuilder decode(const Selection& selection, const Overlays& overlays, Scratch& scratch) const override {
    const Source& source = overlaid(source_, overlays);
    std::call_once(loaded_, [&] {
      for (const ListPage& page : pages_) page.offsets->load(source);
    });
    Validity validity;
    Bytes offsets;
    store<Offset>(offsets.extend(sizeof(Offset)), 0);
    std::vector<RowRange> items;
    uint64_t total = 0;
    selection.visit_ranges([&](uint64_t begin, uint64_t end) {
      check(begin <= end && end <= row_starts_.back(), "rows past the end of a column were asked for");
      auto after = std::upper_bound(row_starts_.begin(), row_starts_.end() - 1, begin);
      auto page = static_cast<size_t>(std::max<ptrdiff_t>(after - row_starts_.begin() - 1, 0));
      for (; page < pages_.size() && row_starts_[page] < end; ++page) {
        uint64_t from = std::max(begin, row_starts_[page]), to = std::min(end, row_starts_[page + 1]);
        if (from < to)
          append(source, page, from - row_starts_[page], to - row_starts_[page], validity, offsets, items,
                 total);
      }
    });
    ArrayBuilder array(validity.length());
    array.add_validity(validity);
    array.add_buffer(std::move(offsets));
    ArrayBuilder child = items_->decode(Selection::of(items), overlays, scratch);
    check(child.length() == total, "the offsets and the items of a list disagree");
    array.add_child(std::move(child));
    return array;
  }

 private:
  // Ends of the lists, page by page; a null list adds the adjustment to its end and has no items that count.
  void append(const Source& source, size_t number, uint64_t begin, uint64_t end, Validity& validity,
              Bytes& offsets, std::vector<RowRange>& items, uint64_t& total) const {
    const ListPage& page = pages_[number];
    uint64_t first = begin ? begin - 1 : 0;
    std::vector<Range> stored;
    page.offsets->all_ranges(stored);
    for (const Range& range : stored) source.require(range.offset, range.length);
    try {
      check(page.null_adjustment > page.num_items, "a list page has an impossible adjustment for nulls");
      const Integers ends(*page.offsets, source, first, end);
      uint64_t previous = begin ? ends[0] % page.null_adjustment : 0;
      auto* target = reinterpret_cast<Offset*>(offsets.extend((end - begin) * sizeof(Offset)));
      for (uint64_t i = begin; i < end; ++i) {
        uint64_t stored = ends[i - first];
        uint64_t stop = stored % page.null_adjustment;
        check(previous <= stop && stop <= page.num_items, "list offsets decrease or run past their items");
        bool null = stored >= page.null_adjustment;
        if (null) {
          validity.append_null(1);
        } else {
          validity.append_valid(1);
          add_items(item_starts_[number] + previous, item_starts_[number] + stop, items);
          total += stop - previous;
        }
        check_offset_range<Offset>(total);
        target[i - begin] = static_cast<Offset>(total);
        previous = stop;
      }
    } catch (CorruptData& error) {
      error.column = name_;
      error.page = static_cast<int64_t>(number);
      throw;
    }
  }

  static void add_items(uint64_t begin, uint64_t end, std::vector<RowRange>& items) {
    if (begin == end) return;
    if (!items.empty() && items.back().end == begin)
      items.back().end = end;
    else
      items.push_back({begin, end});
  }

  std::string name_;
  std::vector<ListPage> pages_;
  std::shared_ptr<const Source> source_;
  FieldPtr items_;
  std::vector<uint64_t> row_starts_;
  std::vector<uint64_t> item_starts_;
  mutable std::once_flag loaded_;
};

class StructField : public Field {
 public:
  explicit StructField(std::vector<FieldPtr> children) : children_(std::move(children)) {}

  ArrayBuilder decode(const Selection& selection, const Overlays& overlays, Scratch& scratch) const override {
    uint64_t rows = selection.count();
    ArrayBuilder array(rows);
    array.add_all_valid();
    for (const FieldPtr& child : children_) {
      ArrayBuilder built = child->decode(selection, overlays, scratch);
      check(built.length() == rows, "the children of a struct have unequal lengths");
      array.add_child(std::move(built));
    }
    return array;
  }

 private:
  std::vector<FieldPtr> children_;
};

}  // namespace

FieldPtr make_list_field(std::string name, std::vector<ListPage> pages, std::shared_ptr<const Source> source,
                         FieldPtr items, bool large) {
  if (large)
    return std::make_shared<ListField<int64_t>>(std::move(name), std::move(pages), std::move(source),
                                                std::move(items));
  return std::make_shared<ListField<int32_t>>(std::move(name), std::move(pages), std::move(source),
                                              std::move(items));
}

FieldPtr make_string_field(FieldPtr lists) {
  return make_altered_field(std::move(lists), &ArrayBuilder::join_bytes);
}

FieldPtr make_struct_field(std::vector<FieldPtr> children) {
  return std::make_shared<StructField>(std::move(children));
}

}  // namespace lance::v2_0
