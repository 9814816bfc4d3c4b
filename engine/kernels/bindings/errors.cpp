#include "core/errors.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <exception>

#include "bindings/bindings.hpp"
#include "core/protobuf.hpp"
#include "decode/leaf.hpp"

namespace nb = nanobind;

namespace lance {

void bind_errors(nb::module_& m) {
  static nb::handle corrupt = nb::exception<CorruptData>(m, "CorruptDataError", PyExc_ValueError);
  static nb::handle not_resident = nb::exception<NotResident>(m, "NotResidentError", PyExc_LookupError);
  nb::exception<NotUnderstood>(m, "NotUnderstoodError", PyExc_ValueError);
  nb::exception<BatchTooLarge>(m, "BatchTooLargeError", PyExc_OverflowError);
  // Registered last and so tried first: the arguments are (what, column or None, page or None) and
  // (identity of the source, offset, length, whether to keep it).
  nb::register_exception_translator([](const std::exception_ptr& pointer, void*) {
    try {
      std::rethrow_exception(pointer);
    } catch (const CorruptData& error) {
      nb::object column = error.column.empty() ? nb::none() : nb::cast(error.column);
      nb::object page = error.page < 0 ? nb::none() : nb::cast(error.page);
      PyErr_SetObject(corrupt.ptr(), nb::make_tuple(error.what(), column, page).ptr());
    } catch (const NotResident& error) {
      auto source = reinterpret_cast<uintptr_t>(error.source);
      PyErr_SetObject(not_resident.ptr(),
                      nb::make_tuple(source, error.offset, error.length, error.lasting).ptr());
    }
  });
}

}  // namespace lance
