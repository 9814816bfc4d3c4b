#include <algorithm>

#include "decode/page.hpp"

namespace lance {
namespace {

// Every leaf value is null, or (2.2) the same scalar (format 2.1, constant layout).
class ConstantPage : public Page {
 public:
  explicit ConstantPage(ConstantDescription d)
      : Page(d.rows, std::move(d.buffers), std::move(d.layers)), d_(std::move(d)) {
    size_t count = buffers_.size();
    check(count <= 3, "a constant page has too many buffers");
    scalar_buffer_ = !d_.has_inline_value && (count == 1 || count == 3);
    scalar_ = d_.has_inline_value || scalar_buffer_;
    check(!d_.has_inline_value || count == 0 || count == 2,
          "a constant page has both an inline and a stored value");
    levels_buffer_ = scalar_buffer_ ? 1 : 0;
    leveled_ = count > levels_buffer_;
    check(leveled_ || !levels_.has_lists(), "a constant page of lists lacks levels");
    check(!d_.rep || d_.rep->bits() == 16, "repetition levels must be 16 bits wide");
    check(!d_.def || d_.def->bits() == 16, "definition levels must be 16 bits wide");
  }

  std::vector<Range> metadata_ranges() const override { return buffers_; }
  std::vector<Range> data_ranges(const Source&, uint64_t, uint64_t) const override { return {}; }
  uint64_t most_distinct() const override { return std::min<uint64_t>(rows_, 1); }

 protected:
  void check_type(const LeafType& type) const override {
    check(!scalar_ || (type.dims.empty() && type.kind != LeafKind::kNull),
          "a constant value does not fit the type of the column");
  }

  void load(const Source& source, Scratch& scratch) const override {
    if (scalar_) load_scalar(source);
    if (!leveled_) return;
    check(levels_.has_lists() || (d_.rep == nullptr && (d_.def == nullptr || d_.num_def == rows_)),
          "a constant page has another number of levels than rows");
    load_levels(buffer(source, levels_buffer_), d_.rep, d_.num_rep, rep_, scratch);
    check(rep_.empty() || d_.def == nullptr || d_.num_def == rep_.size(),
          "a constant page has unequal numbers of levels");
    load_levels(buffer(source, levels_buffer_ + 1), d_.def, d_.num_def, def_, scratch);
    check(rep_.empty() || def_.empty() || rep_.size() == def_.size(),
          "a constant page has unequal numbers of levels");
    if (!levels_.has_lists()) {
      check(rep_.empty() && (def_.empty() || def_.size() == rows_),
            "a constant page has another number of levels than rows");
      return;
    }
    row_starts_.clear();
    for (size_t i = 0; i < rep_.size(); ++i)
      if (rep_[i] == levels_.max_rep()) row_starts_.push_back(static_cast<uint32_t>(i));
    check(row_starts_.size() == rows_ && (rep_.empty() || row_starts_[0] == 0),
          "a constant page has another number of rows than its levels");
    row_starts_.push_back(static_cast<uint32_t>(rep_.size()));
  }

  void decode(const Source&, uint64_t begin, uint64_t end, LeafOutput& out, Scratch& scratch) const override {
    uint64_t count = end - begin;
    if (!leveled_) {
      append_values(count, out.values);
      if (scalar_) return levels_.unravel(nullptr, nullptr, count, count, out.layers);
      check(levels_.max_def() > 0 || type_.kind == LeafKind::kNull,
            "an all-null page declares that nothing is null");
      for (auto& layer : out.layers)
        if (&layer == &out.layers.front())
          layer.validity.append_null(count);
        else
          layer.validity.append_valid(count);
      return;
    }
    uint64_t from = levels_.has_lists() ? row_starts_[begin] : begin;
    uint64_t to = levels_.has_lists() ? row_starts_[end] : end;
    scratch.rep.clear();
    scratch.def.clear();
    if (!rep_.empty())
      scratch.rep.assign(rep_.begin() + static_cast<ptrdiff_t>(from),
                         rep_.begin() + static_cast<ptrdiff_t>(to));
    if (!def_.empty())
      scratch.def.assign(def_.begin() + static_cast<ptrdiff_t>(from),
                         def_.begin() + static_cast<ptrdiff_t>(to));
    uint64_t values = to - from;
    if (!def_.empty()) {
      values = 0;
      for (uint16_t def : scratch.def) values += levels_.visible(def);
    }
    append_values(values, out.values);
    levels_.unravel(rep_.empty() ? nullptr : scratch.rep.data(), def_.empty() ? nullptr : scratch.def.data(),
                    to - from, values, out.layers);
  }

