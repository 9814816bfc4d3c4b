// Nearest vectors.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>

#include <optional>
#include <stdexcept>

#include "bindings/arrays.hpp"
#include "bindings/bindings.hpp"
#include "search/query.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace lance {
namespace {

// The k nearest rows of several queries.
class Nearest {
 public:
  Nearest(size_t queries, size_t k, float lower, float upper) : queries_(queries, TopK(k, lower, upper)) {}

  std::span<TopK> all() { return queries_; }

  void merge(const Nearest& other) {
    if (other.queries_.size() != queries_.size()) throw std::invalid_argument("other queries");
    for (size_t q = 0; q < queries_.size(); ++q) queries_[q].merge(other.queries_[q]);
  }

  void offer(size_t query, Floats distances, Ids rows) {
    if (query >= queries_.size() || distances.size() != rows.size())
      throw std::invalid_argument("distances and rows of different length");
    for (size_t i = 0; i < rows.size(); ++i) queries_[query].push(distances.data()[i], rows.data()[i]);
  }

  // (query, row, distance), ascending by query, then nearest first.
  nb::tuple result() const {
    size_t total = 0;
    for (const TopK& query : queries_) total += query.size();
    Owned<uint32_t> numbers(total);
    Owned<uint64_t> rows(total);
    Owned<float> distances(total);
    size_t at = 0;
    for (size_t q = 0; q < queries_.size(); ++q) {
      for (const Neighbour& found : queries_[q].sorted()) {
        numbers.data()[at] = static_cast<uint32_t>(q);
        rows.data()[at] = found.row;
        distances.data()[at++] = found.distance;
      }
    }
    return nb::make_tuple(numbers.array(), rows.array(), distances.array());
  }

 private:
  std::vector<TopK> queries_;
};

void scan(Nearest& nearest, const VectorQuery& query, size_t first, Bytes vectors, Ids ids,
          std::optional<Bytes> valid) {
  const size_t rows = ids.size();
  if (first > nearest.all().size() || query.count() > nearest.all().size() - first)
    throw std::invalid_argument("other queries");
  if (vectors.size() != rows * query.row_bytes() || (valid && valid->size() != rows))
    throw std::invalid_argument("vectors and rows of different length");
  nb::gil_scoped_release nogil;
  query.scan(vectors.data(), ids.data(), valid ? valid->data() : nullptr, rows,
             nearest.all().subspan(first, query.count()));
}

nb::object pairwise(const VectorQuery& query, Bytes vectors) {
  if (vectors.size() % query.row_bytes()) throw std::invalid_argument("vectors that are not whole");
  const size_t rows = vectors.size() / query.row_bytes();
  Owned<float> out(query.count() * rows);
  {
    nb::gil_scoped_release nogil;
    query.distances(vectors.data(), rows, out.data());
  }
  return out.array({query.count(), rows});
}

}  // namespace

void bind_search(nb::module_& m) {
  nb::enum_<Metric>(m, "Metric")
      .value("L2", Metric::kL2)
      .value("COSINE", Metric::kCosine)
      .value("DOT", Metric::kDot)
      .value("HAMMING", Metric::kHamming);
  nb::enum_<Element>(m, "Element")
      .value("FLOAT16", Element::kFloat16)
      .value("FLOAT32", Element::kFloat32)
      .value("FLOAT64", Element::kFloat64)
      .value("INT8", Element::kInt8)
      .value("UINT8", Element::kUInt8);
  nb::class_<VectorQuery>(m, "VectorQuery")
      .def(
          "__init__",
          [](VectorQuery* self, Metric metric, Element element, size_t dim, Bytes values) {
            new (self) VectorQuery(metric, element, dim, {values.data(), values.size()});
          },
          "metric"_a, "element"_a, "dim"_a, "values"_a)
      .def_prop_ro("count", &VectorQuery::count)
      .def("distances", &pairwise, "vectors"_a);
  nb::class_<Nearest>(m, "Nearest")
      .def(nb::init<size_t, size_t, float, float>(), "queries"_a, "k"_a, "lower"_a, "upper"_a)
      .def("scan", &scan, "query"_a, "first"_a, "vectors"_a, "ids"_a, "valid"_a.none())
      .def("offer", &Nearest::offer, "query"_a, "distances"_a, "ids"_a)
      .def("merge", &Nearest::merge, "other"_a)
      .def("result", &Nearest::result);
}

}  // namespace lance
