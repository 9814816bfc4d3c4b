#include "core/errors.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <exception>

#include "bindings/bindings.hpp"
#include "decode/leaf.hpp"

namespace nb = nanobind;

namespace lance {

void bind_errors(nb::module_& m) {
  static nb::handle corrupt = nb::exception<CorruptData>(m, "CorruptDataError", PyExc_ValueError);
  nb::exception<NotResident>(m, "NotResidentError", PyExc_LookupError);
  nb::exception<BatchTooLarge>(m, "BatchTooLargeError", PyExc_OverflowError);
  // Registered last and so tried first: the arguments are (what, column or None, page or None).
  nb::register_exception_translator([](const std::exception_ptr& pointer, void*) {
    try {
      std::rethrow_exception(pointer);
    } catch (const CorruptData& error) {
      nb::object column = error.column.empty() ? nb::none() : nb::cast(error.column);
      nb::object page = error.page < 0 ? nb::none() : nb::cast(error.page);
      PyErr_SetObject(corrupt.ptr(), nb::make_tuple(error.what(), column, page).ptr());
    }
  });
}

}  // namespace lance
