#include "engine/kernel_cache.h"

namespace tensorsmith::engine {

Result<std::shared_ptr<const BuiltTask>> KernelCache::get(const graph::Task& task, size_t number,
                                                          const sched::Trace& trace,
                                                          const target::Device& device) {
  const std::pair key(number, sched::print(trace));
  {
    std::lock_guard lock(mutex_);
    if (const auto it = built_.find(key); it != built_.end()) return it->second;
  }
  TS_ASSIGN_OR_RETURN(const sched::Schedule schedule, sched::replay(task.workload, trace));
  auto built = std::make_shared<BuiltTask>();
  const std::string symbol = "task_" + std::to_string(number);
  TS_ASSIGN_OR_RETURN(built->lowered, lower::lower(schedule, symbol));
  codegen::CodegenOptions options;
  options.symbol = symbol;
  TS_ASSIGN_OR_RETURN(built->kernel, backend_.compile(built->lowered.program, device, options));
  std::lock_guard lock(mutex_);
  return built_.emplace(key, std::move(built)).first->second;
}

}  // namespace tensorsmith::engine
