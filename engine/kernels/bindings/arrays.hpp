#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>
#include <initializer_list>
#include <memory>

namespace lance {

template <typename T>
using InputArray = nanobind::ndarray<nanobind::numpy, const T, nanobind::ndim<1>, nanobind::c_contig>;
using Bytes = InputArray<uint8_t>;
using Ids = InputArray<uint64_t>;
using Floats = InputArray<float>;

template <typename T>
using OutputArray = nanobind::ndarray<nanobind::numpy, T>;

// Memory that becomes a numpy array.
template <typename T>
class Owned {
 public:
  explicit Owned(size_t count) : values_(new T[count]), count_(count) {}

  T* data() { return values_.get(); }

  OutputArray<T> array() { return array({count_}); }

  OutputArray<T> array(std::initializer_list<size_t> shape) {
    T* values = values_.release();
    nanobind::capsule owner(values, [](void* memory) noexcept { delete[] static_cast<T*>(memory); });
    return OutputArray<T>(values, shape, owner);
  }

 private:
  std::unique_ptr<T[]> values_;
  size_t count_;
};

}  // namespace lance
