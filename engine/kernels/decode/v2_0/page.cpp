#include "decode/v2_0/array_decoder.hpp"

namespace lance::v2_0 {
namespace {

// A page of a leaf column. Leaves of 2.0 know nothing of the structs and lists above them.
class ArrayPage : public Page {
 public:
  ArrayPage(uint64_t rows, ArrayDecoderPtr decoder, std::vector<Range> buffers)
      : Page(rows, std::move(buffers), {static_cast<uint8_t>(RepDefLayer::kNullableItem)}),
        decoder_(std::move(decoder)) {}

  std::vector<Range> metadata_ranges() const override {
    std::vector<Range> ranges;
    decoder_->metadata_ranges(ranges);
    return ranges;
  }

  std::vector<Range> data_ranges(const Source& source, uint64_t begin, uint64_t end) const override {
    std::vector<Range> ranges;
    decoder_->data_ranges(source, begin, end, ranges);
    return ranges;
  }

  Span alias_range(const Source& source, uint64_t begin, uint64_t end) const override {
    return decoder_->alias(source, begin, end);
  }

  Span alias_strings(const Source& source, uint64_t begin, uint64_t end, LeafOutput& out) const override {
    return decoder_->alias_strings(source, begin, end, {out.values, out.layers.front().validity, 0});
  }

 protected:
  // Each decoder checks the type it produces.
  void check_type(const LeafType&) const override {}

  void load(const Source& source, Scratch&) const override { decoder_->load(source); }

  void decode(const Source& source, uint64_t begin, uint64_t end, LeafOutput& out, Scratch&) const override {
    decoder_->decode(source, begin, end, {out.values, out.layers.front().validity, 0});
    out.values.add_length(end - begin);
  }

 private:
  ArrayDecoderPtr decoder_;
};

}  // namespace

PagePtr make_page(uint64_t rows, ArrayDecoderPtr decoder, std::vector<Range> buffers) {
  return std::make_shared<ArrayPage>(rows, std::move(decoder), std::move(buffers));
}

}  // namespace lance::v2_0
