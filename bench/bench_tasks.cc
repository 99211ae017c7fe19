// Compares the untuned schedule of each task, its default candidate, with the best of a short measured
// search around it. A large difference means that the analytic model is wrong or that sampling misses
// the good candidates.
//
//   bench_tasks MODEL.onnx|gemm:MxNxK|batch:BxMxNxK|conv:CIxHxWxCO [--task PART] [--sketch PART]
//               [--samples N] [--threads T] [--isa NAME] [--show] [--log]
//
// conv: 3x3, stride 1, padding 1, bias and relu. --sketch admits only candidates of sketches whose
// description contains PART, and replaces the default candidate by the best of them by the analytic
// model. --show prints the decisions and the loop program of both candidates, --log every candidate that
// was measured.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

#include "candidate_text.h"
#include "engine/model/load_model.h"
#include "ir/text.h"
#include "runnable_kernel.h"
#include "space/design_space.h"
#include "support/standard_workloads.h"

namespace tensorsmith {
namespace {

using bench::RunnableKernel;

struct Entry {
  std::string name;
  ir::Workload workload;
  int calls = 1;
};

Result<std::vector<Entry>> load(const std::string& what, const target::Device& device) {
  std::vector<Entry> entries;
  long long a = 0, b = 0, c = 0, d = 0;
  if (std::sscanf(what.c_str(), "gemm:%lldx%lldx%lld", &a, &b, &c) == 3) {
    entries.push_back({what, test::standard::matmul(a, b, c)});
  } else if (std::sscanf(what.c_str(), "batch:%lldx%lldx%lldx%lld", &a, &b, &c, &d) == 4) {
    entries.push_back({what, test::standard::batch_matmul(a, b, c, d)});
  } else if (std::sscanf(what.c_str(), "conv:%lldx%lldx%lldx%lld", &a, &b, &c, &d) == 4) {
    test::standard::Conv2d conv;
    conv.ci = a;
    conv.h = b;
    conv.w = c;
    conv.co = d;
    entries.push_back({what, test::standard::conv2d_bias_relu(conv)});
  } else {
    engine::ModelSource options;
    options.path = what;
    TS_ASSIGN_OR_RETURN(engine::LoadedModel model, engine::load_model(options, device));
    for (auto& task : model.partition.tasks)
      entries.push_back({task.name, std::move(task.workload), task.calls});
  }
  return entries;
}

// Returns the candidate with the least estimate among samples and mutations whose sketch's description
// contains `sketch`; none if no sample has such a sketch.
std::optional<space::Candidate> best_estimated(const space::DesignSpace& space, const std::string& sketch,
                                               Rng& rng) {
  std::optional<space::Candidate> best;
  const auto consider = [&](const space::Candidate& c) {
    if (space.describe(c.sketch).find(sketch) == std::string::npos) return;
    if (!best || space.estimate(c) < space.estimate(*best)) best = c;
  };
  for (int i = 0; i < 3000; ++i) consider(space.sample(rng));
  for (int i = 0; best && i < 3000; ++i) consider(space.mutate(*best, rng));
  return best;
}

int run(int argc, char** argv) {
  std::string model, part, sketch, isa;
  int samples = 0, threads = 1;
  bool show = false, log = false;
  for (int i = 1; i < argc; ++i) {
    const std::string arg = argv[i];
    if (arg == "--show") {
      show = true;
    } else if (arg == "--log") {
      log = true;
    } else if (arg == "--sketch" && i + 1 < argc) {
      sketch = argv[++i];
    } else if (arg == "--task" && i + 1 < argc) {
      part = argv[++i];
    } else if (arg == "--samples" && i + 1 < argc) {
      samples = std::atoi(argv[++i]);
    } else if (arg == "--threads" && i + 1 < argc) {
      threads = std::atoi(argv[++i]);
    } else if (arg == "--isa" && i + 1 < argc) {
      isa = std::string(":isa=") + argv[++i];
    } else {
      model = arg;
    }
  }
  const auto device = target::find_device("local:threads=" + std::to_string(threads) + isa);
  const auto entries = device.ok() ? load(model, *device) : device.error();
  if (!device.ok() || !entries.ok()) {
    std::fprintf(stderr, "%s\n",
                 device.ok() ? entries.error().message().c_str() : device.error().message().c_str());
    return 1;
  }
  runtime::KernelPool pool(threads);
  std::printf("%-36s %5s %10s %8s %8s %9s %9s %9s\n", "task", "calls", "default us", "GFLOP/s", "build ms",
              "best us", "GFLOP/s", "estimated");
  double total = 0, best_total = 0;
  for (const Entry& entry : *entries) {
    if (entry.name.find(part) == std::string::npos) continue;
    const auto space = space::DesignSpace::build(entry.workload, *device, {});
    if (!space.ok()) continue;
    const double flops = ir::flop_count(entry.workload);
    Rng rng(1);
    space::Candidate first = space->default_candidate();
    if (!sketch.empty()) {
      const auto chosen = best_estimated(*space, sketch, rng);
      if (!chosen) continue;
      first = *chosen;
    }
    auto kernel = RunnableKernel::build(*space, first, *device);
    if (!kernel.ok()) {
      std::printf("%-36s %s\n", entry.name.c_str(), kernel.error().message().c_str());
      continue;
    }
    double first_seconds = (*kernel)->best_of(5, pool);
    space::Candidate best = first;
    auto best_kernel = RunnableKernel::build(*space, first, *device).value();
    double best_seconds = first_seconds;
    for (int s = 0; s < samples; ++s) {
      const auto c = s % 4 == 0 ? space->sample(rng) : space->mutate(best, rng);
      if (space->describe(c.sketch).find(sketch) == std::string::npos) continue;
      auto other = RunnableKernel::build(*space, c, *device);
      if (!other.ok()) continue;
      double seconds = (*other)->best_of(3, pool);
      if (log)
        std::printf("  %.1f us, estimated %.1f, built in %.1f ms: %s\n", seconds * 1e6,
                    space->estimate(c) * 1e6, (*other)->codegen_ms(),
                    bench::candidate_text(*space, c, " ").c_str());
      if (seconds > best_seconds * 1.02) continue;
      seconds = std::min(seconds, (*other)->best_of(7, pool));
      if (seconds >= best_seconds) continue;
      best_seconds = seconds;
      best = c;
      best_kernel = std::move(other).value();
    }
    // The runs are interleaved, so that other load on the machine affects both kernels.
    for (int r = 0; r < 10; ++r) {
      first_seconds = std::min(first_seconds, (*kernel)->best_of(2, pool));
      best_seconds = std::min(best_seconds, best_kernel->best_of(2, pool));
    }
    std::printf("%-36s %5d %10.1f %8.1f %8.1f %9.1f %9.1f %9.1f\n", entry.name.c_str(), entry.calls,
                first_seconds * 1e6, flops / first_seconds * 1e-9, (*kernel)->codegen_ms(),
                best_seconds * 1e6, flops / best_seconds * 1e-9, space->estimate(first) * 1e6);
    std::fflush(stdout);
    total += entry.calls * first_seconds;
    best_total += entry.calls * best_seconds;
    if (show) {
      std::printf("default: %s\n%s\n", bench::candidate_text(*space, first, "\n    ").c_str(),
                  ir::print((*kernel)->program()).c_str());
      if (samples > 0)
        std::printf("best (estimated %.1f us): %s\n%s\n", space->estimate(best) * 1e6,
                    bench::candidate_text(*space, best, "\n    ").c_str(),
                    ir::print(best_kernel->program()).c_str());
    }
  }
  std::printf("%-36s %5s %10.1f %8s %8s %9.1f\n", "all calls", "", total * 1e6, "", "", best_total * 1e6);
  return 0;
}

}  // namespace
}  // namespace tensorsmith

int main(int argc, char** argv) { return tensorsmith::run(argc, argv); }
