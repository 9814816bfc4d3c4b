#include <algorithm>

#include "decode/v2_0/array_decoder.hpp"

namespace lance::v2_0 {
namespace {

const LeafType kBitmap{LeafKind::kBits, 0, {}};

// A validity bitmap next to the values (format 2.0, nullable with some nulls).
class Nullable : public ArrayDecoder {
 public:
  Nullable(ArrayDecoderPtr validity, ArrayDecoderPtr values)
      : validity_(std::move(validity)), values_(std::move(values)) {}

  void load(const Source& source) override {
    validity_->load(source);
    values_->load(source);
  }

  void decode(const Source& source, uint64_t begin, uint64_t end, Target out) const override {
    LeafValues bits(kBitmap);
    Validity ignored;
    validity_->decode(source, begin, end, {bits, ignored, 0});
    out.validity.append_bits(bits.bits.data(), 0, end - begin);
    Validity always;
    values_->decode(source, begin, end, {out.values, always, out.layer});
  }

  // A row then costs one request, that for its value; the bitmap takes a bit per row.
  void metadata_ranges(std::vector<Range>& ranges) const override {
    validity_->all_ranges(ranges);
    values_->metadata_ranges(ranges);
  }
  void all_ranges(std::vector<Range>& ranges) const override {
    validity_->all_ranges(ranges);
    values_->all_ranges(ranges);
  }
  void data_ranges(const Source& source, uint64_t begin, uint64_t end,
                   std::vector<Range>& ranges) const override {
    values_->data_ranges(source, begin, end, ranges);
  }

 private:
  ArrayDecoderPtr validity_;
  ArrayDecoderPtr values_;
};

// Nothing is stored because everything is null.
class AllNull : public ArrayDecoder {
 public:
  void decode(const Source&, uint64_t begin, uint64_t end, Target out) const override {
    // A list has as many items as it says: nothing in the file backs that number. Each number is checked
    // before the next is computed from it, so that no number wraps around.
    uint64_t count = end - begin;
    check_placeholders(count);
    out.validity.append_null(count);
    LeafValues& values = out.values;
    const LeafType& type = values.type();
    uint64_t items = count;
    for (size_t layer = out.layer; layer < type.dims.size(); ++layer) {
      items *= type.dims[layer];
      check_placeholders(items);
      values.item_validity[layer].append_valid(items);
    }
    check_placeholders(type.variable() ? count * type.offset_width() : items * std::max(type.width, 1u));
    if (type.kind == LeafKind::kBits) values.bits.append_same(false, items);
    if (type.kind == LeafKind::kFixed) zero_bytes(values.data.extend(items * type.width), items * type.width);
    for (uint64_t i = 0; type.variable() && i < count; ++i) {
      if (type.kind == LeafKind::kVariable32)
        store<int32_t>(values.offsets.extend(4), static_cast<int32_t>(values.data.size()));
      else
        store<int64_t>(values.offsets.extend(8), static_cast<int64_t>(values.data.size()));
    }
  }
  void all_ranges(std::vector<Range>&) const override {}
  void data_ranges(const Source&, uint64_t, uint64_t, std::vector<Range>&) const override {}
};

// One value for all slots (format 2.0, constant).
class Constant : public ArrayDecoder {
 public:
  explicit Constant(std::vector<uint8_t> value) : value_(std::move(value)) {}

  void decode(const Source&, uint64_t begin, uint64_t end, Target out) const override {
    const uint64_t count = end - begin;
    LeafValues& values = out.values;
    const LeafType& type = values.type();
    const uint64_t size = value_.size();
    check(out.innermost() && type.kind != LeafKind::kNull &&
              (type.variable() || size == (type.kind == LeafKind::kBits ? 1 : type.width)),
          "a constant value does not fit the type of the column");
    // Nothing in the file backs so many bytes.
    check_placeholders(count);
    if (size > 0 && count > kMaxPlaceholderBytes / size) check_placeholders(kMaxPlaceholderBytes + 1);
    check_placeholders(count * std::max<uint64_t>(size, type.variable() ? type.offset_width() : 0));
    out.validity.append_valid(count);
    if (type.kind == LeafKind::kBits) return values.bits.append_same(value_[0] & 1, count);
    const uint64_t base = values.data.size();
    if (type.kind == LeafKind::kVariable32) check_offset_range<int32_t>(base + count * size);
    uint8_t* at = values.data.extend(count * size);
    for (uint64_t i = 0; i < count; ++i) {
      copy_bytes(at + i * size, value_.data(), size);
      if (type.kind == LeafKind::kVariable32)
        store<int32_t>(values.offsets.extend(4), static_cast<int32_t>(base + (i + 1) * size));
      else if (type.kind == LeafKind::kVariable64)
        store<int64_t>(values.offsets.extend(8), static_cast<int64_t>(base + (i + 1) * size));
    }
  }
  void all_ranges(std::vector<Range>&) const override {}
  void data_ranges(const Source&, uint64_t, uint64_t, std::vector<Range>&) const override {}

 private:
  std::vector<uint8_t> value_;
};

// n * dimension items after n lists.
class FixedSizeList : public ArrayDecoder {
 public:
  FixedSizeList(uint64_t dimension, ArrayDecoderPtr items) : dimension_(dimension), items_(std::move(items)) {
    check(dimension > 0 && dimension <= (uint64_t{1} << 31), "a fixed-size list is impossibly long");
  }

  void load(const Source& source) override { items_->load(source); }

  void decode(const Source& source, uint64_t begin, uint64_t end, Target out) const override {
    check(!out.innermost() && out.values.type().dims[out.layer] == dimension_,
          "a fixed-size list page does not fit the type of the column");
    out.validity.append_valid(end - begin);
    items_->decode(source, begin * dimension_, end * dimension_,
                   {out.values, out.values.item_validity[out.layer], out.layer + 1});
  }

  Span alias(const Source& source, uint64_t begin, uint64_t end) const override {
    return items_->alias(source, begin * dimension_, end * dimension_);
  }

  void metadata_ranges(std::vector<Range>& ranges) const override { items_->metadata_ranges(ranges); }
  void all_ranges(std::vector<Range>& ranges) const override { items_->all_ranges(ranges); }
  void data_ranges(const Source& source, uint64_t begin, uint64_t end,
                   std::vector<Range>& ranges) const override {
    items_->data_ranges(source, begin * dimension_, end * dimension_, ranges);
  }

 private:
  uint64_t dimension_;
  ArrayDecoderPtr items_;
};

}  // namespace

ArrayDecoderPtr make_all_null() {
  return std::make_shared<AllNull>();
}

ArrayDecoderPtr make_constant(std::vector<uint8_t> value) {
  return std::make_shared<Constant>(std::move(value));
}

ArrayDecoderPtr make_nullable(ArrayDecoderPtr validity, ArrayDecoderPtr values) {
  return std::make_shared<Nullable>(std::move(validity), std::move(values));
}

ArrayDecoderPtr make_fixed_size_list(uint64_t dimension, ArrayDecoderPtr items) {
  return std::make_shared<FixedSizeList>(dimension, std::move(items));
}

}  // namespace lance::v2_0
