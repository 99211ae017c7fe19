// A cost model that is a Python object.
#pragma once

#include <nanobind/nanobind.h>

#include <exception>

#include "learn/custom/custom_model.h"

namespace tensorsmith::python {

// The object is one of tensorsmith.cost_model.Adapter. The search calls it with the GIL, on its own thread.
class PythonCostModel {
 public:
  // `adapter` must outlive this object.
  explicit PythonCostModel(nanobind::handle adapter) : adapter_(adapter) {}

  // The result refers to this object.
  learn::MakeCustomScorer maker();
  // Throws the first exception that the object raised. Requires the GIL.
  void rethrow() const {
    if (raised_) std::rethrow_exception(raised_);
  }

 private:
  nanobind::handle adapter_;
  std::exception_ptr raised_;
};

}  // namespace tensorsmith::python
