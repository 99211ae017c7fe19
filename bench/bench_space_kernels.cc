// Measures the compiled programs of a design space, the default candidate and the best of some samples,
// and the time of code generation for them. There is no cost model: the benchmark evaluates the space
// and the code generator together.
//
//   bench_space_kernels [WORKLOAD] [DEVICE] [SAMPLES]
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <string>

#include "ir/text.h"
#include "runnable_kernel.h"
#include "space/design_space.h"
#include "support/standard_workloads.h"

namespace tensorsmith {
namespace {

double best_seconds(bench::RunnableKernel& kernel, runtime::KernelPool& pool) {
  constexpr double kSlow = 0.1;
  const double first = kernel.run(pool);
  return first > kSlow ? first : std::min(first, kernel.best_of(4, pool));
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
  runtime::KernelPool pool(device->cpu().cores);
  std::printf("%-12s %12s %12s %10s %10s %10s %6s\n", "workload", "default GF/s", "best GF/s", "median",
              "codegen ms", "worst ms", "failed");
  for (const auto& [name, workload] : workloads) {
    if (which != "all" && which != name) continue;
    const auto space = space::DesignSpace::build(workload(), *device, {});
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
    ir::Program slowest_program;  // the program with the slowest code generation
    double best_rate = 0;
    for (int s = 0; s <= samples; ++s) {
      const auto kernel = bench::RunnableKernel::build(
          *space, s == 0 ? space->default_candidate() : space->sample(rng), *device);
      if (!kernel.ok()) {
        if (failed++ == 0) std::printf("  %s\n", kernel.error().message().c_str());
        continue;
      }
      const double rate = flops / best_seconds(**kernel, pool);
      if (s == 0) default_rate = rate;
      rates.push_back(rate);
      if (times.empty() || (*kernel)->codegen_ms() > *std::max_element(times.begin(), times.end()))
        slowest_program = (*kernel)->program();
      times.push_back((*kernel)->codegen_ms());
      if (rate > best_rate) {
        best_rate = rate;
        best_program = (*kernel)->program();
      }
      if (which != "all" && s == 0) std::printf("default:\n%s\n", ir::print((*kernel)->program()).c_str());
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
