#include "search/rotated.hpp"

#include <bit>
#include <cmath>
#include <cstring>
#include <stdexcept>

namespace lance {
namespace {

constexpr unsigned kRounds = 4;
constexpr size_t kBlock = 32;
// Where the codes of the 32 vectors of a block are: two to a byte.
constexpr uint8_t kOrder[16] = {0, 8, 1, 9, 2, 10, 3, 11, 4, 12, 5, 13, 6, 14, 7, 15};

// Bit d of row r of bits that are packed over blocks of vectors.
class FirstBits {
 public:
  FirstBits(std::span<const uint8_t> bytes, size_t rows, size_t width, bool packed)
      : bytes_(bytes), rows_(rows), width_(width), packed_(packed) {
    for (uint8_t j = 0; j < 16; ++j) place_[kOrder[j]] = j;
  }

  uint8_t byte(size_t row, size_t i) const {
    if (!packed_) return bytes_[row * width_ + i];
    const size_t block = row / kBlock, full = rows_ / kBlock;
    if (block == full) {
      const size_t rest = rows_ % kBlock;
      return bytes_[full * kBlock * width_ + i * rest + row % kBlock];
    }
    const uint8_t* group = bytes_.data() + block * kBlock * width_ + kBlock * i;
    const size_t within = row % kBlock, place = place_[within % 16];
    const unsigned shift = within < 16 ? 0 : 4;
    return static_cast<uint8_t>((group[place] >> shift & 15) | (group[16 + place] >> shift & 15) << 4);
  }

 private:
  std::span<const uint8_t> bytes_;
  size_t rows_, width_;
  bool packed_;
  uint8_t place_[16];
};

uint64_t word(const uint8_t* bytes) {
  uint64_t value;
  std::memcpy(&value, bytes, sizeof(value));
  return value;
}

// The other bits of 64 dimensions, of `bits` bits each, one byte per dimension.
void unpack_block(const uint8_t* block, unsigned bits, uint8_t* out) {
  const auto top_plane = [out](const uint8_t* plane, unsigned shift) {
    const uint64_t top = word(plane);
    for (unsigned k = 0; k < 4; ++k)
      for (unsigned b = 0; b < 16; ++b)
        out[16 * k + b] |= static_cast<uint8_t>((top >> (8 * (b % 8) + 2 * k + b / 8) & 1) << shift);
  };
  switch (bits) {
    case 1:
      for (unsigned i = 0; i < 64; ++i) out[i] = word(block) >> i & 1;
      return;
    case 2:
    case 3:
      for (unsigned b = 0; b < 16; ++b)
        for (unsigned k = 0; k < 4; ++k) out[16 * k + b] = block[b] >> (2 * k) & 3;
      if (bits == 3) top_plane(block + 16, 2);
      return;
    case 4:
      for (unsigned j = 0; j < 4; ++j) {
        for (unsigned b = 0; b < 8; ++b) {
          out[16 * j + b] = block[8 * j + b] & 15;
          out[16 * j + 8 + b] = block[8 * j + b] >> 4;
        }
      }
      return;
    case 5:
      for (unsigned b = 0; b < 16; ++b) {
        out[b] = block[b] & 15;
        out[16 + b] = block[b] >> 4;
        out[32 + b] = block[16 + b] & 15;
        out[48 + b] = block[16 + b] >> 4;
      }
      top_plane(block + 32, 4);
      return;
    default:  // 6 and 7
      for (unsigned b = 0; b < 16; ++b) {
        out[48 + b] = 0;
        for (unsigned k = 0; k < 3; ++k) {
          out[16 * k + b] = block[16 * k + b] & 63;
          out[48 + b] |= static_cast<uint8_t>((block[16 * k + b] >> 6) << (2 * k));
        }
      }
      if (bits == 7) top_plane(block + 48, 6);
  }
}

class RotatedStorage : public Storage {
 public:
  RotatedStorage(Metric metric, std::shared_ptr<const Rotation> rotation, std::span<const float> centroid,
                 const RotatedCodes& codes)
      : metric_(metric),
        rotation_(std::move(rotation)),
        centroid_(centroid.begin(), centroid.end()),
        rotated_centroid_(rotation_->apply(centroid)),
        rows_(codes.add.size()),
        add_(codes.add.begin(), codes.add.end()),
        scale_(codes.scale.begin(), codes.scale.end()) {
    const size_t dim = rotation_->dim(), width = (dim + 7) / 8;
    const unsigned other = codes.bits - 1;
    if (codes.bits < 1 || codes.bits > 8) throw std::invalid_argument("codes of more than eight bits");
    const size_t blocks = (dim + 63) / 64, other_width = blocks * 8 * other;
    if (codes.scale.size() != rows_ || codes.first_bits.size() != rows_ * width ||
        codes.other_bits.size() != rows_ * other_width)
      throw std::invalid_argument("codes and factors of different length");
    const FirstBits first(codes.first_bits, rows_, width, codes.packed);
    codes_.resize(rows_ * dim);
    std::vector<uint8_t> low(blocks * 64);
    for (size_t r = 0; r < rows_; ++r) {
      for (size_t b = 0; other && b < blocks; ++b)
        unpack_block(codes.other_bits.data() + r * other_width + b * 8 * other, other, low.data() + 64 * b);
      for (size_t d = 0; d < dim; ++d)
        codes_[r * dim + d] =
            static_cast<uint8_t>((first.byte(r, d / 8) >> (d % 8) & 1) << other | (other ? low[d] : 0));
    }
    middle_ = static_cast<float>(1u << other) - 0.5f;
  }

