// Hashes of many values at once, as bloom filters need them.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <stdexcept>

#include "bindings/arrays.hpp"
#include "bindings/bindings.hpp"
#include "core/xxhash64.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace lance {
namespace {

OutputArray<uint64_t> hash_values(Bytes data, InputArray<int64_t> offsets) {
  const size_t count = offsets.size() == 0 ? 0 : offsets.size() - 1;
  Owned<uint64_t> hashes(count);
  {
    nb::gil_scoped_release nogil;
    const std::span<const uint8_t> bytes(data.data(), data.size());
    const std::span<const int64_t> ends(offsets.data(), offsets.size());
    for (size_t i = 0; i < count; ++i) {
      const int64_t begin = ends[i], end = ends[i + 1];
      if (begin < 0 || end < begin || static_cast<uint64_t>(end) > bytes.size()) {
        throw std::out_of_range("offsets outside of the data");
      }
      hashes.data()[i] =
          xxhash64(bytes.subspan(static_cast<size_t>(begin), static_cast<size_t>(end - begin)));
    }
  }
  return hashes.array();
}

}  // namespace

void bind_hash(nb::module_& m) {
  m.def("xxhash64", &hash_values, "data"_a, "offsets"_a,
        "XXH64 with seed 0 of data[offsets[i]:offsets[i + 1]] for every i.");
}

}  // namespace lance
