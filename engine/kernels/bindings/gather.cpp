// Rows of several arrays in any order, as shuffled training batches need them.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/vector.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <stdexcept>
#include <vector>

#include "bindings/arrays.hpp"
#include "bindings/bindings.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace lance {
namespace {

using Piece = nb::ndarray<nb::ro, nb::c_contig, nb::device::cpu>;
using Target = nb::ndarray<nb::c_contig, nb::device::cpu>;

// Memory is requested this many rows ahead, since rows are in random places.
constexpr size_t kAhead = 16;
constexpr size_t kLine = 64;
constexpr size_t kMostLines = 16;

template <typename Array>
size_t row_bytes_of(const Array& array) {
  size_t bytes = array.itemsize();
  for (size_t i = 1; i < array.ndim(); ++i) bytes *= array.shape(i);
  return bytes;
}

class RowPieces {
 public:
  explicit RowPieces(std::vector<Piece> pieces) : pieces_(std::move(pieces)) {
    size_t count = 0;
    for (const Piece& piece : pieces_) {
      if (piece.ndim() == 0) throw std::invalid_argument("a piece without rows");
      if (&piece == &pieces_.front()) row_bytes_ = row_bytes_of(piece);
      if (row_bytes_of(piece) != row_bytes_)
        throw std::invalid_argument("pieces with rows of different sizes");
      count += piece.shape(0);
    }
    rows_.reserve(count);
    for (const Piece& piece : pieces_) {
      const auto* first = static_cast<const uint8_t*>(piece.data());
      for (size_t i = 0; i < piece.shape(0); ++i) rows_.push_back(first + i * row_bytes_);
    }
  }

  void take(InputArray<int64_t> numbers, Target into) const {
    if (into.ndim() == 0 || into.shape(0) != numbers.size() ||
        (numbers.size() != 0 && row_bytes_of(into) != row_bytes_)) {
      throw std::invalid_argument("the target does not have the shape of the rows");
    }
    const std::span<const int64_t> wanted(numbers.data(), numbers.size());
    auto* target = static_cast<uint8_t*>(into.data());
    nb::gil_scoped_release nogil;
    if (!std::ranges::all_of(wanted,
                             [&](int64_t row) { return static_cast<uint64_t>(row) < rows_.size(); })) {
      throw std::out_of_range("a row outside of the pieces");
    }
    switch (row_bytes_) {
      case 1:
        return copy<1>(wanted, target);
      case 2:
        return copy<2>(wanted, target);
      case 4:
        return copy<4>(wanted, target);
      case 8:
        return copy<8>(wanted, target);
      default:
        return copy<0>(wanted, target);
    }
  }

 private:
  // `Width` is the number of bytes of a row, or 0 where only this object knows it.
  template <size_t Width>
  void copy(std::span<const int64_t> wanted, uint8_t* target) const {
    const size_t bytes = Width != 0 ? Width : row_bytes_;
    const size_t prefetched = std::min(bytes, kMostLines * kLine);
    for (size_t i = 0; i < wanted.size(); ++i, target += bytes) {
      if (i + kAhead < wanted.size()) {
        const uint8_t* coming = rows_[static_cast<size_t>(wanted[i + kAhead])];
        for (size_t at = 0; at < prefetched; at += kLine) __builtin_prefetch(coming + at);
      }
      std::memcpy(target, rows_[static_cast<size_t>(wanted[i])], bytes);
    }
  }

  std::vector<Piece> pieces_;  // they own the memory of the rows
  std::vector<const uint8_t*> rows_;
  size_t row_bytes_ = 0;
};

}  // namespace

void bind_gather(nb::module_& m) {
  nb::class_<RowPieces>(m, "RowPieces", "The rows of arrays of one type and width, numbered through.")
      .def(nb::init<std::vector<Piece>>(), "pieces"_a,
           nb::sig("def __init__(self, pieces: Sequence[NDArray[numpy.generic]]) -> None"))
      .def("take", &RowPieces::take, "numbers"_a, "into"_a,
           nb::sig("def take(self, numbers: NDArray[numpy.int64], into: NDArray[numpy.generic]) -> None"),
           "Copies the rows of these numbers into an array of their type and width.");
}

}  // namespace lance
