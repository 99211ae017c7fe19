#include "runtime/device/canary.h"

namespace tensorsmith::runtime {
namespace {

constexpr int64_t kBlocks = 8, kThreads = 64;

// out[i] = 3 * i + 1, for compute capability 5.0 and newer: the driver compiles it to machine code.
constexpr std::string_view kCanaryPtx = R"(
.version 6.0
.target sm_50
.address_size 64
.visible .entry canary(.param .u64 canary_out)
{
  .reg .b32 %r<6>;
  .reg .b64 %rd<5>;
  ld.param.u64 %rd1, [canary_out];
  cvta.to.global.u64 %rd2, %rd1;
  mov.u32 %r1, %tid.x;
  mov.u32 %r2, %ctaid.x;
  mov.u32 %r3, %ntid.x;
  mad.lo.s32 %r4, %r2, %r3, %r1;
  mad.lo.s32 %r5, %r4, 3, 1;
  mul.wide.u32 %rd3, %r4, 4;
  add.s64 %rd4, %rd2, %rd3;
  st.global.u32 [%rd4], %r5;
  ret;
}
)";
constexpr std::string_view kCanaryOpenCl =
    "kernel void canary(global int* out) { out[get_global_id(0)] = 3 * (int)get_global_id(0) + 1; }\n";

}  // namespace

Status run_canary(Gpu& gpu) {
  TS_ASSIGN_OR_RETURN(const auto module,
                      gpu.load(gpu.properties().api == GpuApi::kCuda ? kCanaryPtx : kCanaryOpenCl));
  std::vector<int32_t> values(static_cast<size_t>(kBlocks * kThreads));
  TS_ASSIGN_OR_RETURN(const auto memory,
                      gpu.allocate(static_cast<int64_t>(values.size() * sizeof values.front())));
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
