#include "engine/model/kernel_cache.h"

namespace tensorsmith::engine {

Result<std::shared_ptr<const codegen::BuiltKernel>> KernelCache::get(const graph::Task& task, size_t number,
                                                                     const sched::Trace& trace,
                                                                     const target::Device& device) {
  const std::pair key(number, sched::print(trace));
  {
    std::lock_guard lock(mutex_);
    if (const auto it = built_.find(key); it != built_.end()) return it->second;
  }
  codegen::CodegenOptions options;
  options.symbol = symbol_prefix_ + std::to_string(number);
  TS_ASSIGN_OR_RETURN(auto built, codegen::build(task.workload, trace, device, backend_, options));
  auto shared = std::make_shared<const codegen::BuiltKernel>(std::move(built));
  std::lock_guard lock(mutex_);
  return built_.emplace(key, std::move(shared)).first->second;
}

}  // namespace tensorsmith::engine
