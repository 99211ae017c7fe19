// Cache of built kernels, shared by several compilations of one model.
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

// Cache for one model and device. A kernel is identified by the task's number and its schedule; its
// symbol is `symbol_prefix` followed by the number.
class KernelCache {
 public:
  KernelCache(const codegen::Backend& backend, std::string symbol_prefix)
      : backend_(backend), symbol_prefix_(std::move(symbol_prefix)) {}
  // Returns the kernel, building it if it is missing. Thread-safe.
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
