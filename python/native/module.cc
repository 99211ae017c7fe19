// The native part of the package; users import python/tensorsmith. Data is passed to Python as JSON
// text, in the format of the commands' --json.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include "base/dtype.h"
#include "bindings.h"
#include "codegen/backend.h"

NB_MODULE(_native, module) {
  using namespace tensorsmith;
  module.attr("__version__") = TENSORSMITH_VERSION;
  module.def(
      "backend_version", [] { return codegen::default_backend().version(); },
      "Returns the name and version of the compiler that makes machine code.");
  module.def(
      "dtypes",
      [] {
        nanobind::list rows;
        for (const DTypeRow& row : kDTypes) {
          const std::string_view numpy = row.numpy.empty() ? row_of(row.stored).name : row.name;
          rows.append(nanobind::make_tuple(row.text.data(), numpy.data(), row.onnx, row.onnx_name.data()));
        }
        return rows;
      },
      "Returns the element types: name, name of NumPy's type (or that of the bits), number and name in "
      "ONNX.");
  python::bind_model(module);
  python::bind_work(module);
  python::bind_database(module);
}
