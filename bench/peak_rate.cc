#include "peak_rate.h"

#include <algorithm>
#include <chrono>
#include <vector>

#include "codegen/backend.h"

namespace tensorsmith::bench {
namespace {

using ir::Buffer;
using ir::DType;
using ir::Stmt;
using ir::Var;

constexpr int64_t kSteps = 200000;
constexpr int kRuns = 40;

Stmt loop(const Var& v, int64_t extent, Stmt body, ir::ForKind kind = ir::ForKind::kSerial) {
  return ir::make_for({v, extent, kind, ir::ThreadAxis::kNone, 0, std::move(body)});
}
Stmt vectorized(const Var& v, int64_t extent, Stmt body) {
  return loop(v, extent, std::move(body), ir::ForKind::kVectorized);
}

}  // namespace

PeakProgram peak_program(const target::Device& device) {
  const int64_t lanes = device.cpu().vector_bytes / 4;
  const int64_t chains = device.cpu().vector_registers >= 32 ? 24 : 12;
  const Buffer x = ir::make_buffer("x", DType::kF32, {lanes}), y = ir::make_buffer("y", DType::kF32, {lanes}),
               out = ir::make_buffer("out", DType::kF32, {chains, lanes});
  const Buffer acc = ir::make_buffer("acc", DType::kF32, {chains, lanes}, ir::MemoryScope::kLocal);
  const Var k("k"), c("c"), v("v"), c1("c1"), v1("v1"), c2("c2"), v2("v2");
  const Stmt init = loop(c1, chains, vectorized(v1, lanes, ir::make_store(acc, {c1, v1}, ir::load(x, {v1}))));
  const Stmt run = loop(
      k, kSteps,
      loop(c, chains,
           vectorized(
               v, lanes,
               ir::make_store(acc, {c, v}, ir::load(acc, {c, v}) * ir::load(x, {v}) + ir::load(y, {v})))));
  const Stmt write =
      loop(c2, chains, vectorized(v2, lanes, ir::make_store(out, {c2, v2}, ir::load(acc, {c2, v2}))));
  return {{"peak", {x, y}, {out}, ir::make_allocate(acc, ir::make_seq({init, run, write}))},
          2.0 * static_cast<double>(kSteps * chains * lanes)};
}

Result<double> measured_peak_gflops(const target::Device& device) {
  const PeakProgram peak = peak_program(device);
  TS_ASSIGN_OR_RETURN(const auto compiled, codegen::default_backend().compile(peak.program, device, {}));
  TS_ASSIGN_OR_RETURN(const auto kernel, codegen::default_backend().load(compiled.object, compiled.symbol));
  struct alignas(64) Line {
    float values[16];
  };
  const auto lines = [](int64_t bytes) { return std::vector<Line>(static_cast<size_t>(bytes / 64 + 2)); };
  std::vector<std::vector<Line>> blocks;
  std::vector<void*> buffers;
  for (const auto* list : {&peak.program.inputs, &peak.program.outputs}) {
    for (const Buffer& b : *list) {
      blocks.push_back(lines(b->num_elements() * 4));
      for (Line& line : blocks.back()) std::fill_n(line.values, 16, 0.5F);
      buffers.push_back(blocks.back().data());
    }
  }
  auto shared = lines(compiled.shared_workspace_bytes), own = lines(compiled.thread_workspace_bytes);
  TensorsmithKernelContext context{};
  context.num_threads = 1;
  context.shared_workspace = shared.data();
  context.thread_workspace = own.data();
  double best = 1e9;
  for (int run = 0; run < kRuns; ++run) {
    const auto start = std::chrono::steady_clock::now();
    kernel->function()(&context, buffers.data());
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
  }
  return peak.flops / best * 1e-9;
}

}  // namespace tensorsmith::bench
