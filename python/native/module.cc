// The native part of the package; users import python/tensorsmith. Data is passed to Python as JSON
// text, in the format of the commands' --json.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include "bindings.h"
#include "codegen/backend.h"

NB_MODULE(_native, module) {
  using namespace tensorsmith;
  module.attr("__version__") = TENSORSMITH_VERSION;
  module.def(
      "backend_version", [] { return codegen::default_backend().version(); },
      "Returns the name and version of the compiler that makes machine code.");
  python::bind_model(module);
  python::bind_work(module);
  python::bind_database(module);
}
