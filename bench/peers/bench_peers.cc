// Compares single kernels with other libraries in one interleaved run.
//
//   bench_peers --threads 1,2 [--untuned | --tune-seconds S --db FILE] [--only gemm,resnet50] [--json FILE]
//
// For each case the outputs are compared first: every library's with Tensorsmith's, and Tensorsmith's
// with sums in double at sampled elements. Each round then runs all contenders in sequence, each for a
// slice of time, and each round starts with another contender. The ratio of a round is the peer's median
// latency divided by ours. Printed are its median over the rounds (> 1: Tensorsmith is faster) and its
// 10th and 90th percentile. "best" is the peer's fastest round divided by ours, which other programs on
// the machine disturb least.
#include <dlfcn.h>
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <fstream>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <thread>

#include "base/rng.h"
#include "ir/scalar.h"
#include "measure/measurer.h"
#include "our_model.h"
#include "peak_rate.h"
#include "peer.h"
#include "stderr_sink.h"

namespace tensorsmith::peers {
namespace {

struct Options {
  std::vector<int> threads = {1, 2};
  std::string isa = "native";
  std::vector<std::string> only;
  std::string filter;
  bool untuned = false;
  double tune_seconds = 10;
  std::string database = "bench_peers.db";
  int rounds = 11;
  double slice_ms = 12;
  std::string json;
  std::vector<std::string> peers;
  bool ansor = false;
};

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double quantile(std::vector<double> values, double q) {
  std::sort(values.begin(), values.end());
  const double position = q * static_cast<double>(values.size() - 1);
  const auto low = static_cast<size_t>(position);
  const size_t high = std::min(low + 1, values.size() - 1);
  return values[low] + (values[high] - values[low]) * (position - static_cast<double>(low));
}

// Returns random values that the element type represents exactly.
Floats random_floats(int64_t elements, double scale, Rng& rng, Element element = Element::kF32) {
  Floats out(static_cast<size_t>(elements));
  for (float& x : out) {
    x = static_cast<float>((rng.uniform() * 2 - 1) * scale);
    if (element == Element::kBF16) x = ir::bf16_to_f32(ir::f32_to_bf16(x));
  }
  return out;
}

// Computes one element of the result by its definition, in double.
double expected_gemm(const GemmCase& shape, const Floats& a, const Floats& b, int64_t element) {
  const int64_t j = element % shape.n, row = element / shape.n, batch = row / shape.m;
  double sum = 0;
  for (int64_t k = 0; k < shape.k; ++k)
    sum += double{a[static_cast<size_t>(row * shape.k + k)]} *
           double{b[static_cast<size_t>((batch * shape.k + k) * shape.n + j)]};
  return sum;
}

double expected_conv(const ConvCase& shape, const ConvData& data, int64_t element) {
  const int64_t o = shape.out_image(), x = element % o, y = element / o % o, channel = element / (o * o);
  const int64_t inputs = shape.ci / shape.groups;
  const int64_t first = channel / (shape.co / shape.groups) * inputs;
  double sum = double{data.bias[channel]};
  for (int64_t c = 0; c < inputs; ++c) {
    for (int64_t r = 0; r < shape.window; ++r) {
      for (int64_t s = 0; s < shape.window; ++s) {
        const int64_t h = y * shape.stride + r - shape.pad, w = x * shape.stride + s - shape.pad;
        if (h < 0 || h >= shape.image || w < 0 || w >= shape.image) continue;
        sum += double{data.input[((first + c) * shape.image + h) * shape.image + w]} *
               double{data.weights[((channel * inputs + c) * shape.window + r) * shape.window + s]};
      }
    }
  }
  if (shape.has_residual()) sum += double{data.residual[element]};
  if (shape.epilogue != Epilogue::kNone && shape.epilogue != Epilogue::kAdd) sum = std::max(sum, 0.0);
  if (shape.epilogue == Epilogue::kRelu6) sum = std::min(sum, 6.0);
  return sum;
}

// Absolute tolerance. Results are about one, since the weights are scaled so; it admits the larger
// rounding errors of Winograd convolutions.
constexpr double kAbsolute = 2e-3;

// Returns the relative tolerance of results stored as `element`.
double tolerance(Element element) { return element == Element::kBF16 ? 0x1p-6 : 2e-3; }

bool close(double got, double wanted, double relative) {
  return std::abs(got - wanted) <= kAbsolute + relative * std::abs(wanted);  // false for NaN
}

Status check_against_definition(const Floats& got, const std::function<double(int64_t)>& expected,
                                double relative, Rng& rng) {
  const auto elements = static_cast<int64_t>(got.size());
  for (int i = 0; i < 256; ++i) {
    const int64_t at = i == 0 ? 0 : i == 1 ? elements - 1 : static_cast<int64_t>(rng.below(got.size()));
    const double wanted = expected(at);
    if (!close(double{got[static_cast<size_t>(at)]}, wanted, relative)) {
      return Error{ErrorCode::kMismatch, "",
                   fmt::format("element {} is {}, expected {}", at, got[static_cast<size_t>(at)], wanted)};
    }
  }
  return {};
}

Status check_equal(const Floats& peer, const Floats& ours, double relative) {
  if (peer.size() != ours.size()) return Error{ErrorCode::kMismatch, "", "outputs differ in size"};
  for (size_t i = 0; i < ours.size(); ++i) {
    if (!close(double{peer[i]}, double{ours[i]}, relative)) {
      return Error{ErrorCode::kMismatch, "",
                   fmt::format("element {}: the peer has {}, we have {}", i, peer[i], ours[i])};
    }
  }
  return {};
}

struct Contender {
  std::string name;    // "OpenBLAS sgemm"
  std::string detail;  // chosen implementation
  std::function<void()> run;
  PeerKernel* peer = nullptr;  // null: Tensorsmith
};

// Waits until no other thread of this process computes: threads of libgomp spin for 8 ms after their last
// work, and would take up to half of a processor from the next contender.
void wait_for_idle_threads() {
  const auto processor_time = [] {
    timespec t{};
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
  };
  constexpr double kWindow = 1e-3;  // s
  for (int i = 0; i < 300; ++i) {
    const double before = processor_time();
    std::this_thread::sleep_for(std::chrono::duration<double>(kWindow));
    if (processor_time() - before < 0.1 * kWindow) return;
  }
}

// Returns the median seconds of a run over a slice of time. A warm-up of at least 10 ms goes first: it
// wakes the engine's threads and fills the caches, and a virtual processor that slept is slow for some
// milliseconds.
double time_slice(const Contender& contender, double seconds) {
  wait_for_idle_threads();
  if (contender.peer != nullptr) contender.peer->begin();
  const double warm = now() + std::max(seconds, 0.01);
  do contender.run();
  while (now() < warm);
  std::vector<double> times;
  const double end = now() + seconds;
  do {
    const double start = now();
    contender.run();
    times.push_back(now() - start);
  } while (times.size() < 3 || now() < end);
  if (contender.peer != nullptr) contender.peer->end();
  return quantile(times, 0.5);
}

struct Row {
  std::string group, name, peer, detail, algorithm;
  bool tuned = false;
  Element element = Element::kF32;
  int threads = 1, count = 1;
  double ratio = 0, p10 = 0, p90 = 0, best = 0, our_seconds = 0, peer_seconds = 0, flops = 0, peak = 0;
};

const char* group_of(const GemmCase& shape) { return shape.element == Element::kBF16 ? "gemm_bf16" : "gemm"; }

bool is_f32_convolution(const Row& row) { return row.group != "gemm" && row.element == Element::kF32; }

std::vector<Row> compare(const std::vector<Contender>& contenders, const Options& options) {
  std::vector<std::vector<double>> medians(contenders.size());
  for (int round = 0; round < options.rounds; ++round) {
    for (size_t i = 0; i < contenders.size(); ++i) {
      const size_t c = (i + static_cast<size_t>(round)) % contenders.size();
      medians[c].push_back(time_slice(contenders[c], options.slice_ms * 1e-3));
    }
  }
  std::vector<Row> rows;
  for (size_t c = 1; c < contenders.size(); ++c) {
    std::vector<double> ratios;
    for (size_t r = 0; r < medians[c].size(); ++r) ratios.push_back(medians[c][r] / medians[0][r]);
    Row row;
    row.peer = contenders[c].name;
    row.detail = contenders[c].detail;
    row.ratio = quantile(ratios, 0.5);
    row.p10 = quantile(ratios, 0.1);
    row.p90 = quantile(ratios, 0.9);
    row.best = quantile(medians[c], 0) / quantile(medians[0], 0);
    row.our_seconds = quantile(medians[0], 0.5);
    row.peer_seconds = quantile(medians[c], 0.5);
    rows.push_back(row);
  }
  return rows;
}

class Bench {
 public:
  Bench(const Options& options, std::vector<std::unique_ptr<Peer>> peers)
      : options_(options), peers_(std::move(peers)) {}