  size_t rows() const override { return rows_; }
  size_t dim() const override { return rotation_->dim(); }
  std::unique_ptr<Scorer> scorer(std::span<const float> query) const override;

 private:
  class Estimates;

  Metric metric_;
  std::shared_ptr<const Rotation> rotation_;
  std::vector<float> centroid_, rotated_centroid_;
  size_t rows_;
  std::vector<float> add_, scale_;
  std::vector<uint8_t> codes_;
  float middle_;
};

class RotatedStorage::Estimates : public Scorer {
 public:
  Estimates(const RotatedStorage& storage, std::span<const float> query)
      : storage_(storage), query_(storage.rotation_->apply(query)) {
    float sum = 0;
    for (float value : query_) sum += value;
    middle_ = storage.middle_ * sum;
    for (size_t d = 0; d < query.size(); ++d) {
      if (storage.metric_ == Metric::kDot) {
        offset_ -= query_[d] * storage.rotated_centroid_[d];
      } else {
        const float difference = query[d] - storage.centroid_[d];
        offset_ += difference * difference;
      }
    }
  }

  void range(size_t begin, size_t end, float* out) const override {
    const size_t dim = query_.size();
    distances().code_dot(query_.data(), storage_.codes_.data() + begin * dim, end - begin, dim, out);
    for (size_t r = begin; r < end; ++r)
      out[r - begin] = (out[r - begin] - middle_) * storage_.scale_[r] + storage_.add_[r] + offset_;
  }

 private:
  const RotatedStorage& storage_;
  std::vector<float> query_;
  float middle_, offset_ = 0;
};

std::unique_ptr<Scorer> RotatedStorage::scorer(std::span<const float> query) const {
  return std::make_unique<Estimates>(*this, query);
}

}  // namespace

Rotation::Rotation(size_t dim, std::span<const uint8_t> signs, std::span<const float> matrix)
    : dim_(dim), signs_(signs.begin(), signs.end()), matrix_(matrix.begin(), matrix.end()) {
  if (dim == 0 || dim > (size_t{1} << 20)) throw std::invalid_argument("a rotation of a wrong size");
  if (signs_.empty() ? matrix_.size() != dim * dim
                     : (!matrix_.empty() || dim % 2 || signs_.size() != kRounds * ((dim + 7) / 8)))
    throw std::invalid_argument("a rotation of another size");
}

void Rotation::transform(float* values, size_t count) const {
  for (size_t half = 1; half < count; half *= 2) {
    for (size_t begin = 0; begin < count; begin += 2 * half) {
      for (size_t i = begin; i < begin + half; ++i) {
        const float left = values[i], right = values[i + half];
        values[i] = left + right;
        values[i + half] = left - right;
      }
    }
  }
  const float scale = 1 / std::sqrt(static_cast<float>(count));
  for (size_t i = 0; i < count; ++i) values[i] *= scale;
}

std::vector<float> Rotation::apply(std::span<const float> vector) const {
  if (vector.size() != dim_) throw std::invalid_argument("a vector of another length");
  if (signs_.empty()) {
    std::vector<float> rotated(dim_);
    distances().f32.dot(vector.data(), 1, matrix_.data(), dim_, dim_, rotated.data(), dim_);
    return rotated;
  }
  std::vector<float> values(vector.begin(), vector.end());
  const size_t power = std::bit_floor(dim_), width = (dim_ + 7) / 8;
  for (unsigned round = 0; round < kRounds; ++round) {
    const uint8_t* signs = signs_.data() + round * width;
    for (size_t d = 0; d < dim_; ++d)
      if (signs[d / 8] >> (d % 8) & 1) values[d] = -values[d];
    transform(values.data() + (round % 2 ? dim_ - power : 0), power);
    if (power == dim_) continue;
    for (size_t i = 0; i < dim_ / 2; ++i) {
      const float left = values[i], right = values[i + dim_ / 2];
      values[i] = left + right;
      values[i + dim_ / 2] = left - right;
    }
  }
  if (power != dim_)
    for (float& value : values) value *= 0.25f;
  return values;
}

std::unique_ptr<Storage> rotated_storage(Metric metric, std::shared_ptr<const Rotation> rotation,
                                         std::span<const float> centroid, const RotatedCodes& codes) {
  return std::make_unique<RotatedStorage>(metric, std::move(rotation), centroid, codes);
}

}  // namespace lance
