// Hashes of many values at once, as bloom filters need them.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdlib>
#include <new>
#include <stdexcept>

#include "bindings/bindings.hpp"
#include "core/xxhash64.hpp"

namespace nb = nanobind;
using namespace nb::literals;

namespace lance {
namespace {

using Input = nb::ndarray<nb::numpy, const uint8_t, nb::ndim<1>, nb::c_contig>;
using Offsets = nb::ndarray<nb::numpy, const int64_t, nb::ndim<1>, nb::c_contig>;
using Hashes = nb::ndarray<nb::numpy, uint64_t, nb::ndim<1>>;

Hashes hash_values(Input data, Offsets offsets) {
  const size_t count = offsets.size() == 0 ? 0 : offsets.size() - 1;
  auto* hashes = static_cast<uint64_t*>(std::malloc((count + 1) * sizeof(uint64_t)));
  if (hashes == nullptr) throw std::bad_alloc();
  nb::capsule owner(hashes, [](void* memory) noexcept { std::free(memory); });
  {
    nb::gil_scoped_release nogil;
    const std::span<const uint8_t> bytes(data.data(), data.size());
    const std::span<const int64_t> ends(offsets.data(), offsets.size());
    for (size_t i = 0; i < count; ++i) {
      const int64_t begin = ends[i], end = ends[i + 1];
      if (begin < 0 || end < begin || static_cast<uint64_t>(end) > bytes.size()) {
        throw std::out_of_range("offsets outside of the data");
      }
      hashes[i] = xxhash64(bytes.subspan(static_cast<size_t>(begin), static_cast<size_t>(end - begin)));
    }
  }
  return Hashes(hashes, {count}, owner);
}

}  // namespace

void bind_hash(nb::module_& m) {
  m.def("xxhash64", &hash_values, "data"_a, "offsets"_a,
        "XXH64 with seed 0 of data[offsets[i]:offsets[i + 1]] for every i.");
}

}  // namespace lance
