#include "long_call.h"

#include <nanobind/stl/string.h>

#include <string>

namespace tensorsmith::python {

namespace nb = nanobind;

namespace {

// Interval between checks for Ctrl-C.
constexpr std::chrono::milliseconds kSignalInterval{50};

const char* method_of(LogLevel level) {
  switch (level) {
    case LogLevel::kDebug:
      return "debug";
    case LogLevel::kInfo:
      return "info";
    case LogLevel::kWarning:
      return "warning";
    case LogLevel::kError:
      return "error";
  }
  return "error";
}

}  // namespace

void LongCall::tell(std::function<void()> told) {
  const std::lock_guard lock(mutex_);
  told_.push_back(std::move(told));
  changed_.notify_one();
}

void LongCall::run_told(std::exception_ptr& raised) {
  std::vector<std::function<void()>> told;
  {
    const std::lock_guard lock(mutex_);
    told.swap(told_);
  }
  try {
    if (PyErr_CheckSignals() != 0) throw nb::python_error();
    for (const auto& one : told) one();
  } catch (...) {
    if (!raised) raised = std::current_exception();
    cancelled_ = true;
  }
}

void LongCall::wait_for(const std::function<void()>& work) {
  std::exception_ptr failed, raised;
  std::thread thread([&] {
    try {
      work();
    } catch (...) {
      failed = std::current_exception();
    }
    const std::lock_guard lock(mutex_);
    done_ = true;
    changed_.notify_one();
  });
  bool done = false;
  while (!done) {
    {
      const nb::gil_scoped_release unlocked;
      std::unique_lock lock(mutex_);
      changed_.wait_for(lock, kSignalInterval, [&] { return done_ || !told_.empty(); });
      done = done_;
    }
    run_told(raised);
  }
  thread.join();
  if (raised) std::rethrow_exception(raised);
  if (failed) std::rethrow_exception(failed);
}

void PythonLog::log(LogLevel level, std::string_view message) {
  call_.tell([method = method_of(level), text = std::string(message)] {
    const nb::object words = nb::module_::import_("tensorsmith.errors").attr("in_python")(text);
    nb::module_::import_("logging").attr("getLogger")("tensorsmith").attr(method)("%s", words);
  });
}

}  // namespace tensorsmith::python
