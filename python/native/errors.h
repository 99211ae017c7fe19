// Converts Tensorsmith's errors to Python exceptions.
#pragma once

#include <nanobind/nanobind.h>

#include <utility>

#include "base/result.h"

namespace tensorsmith::python {

// Raises the exception of tensorsmith.errors that corresponds to the error. Requires the GIL.
[[noreturn]] void raise(const Error& error);

inline void check(const Status& status) {
  if (!status.ok()) raise(status.error());
}

template <typename T>
T value_or_raise(Result<T> result) {
  if (!result.ok()) raise(result.error());
  return std::move(result).value();
}

// Returns the work's result; other Python threads can run meanwhile.
template <typename Work>
auto without_lock(Work&& work) {
  const nanobind::gil_scoped_release unlocked;
  return work();
}

}  // namespace tensorsmith::python
