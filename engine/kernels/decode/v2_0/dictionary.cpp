#include "decode/dictionary.hpp"

#include <algorithm>
#include <bit>

#include "decode/by_width.hpp"
#include "decode/v2_0/array_decoder.hpp"

namespace lance::v2_0 {
namespace {

// Compressed values take few bytes, but not as few as none.
constexpr uint64_t kMostPerByte = 1024;

// Codes into the items of the page; nulls are items (format 2.0, dictionary).
class DictionaryDecoder : public ArrayDecoder {
 public:
  DictionaryDecoder(ArrayDecoderPtr indices, unsigned index_width, ArrayDecoderPtr items, uint64_t count,
                    bool shifted, LeafType type)
      : indices_(std::move(indices)),
        items_(std::move(items)),
        count_(count),
        shifted_(shifted),
        type_(std::move(type)),
        index_type_{LeafKind::kFixed, index_width, {}} {
    check(index_width == 1 || index_width == 2 || index_width == 4 || index_width == 8,
          "dictionary indices must be 8, 16, 32 or 64 bits wide");
    check(count <= (uint64_t{1} << 31), "a dictionary claims an impossible number of values");
    check(type_.dims.empty() && type_.kind != LeafKind::kNull,
          "a dictionary does not fit the type of the column");
  }

  void load(const Source& source) override {
    indices_->load(source);
    items_->load(source);
    LeafValues values(type_);
    Validity validity;
    // Where nulls are code 0, a placeholder takes its place among the items.
    if (shifted_) {
      values.append_placeholders(1);
      validity.append_null(1);
    }
    std::vector<Range> stored;
    items_->all_ranges(stored);
    uint64_t bytes = 0;
    for (const Range& range : stored) bytes += range.length;
    check(count_ <= 1 || count_ / kMostPerByte <= bytes, "a dictionary claims more values than it stores");
    check(count_ <= 1 || bytes > 0, "a dictionary claims more values than it stores");
    items_->decode(source, 0, count_, {values, validity, 0});
    uint64_t codes = count_ + shifted_;
    check(validity.length() == codes, "a dictionary has another number of items than it claims");
    null_codes_.resize(codes);
    if (validity.null_count())
      for (uint64_t code = 0; code < codes; ++code)
        null_codes_[code] = !get_bit(validity.bits().data(), code);
    has_nulls_ = validity.null_count() > 0;
    only_first_is_null_ = validity.null_count() == 1 && null_codes_[0];
    dictionary_ = std::make_unique<Dictionary>(std::move(values), codes);
  }

  void decode(const Source& source, uint64_t begin, uint64_t end, Target out) const override {
    // In damaged files, a dictionary may take the place of a bitmap or offsets.
    const LeafType& wanted = out.values.type();
    check(wanted.kind == type_.kind && wanted.width == type_.width && wanted.dims.empty(),
          "a dictionary stands where values of another type should");
    LeafValues indices(index_type_);
    Validity ignored;
    indices_->decode(source, begin, end, {indices, ignored, 0});
    uint64_t count = end - begin;
    dictionary_->gather({indices.data.data(), indices.data.size()}, index_type_.width, count, out.values);
    out.values.add_length(-count);  // the page counts
    const uint8_t* codes = indices.data.data();
    of_width(codes, index_type_.width, [&](const auto* at) { append_validity(at, count, out.validity); });
  }

  void metadata_ranges(std::vector<Range>& ranges) const override {
    indices_->metadata_ranges(ranges);
    items_->all_ranges(ranges);
  }
  void all_ranges(std::vector<Range>& ranges) const override {
    indices_->all_ranges(ranges);
    items_->all_ranges(ranges);
  }
  void data_ranges(const Source& source, uint64_t begin, uint64_t end,
                   std::vector<Range>& ranges) const override {
    indices_->data_ranges(source, begin, end, ranges);
  }

 private:
  template <typename Code>
  void append_validity(const Code* codes, uint64_t count, Validity& validity) const {
    if (!has_nulls_) return validity.append_valid(count);
    if (only_first_is_null_) {
      bool any = false;
      for (uint64_t i = 0; i < count; ++i) any |= codes[i] == 0;
      if (!any) return validity.append_valid(count);
    }
    for (uint64_t i = 0; i < count; i += 64) {
      uint64_t step = std::min<uint64_t>(64, count - i);
      uint64_t word = 0;
      for (uint64_t k = 0; k < step; ++k) word |= static_cast<uint64_t>(!null_codes_[codes[i + k]]) << k;
      validity.append_word(word, step, step - static_cast<uint64_t>(std::popcount(word)));
    }
  }

  ArrayDecoderPtr indices_;
  ArrayDecoderPtr items_;
  uint64_t count_;
  bool shifted_;
  LeafType type_;
  LeafType index_type_;
  bool has_nulls_ = false;
  bool only_first_is_null_ = false;
  std::vector<uint8_t> null_codes_;
  std::unique_ptr<Dictionary> dictionary_;
};

}  // namespace

ArrayDecoderPtr make_dictionary(ArrayDecoderPtr indices, unsigned index_width, ArrayDecoderPtr items,
                                uint64_t count, bool shifted, LeafType type) {
  return std::make_shared<DictionaryDecoder>(std::move(indices), index_width, std::move(items), count,
                                             shifted, std::move(type));
}

}  // namespace lance::v2_0
