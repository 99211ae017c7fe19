#include "sampled_kernels.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "base/statistics.h"
#include "codegen/backend.h"
#include "lower/lower.h"
#include "runnable_kernel.h"
#include "space/design_space.h"
#include "support/standard_workloads.h"

namespace tensorsmith::bench {
namespace {

struct Operator {
  std::string name;
  ir::Workload workload;
};

std::vector<Operator> operators() {
  using test::standard::conv2d_bias_relu;
  return {{"conv3x3", conv2d_bias_relu({.h = 56, .w = 56, .ci = 64, .co = 64})},
          {"conv1x1", conv2d_bias_relu({.h = 56, .w = 56, .ci = 64, .co = 256, .kh = 1, .kw = 1, .pad = 0})},
          {"conv3x3_14", conv2d_bias_relu({.h = 14, .w = 14, .ci = 256, .co = 256})},
          {"matmul", test::standard::matmul(512, 512, 512)},
          {"dense", test::standard::dense_bias_relu(128, 512, 512)},
          {"depthwise", test::standard::depthwise_conv2d({.h = 56, .w = 56, .ci = 96})}};
}

struct Options {
  std::vector<std::string> names;
  int samples = 24;
  int repeat = 1;
  uint64_t seed = 1;
  std::string device = "local:threads=1";
  bool each = false;
  std::string save;
  std::string against;
};

Result<ir::Program> program_of(const space::DesignSpace& space, const space::Candidate& candidate) {
  TS_ASSIGN_OR_RETURN(const sched::Trace trace, space.to_trace(candidate));
  TS_ASSIGN_OR_RETURN(const sched::Schedule schedule, sched::replay(space.workload(), trace));
  TS_ASSIGN_OR_RETURN(const lower::LoweredProgram lowered, lower::lower(schedule));
  return lowered.program;
}

// Writes the kernel's workspace sizes, then its object file.
Status save(const std::string& path, const codegen::CompiledKernel& kernel) {
  std::ofstream out(path, std::ios::binary);
  out << kernel.shared_workspace_bytes << " " << kernel.thread_workspace_bytes << "\n";
  out.write(kernel.object.data(), static_cast<std::streamsize>(kernel.object.size()));
  if (!out.flush()) return Error{ErrorCode::kIo, path, "cannot be written"};
  return {};
}

Result<codegen::CompiledKernel> restore(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  codegen::CompiledKernel kernel;
  kernel.symbol = codegen::CodegenOptions().symbol;
  if (!(in >> kernel.shared_workspace_bytes >> kernel.thread_workspace_bytes) || in.get() != '\n')
    return Error{ErrorCode::kNotFound, path, "no saved kernel; run another build with --save first"};
  kernel.object.assign(std::istreambuf_iterator<char>(in), {});
  return kernel;
}

// Returns the fastest run of each kernel. The kernels run in turn: at least 10 rounds, up to 200 rounds
// while the runs took less than 0.15 s in total.
std::pair<double, double> race(RunnableKernel& ours, RunnableKernel& theirs) {
  runtime::KernelPool pool(1);
  double a = 1e9, b = 1e9, spent = 0;
  for (int round = 0; round < 200 && (round < 10 || spent < 0.15); ++round) {
    const bool first = round % 2 == 0;
    const double x = (first ? ours : theirs).run(pool), y = (first ? theirs : ours).run(pool);
    a = std::min(a, first ? x : y);
    b = std::min(b, first ? y : x);
    spent += x + y;
  }
  return {a, b};
}

double geometric_mean(const std::vector<double>& values) {
  double sum = 0;
  for (const double v : values) sum += std::log(v);
  return values.empty() ? 0 : std::exp(sum / static_cast<double>(values.size()));
}

Status run_operator(const Operator& op, const target::Device& device, const Options& options) {
  TS_ASSIGN_OR_RETURN(const space::DesignSpace space, space::DesignSpace::build(op.workload, device, {}));
  // Compiles one program first: the setup once per process and thread must not count for a candidate.
  TS_ASSIGN_OR_RETURN(const ir::Program warm_up, program_of(space, space.default_candidate()));
  TS_RETURN_IF_ERROR(codegen::default_backend().compile(warm_up, device, {}));

  Rng rng(options.seed);
  std::vector<double> milliseconds, kilobytes;
  std::vector<std::pair<double, double>> raced;  // seconds of the other build's kernel, our seconds / those
  int failed = 0;
  for (int s = 0; s < options.samples; ++s) {
    const auto program = program_of(space, space.sample(rng));
    if (!program.ok()) {
      ++failed;
      continue;
    }
    const double start = now(1);
    TS_ASSIGN_OR_RETURN(const codegen::CompiledKernel kernel,
                        codegen::default_backend().compile(*program, device, {}));
    double least = now(1) - start;
    for (int r = 1; r < options.repeat; ++r) {
      const double again = now(1);
      TS_RETURN_IF_ERROR(codegen::default_backend().compile(*program, device, {}));
      least = std::min(least, now(1) - again);
    }
    milliseconds.push_back(1e3 * least);
    kilobytes.push_back(1e-3 * static_cast<double>(kernel.object.size()));
    const std::string file = "/" + op.name + "-" + std::to_string(s) + ".kernel";
    if (!options.save.empty()) TS_RETURN_IF_ERROR(save(options.save + file, kernel));
    if (options.each)
      std::printf("%s-%d: %.2f ms, %.1f kB\n", op.name.c_str(), s, milliseconds.back(), kilobytes.back());
    if (options.against.empty()) continue;
    TS_ASSIGN_OR_RETURN(codegen::CompiledKernel other, restore(options.against + file));
    TS_ASSIGN_OR_RETURN(const auto ours, RunnableKernel::load(*program, kernel));
    TS_ASSIGN_OR_RETURN(const auto theirs, RunnableKernel::load(*program, std::move(other)));
    const auto [x, y] = race(*ours, *theirs);
    raced.emplace_back(y, x / y);
    if (options.each) std::printf("  runs %.1f us, the other %.1f us: %.3f\n", 1e6 * x, 1e6 * y, x / y);
  }
  if (milliseconds.empty())
    return Error{ErrorCode::kUnsupported, op.name, "none of the sampled programs can be built"};
  std::printf("%-12s %7.2f %7.2f %7.2f %8.1f %6d", op.name.c_str(), median(milliseconds),
              std::accumulate(milliseconds.begin(), milliseconds.end(), 0.0) /
                  static_cast<double>(milliseconds.size()),
              *std::max_element(milliseconds.begin(), milliseconds.end()), median(kilobytes), failed);
  if (!raced.empty()) {
    std::sort(raced.begin(), raced.end());
    std::vector<double> all, fast;
    for (const auto& [seconds, ratio] : raced) all.push_back(ratio);
    fast.assign(all.begin(), all.begin() + static_cast<std::ptrdiff_t>((all.size() + 4) / 5));
    std::printf("   %.3f %.3f (%.2f .. %.2f)   %.3f %.3f   %.3f", geometric_mean(all), median(all),
                *std::min_element(all.begin(), all.end()), *std::max_element(all.begin(), all.end()),
                geometric_mean(fast), median(fast), all.front());
  }
  std::printf("\n");
  std::fflush(stdout);
  return {};
}

}  // namespace

int run_sampled(int argc, char** argv) {
  Options options;
  for (int a = 0; a < argc; ++a) {
    const std::string word = argv[a];
    if (word == "--each") {
      options.each = true;
      continue;
    }
    const char* value = word.starts_with("--") && a + 1 < argc ? argv[++a] : nullptr;
    if (!word.starts_with("--")) {
      options.names.push_back(word);
    } else if (word == "--samples" && value != nullptr && std::atoi(value) > 0) {
      options.samples = std::atoi(value);
    } else if (word == "--repeat" && value != nullptr && std::atoi(value) > 0) {
      options.repeat = std::atoi(value);
    } else if (word == "--seed" && value != nullptr) {
      options.seed = std::strtoull(value, nullptr, 10);
    } else if (word == "--device" && value != nullptr) {
      options.device = value;
    } else if (word == "--save" && value != nullptr) {
      options.save = value;
    } else if (word == "--against" && value != nullptr) {
      options.against = value;
    } else {
      std::fprintf(
          stderr,
          "usage: bench_codegen sampled [OPERATOR...] [--samples N] [--repeat N] [--seed S] [--device D] "
          "[--each] [--save DIR] [--against DIR]\n");
      return 2;
    }
  }
  const auto device = target::find_device(options.device);
  if (!device.ok()) {
    std::fprintf(stderr, "%s\n", device.error().message().c_str());
    return 1;
  }
  if (!options.save.empty()) std::filesystem::create_directories(options.save);
  std::printf("%-12s %7s %7s %7s %8s %6s", "operator", "median", "mean", "max ms", "kB", "failed");
  if (!options.against.empty())
    std::printf("   run time by the other's: mean median (range)   fastest fifth: mean median   fastest");
  std::printf("\n");
  for (const Operator& op : operators()) {
    if (!options.names.empty() &&
        std::find(options.names.begin(), options.names.end(), op.name) == options.names.end())
      continue;
    const Status status = run_operator(op, *device, options);
    if (!status.ok()) {
      std::fprintf(stderr, "%s: %s\n", op.name.c_str(), status.error().message().c_str());
      return 1;
    }
  }
  return 0;
}

}  // namespace tensorsmith::bench
