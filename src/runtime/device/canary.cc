#include "runtime/device/canary.h"

namespace tensorsmith::runtime {
namespace {

constexpr int64_t kBlocks = 8, kThreads = 64;

}  // namespace

Status run_canary(Gpu& gpu) {
  TS_ASSIGN_OR_RETURN(const auto module, gpu.load(gpu.properties().place.platform->canary_module));
  std::vector<int32_t> values(kBlocks * kThreads);
  TS_ASSIGN_OR_RETURN(const auto memory, gpu.allocate(values.size() * sizeof values.front()));
  TS_RETURN_IF_ERROR(gpu.fill(memory->all(), 0xFF));
  TS_ASSIGN_OR_RETURN(const auto sequence, gpu.make_sequence());
  const Launch launch{"canary", {kBlocks, 1, 1}, {kThreads, 1, 1}, 0, {{0, 0}}};
  const GpuSpan buffer = memory->all();
  TS_RETURN_IF_ERROR(sequence->add(*module, std::span(&launch, 1), std::span(&buffer, 1), {}));
  TS_RETURN_IF_ERROR(sequence->run());
  TS_RETURN_IF_ERROR(gpu.copy_out(memory->all(), values.data()));
  for (size_t i = 0; i < values.size(); ++i) {
    if (values[i] == 3 * static_cast<int32_t>(i) + 1) continue;
    return Error{ErrorCode::kMismatch, gpu.properties().name,
                 "does not compute: element " + std::to_string(i) + " of a known kernel is " +
                     std::to_string(values[i])};
  }
  return {};
}

}  // namespace tensorsmith::runtime
