#include "search/storage.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <stdexcept>

#include "search/query.hpp"

namespace lance {
namespace {

size_t whole_rows(size_t bytes, size_t width) {
  if (width == 0 || bytes % width) throw std::invalid_argument("vectors that are not whole");
  return bytes / width;
}

// L2 and cosine indices of codes hold distances between vectors of length 1 for cosine.
bool is_l2(Metric metric) {
  return metric == Metric::kL2 || metric == Metric::kCosine;
}

class FlatScorer : public Scorer {
 public:
  FlatScorer(VectorQuery query, const uint8_t* vectors) : query_(std::move(query)), vectors_(vectors) {}

  void range(size_t begin, size_t end, float* out) const override {
    query_.distances(vectors_ + begin * query_.row_bytes(), end - begin, out);
  }

  void listed(std::span<const uint32_t> rows, float* out) const override {
    const size_t width = query_.row_bytes();
    std::vector<uint8_t> gathered(rows.size() * width);
    for (size_t i = 0; i < rows.size(); ++i)
      std::memcpy(gathered.data() + i * width, vectors_ + rows[i] * width, width);
    query_.distances(gathered.data(), rows.size(), out);
  }

 private:
  VectorQuery query_;
  const uint8_t* vectors_;
};

class FlatStorage : public Storage {
 public:
  FlatStorage(Metric metric, Element element, size_t dim, std::span<const uint8_t> vectors)
      : metric_(metric),
        element_(element),
        dim_(dim),
        rows_(whole_rows(vectors.size(), dim * element_bytes(element))),
        vectors_(vectors) {}

  size_t rows() const override { return rows_; }
  size_t dim() const override { return dim_; }

  std::unique_ptr<Scorer> scorer(std::span<const float> query) const override {
    std::vector<uint8_t> values;
    const auto append = [&values](auto value) {
      const auto* bytes = reinterpret_cast<const uint8_t*>(&value);
      values.insert(values.end(), bytes, bytes + sizeof(value));
    };
    for (float value : query) {
      if (metric_ == Metric::kHamming)
        values.push_back(static_cast<uint8_t>(std::clamp(value, 0.0f, 255.0f)));
      else if (element_ == Element::kFloat64)
        append(static_cast<double>(value));
      else
        append(value);
    }
    return std::make_unique<FlatScorer>(VectorQuery(metric_, element_, dim_, values), vectors_.data());
  }

 private:
  Metric metric_;
  Element element_;
  size_t dim_, rows_;
  std::span<const uint8_t> vectors_;
};

class ScalarStorage : public Storage {
 public:
  ScalarStorage(Metric metric, size_t dim, float low, float high, std::span<const uint8_t> codes)
      : metric_(metric),
        dim_(dim),
        rows_(whole_rows(codes.size(), dim)),
        low_(low),
        scale_((high - low) / 255),
        codes_(codes) {}

  size_t rows() const override { return rows_; }
  size_t dim() const override { return dim_; }

  std::unique_ptr<Scorer> scorer(std::span<const float> query) const override;

 private:
  class L2;
  class Dot;

  Metric metric_;
  size_t dim_, rows_;
  float low_, scale_;
  std::span<const uint8_t> codes_;
};

class ScalarStorage::L2 : public Scorer {
 public:
  L2(const ScalarStorage& storage, std::span<const float> query) : storage_(storage) {
    for (float value : query) {
      const float code = (value - storage.low_) / storage.scale_;
      query_.push_back(code > 0 ? static_cast<uint8_t>(std::min(code, 255.0f)) : 0);
    }
  }

  void range(size_t begin, size_t end, float* out) const override {
    const size_t dim = storage_.dim_;
    distances().code_l2(query_.data(), storage_.codes_.data() + begin * dim, end - begin, dim, out);
    const float scale = storage_.scale_ * storage_.scale_;
    for (size_t i = 0; i < end - begin; ++i) out[i] *= scale;
  }

  void listed(std::span<const uint32_t> rows, float* out) const override {
    const uint8_t* codes = storage_.codes_.data();
    for (uint32_t row : rows) __builtin_prefetch(codes + row * storage_.dim_);
    Scorer::listed(rows, out);
  }

 private:
  const ScalarStorage& storage_;
  std::vector<uint8_t> query_;
};

class ScalarStorage::Dot : public Scorer {
 public:
  Dot(const ScalarStorage& storage, std::span<const float> query)
      : storage_(storage), query_(query.begin(), query.end()) {
    for (float value : query) sum_ += value;
  }

  void range(size_t begin, size_t end, float* out) const override {
    const size_t dim = storage_.dim_;
    distances().code_dot(query_.data(), storage_.codes_.data() + begin * dim, end - begin, dim, out);
    for (size_t i = 0; i < end - begin; ++i) out[i] = 1 - (storage_.low_ * sum_ + storage_.scale_ * out[i]);
  }

