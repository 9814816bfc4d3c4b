#include "core/errors.hpp"

#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include <exception>

#include "bindings/bindings.hpp"
#include "decode/leaf.hpp"

namespace nb = nanobind;

namespace lance {

namespace {

nb::object text(const std::string& known) {
  return known.empty() ? nb::none() : nb::cast(known);
}

nb::object number(int64_t known) {
  return known < 0 ? nb::none() : nb::cast(known);
}

}  // namespace

void bind_errors(nb::module_& m) {
  static nb::handle corrupt = nb::exception<CorruptData>(m, "CorruptDataError", PyExc_ValueError);
  static nb::handle not_resident = nb::exception<NotResident>(m, "NotResidentError", PyExc_LookupError);
  static nb::handle unsupported = nb::exception<Unsupported>(m, "UnsupportedError", PyExc_ValueError);
  nb::exception<BatchTooLarge> too_large(m, "BatchTooLargeError", PyExc_OverflowError);
  corrupt.attr("__doc__") =
      "Bytes that contradict themselves; `args` is (what, column, page number, encoding). All but the first "
      "may be None. The encoding is told where the description of a page is at fault: from the outermost to "
      "the innermost one.";
  not_resident.attr("__doc__") =
      "A range of a file was needed that nobody fetched; `args` is (source identity, offset, length, "
      "lasting). `lasting` says that later batches will need it as well.";
  unsupported.attr("__doc__") =
      "Something that the kernels do not know; `args` is (what, page number, encoding, missing). All but the "
      "first may be None; `missing` names an encoding that as a whole has no decoder.";
  too_large.attr("__doc__") =
      "More bytes of strings, or more list items, than 32-bit offsets can address: ask for fewer rows.";
  // Registered last and so tried first.
  nb::register_exception_translator([](const std::exception_ptr& pointer, void*) {
    try {
      std::rethrow_exception(pointer);
    } catch (const CorruptData& error) {
      PyErr_SetObject(
          corrupt.ptr(),
          nb::make_tuple(error.what(), text(error.column), number(error.page), text(error.encoding)).ptr());
    } catch (const Unsupported& error) {
      PyErr_SetObject(
          unsupported.ptr(),
          nb::make_tuple(error.what(), number(error.page), text(error.encoding), text(error.missing)).ptr());
    } catch (const NotResident& error) {
      auto source = reinterpret_cast<uintptr_t>(error.source);
      PyErr_SetObject(not_resident.ptr(),
                      nb::make_tuple(source, error.offset, error.length, error.lasting).ptr());
    }
  });
}

}  // namespace lance
