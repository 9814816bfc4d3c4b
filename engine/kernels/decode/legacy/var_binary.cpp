#include <algorithm>
#include <bit>

#include "decode/legacy/array_decoder.hpp"

namespace lance::legacy {
namespace {

using v2_0::ArrayDecoder;
using v2_0::Target;

class VarBinary : public ArrayDecoder {
 public:
  VarBinary(Range positions, bool empty_is_null) : positions_(positions), empty_is_null_(empty_is_null) {}

  void decode(const Source& source, uint64_t begin, uint64_t end, Target out) const override {
    if (begin == end) return;
    LeafValues& values = out.values;
    check(out.innermost() && values.type().variable(), "strings stand where values of another type should");
    Span positions = positions_of(source, begin, end);
    if (values.type().kind == LeafKind::kVariable32)
      append<int32_t>(source, positions, end - begin, values, out.validity);
    else
      append<int64_t>(source, positions, end - begin, values, out.validity);
  }

  void metadata_ranges(std::vector<Range>& ranges) const override { ranges.push_back(positions_); }
  // Only the positions say where the bytes are.
  void all_ranges(std::vector<Range>& ranges) const override { ranges.push_back(positions_); }
  void data_ranges(const Source& source, uint64_t begin, uint64_t end,
                   std::vector<Range>& ranges) const override {
    if (begin >= end) return;
    Span positions = positions_of(source, begin, end);
    auto first = positions.at<uint64_t>(0), last = positions.at<uint64_t>((end - begin) * 8);
    check(first <= last && last <= source.size(), "the positions of strings decrease");
    ranges.push_back({first, last - first});
  }

 private:
  Span positions_of(const Source& source, uint64_t begin, uint64_t end) const {
    uint64_t offset = begin * 8, length = (end - begin + 1) * 8;
    check(offset <= positions_.length && length <= positions_.length - offset,
          "a page ends before the positions it should hold");
    return source.view(positions_.offset + offset, length);
  }

  template <typename Offset>
  void append(const Source& source, Span positions, uint64_t count, LeafValues& values,
              Validity& validity) const {
    auto first = positions.at<uint64_t>(0), last = positions.at<uint64_t>(count * 8);
    check(first <= last, "the positions of strings decrease");
    Span bytes = source.view(first, last - first);
    uint64_t base = values.data.size();
    check_offset_range<Offset>(base + bytes.size);
    auto* offsets = reinterpret_cast<Offset*>(values.offsets.extend(count * sizeof(Offset)));
    uint64_t previous = first;
    for (uint64_t i = 0; i < count; i += 64) {
      uint64_t step = std::min<uint64_t>(64, count - i);
      uint64_t word = 0;
      for (uint64_t k = 0; k < step; ++k) {
        auto stop = lance::load<uint64_t>(positions.data + (i + k + 1) * 8);
        check(previous <= stop && stop <= last, "the positions of strings decrease");
        word |= uint64_t{!empty_is_null_ || stop > previous} << k;
        offsets[i + k] = static_cast<Offset>(base + (stop - first));
        previous = stop;
      }
      validity.append_word(word, step, step - static_cast<uint64_t>(std::popcount(word)));
    }
    copy_bytes(values.data.extend(bytes.size), bytes.data, bytes.size);
  }

  Range positions_;
  bool empty_is_null_;
};

}  // namespace

v2_0::ArrayDecoderPtr make_var_binary(Range positions, bool empty_is_null) {
  return std::make_shared<VarBinary>(positions, empty_is_null);
}

}  // namespace lance::legacy