  Status run();
  Status run_ansor();
  void print_summary() const;
  Status write_json() const;

 private:
  bool wanted(const std::string& group, const std::string& name) const {
    const auto& only = options_.only;
    return (only.empty() || std::find(only.begin(), only.end(), group) != only.end()) &&
           (options_.filter.empty() || name.find(options_.filter) != std::string::npos);
  }
  Status set_threads(int threads);
  Status open_database();
  Status run_gemm(const GemmCase& shape);
  Status run_conv(const ConvCase& shape);
  Status run_case(Row row, const engine::LoadedModel& model, const std::vector<const Floats*>& inputs,
                  const std::function<double(int64_t)>& expected,
                  const std::function<PeerKernels(Peer&)>& make);
  Result<Chosen> tuned_or_not(const engine::LoadedModel& model);

  const Options& options_;
  std::vector<std::unique_ptr<Peer>> peers_;
  std::unique_ptr<record::Database> database_;
  target::Device device_;
  double peak_ = 0;  // GFLOP/s of all threads
  std::vector<Row> rows_;
  bench::StderrSink log_;
};

Status Bench::set_threads(int threads) {
  TS_ASSIGN_OR_RETURN(device_,
                      target::find_device(fmt::format("local:isa={}:threads={}", options_.isa, threads)));
  TS_ASSIGN_OR_RETURN(const double one, bench::measured_peak_gflops(device_));
  peak_ = one * threads;
  fmt::print("\n{} ({}, isa={}), {} thread{}: peak {:.0f} GFLOP/s (one core's, measured, times {})\n",
             device_.description, device_.processor, options_.isa, threads, threads > 1 ? "s" : "", peak_,
             threads);
  fmt::print("{:<44} {:<18} {:>6} {:>13} {:>6} {:>9} {:>8} {:>5} {:>8}  {}\n", "case", "peer", "ratio",
             "p10..p90", "best", "ours us", "GFLOP/s", "peak", "peer's",
             "ours: algorithm | peer's implementation");
  return {};
}

Status Bench::open_database() {
  if (!options_.untuned) {
    TS_ASSIGN_OR_RETURN(database_, record::Database::open(options_.database));
  }
  return {};
}

Status Bench::run() {
  TS_RETURN_IF_ERROR(open_database());
  for (const int threads : options_.threads) {
    TS_RETURN_IF_ERROR(set_threads(threads));
    for (const GemmCase& shape : gemm_cases())
      if (wanted(group_of(shape), shape.name())) TS_RETURN_IF_ERROR(run_gemm(shape));
    for (const ConvCase& shape : conv_cases())
      if (wanted(shape.network, shape.name())) TS_RETURN_IF_ERROR(run_conv(shape));
  }
  return {};
}

Result<Chosen> Bench::tuned_or_not(const engine::LoadedModel& model) {
  if (database_ && options_.tune_seconds > 0) {
    const TuneBudget budget{options_.tune_seconds, measure::this_program_as_worker()};
    TS_RETURN_IF_ERROR(tune(model, device_, budget, *database_, log_));
  }
  return choose(model, device_, database_.get());
}

Status Bench::run_case(Row row, const engine::LoadedModel& model, const std::vector<const Floats*>& inputs,
                       const std::function<double(int64_t)>& expected,
                       const std::function<PeerKernels(Peer&)>& make) {
  const auto in_case = [&](const Status& status) -> Status {
    if (status.ok()) return status;
    const Error& error = status.error();
    return Error{error.code, row.name + (error.place.empty() ? "" : ", " + error.place), error.reason};
  };
  auto chosen = tuned_or_not(model);
  if (!chosen.ok()) return in_case(chosen.error());
  auto ours = OurModel::compile(model, device_, *chosen, inputs);
  if (!ours.ok()) return in_case(ours.error());
  TS_RETURN_IF_ERROR(in_case((*ours)->run()));
  Rng rng(1);
  const double relative = tolerance(row.element);
  TS_RETURN_IF_ERROR(in_case(check_against_definition((*ours)->output(), expected, relative, rng)));

  PeerKernels kernels;
  std::vector<Contender> contenders = {{"tensorsmith", chosen->algorithm, [&] {
                                          const Status status = (*ours)->run();
                                          TS_CHECK(status.ok(), "a model that ran before");
                                        }}};
  for (const auto& peer : peers_) {
    for (auto& kernel : make(*peer)) {
      kernel->run();
      TS_RETURN_IF_ERROR(in_case(check_equal(kernel->output(), (*ours)->output(), relative)));
      contenders.push_back({peer->name() + " " + kernel->variant, kernel->detail,
                            [k = kernel.get()] { k->run(); }, kernel.get()});
      kernels.push_back(std::move(kernel));
    }
  }
  for (Row& result : compare(contenders, options_)) {
    result.group = row.group;
    result.name = row.name;
    result.count = row.count;
    result.flops = row.flops;
    result.threads = device_.cpu().cores;
    // The peak doubles for bf16 where an instruction for its products adds two of them.
    const bool twice = row.element == Element::kBF16 && target::has_dot2(device_);
    result.element = row.element;
    result.peak = twice ? 2 * peak_ : peak_;
    result.tuned = chosen->tuned;
    result.algorithm = chosen->algorithm;
    const double ours_rate = result.flops / result.our_seconds * 1e-9;
    fmt::print("{:<44} {:<18} {:>6.2f} {:>13} {:>6.2f} {:>9.1f} {:>8.1f} {:>4.0f}% {:>8.1f}  {}\n",
               result.group + " " + result.name, result.peer, result.ratio,
               fmt::format("{:.2f}..{:.2f}", result.p10, result.p90), result.best, result.our_seconds * 1e6,
               ours_rate, 100 * ours_rate / result.peak, result.flops / result.peer_seconds * 1e-9,
               result.algorithm + " | " + result.detail);
    std::fflush(stdout);
    rows_.push_back(std::move(result));
  }
  return {};
}

Status Bench::run_gemm(const GemmCase& shape) {
  Rng rng(1);
  const Floats a = random_floats(shape.a_elements(), 1, rng, shape.element);
  const Floats b =
      random_floats(shape.b_elements(), 3 / std::sqrt(static_cast<double>(shape.k)), rng, shape.element);
  TS_ASSIGN_OR_RETURN(const engine::LoadedModel model, gemm_model(shape, b));
  Row row;
  row.group = group_of(shape);
  row.element = shape.element;
  row.name = shape.name();
  row.flops = shape.flops();
  std::vector<const Floats*> inputs = {&a};
  if (!shape.constant_b) inputs.push_back(&b);
  return run_case(
      row, model, inputs, [&](int64_t at) { return expected_gemm(shape, a, b, at); },
      [&](Peer& peer) { return peer.gemm(shape, a.data(), b.data(), device_.cpu().cores); });
}

Status Bench::run_conv(const ConvCase& shape) {
  Rng rng(1);
  const double terms = static_cast<double>(shape.ci / shape.groups * shape.window * shape.window);
  const Element element = shape.element;
  const Floats input = random_floats(shape.input_elements(), 1, rng, element);
  const Floats weights = random_floats(shape.weight_elements(), 3 / std::sqrt(terms), rng, element);
  const Floats bias = random_floats(shape.co, 1, rng, element);
  const Floats residual = random_floats(shape.has_residual() ? shape.output_elements() : 0, 1, rng, element);
  const ConvData data = {input.data(), weights.data(), bias.data(),
                         shape.has_residual() ? residual.data() : nullptr};
  TS_ASSIGN_OR_RETURN(const engine::LoadedModel model, conv_model(shape, data));
  Row row;
  row.group = shape.network;
  row.element = element;
  row.name = shape.name();
  row.flops = shape.flops();
  row.count = shape.count;
  std::vector<const Floats*> inputs = {&input};
  if (shape.has_residual()) inputs.push_back(&residual);
  return run_case(
      row, model, inputs, [&](int64_t at) { return expected_conv(shape, data, at); },
      [&](Peer& peer) { return peer.conv(shape, data, device_.cpu().cores); });
}

// Tunes two workloads from nothing. Prints the seconds until the best program beats the one that TVM's
// Ansor found in 128 trials (about 285 s) on two cores of a slower machine, and the seconds until it is
// within 5 % of this run's final best.
Status Bench::run_ansor() {
  struct Case {
    std::string name;
    std::function<Result<engine::LoadedModel>()> model;
    double ansor_seconds;
  };
  Rng rng(1);
  const GemmCase gemm{1, 512, 512, 512, false};
  const ConvCase conv{"ansor", 1, 64, 64, 56, 3, 1, 1, 1, Epilogue::kRelu};
  const Floats input = random_floats(conv.input_elements(), 1, rng);
  const Floats weights = random_floats(conv.weight_elements(), 0.1, rng);
  const Floats bias = random_floats(conv.co, 1, rng);
  const ConvData data{input.data(), weights.data(), bias.data(), nullptr};
  const Case cases[] = {{"matmul 512x512x512", [&] { return gemm_model(gemm, {}); }, 2.45e-3},
                        {"conv2d 1x64x56x56 -> 64, 3x3", [&] { return conv_model(conv, data); }, 2.43e-3}};
  TS_ASSIGN_OR_RETURN(device_, target::find_device(fmt::format("local:isa={}:threads=2", options_.isa)));
  fmt::print("\nTuning from nothing for {:.0f} s, 2 threads\n{:<32} {:>10} {:>10} {:>16} {:>22}\n",
             options_.tune_seconds, "task", "Ansor's", "our best", "s to beat Ansor", "s to 5 % of our best");
  for (const Case& c : cases) {
    TS_ASSIGN_OR_RETURN(const auto model, c.model());
    TS_ASSIGN_OR_RETURN(const auto database, record::Database::open(":memory:"));
    const TuneBudget budget{options_.tune_seconds, measure::this_program_as_worker()};
    TS_ASSIGN_OR_RETURN(const auto history, tune(model, device_, budget, *database, log_));
    if (history.empty())
      return Error{ErrorCode::kResourceExhausted, c.name, "nothing was measured in the time"};
    const double best = history.back().seconds;
    const auto first_below = [&](double seconds) {
      for (const BestKnown& known : history)
        if (known.seconds <= seconds) return fmt::format("{:.2f}", known.elapsed);
      return std::string("never");
    };
    fmt::print("{:<32} {:>7.2f} ms {:>7.3f} ms {:>16} {:>22}\n", c.name, c.ansor_seconds * 1e3, best * 1e3,
               first_below(c.ansor_seconds), first_below(1.05 * best));
  }
  return {};
}

void Bench::print_summary() const {
  struct Sum {
    double logs = 0, best_logs = 0, ours = 0, theirs = 0, worst = 1e9;
    int rows = 0;
    std::string worst_name;
  };
  std::map<std::tuple<int, std::string, std::string>, Sum> sums;
  const auto add = [&](const std::string& group, const std::string& peer, const Row& row) {
    Sum& sum = sums[{row.threads, group, peer}];
    sum.logs += std::log(row.ratio);
    sum.best_logs += std::log(row.best);
    sum.ours += row.count * row.our_seconds;
    sum.theirs += row.count * row.peer_seconds;
    ++sum.rows;
    if (row.ratio < sum.worst) {
      sum.worst = row.ratio;
      sum.worst_name = row.name;
    }
  };
  // For each case, the row of the fastest library and variant.
  std::map<std::tuple<int, std::string, std::string>, Row> best;
  for (const Row& row : rows_) {
    add(row.group, row.peer, row);
    if (is_f32_convolution(row)) add("all convolutions", row.peer, row);
    const auto [it, fresh] = best.emplace(std::make_tuple(row.threads, row.group, row.name), row);
    if (!fresh && row.ratio < it->second.ratio) it->second = row;
  }
  for (const auto& [key, row] : best) {
    add(row.group, "fastest of them", row);
    if (is_f32_convolution(row)) add("all convolutions", "fastest of them", row);
  }
  fmt::print("\n{:<8} {:<18} {:<20} {:>5} {:>9} {:>9} {:>11} {:>7}  {}\n", "threads", "group", "peer",
             "cases", "geo. mean", "of best", "whole group", "worst", "worst case");
  for (const auto& [key, sum] : sums) {
    fmt::print("{:<8} {:<18} {:<20} {:>5} {:>9.3f} {:>9.3f} {:>11.3f} {:>7.2f}  {}\n", std::get<0>(key),
               std::get<1>(key), std::get<2>(key), sum.rows, std::exp(sum.logs / sum.rows),
               std::exp(sum.best_logs / sum.rows), sum.theirs / sum.ours, sum.worst, sum.worst_name);
  }
  fmt::print("whole group: peer's time over ours, summed over the network's calls\n");
}

Status Bench::write_json() const {
  nlohmann::json list = nlohmann::json::array();
  for (const Row& row : rows_) {
    list.push_back({{"group", row.group},
                    {"case", row.name},
                    {"count", row.count},
                    {"threads", row.threads},
                    {"peer", row.peer},
                    {"ratio", row.ratio},
                    {"ratio_best", row.best},
                    {"ratio_p10", row.p10},
                    {"ratio_p90", row.p90},
                    {"our_seconds", row.our_seconds},
                    {"peer_seconds", row.peer_seconds},
                    {"flops", row.flops},
                    {"processor", device_.description + " (" + device_.processor + ")"},
                    {"isa", options_.isa},
                    {"peak_gflops", row.peak},
                    {"tuned", row.tuned},
                    {"algorithm", row.algorithm},
                    {"peer_implementation", row.detail}});
  }
  std::ofstream out(options_.json);
  out << list.dump(2) << "\n";
  if (!out) return Error{ErrorCode::kIo, options_.json, "cannot be written"};
  return {};
}

Result<std::unique_ptr<Peer>> load_peer(const std::string& path) {
  // Deep binding: the library calls its own functions, even if another version of it is loaded.
  void* module = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_DEEPBIND);
  if (module == nullptr) return Error{ErrorCode::kNotFound, path, dlerror()};
  const auto make = reinterpret_cast<MakePeer>(dlsym(module, kMakePeer));
  if (make == nullptr) return Error{ErrorCode::kInvalidArgument, path, "is no peer module"};
  return std::unique_ptr<Peer>(make());
}

// Resets variables of the environment by which the libraries choose kernels (OPENBLAS_CORETYPE can halve
// their speed). The libraries then choose for this CPU or, for AVX2, by values set here; version() tells
// the choice. Also shortens the spinning of OpenBLAS' idle threads, which is 0.1 s by default.
void prepare_environment(const std::string& isa) {
  for (const char* name : {"OPENBLAS_CORETYPE", "OPENBLAS_L2_SIZE", "ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA"})
    unsetenv(name);
  if (isa == "avx2") {
    setenv("OPENBLAS_CORETYPE", "Haswell", 1);
    for (const char* name : {"ONEDNN_MAX_CPU_ISA", "DNNL_MAX_CPU_ISA"}) setenv(name, "AVX2", 1);
  }
  setenv("OPENBLAS_THREAD_TIMEOUT", "20", 1);  // 2^20 cycles
}

// Warns about other load: OpenMP teams wait for their slowest thread, so that their times can become tens
// of times longer.
void warn_if_busy() {
  double load[1] = {0};
  if (getloadavg(load, 1) == 1 && load[0] > 0.5)
    fmt::print(
        "WARNING: the machine is busy (load {:.1f}); ratios, above all with several threads, mean little\n",
        load[0]);
}

Status run(const Options& options) {
  prepare_environment(options.isa);
  warn_if_busy();
  std::vector<std::unique_ptr<Peer>> peers;
  for (const std::string& path : options.peers) {
    TS_ASSIGN_OR_RETURN(auto peer, load_peer(path));
    fmt::print("{}: {}\n", peer->name(), peer->version());
    peers.push_back(std::move(peer));
  }
  Bench bench(options, std::move(peers));
  if (options.ansor) return bench.run_ansor();
  const Status status = bench.run();
  bench.print_summary();
  if (!options.json.empty()) TS_RETURN_IF_ERROR(bench.write_json());
  return status;
}

int main_with_options(int argc, char** argv) {
  Options options;
  std::string built_in = TENSORSMITH_PEER_MODULES;  // separated by ':'
  for (size_t begin = 0; begin < built_in.size();) {
    const size_t end = std::min(built_in.find(':', begin), built_in.size());
    options.peers.push_back(built_in.substr(begin, end - begin));
    begin = end + 1;
  }
  CLI::App app("Single kernels against OpenBLAS and oneDNN, interleaved");
  app.add_option("--threads", options.threads, "Thread counts")->delimiter(',')->capture_default_str();
  app.add_option("--only", options.only,
                 "Groups: gemm, resnet50, mobilenet_v2, squeezenet1.1, gemm_bf16, bf16")
      ->delimiter(',');
  app.add_option("--isa", options.isa, "Instruction set that everybody may use")
      ->check(CLI::IsMember({"native", "avx2"}))
      ->capture_default_str();
  app.add_option("--filter", options.filter, "Only cases whose name contains this");
  app.add_flag("--untuned", options.untuned, "The untuned schedules; no database");
  app.add_option("--tune-seconds", options.tune_seconds,
                 "Search for each task and thread count; 0 = what the database has")
      ->capture_default_str();
  app.add_option("--db", options.database, "Record database; a run goes on from what is there")
      ->capture_default_str();
  app.add_option("--rounds", options.rounds)->check(CLI::Range(1, 1000))->capture_default_str();
  app.add_option("--slice-ms", options.slice_ms, "Time of a contender in a round")->capture_default_str();
  app.add_option("--json", options.json, "Write the rows to this file");
  app.add_option("--peer", options.peers, "Modules of peers, instead of those built");
  app.add_flag("--ansor", options.ansor, "Only: seconds of tuning until Ansor's results are beaten");
  CLI11_PARSE(app, argc, argv);
  if (options.peers.empty() && !options.ansor) {
    std::fprintf(stderr,
                 "bench_peers: error: built without other libraries; see bench/peers/run, or give --peer\n");
    return 1;
  }
  const Status status = run(options);
  if (status.ok()) return 0;
  std::fprintf(stderr, "bench_peers: error: %s\n", status.error().message().c_str());
  return 1;
}

}  // namespace
}  // namespace tensorsmith::peers

// The program also serves as the measuring worker, when it is started with that first argument.
int main(int argc, char** argv) {
  using namespace tensorsmith;
  if (measure::is_worker(argc, argv)) return measure::worker_main(argc, argv);
  return peers::main_with_options(argc, argv);
}
