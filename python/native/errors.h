// Errors of Tensorsmith as Python exceptions.
#pragma once

#include <nanobind/nanobind.h>

#include <utility>

#include "base/result.h"

namespace tensorsmith::python {

// Raises the exception of tensorsmith.errors that stands for the error. Needs Python's lock.
[[noreturn]] void raise(const Error& error);

inline void check(const Status& status) {
  if (!status.ok()) raise(status.error());
}

template <typename T>
T value_or_raise(Result<T> result) {
  if (!result.ok()) raise(result.error());
  return std::move(result).value();
}

// The work's result; other threads of Python go on meanwhile.
template <typename Work>
auto without_lock(Work&& work) {
  const nanobind::gil_scoped_release unlocked;
  return work();
}

}  // namespace tensorsmith::python
