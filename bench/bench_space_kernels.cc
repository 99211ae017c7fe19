// The speed of the design space's programs as compiled: the default candidate and the best of some samples,
// and what code generation costs for them. No cost model: this looks at the space and the code generator
// together.
//
//   bench_space_kernels [WORKLOAD] [DEVICE] [SAMPLES]
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <map>
#include <memory>
#include <string>

#include "codegen/backend.h"
#include "ir/text.h"
#include "lower/lower.h"
#include "runtime/kernel_pool.h"
#include "space/design_space.h"
#include "support/standard_workloads.h"

namespace tensorsmith {
namespace {

struct Kernel {
  lower::LoweredProgram lowered;
  codegen::CompiledKernel compiled;
  std::unique_ptr<codegen::LoadedKernel> loaded;
  double cpu_ms = 0;
};

Result<Kernel> make(const space::DesignSpace& space, const space::Candidate& candidate,
                    const target::Device& device) {
  Kernel kernel;
  TS_ASSIGN_OR_RETURN(const sched::Trace trace, space.to_trace(candidate));
  TS_ASSIGN_OR_RETURN(const sched::Schedule schedule, sched::replay(space.workload(), trace));
  TS_ASSIGN_OR_RETURN(kernel.lowered, lower::lower(schedule));
  const std::clock_t begin = std::clock();
  TS_ASSIGN_OR_RETURN(kernel.compiled,
                      codegen::default_backend().compile(kernel.lowered.program, device, {}));
  kernel.cpu_ms = 1e3 * static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
  TS_ASSIGN_OR_RETURN(kernel.loaded,
                      codegen::default_backend().load(kernel.compiled.object, kernel.compiled.symbol));
  return kernel;
}

double best_seconds(const Kernel& kernel, int threads, int rounds) {
  const ir::Program& program = kernel.lowered.program;
  std::vector<std::unique_ptr<char, void (*)(void*)>> blocks;
  const auto block = [&](int64_t bytes) {
    void* p = std::aligned_alloc(64, static_cast<size_t>((bytes + 127) / 64 * 64));
    std::fill_n(static_cast<float*>(p), bytes / 4, 0.25F);
    blocks.emplace_back(static_cast<char*>(p), &std::free);
    return p;
  };
  std::vector<void*> buffers;
  for (const auto* list : {&program.inputs, &program.outputs})
    for (const ir::Buffer& b : *list) buffers.push_back(block(b->num_elements() * ir::bytes_of(b->dtype)));
  runtime::KernelPool pool(threads);
  TensorsmithKernelContext context{};
  context.parallel_for = &runtime::KernelPool::parallel_for_abi;
  context.pool = &pool;
  context.num_threads = threads;
  context.shared_workspace = block(kernel.compiled.shared_workspace_bytes);
  context.thread_workspace_stride = (kernel.compiled.thread_workspace_bytes + 63) / 64 * 64;
  context.thread_workspace = block(context.thread_workspace_stride * threads);
  double best = 1e9;
  for (int r = 0; r < rounds; ++r) {
    const auto start = std::chrono::steady_clock::now();
    kernel.loaded->function()(&context, buffers.data());
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count());
    if (best > 0.1) break;
  }
  return best;
}

int run(int argc, char** argv) {
  const std::map<std::string, std::function<ir::Workload()>> workloads = {
      {"matmul", [] { return test::standard::matmul(512, 512, 512); }},
      {"dense", [] { return test::standard::dense_bias_relu(128, 512, 512); }},
      {"conv", [] { return test::standard::conv2d_bias_relu({.h = 56, .w = 56, .ci = 64, .co = 64}); }},
      {"conv_stride",
       [] { return test::standard::conv2d_bias_relu({.h = 56, .w = 56, .ci = 64, .co = 128, .stride = 2}); }},
      {"depthwise", [] { return test::standard::depthwise_conv2d({.h = 56, .w = 56, .ci = 96}); }},
      {"softmax", [] { return test::standard::softmax(512, 512); }},
      {"layernorm", [] { return test::standard::layernorm(512, 512); }},
      {"pool", [] { return test::standard::max_pool(1, 64, 112, 112, 3, 2, 1); }}};
  const std::string which = argc > 1 ? argv[1] : "all";
  const auto device = target::find_device(argc > 2 ? argv[2] : "local:threads=1");
  const int samples = argc > 3 ? std::atoi(argv[3]) : 60;
  if (!device.ok()) {
    std::fprintf(stderr, "%s\n", device.error().message().c_str());
    return 1;
  }
  std::printf("%-12s %12s %12s %10s %10s %10s %6s\n", "workload", "default GF/s", "best GF/s", "median",
              "codegen ms", "worst ms", "failed");
  for (const auto& [name, workload] : workloads) {
    if (which != "all" && which != name) continue;
    const auto space = space::DesignSpace::build(workload(), *device, {.threads = device->cores});
    if (!space.ok()) {
      std::printf("%-12s %s\n", name.c_str(), space.error().message().c_str());
      continue;
    }
    const double flops = ir::flop_count(space->workload()) * 1e-9;
    Rng rng(1);
    std::vector<double> rates;
    std::vector<double> times;
    int failed = 0;
    double default_rate = 0;
    ir::Program best_program;
    ir::Program slowest_program;  // to generate code for
    double best_rate = 0;
    for (int s = 0; s <= samples; ++s) {
      const auto kernel = make(*space, s == 0 ? space->default_candidate() : space->sample(rng), *device);
      if (!kernel.ok()) {
        if (failed++ == 0) std::printf("  %s\n", kernel.error().message().c_str());
        continue;
      }
      const double rate = flops / best_seconds(*kernel, device->cores, 5);
      if (s == 0) default_rate = rate;
      rates.push_back(rate);
      if (times.empty() || kernel->cpu_ms > *std::max_element(times.begin(), times.end()))
        slowest_program = kernel->lowered.program;
      times.push_back(kernel->cpu_ms);
      if (rate > best_rate) {
        best_rate = rate;
        best_program = kernel->lowered.program;
      }
      if (which != "all" && s == 0) std::printf("default:\n%s\n", ir::print(kernel->lowered.program).c_str());
    }
    if (rates.empty()) continue;
    std::sort(rates.begin(), rates.end());
    std::sort(times.begin(), times.end());
    if (which != "all") std::printf("longest code generation:\n%s\n", ir::print(slowest_program).c_str());
    if (which != "all") std::printf("best:\n%s\n", ir::print(best_program).c_str());
    std::printf("%-12s %12.2f %12.2f %10.2f %10.2f %10.2f %6d\n", name.c_str(), default_rate, rates.back(),
                rates[rates.size() / 2], times[times.size() / 2], times.back(), failed);
  }
  return 0;
}

}  // namespace
}  // namespace tensorsmith

int main(int argc, char** argv) { return tensorsmith::run(argc, argv); }