 private:
  static void load_levels(Span bytes, const BlockDecoderPtr& decoder, uint64_t count,
                          std::vector<uint16_t>& levels, Scratch& scratch) {
    if (!decoder) {
      check(bytes.size % 2 == 0, "a level buffer ends inside a level");
      levels.resize(bytes.size / 2);
      copy_bytes(levels.data(), bytes.data, bytes.size);
      return;
    }
    check(count <= UINT32_MAX, "a page claims an impossible number of levels");
    Bytes decoded;
    decoder->decode(bytes, count, decoded, scratch);
    levels.resize(decoded.size() / 2);
    copy_bytes(levels.data(), decoded.data(), decoded.size());
  }

  void load_scalar(const Source& source) const {
    if (d_.has_inline_value) {
      value_ = d_.inline_value;
    } else {
      // The buffers of an array of one value: count, lengths, bytes. The last one holds the value.
      Span scalar = buffer(source, 0);
      auto count = scalar.at<uint32_t>(0);
      check(count >= 1 && count <= 2, "a constant value has an unexpected number of buffers");
      uint64_t at = 4 + 4 * uint64_t{count};
      uint64_t length = 0;
      for (uint32_t i = 0; i < count; ++i) {
        length = scalar.at<uint32_t>(4 + 4 * uint64_t{i});
        if (i + 1 < count) at += length;
      }
      Span value = scalar.sub(at, length);
      value_.assign(value.data, value.data + value.size);
    }
    check(type_.variable() || value_.size() == (type_.kind == LeafKind::kBits ? 1 : type_.width),
          "a constant value does not fit the type of the column");
  }

  void append_values(uint64_t count, LeafValues& out) const {
    if (!scalar_) return out.append_placeholders(count);
    switch (type_.kind) {
      case LeafKind::kBits:
        out.extend_same(value_[0] & 1, count);
        break;
      case LeafKind::kFixed: {
        uint8_t* at = out.extend_fixed(count);
        for (uint64_t i = 0; i < count; ++i) copy_bytes(at + i * value_.size(), value_.data(), value_.size());
        break;
      }
      case LeafKind::kVariable32:
        repeat_string<int32_t>(count, out);
        break;
      default:
        repeat_string<int64_t>(count, out);
    }
  }

  template <typename Offset>
  void repeat_string(uint64_t count, LeafValues& out) const {
    uint64_t base = out.data.size();
    check_offset_range<Offset>(base + count * value_.size());
    // A few bytes of the file may represent any amount: no batch needs more than this.
    if (count > 1) check_offset_range<int32_t>(count * value_.size());
    Offset* offsets = out.extend_offsets<Offset>(count);
    uint8_t* at = out.data.extend(count * value_.size());
    for (uint64_t i = 0; i < count; ++i) {
      copy_bytes(at + i * value_.size(), value_.data(), value_.size());
      offsets[i] = static_cast<Offset>(base + (i + 1) * value_.size());
    }
  }

  ConstantDescription d_;
  bool scalar_ = false;
  bool scalar_buffer_ = false;
  bool leveled_ = false;
  size_t levels_buffer_ = 0;
  mutable std::vector<uint8_t> value_;
  mutable std::vector<uint16_t> rep_;
  mutable std::vector<uint16_t> def_;
  mutable std::vector<uint32_t> row_starts_;
};

}  // namespace

PagePtr make_constant(ConstantDescription description) {
  return std::make_shared<ConstantPage>(std::move(description));
}

}  // namespace lance
