#include "decode/legacy/array_decoder.hpp"

namespace lance::legacy {
namespace {

using v2_0::ArrayDecoder;
using v2_0::Target;

template <typename Offset>
class ListEnds : public ArrayDecoder {
 public:
  explicit ListEnds(Range offsets) : offsets_(offsets) {}

  void decode(const Source& source, uint64_t begin, uint64_t end, Target out) const override {
    const LeafType& type = out.values.type();
    check(type.kind == LeafKind::kFixed && type.width == 8, "list offsets stand where other values should");
    Range wanted = range(begin, end);
    Span stored = source.view(wanted.offset, wanted.length);
    auto* ends = reinterpret_cast<int64_t*>(out.values.data.extend((end - begin) * 8));
    for (uint64_t i = 0; i < end - begin; ++i) {
      ends[i] = lance::load<Offset>(stored.data + i * sizeof(Offset));
      check(ends[i] >= 0, "a list offset is negative");
    }
    out.validity.append_valid(end - begin);
  }

  void all_ranges(std::vector<Range>& ranges) const override { ranges.push_back(offsets_); }
  void data_ranges(const Source&, uint64_t begin, uint64_t end, std::vector<Range>& ranges) const override {
    if (begin < end) ranges.push_back(range(begin, end));
  }

 private:
  // The offset of the first list, always 0, is not an end.
  Range range(uint64_t begin, uint64_t end) const {
    uint64_t offset = (begin + 1) * sizeof(Offset), length = (end - begin) * sizeof(Offset);
    check(offset <= offsets_.length && length <= offsets_.length - offset,
          "a page ends before the list offsets it should hold");
    return {offsets_.offset + offset, length};
  }

  Range offsets_;
};

}  // namespace

v2_0::ArrayDecoderPtr make_list_ends(Range offsets, unsigned bits) {
  check(bits == 32 || bits == 64, "list offsets must be 32 or 64 bits wide");
  if (bits == 32) return std::make_shared<ListEnds<int32_t>>(offsets);
  return std::make_shared<ListEnds<int64_t>>(offsets);
}

}  // namespace lance::legacy
