#include "errors.h"

#include <nanobind/stl/string.h>

namespace tensorsmith::python {

namespace nb = nanobind;

void raise(const Error& error) {
  const nb::object exception = nb::module_::import_("tensorsmith.errors")
                                   .attr("from_native")(to_string(error.code), error.place, error.reason);
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(exception.ptr())), exception.ptr());
  throw nb::python_error();
}

}  // namespace tensorsmith::python
