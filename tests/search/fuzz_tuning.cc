// Takes random workloads through whole short tunings: they are built, run in the sandbox, and their
// outputs compared. Failures are printed with their seeds.
//
//   fuzz_tuning [--seed S] [--count N] [--trials N] [--device NAME] [--large]
//
// Workload i has the seed S + i. --large: up to a million steps each instead of twenty thousand.
#include <CLI/CLI.hpp>
#include <atomic>
#include <cstdio>
#include <iterator>
#include <map>
#include <string>

#include "base/clock.h"
#include "base/sinks.h"
#include "ir/structural.h"
#include "ir/text.h"
#include "lab/strategies/strategies.h"
#include "learn/search_model.h"
#include "measure/measurer.h"
#include "record/database.h"
#include "search/tuner.h"
#include "support/random_workload.h"
#include "target/target.h"

namespace tensorsmith {
namespace {

struct Options {
  uint64_t seed = 1;
  int64_t count = 100, trials = 5;
  std::string device = "local:threads=2";
  bool large = false;
};

class Fuzzer {
 public:
  explicit Fuzzer(const Options& options) : options_(options) {}

  Status run() {
    TS_ASSIGN_OR_RETURN(device_, target::find_device(options_.device));
    measure::MeasureOptions measuring;
    measuring.min_repeats = measuring.max_repeats = 1;
    measuring.min_repeat_s = 0;
    TS_ASSIGN_OR_RETURN(
        measurer_, measure::make_local_measurer(device_, measuring, measure::this_program_as_worker(), log_));
    for (int64_t i = 0; i < options_.count; ++i) {
      one(options_.seed + static_cast<uint64_t>(i));
      if ((i + 1) % 500 == 0) report(i + 1);
    }
    report(options_.count);
    return {};
  }
  int64_t bad() const { return bad_; }

 private:
  void one(uint64_t seed) {
    test::RandomWorkloadOptions shape;
    if (options_.large) {
      shape.max_elements = 1 << 16;
      shape.max_iterations = 1'000'000;
    }
    const ir::Workload workload = test::random_workload(seed, shape);
    auto prepared =
        search::PreparedTask::create({ir::structural_key(workload), "seed " + std::to_string(seed)}, workload,
                                     std::make_shared<const target::Device>(device_), {});
    if (!prepared.ok()) {
      complain(seed, prepared.error().message(), workload);
      return;
    }
    const search::TuneTask task{.task = std::move(*prepared)};
    const auto database = record::Database::open(":memory:").value();
    const auto model = learn::make_search_model({.model = "xgboost", .seed = seed}, device_).value();
    search::TuneOptions tuning;
    tuning.trials = options_.trials;
    tuning.batch = 4;
    tuning.seed = seed;
    constexpr const search::StrategyKind* kTried[] = {&search::kEvolutionaryStrategy,
                                                      &search::kRandomStrategy, &lab::kAnnealingStrategy,
                                                      &lab::kDescentStrategy};
    tuning.strategy = kTried[seed % std::size(kTried)];
    const auto tuned =
        search::tune({task}, device_, tuning, {*database, *measurer_, model.get(), clock_, log_, cancel_});
    if (!tuned.ok()) complain(seed, tuned.error().message(), workload);
    const Status read = database->for_each([&](const record::Record& record) {
      ++outcomes_[record.result.outcome];
      switch (record.result.outcome) {
        case record::Outcome::kOk:
        case record::Outcome::kRunTimeout:
        case record::Outcome::kBuildTimeout:
        case record::Outcome::kMemoryLimit:
          break;
        default:
          complain(seed,
                   std::string(to_string(record.result.outcome)) + ": " + record.result.reason + " of " +
                       record.trace,
                   workload);
      }
      return Status();
    });
    if (!read.ok()) complain(seed, read.error().message(), workload);
  }

  void complain(uint64_t seed, const std::string& what, const ir::Workload& workload) {
    ++bad_;
    std::printf("seed %llu: %s\n%s\n", static_cast<unsigned long long>(seed), what.c_str(),
                ir::print(workload).c_str());
    std::fflush(stdout);
  }

  void report(int64_t done) const {
    std::printf("%lld workloads:", static_cast<long long>(done));
    for (const auto& [outcome, count] : outcomes_)
      std::printf(" %lld %s", static_cast<long long>(count), std::string(to_string(outcome)).c_str());
    std::printf("; %lld complaints\n", static_cast<long long>(bad_));
    std::fflush(stdout);
  }

  Options options_;
  target::Device device_;
  std::unique_ptr<measure::Measurer> measurer_;
  SystemClock clock_;
  NullLogSink log_;
  std::atomic<bool> cancel_{false};
  std::map<record::Outcome, int64_t> outcomes_;
  int64_t bad_ = 0;
};

}  // namespace
}  // namespace tensorsmith

int main(int argc, char** argv) {
  using namespace tensorsmith;
  if (measure::is_worker(argc, argv)) return measure::worker_main(argc, argv);
  CLI::App app{"Random workloads through whole short tunings"};
  Options options;
  app.add_option("--seed", options.seed, "Of the first workload")->capture_default_str();
  app.add_option("--count", options.count, "Workloads")->capture_default_str();
  app.add_option("--trials", options.trials, "Of each workload")->capture_default_str();
  app.add_option("--device", options.device, "This machine or a variant of it")->capture_default_str();
  app.add_flag("--large", options.large, "Up to a million steps each");
  CLI11_PARSE(app, argc, argv);
  Fuzzer fuzzer(options);
  const Status status = fuzzer.run();
  if (!status.ok()) {
    std::fprintf(stderr, "fuzz_tuning: %s\n", status.error().message().c_str());
    return 1;
  }
  return fuzzer.bad() > 0 ? 1 : 0;
}
