#include "sched/device_limits.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>

#include "sched/relations.h"
#include "sched/tensor_cores.h"

namespace tensorsmith::sched {

namespace {

Error illegal(const Stage& stage, std::string reason) {
  return {ErrorCode::kIllegal, "stage '" + stage.op->name + "'", std::move(reason)};
}

// Returns 0, 1, 2 for threadIdx.x, y, z.
std::optional<size_t> thread_dimension(Annotation a) {
  switch (a) {
    case Annotation::kThreadX:
      return 0;
    case Annotation::kThreadY:
      return 1;
    case Annotation::kThreadZ:
      return 2;
    case Annotation::kNone:
    case Annotation::kUnroll:
    case Annotation::kVectorize:
    case Annotation::kParallel:
    case Annotation::kVThread:
    case Annotation::kBlockX:
    case Annotation::kBlockY:
    case Annotation::kBlockZ:
      return std::nullopt;
  }
  return std::nullopt;
}

struct Kernel {
  std::array<int64_t, 3> threads = {0, 0, 0};  // 0: axis not used
  bool bound = false;
  int64_t shared_bytes = 0;
};

// Returns the root stage whose loops enclose this stage (itself if it is at root).
StageId root_of(const Schedule& schedule, StageId s) {
  while (schedule.stages[s].attach == AttachKind::kAt) s = schedule.stages[s].attach_stage;
  return s;
}

int64_t most_vthreads(const target::Device& device) {
  const bool mma = has_mma(target::compute_capability(device), ir::DType::kF16, ir::DType::kF16);
  return std::max<int64_t>(device.gpu().max_vthread_extent, mma ? kMostMmaPairs : 0);
}

// Returns whether some loop around the attached stage satisfies the predicate.
template <class Predicate>
bool around(const Schedule& schedule, const Stage& stage, const Predicate& predicate) {
  const Stage* at = &stage;
  while (at->attach == AttachKind::kAt) {
    const Stage& target = schedule.stages[at->attach_stage];
    for (const IteratorId leaf : target.leaves) {
      if (predicate(target.iterators[leaf].annotation)) return true;
      if (leaf == at->attach_iterator) break;
    }
    at = &target;
  }
  return false;
}

}  // namespace

Status check_device_limits(const Schedule& schedule, const Bounds& bounds, const target::Device& device) {
  const bool gpu = device.kind() == target::DeviceKind::kGpu;
  IdVector<StageId, Kernel> kernels(schedule.stages.size());
  for (const StageId s : schedule.stages.ids()) {
    const Stage& stage = schedule.stages[s];
    if (stage.is_placeholder() || stage.attach == AttachKind::kInlined) continue;
    Kernel& kernel = kernels[root_of(schedule, s)];
    for (const IteratorId leaf : stage.leaves) {
      const Iterator& it = stage.iterators[leaf];
      if (it.annotation < Annotation::kVThread) continue;
      if (!gpu)
        return illegal(stage, "loop '" + it.name + "' is bound to " + std::string(to_string(it.annotation)) +
                                  ", but device '" + device.name + "' is a CPU");
      kernel.bound = true;
      const int64_t extent = bounds.stages[s].extents[leaf];
      if (it.annotation == Annotation::kVThread) {
        if (device.gpu().max_vthread_extent > 0 && extent > most_vthreads(device))
          return illegal(stage, "loop '" + it.name + "' has " + std::to_string(extent) +
                                    " virtual threads, but device '" + device.name + "' allows " +
                                    std::to_string(most_vthreads(device)));
        continue;
      }
      const auto axis = thread_dimension(it.annotation);
      if (!axis) continue;
      int64_t& threads = kernel.threads[*axis];
      if (threads != 0 && threads != extent)
        return illegal(stage, "loop '" + it.name + "' binds " + std::to_string(extent) + " iterations to " +
                                  std::string(to_string(it.annotation)) +
                                  ", but another loop of the kernel binds " + std::to_string(threads));
      threads = extent;
    }
    if (!gpu) continue;
    const ir::MemoryScope scope = memory_scope(schedule, s);
    if (scope == ir::MemoryScope::kGlobal) continue;
    if (stage.attach != AttachKind::kAt || !around(schedule, stage, is_block))
      return illegal(stage, "is in " + std::string(ir::to_string(scope)) +
                                " memory, but is not computed inside a loop bound to a block axis");
    if (scope == ir::MemoryScope::kShared) {
      for (const ir::Buffer& buffer : stage.op->outputs) {
        int64_t elements = 1;
        for (size_t a = 0; a < stage.op->spatial.size(); ++a) elements *= bounds.stages[s].root_extent[a];
        kernel.shared_bytes += ir::bytes_of(buffer->dtype, elements);
      }
    }
  }
  if (!gpu) return {};
  const target::GpuFigures& limits = device.gpu();
  for (const StageId s : schedule.stages.ids()) {
    const Stage& stage = schedule.stages[s];
    if (stage.is_placeholder() || stage.attach != AttachKind::kRoot) continue;
    const Kernel& kernel = kernels[s];
    if (!kernel.bound) return illegal(stage, "no loop of the kernel is bound to a GPU axis");
    int64_t threads = 1;
    for (int64_t extent : kernel.threads) threads *= extent == 0 ? 1 : extent;
    if (limits.max_threads_per_block > 0 && threads > limits.max_threads_per_block)
      return illegal(stage, "the kernel has " + std::to_string(threads) + " threads per block, but device '" +
                                device.name + "' allows " + std::to_string(limits.max_threads_per_block));
    if (limits.shared_memory_per_block > 0 && kernel.shared_bytes > limits.shared_memory_per_block)
      return illegal(stage, "the kernel needs " + std::to_string(kernel.shared_bytes) +
                                " bytes of shared memory per block, but device '" + device.name + "' has " +
                                std::to_string(limits.shared_memory_per_block));
  }
  return {};
}

}  // namespace tensorsmith::sched