 private:
  const ScalarStorage& storage_;
  std::vector<float> query_;
  float sum_ = 0;
};

std::unique_ptr<Scorer> ScalarStorage::scorer(std::span<const float> query) const {
  if (is_l2(metric_)) return std::make_unique<L2>(*this, query);
  return std::make_unique<Dot>(*this, query);
}

class ProductStorage : public Storage {
 public:
  ProductStorage(std::shared_ptr<const Codebook> codebook, std::span<const float> centroid,
                 std::span<const uint8_t> codes, bool transposed, bool by_row)
      : codebook_(std::move(codebook)), centroid_(centroid.begin(), centroid.end()), by_row_(by_row) {
    const size_t parts = codebook_->parts;
    const bool packed = codebook_->centroids == 16;  // two codes in a byte
    const size_t width = packed ? parts / 2 : parts;
    rows_ = whole_rows(codes.size(), width);
    if (centroid.size() != codebook_->dim) throw std::invalid_argument("a centroid of another length");
    if (!packed && transposed != by_row) {
      codes_ = codes;
      return;
    }
    owned_.resize(rows_ * parts);
    for (size_t j = 0; j < width; ++j) {
      for (size_t r = 0; r < rows_; ++r) {
        const uint8_t code = transposed ? codes[j * rows_ + r] : codes[r * width + j];
        if (packed) {
          put(2 * j, r, code & 15);
          put(2 * j + 1, r, code >> 4);
        } else {
          put(j, r, code);
        }
      }
    }
    codes_ = owned_;
  }

  size_t rows() const override { return rows_; }
  size_t dim() const override { return codebook_->dim; }

  std::unique_ptr<Scorer> scorer(std::span<const float> query) const override;

 private:
  class Tables;

  void put(size_t part, size_t row, uint8_t code) {
    owned_[by_row_ ? row * codebook_->parts + part : part * rows_ + row] = code;
  }

  std::shared_ptr<const Codebook> codebook_;
  std::vector<float> centroid_;
  bool by_row_;
  size_t rows_ = 0;
  std::vector<uint8_t> owned_;
  std::span<const uint8_t> codes_;
};

class ProductStorage::Tables : public Scorer {
 public:
  Tables(const ProductStorage& storage, std::span<const float> query) : storage_(storage) {
    const Codebook& book = *storage.codebook_;
    if (is_l2(book.metric)) {
      std::vector<float> residual(book.dim);
      for (size_t d = 0; d < book.dim; ++d) residual[d] = query[d] - storage.centroid_[d];
      table_ = book.table(residual.data());
    } else {
      table_ = book.table(query.data());
      start_ = -static_cast<float>(book.parts - 1);
    }
  }

  void range(size_t begin, size_t end, float* out) const override {
    const size_t parts = storage_.codebook_->parts, centroids = storage_.codebook_->centroids;
    if (storage_.by_row_) {
      for (size_t r = begin; r < end; ++r) {
        const uint8_t* codes = storage_.codes_.data() + r * parts;
        float total = start_;
        for (size_t j = 0; j < parts; ++j) total += table_[j * centroids + codes[j]];
        out[r - begin] = total;
      }
      return;
    }
    std::fill(out, out + (end - begin), start_);
    const DistanceTable& kernels = distances();
    for (size_t j = 0; j < parts; ++j)
      kernels.add_looked_up(table_.data() + j * centroids,
                            storage_.codes_.data() + j * storage_.rows_ + begin, end - begin, out);
  }

 private:
  const ProductStorage& storage_;
  std::vector<float> table_;
  float start_ = 0;
};

std::unique_ptr<Scorer> ProductStorage::scorer(std::span<const float> query) const {
  return std::make_unique<Tables>(*this, query);
}

}  // namespace

Codebook::Codebook(Metric metric, size_t dim, size_t parts, unsigned bits, std::span<const float> values)
    : metric(metric),
      dim(dim),
      parts(parts),
      centroids(size_t{1} << (bits & 15)),
      values(values.begin(), values.end()) {
  if ((bits != 4 && bits != 8) || parts == 0 || dim % parts || (bits == 4 && parts % 2))
    throw std::invalid_argument("codes that do not divide the vectors");
  if (dim > (size_t{1} << 32) || values.size() != centroids * dim)
    throw std::invalid_argument("a codebook of another size");
}

std::vector<float> Codebook::table(const float* query) const {
  const DistancesOf<float>& kernels = distances().f32;
  std::vector<float> found(parts * centroids);
  for (size_t j = 0; j < parts; ++j) {
    const auto pairwise = is_l2(metric) ? kernels.squared_l2 : kernels.dot;
    pairwise(query + j * part_dim(), 1, values.data() + j * centroids * part_dim(), centroids, part_dim(),
             found.data() + j * centroids, centroids);
  }
  if (!is_l2(metric))
    for (float& value : found) value = 1 - value;
  return found;
}

std::unique_ptr<Storage> flat_storage(Metric metric, Element element, size_t dim,
                                      std::span<const uint8_t> vectors) {
  return std::make_unique<FlatStorage>(metric, element, dim, vectors);
}

std::unique_ptr<Storage> scalar_storage(Metric metric, size_t dim, float low, float high,
                                        std::span<const uint8_t> codes) {
  if (!(low < high) || !std::isfinite(high - low)) throw std::invalid_argument("bounds that bound nothing");
  return std::make_unique<ScalarStorage>(metric, dim, low, high, codes);
}

std::unique_ptr<Storage> product_storage(std::shared_ptr<const Codebook> codebook,
                                         std::span<const float> centroid, std::span<const uint8_t> codes,
                                         bool transposed, bool by_row) {
  return std::make_unique<ProductStorage>(std::move(codebook), centroid, codes, transposed, by_row);
}

}  // namespace lance
