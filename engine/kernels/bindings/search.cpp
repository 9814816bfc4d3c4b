// Nearest vectors.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/shared_ptr.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/unique_ptr.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <stdexcept>
#include <tuple>

#include "bindings/arrays.hpp"
#include "bindings/bindings.hpp"
#include "search/graph_builder.hpp"
#include "search/partition.hpp"
#include "search/query.hpp"
#include "search/rotated.hpp"

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

  size_t found(size_t query) const { return queries_.at(query).size(); }

  // (query, row, distance), ascending by query, then nearest first.
  std::tuple<OutputArray<uint32_t>, OutputArray<uint64_t>, OutputArray<float>> result() const {
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
    return {numbers.array(), rows.array(), distances.array()};
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

OutputArray<float> pairwise(const VectorQuery& query, Bytes vectors) {
  if (vectors.size() % query.row_bytes()) throw std::invalid_argument("vectors that are not whole");
  const size_t rows = vectors.size() / query.row_bytes();
  Owned<float> out(query.count() * rows);
  {
    nb::gil_scoped_release nogil;
    query.distances(vectors.data(), rows, out.data());
  }
  return out.array({query.count(), rows});
}

template <typename T>
std::span<const T> span_of(const InputArray<T>& array) {
  return {array.data(), array.size()};
}

// A partition with the arrays of Python that it reads.
class OwningPartition : public Partition {
 public:
  OwningPartition(std::unique_ptr<Storage> storage, Ids ids, Bytes vectors)
      : Partition(std::move(storage), span_of(ids)), ids_(std::move(ids)), vectors_(std::move(vectors)) {}

 private:
  Ids ids_;
  Bytes vectors_;
};

void search_partitions(Nearest& nearest, size_t number, const std::vector<const OwningPartition*>& partitions,
                       Floats query, const RowSet& allowed, bool few, size_t ef) {
  if (number >= nearest.all().size()) throw std::invalid_argument("other queries");
  nb::gil_scoped_release nogil;
  for (const OwningPartition* partition : partitions)
    partition->search(span_of(query), allowed, few, ef, nearest.all()[number]);
}

using Levels = InputArray<uint64_t>;
using Nodes = InputArray<uint32_t>;
using Offsets = InputArray<int32_t>;

// Centroids, packed for finding the nearest one.
class Centroids {
 public:
  Centroids(Floats values, size_t dim, bool dot) : dim_(dim), dot_(dot) {
    if (dim == 0 || values.size() % dim || values.size() == 0)
      throw std::invalid_argument("no whole centroids");
    count_ = values.size() / dim;
    panels_ = pack_panels(values.data(), count_, dim, distances().panel_width);
  }

  std::tuple<OutputArray<uint32_t>, OutputArray<float>> assign(Floats vectors) const {
    const size_t rows = whole(vectors);
    Owned<uint32_t> labels(rows);
    Owned<float> found(rows);
    {
      nb::gil_scoped_release nogil;
      distances().nearest_centroids(vectors.data(), rows, dim_, panels_.data(), count_, dot_, labels.data(),
                                    found.data());
    }
    return {labels.array(), found.array()};
  }

  std::tuple<OutputArray<double>, OutputArray<int64_t>, OutputArray<double>> step(Floats vectors) const {
    const size_t rows = whole(vectors);
    Owned<double> sums(count_ * dim_), losses(count_);
    Owned<int64_t> counts(count_);
    {
      nb::gil_scoped_release nogil;
      std::vector<uint32_t> labels(rows);
      std::vector<float> found(rows);
      distances().nearest_centroids(vectors.data(), rows, dim_, panels_.data(), count_, dot_, labels.data(),
                                    found.data());
      std::fill_n(sums.data(), count_ * dim_, 0.0);
      std::fill_n(losses.data(), count_, 0.0);
      std::fill_n(counts.data(), count_, int64_t{0});
      for (size_t r = 0; r < rows; ++r) {
        double* sum = sums.data() + labels[r] * dim_;
        const float* row = vectors.data() + r * dim_;
        for (size_t d = 0; d < dim_; ++d) sum[d] += row[d];
        losses.data()[labels[r]] += found[r];
        counts.data()[labels[r]] += 1;
      }
    }
    return {sums.array({count_, dim_}), counts.array(), losses.array()};
  }

 private:
  size_t whole(const Floats& vectors) const {
    if (vectors.size() % dim_) throw std::invalid_argument("vectors that are not whole");
    return vectors.size() / dim_;
  }

  size_t dim_, count_ = 0;
  bool dot_;
  std::vector<float> panels_;
};

template <typename T>
OutputArray<T> taken(std::vector<T>& values) {
  auto* kept = new std::vector<T>(std::move(values));
  nb::capsule owner(kept, [](void* memory) noexcept { delete static_cast<std::vector<T>*>(memory); });
  return OutputArray<T>(kept->data(), {kept->size()}, owner);
}

using GraphArrays = std::tuple<uint32_t, OutputArray<uint64_t>, OutputArray<uint32_t>, OutputArray<int32_t>,
                               OutputArray<uint32_t>, OutputArray<float>>;

GraphArrays graph_of(Metric metric, size_t dim, Floats vectors, uint32_t neighbours, uint32_t candidates,
                     uint32_t levels, uint32_t threads) {
  BuiltGraph graph;
  {
    nb::gil_scoped_release nogil;
    graph = build_graph(metric, dim, span_of(vectors), {neighbours, candidates, levels, threads});
  }
  return {graph.entry,          taken(graph.level_ends), taken(graph.ids),
          taken(graph.offsets), taken(graph.neighbours), taken(graph.distances)};
}

void bind_building(nb::module_& m) {
  nb::class_<Centroids>(m, "Centroids",
                        "Centroids, of which the nearest one is found by L2, or by inner product.")
      .def(nb::init<Floats, size_t, bool>(), "values"_a, "dim"_a, "dot"_a)
      .def("assign", &Centroids::assign, "vectors"_a,
           "Per vector the number of the nearest one, and its distance.")
      .def("step", &Centroids::step, "vectors"_a,
           "Per centroid the sum and the number of its vectors, and the sum of their distances.");
  m.def("build_graph", &graph_of, "metric"_a, "dim"_a, "vectors"_a, "neighbours"_a, "candidates"_a,
        "levels"_a, "threads"_a,
        "Entry, ends of levels, rows of nodes, offsets of neighbours, neighbours and their distances.");
}

void bind_partitions(nb::module_& m) {
  nb::class_<RowSet>(m, "RowSet",
                     "Row ids as ascending disjoint ranges [first, end); its length is the number of ids.")
      .def(
          "__init__",
          [](RowSet* self, Ids firsts, Ids ends) { new (self) RowSet(span_of(firsts), span_of(ends)); },
          "firsts"_a, "ends"_a)
      .def("__len__", &RowSet::count)
      .def("contains", &RowSet::contains, "row"_a);
  nb::class_<Codebook>(m, "Codebook", "Centroids of parts of vectors: [parts][1 << bits][dim / parts].")
      .def(
          "__init__",
          [](Codebook* self, Metric metric, size_t dim, size_t parts, unsigned bits, Floats values) {
            new (self) Codebook(metric, dim, parts, bits, span_of(values));
          },
          "metric"_a, "dim"_a, "parts"_a, "bits"_a, "values"_a);
  nb::class_<Rotation>(m, "Rotation",
                       "A rotation by sign changes and transforms, or by a matrix; the other one is empty.")
      .def(
          "__init__",
          [](Rotation* self, size_t dim, Bytes signs, Floats matrix) {
            new (self) Rotation(dim, span_of(signs), span_of(matrix));
          },
          "dim"_a, "signs"_a, "matrix"_a)
      .def(
          "apply",
          [](const Rotation& self, Floats vector) {
            const std::vector<float> rotated = self.apply(span_of(vector));
            Owned<float> out(rotated.size());
            std::copy(rotated.begin(), rotated.end(), out.data());
            return out.array();
          },
          "vector"_a);
  nb::class_<OwningPartition>(
      m, "Partition",
      "Rows of one partition of an index; keeps the arrays it is made of. ValueError if these do not fit.")
      .def_prop_ro("rows", &OwningPartition::rows)
      .def_static(
          "flat",
          [](Metric metric, Element element, size_t dim, Ids ids, Bytes vectors) {
            return std::make_unique<OwningPartition>(flat_storage(metric, element, dim, span_of(vectors)),
                                                     ids, vectors);
          },
          "metric"_a, "element"_a, "dim"_a, "ids"_a, "vectors"_a)
      .def_static(
          "scalar",
          [](Metric metric, size_t dim, float low, float high, Ids ids, Bytes codes) {
            return std::make_unique<OwningPartition>(scalar_storage(metric, dim, low, high, span_of(codes)),
                                                     ids, codes);
          },
          "metric"_a, "dim"_a, "low"_a, "high"_a, "ids"_a, "codes"_a)
      .def_static(
          "product",
          [](std::shared_ptr<const Codebook> codebook, Floats centroid, Ids ids, Bytes codes, bool transposed,
             bool by_row) {
            return std::make_unique<OwningPartition>(
                product_storage(std::move(codebook), span_of(centroid), span_of(codes), transposed, by_row),
                ids, codes);
          },
          "codebook"_a, "centroid"_a, "ids"_a, "codes"_a, "transposed"_a, "by_row"_a)
      .def_static(
          "rotated",
          [](Metric metric, std::shared_ptr<const Rotation> rotation, Floats centroid, Ids ids, unsigned bits,
             Bytes first_bits, bool packed, Bytes other_bits, Floats add, Floats scale) {
            const RotatedCodes codes{bits,         span_of(first_bits), packed, span_of(other_bits),
                                     span_of(add), span_of(scale)};
            return std::make_unique<OwningPartition>(
                rotated_storage(metric, std::move(rotation), span_of(centroid), codes), ids, first_bits);
          },
          "metric"_a, "rotation"_a, "centroid"_a, "ids"_a, "bits"_a, "first_bits"_a, "packed"_a,
          "other_bits"_a, "add"_a, "scale"_a)
      .def(
          "set_graph",
          [](OwningPartition& self, uint32_t entry, Levels level_ends, Nodes ids, Offsets offsets,
             Nodes neighbours) {
            self.set_graph(std::make_unique<Graph>(self.rows(), entry, span_of(level_ends), span_of(ids),
                                                   span_of(offsets), span_of(neighbours)));
          },
          "entry"_a, "level_ends"_a, "ids"_a, "offsets"_a, "neighbours"_a);
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
  nb::class_<VectorQuery>(
      m, "VectorQuery",
      "Query vectors; `values` are the bytes of floats, of doubles for FLOAT64, of bytes for HAMMING.")
      .def(
          "__init__",
          [](VectorQuery* self, Metric metric, Element element, size_t dim, Bytes values) {
            new (self) VectorQuery(metric, element, dim, {values.data(), values.size()});
          },
          "metric"_a, "element"_a, "dim"_a, "values"_a)
      .def_prop_ro("count", &VectorQuery::count)
      .def("distances", &pairwise, "vectors"_a, "Of every query (rows) to every stored vector (columns).");
  bind_partitions(m);
  bind_building(m);
  nb::class_<Nearest>(
      m, "Nearest",
      "The `k` nearest rows of several queries with lower <= distance < upper; ties go to the lower row id.")
      .def(nb::init<size_t, size_t, float, float>(), "queries"_a, "k"_a, "lower"_a, "upper"_a)
      .def("scan", &scan, "query"_a, "first"_a, "vectors"_a, "ids"_a, "valid"_a.none(),
           "Offer rows to the queries from number `first` on; `valid` has a zero for rows that are left out.")
      .def("search", &search_partitions, "query_number"_a, "partitions"_a, "query"_a, "allowed"_a, "few"_a,
           "ef"_a, "Offer the rows of partitions; see the classes.")
      .def("offer", &Nearest::offer, "query"_a, "distances"_a, "ids"_a)
      .def("found", &Nearest::found, "query"_a, "How many rows there are, up to k.")
      .def("merge", &Nearest::merge, "other"_a)
      .def("result", &Nearest::result, "Query numbers, row ids and distances: by query, then nearest first.");
}

}  // namespace lance
