// The parts of the extension module, one function each.
#pragma once

#include <nanobind/nanobind.h>

namespace tensorsmith::python {

void bind_model(nanobind::module_& module);     // compiled models
void bind_work(nanobind::module_& module);      // tune, compile, predict, tasks, declared, device
void bind_database(nanobind::module_& module);  // records

}  // namespace tensorsmith::python
