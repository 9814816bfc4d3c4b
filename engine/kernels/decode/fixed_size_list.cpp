#include "decode/value_decoder.hpp"

namespace lance {
namespace {

// Validity bitmaps of the nullable layers, outermost first, then flat items (format 2.1, fixed-size list).
class FixedSizeList : public ValueDecoder {
 public:
  FixedSizeList(std::vector<uint64_t> dims, std::vector<bool> has_validity, uint64_t bits)
      : dims_(std::move(dims)), has_validity_(std::move(has_validity)), bits_(bits) {
    check(!dims_.empty() && dims_.size() == has_validity_.size(),
          "a fixed-size list needs a dimension per layer");
    check(bits == 1 || (bits % 8 == 0 && bits > 0 && bits <= (uint64_t{1} << 32)),
          "items of a fixed-size list must be 1 bit or whole bytes wide");
    for (uint64_t dim : dims_) {
      check(dim > 0 && dim <= (uint64_t{1} << 31) && items_ <= (uint64_t{1} << 31) / dim,
            "a fixed-size list is impossibly long");
      items_ *= dim;
    }
    for (bool validity : has_validity_) num_buffers_ += validity;
    check(num_buffers_ <= kMaxValueBuffers, "a fixed-size list is nested too deep");
  }

  size_t num_buffers() const override { return num_buffers_; }

  uint64_t most_bytes(uint64_t num_values) const override {
    uint64_t per_value = 1;
    for (size_t layer = 0; layer < dims_.size(); ++layer) {
      per_value *= dims_[layer];
      if (has_validity_[layer]) return padded(bytes_for_bits(num_values * per_value));
    }
    return padded(bytes_for_bits(num_values * items_ * bits_));
  }

  void check_type(const LeafType& type) const override {
    check(type.dims == dims_ &&
              (bits_ == 1 ? type.kind == LeafKind::kBits
                          : type.kind == LeafKind::kFixed && uint64_t{type.width} * 8 == bits_),
          "a fixed-size list page does not fit the type of the column");
  }

  void decode(const Chunk& chunk, uint64_t skip, uint64_t count, LeafValues& out, Scratch&) const override {
    size_t buffer = 0;
    uint64_t per_value = 1;
    for (size_t layer = 0; layer < dims_.size(); ++layer) {
      per_value *= dims_[layer];
      if (!has_validity_[layer]) {
        out.item_validity[layer].append_valid(count * per_value);
        continue;
      }
      const Span& bitmap = chunk.buffers[buffer++];
      check(bytes_for_bits((skip + count) * per_value) <= bitmap.size,
            "a validity bitmap is shorter than its items");
      out.item_validity[layer].append_bits(bitmap.data, skip * per_value, count * per_value);
    }
    const Span& items = chunk.buffers[buffer];
    if (bits_ == 1) {
      check(bytes_for_bits((skip + count) * items_) <= items.size, "a bitmap is shorter than its values");
      out.extend_bits(items.data, skip * items_, count);
    } else {
      uint64_t width = items_ * (bits_ / 8);
      Span bytes = items.sub(skip * width, count * width);
      copy_bytes(out.extend_fixed(count), bytes.data, bytes.size);
    }
  }

 private:
  std::vector<uint64_t> dims_;
  std::vector<bool> has_validity_;
  uint64_t bits_;
  uint64_t items_ = 1;
  size_t num_buffers_ = 1;
};

}  // namespace

ValueDecoderPtr make_fixed_size_list(std::vector<uint64_t> dims, std::vector<bool> has_validity,
                                     uint64_t bits_per_item) {
  return std::make_shared<FixedSizeList>(std::move(dims), std::move(has_validity), bits_per_item);
}

}  // namespace lance
