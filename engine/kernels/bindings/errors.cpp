#include "core/errors.hpp"

#include <nanobind/nanobind.h>

#include "bindings/bindings.hpp"

namespace nb = nanobind;

namespace lance {

void bind_errors(nb::module_& m) {
  nb::exception<CorruptData>(m, "CorruptDataError", PyExc_ValueError);
  nb::exception<NotResident>(m, "NotResidentError", PyExc_LookupError);
}

}  // namespace lance
