#include "decode/page.hpp"

namespace lance {
namespace {

// Bytes of blobs that rows are decoded to at once.
constexpr uint64_t kMaxBatch = uint64_t{1} << 31;

const LeafType kDescriptor{LeafKind::kFixed, 16, {}};

// Large binaries outside the pages: a page of (position, size) pairs leads to them (format 2.1 blob
// layout, 2.0 blob).
class BlobPage : public Page {
 public:
  BlobPage(PagePtr descriptors, std::vector<Range> buffers, std::vector<uint8_t> layers, bool v2_0)
      : Page(descriptors->rows(), std::move(buffers), std::move(layers)),
        descriptors_(std::move(descriptors)),
        v2_0_(v2_0) {
    check(!levels_.has_lists(), "lists of blobs cannot be read");
    descriptors_->bind(kDescriptor, {{}});
  }

  std::vector<Range> metadata_ranges() const override { return buffers_; }

  std::vector<Range> data_ranges(const Source& source, uint64_t begin, uint64_t end) const override {
    std::vector<Range> ranges;
    Scratch scratch;
    LeafOutput output = descriptors(source, begin, end, scratch);
    for (uint64_t i = 0; i < end - begin; ++i) {
      auto [position, size] = descriptor(output, i);
      if (!size) continue;
      check(position <= source.size() && size <= source.size() - position,
            "a blob lies past the end of the file");
      ranges.push_back({position, size});
    }
    return ranges;
  }

 protected:
  void check_type(const LeafType& type) const override {
    check(type.kind == LeafKind::kVariable64 && type.dims.empty(), "blobs must be large binaries");
  }

  void decode(const Source& source, uint64_t begin, uint64_t end, LeafOutput& out,
              Scratch& scratch) const override {
    uint64_t count = end - begin;
    LeafOutput output = descriptors(source, begin, end, scratch);
    std::vector<uint16_t> def(count);
    uint64_t total = 0;
    for (uint64_t i = 0; i < count; ++i) {
      uint64_t size = descriptor(output, i).second;
      check(size <= source.size(), "a blob is larger than its file");
      total += size;
    }
    // Many rows may point at the same bytes of the file: no batch needs more than this.
    if (count > 1 && total > kMaxBatch) throw BatchTooLarge("blobs too large for one batch");
    for (uint64_t i = 0; i < count; ++i) {
      auto [position, size] = descriptor(output, i);
      if (size) {
        Span payload = source.view(position, size);
        std::memcpy(out.values.data.extend(size), payload.data, size);
      } else if (position) {
        // No value: the definition level of a null takes the place of the position.
        def[i] = v2_0_ ? 1 : static_cast<uint16_t>(position >> 16);
      }
      *out.values.extend_offsets<int64_t>(1) = static_cast<int64_t>(out.values.data.size());
    }
    levels_.unravel(nullptr, def.data(), count, count, out.layers);
  }

 private:
  LeafOutput descriptors(const Source& source, uint64_t begin, uint64_t end, Scratch& scratch) const {
    LeafOutput output(kDescriptor, {{}});
    descriptors_->decode_range(source, begin, end, output, scratch);
    return output;
  }

  static std::pair<uint64_t, uint64_t> descriptor(const LeafOutput& output, uint64_t i) {
    const uint8_t* at = output.values.data.data() + 16 * i;
    return {lance::load<uint64_t>(at), lance::load<uint64_t>(at + 8)};
  }

  PagePtr descriptors_;
  bool v2_0_;
};

}  // namespace

PagePtr make_blob(PagePtr descriptors, std::vector<Range> buffers, std::vector<uint8_t> layers, bool v2_0) {
  return std::make_shared<BlobPage>(std::move(descriptors), std::move(buffers), std::move(layers), v2_0);
}

}  // namespace lance
