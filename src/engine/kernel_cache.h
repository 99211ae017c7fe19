// Kernels that were built before, so that several compilations of one model share them.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "codegen/build.h"
#include "graph/tasks.h"
#include "sched/step.h"
#include "target/target.h"

namespace tensorsmith::engine {

// For one model and device: kernels are known by the task's number and its schedule. Their symbols are
// `symbol_prefix` and the number.
class KernelCache {
 public:
  KernelCache(const codegen::Backend& backend, std::string symbol_prefix)
      : backend_(backend), symbol_prefix_(std::move(symbol_prefix)) {}
  // Builds what is not there yet. Thread-safe.
  Result<std::shared_ptr<const codegen::BuiltKernel>> get(const graph::Task& task, size_t number,
                                                          const sched::Trace& trace,
                                                          const target::Device& device);

 private:
  const codegen::Backend& backend_;
  std::string symbol_prefix_;
  std::mutex mutex_;
  std::map<std::pair<size_t, std::string>, std::shared_ptr<const codegen::BuiltKernel>>
      built_;  // by printed trace
};

}  // namespace tensorsmith::engine
