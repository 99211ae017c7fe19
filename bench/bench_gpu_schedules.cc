// Samples schedules from the GPU design spaces of the tasks of zoo networks and compiles them to machine
// code for three NVIDIA architectures (Turing, Ampere, Hopper). No GPU is needed.
//
//   bench_gpu_schedules compile NVRTC_FOLDER PER_TASK SEED [MODEL...]
//       compiles PER_TASK schedules of each task for each architecture, the default candidate first.
//       MODEL is zoo:NAME, file.onnx, or tf32:MODEL for a model whose products are rounded to TF32;
//       without models, all networks of the zoo are used. Prints a line for each schedule that does not
//       compile. At the end it prints how many schedules the design space refused, how many code
//       generation refused, and how many NVRTC refused or compiled to a program that the device cannot
//       launch.
//   bench_gpu_schedules estimate DEVICE MODEL...
//       prints the estimated seconds of each model with untuned kernels: predictions to be recorded
//       before anything is measured.
#include <cstdio>
#include <cstdlib>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "codegen/build.h"
#include "codegen/cuda/codegen.h"
#include "codegen/cuda/nvrtc.h"
#include "engine/model/load_model.h"
#include "graph/zoo/zoo.h"
#include "space/design_space.h"
#include "target/target.h"

namespace tensorsmith {
namespace {

struct Counts {
  int sampled = 0, compiled = 0, refused_by_space = 0, refused_before = 0, refused_by_compiler = 0,
      too_large = 0, spilling = 0;
  double seconds = 0;
};

// Returns true if the compiled kernel needs more registers or shared memory than the device has.
bool exceeds(const codegen::CudaModule& module, const codegen::CompiledKernel& kernel,
             const target::Device& d) {
  for (const runtime::Launch& launch : kernel.launches) {
    const int64_t threads = launch.block[0] * launch.block[1] * launch.block[2];
    for (const codegen::KernelResources& r : module.kernels) {
      if (r.symbol != launch.symbol) continue;
      constexpr int64_t kWarp = 32,
                        kRegisterUnit = 8;  // allocation unit of registers: CUDA C++ Programming Guide
      const int64_t registers = (r.registers + kRegisterUnit - 1) / kRegisterUnit * kRegisterUnit *
                                ((threads + kWarp - 1) / kWarp * kWarp);
      if (registers > d.gpu().registers_per_block ||
          r.shared_bytes + launch.shared_bytes > d.gpu().shared_memory_per_block)
        return true;
    }
  }
  return false;
}

void compile_one(const graph::Task& task, const space::DesignSpace& space, const space::Candidate& candidate,
                 const target::Device& device, const codegen::Nvrtc& nvrtc, Counts& counts) {
  ++counts.sampled;
  const auto say = [&](const char* what, const Error& error) {
    std::printf("%s %s %s: %s\n", device.processor.c_str(), what, task.name.c_str(), error.message().c_str());
  };
  if (const Status ok = space.check(candidate); !ok.ok()) {
    ++counts.refused_by_space;
    return;
  }
  const auto trace = space.to_trace(candidate);
  if (!trace.ok()) return say("no trace", trace.error());
  const auto built = codegen::build(task.workload, *trace, device, codegen::cuda_text_backend(), {});
  if (!built.ok()) {
    ++counts.refused_before;
    return say("refused", built.error());
  }
  const std::vector<char>& text = built->kernel.object;
  const std::vector<std::string> flags = {"--fmad=false"};
  const auto module = nvrtc.compile(std::string(text.begin(), text.end()), device.processor, flags);
  if (!module.ok()) {
    ++counts.refused_by_compiler;
    return say("NVRTC", module.error());
  }
  ++counts.compiled;
  bool spills = false;
  for (const codegen::KernelResources& r : module->kernels) spills = spills || r.spill_store_bytes > 0;
  counts.spilling += spills ? 1 : 0;
  if (exceeds(*module, built->kernel, device)) {
    ++counts.too_large;
    say("too large",
        {ErrorCode::kResourceExhausted, "", "more registers or shared memory than the device has"});
  }
}

constexpr std::string_view kTf32 = "tf32:";

std::vector<engine::ModelSource> sources(const std::vector<std::string>& names) {
  std::vector<engine::ModelSource> models;
  for (const std::string& name : names) {
    engine::ModelSource source;
    source.tf32 = name.starts_with(kTf32);
    source.path = source.tf32 ? name.substr(kTf32.size()) : name;
    models.push_back(std::move(source));
  }
  return models;
}

Status estimate(const std::string& name, const std::vector<std::string>& models) {
  TS_ASSIGN_OR_RETURN(const target::Device device, target::find_device(name));
  for (const std::string& model : models) {
    TS_ASSIGN_OR_RETURN(const auto tasks, engine::load_tasks(sources({model})));
    double seconds = 0, flops = 0;
    for (const engine::SharedTask& shared : tasks) {
      TS_ASSIGN_OR_RETURN(const auto space, space::DesignSpace::build(shared.task.workload, device, {}));
      const int calls = shared.calls.front().second;
      seconds += calls * space.estimate(space.default_candidate());
      flops += calls * shared.task.flops;
    }
    constexpr double kMicro = 1e6, kTera = 1e-12;
    std::printf("%s %s: %.1f us, %.2f TFLOP/s\n", device.name.c_str(), model.c_str(), seconds * kMicro,
                flops / seconds * kTera);
  }
  return {};
}

Status run(const std::string& folder, int per_task, uint64_t seed, std::vector<std::string> networks) {
  const std::vector<std::string> folders = {folder};
  TS_ASSIGN_OR_RETURN(const auto nvrtc, codegen::Nvrtc::open(folders));
  if (networks.empty())
    for (const auto& network : graph::zoo::entries()) networks.push_back("zoo:" + std::string(network.name));
  TS_ASSIGN_OR_RETURN(const auto tasks, engine::load_tasks(sources(networks)));
  std::map<std::string, Counts> by_architecture;
  Rng rng(seed);
  for (const char* name : {"t4", "a100", "h100"}) {
    TS_ASSIGN_OR_RETURN(target::Device device, target::find_device(name));
    if (device.processor == "sm_90") device.processor = "sm_90a";
    Counts& counts = by_architecture[device.processor];
    for (const engine::SharedTask& shared : tasks) {
      TS_ASSIGN_OR_RETURN(const auto space, space::DesignSpace::build(shared.task.workload, device, {}));
      for (int i = 0; i < per_task; ++i)
        compile_one(shared.task, space, i == 0 ? space.default_candidate() : space.sample(rng), device,
                    *nvrtc, counts);
      std::fflush(stdout);
    }
  }
  std::printf("%zu tasks, %d schedules of each on each architecture, seed %llu, NVRTC %d.%d\n", tasks.size(),
              per_task, static_cast<unsigned long long>(seed), nvrtc->version().first,
              nvrtc->version().second);
  for (const auto& [architecture, c] : by_architecture) {
    std::printf(
        "%-7s sampled %d, refused by the space %d, by code generation %d, by NVRTC %d, compiled %d, of these "
        "too "
        "large for the device %d, with spilled registers %d\n",
        architecture.c_str(), c.sampled, c.refused_by_space, c.refused_before, c.refused_by_compiler,
        c.compiled, c.too_large, c.spilling);
  }
  return {};
}

}  // namespace
}  // namespace tensorsmith

int main(int argc, char** argv) {
  const std::string mode = argc > 1 ? argv[1] : "";
  tensorsmith::Status done;
  if (mode == "compile" && argc > 4) {
    done = tensorsmith::run(argv[2], std::atoi(argv[3]), std::strtoull(argv[4], nullptr, 10),
                            {argv + 5, argv + argc});
  } else if (mode == "estimate" && argc > 3) {
    done = tensorsmith::estimate(argv[2], {argv + 3, argv + argc});
  } else {
    std::fprintf(stderr,
                 "usage: bench_gpu_schedules compile NVRTC_FOLDER PER_TASK SEED [MODEL...]\n"
                 "       bench_gpu_schedules estimate DEVICE MODEL...\n");
    return 2;
  }
  if (done.ok()) return 0;
  std::fprintf(stderr, "bench_gpu_schedules: %s\n", done.error().message().c_str());
  return 1;
}
