// The native half of the package; what people use is in python/tensorsmith. Data goes to Python as JSON text, as the
// commands' --json has it.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>

#include "bindings.h"
#include "codegen/backend.h"

NB_MODULE(_native, module) {
  using namespace tensorsmith;
  module.attr("__version__") = TENSORSMITH_VERSION;
  module.def(
      "backend_version", [] { return codegen::default_backend().version(); },
      "The compiler that makes machine code, and its version.");
  python::bind_model(module);
  python::bind_work(module);
  python::bind_database(module);
}
