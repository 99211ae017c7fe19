// Compares the design space's estimate with measured times, and fits its constants to them.
//
//   bench_estimate collect OUT DEVICE TASKS [SAMPLES [NAME=VALUE...]]
//       measures candidates of the tasks in the file TASKS, the default candidate first, and appends
//       lines of "device" and "trials" to OUT, a file with the lines of "task". With one sample
//       only the default candidate is measured. NAME=VALUE sets constants of the estimate.
//   bench_estimate report FILE [NAME=VALUE...]
//       prints how well the estimate with these constants orders the measured candidates.
//   bench_estimate explain FILE [LEAST]
//       for tasks where the candidate with the least estimate takes at least LEAST (1.1) times as long
//       as the fastest one: prints both programs, and the constants that change their estimates most
//       when they are halved.
//   bench_estimate fit FILE [NAME...]
//       prints, for changes of each constant (or of those named), the mean rank correlation and the
//       mean ratio of the time of the candidate with the least estimate to the best time.
//   bench_estimate records FILE
//       prints the measurements as tasks, devices and records that `db import` reads, for training
//       cost models.
//   bench_estimate descend FILE...
//       searches constants that order the measurements of all files better, by coordinate descent.
//
// tests/support/estimate_measurements.h describes the format of the files.
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "candidate_text.h"
#include "ir/text.h"
#include "record/jsonl.h"
#include "runnable_kernel.h"
#include "space/design_space.h"
#include "space/estimate/constants.h"
#include "support/estimate_measurements.h"
#include "support/estimate_records.h"
#include "target/probe_clock.h"

namespace tensorsmith {
namespace {

// Returns the seconds of the fastest of several runs.
Result<double> measure(const space::DesignSpace& space, const space::Candidate& candidate,
                       const target::Device& device, runtime::KernelPool& pool) {
  TS_ASSIGN_OR_RETURN(const auto kernel, bench::RunnableKernel::build(space, candidate, device));
  constexpr double kSeconds = 0.04, kSlow = 0.2;
  constexpr int kLeastRuns = 4, kMostRuns = 2000;
  double best = std::numeric_limits<double>::infinity(), spent = 0;
  for (int r = 0; r < kMostRuns && (r < kLeastRuns || spent < kSeconds) && spent < kLeastRuns * kSlow; ++r) {
    const double seconds = kernel->run(pool);
    spent += seconds;
    if (seconds > 0) best = std::min(best, seconds);  // the clock may not advance during a short kernel
  }
  if (!std::isfinite(best)) return Error{ErrorCode::kUnsupported, "measuring", "the clock stood still"};
  return best;
}

struct Measured {
  space::Candidate candidate;
  double seconds = 0;
};

// Returns a candidate with a small estimate: the best of many samples, improved by mutations.
space::Candidate favourite(const space::DesignSpace& space, Rng& rng) {
  constexpr int kSamples = 300, kSteps = 300;
  space::Candidate best = space.sample(rng);
  double least = space.estimate(best);
  for (int i = 0; i < kSamples + kSteps; ++i) {
    space::Candidate next = i < kSamples ? space.sample(rng) : space.mutate(best, rng);
    const double estimate = space.estimate(next);
    if (estimate >= least) continue;
    least = estimate;
    best = std::move(next);
  }
  return best;
}

// Returns the next candidate to measure, in turn a random candidate, a mutation of one of the fastest
// so far (so that there are good programs, as in a search), and a favourite of the estimate, which
// shows programs that it wrongly ranks first. Returns none if no new candidate was found in 100 tries,
// as the space is probably exhausted.
std::optional<space::Candidate> choose_next(const space::DesignSpace& space,
                                            const std::vector<Measured>& measured, std::set<uint64_t>& known,
                                            Rng& rng) {
  constexpr size_t kFastest = 3, kKinds = 3;
  std::vector<const Measured*> fastest;
  for (const auto& m : measured) fastest.push_back(&m);
  std::sort(fastest.begin(), fastest.end(),
            [](const Measured* a, const Measured* b) { return a->seconds < b->seconds; });
  for (size_t tries = 0; tries < 100; ++tries) {
    const size_t kind = (measured.size() + tries) % kKinds;
    const space::Candidate c =
        kind == 0   ? space.sample(rng)
        : kind == 1 ? space.mutate(fastest[rng.below(std::min(kFastest, fastest.size()))]->candidate, rng)
                    : favourite(space, rng);
    if (known.insert(c.hash()).second) return c;
  }
  return std::nullopt;
}

// Returns the default constants with the changes NAME=VALUE.
space::Constants with_changes(const std::vector<std::string>& changes) {
  space::Constants constants = space::default_constants();
  for (const auto& info : space::constant_table())
    for (const std::string& change : changes)
      if (change.starts_with(info.name + std::string("=")))
        constants.*info.member = std::atof(change.c_str() + std::strlen(info.name) + 1);
  return constants;
}

int collect(const std::string& out_path, const char* device_name, const std::string& tasks_path, int samples,
            const std::vector<std::string>& changes) {
  const space::Constants constants = with_changes(changes);
  const auto device = target::find_device(device_name);
  if (!device.ok()) {
    std::fprintf(stderr, "%s\n", device.error().message().c_str());
    return 1;
  }
  std::ofstream out(out_path, std::ios::app);
  std::ifstream in(tasks_path);
  nlohmann::json line{{"type", "device"}, {"id", device_name}};
  // The file has the whole device with its measured clock, because cost models are trained on it, too.
  line["device"] = nlohmann::json::parse(target::to_json(target::with_measured_clock(*device)));
  out << line.dump() << "\n";
  runtime::KernelPool pool(device->cpu().cores);
  for (std::string text; std::getline(in, text);) {
    const auto task = nlohmann::json::parse(text);
    if (task.at("type") != "task") continue;
    const auto workload = ir::parse_workload(task.at("workload").get<std::string>());
    if (!workload.ok()) return std::fprintf(stderr, "%s\n", workload.error().message().c_str()), 1;
    const auto space = space::DesignSpace::build(*workload, *device, {.constants = &constants});
    if (!space.ok()) continue;
    nlohmann::json trials{{"type", "trials"}, {"device", device_name}, {"task", task.at("name")}};
    std::vector<std::string> sketches;
    trials["trials"] = nlohmann::json::array();
    Rng rng(17);
    std::set<uint64_t> known{space->default_candidate().hash()};
    std::vector<Measured> measured;
    std::optional<space::Candidate> next = space->default_candidate();
    for (int tried = 0; next && tried < samples; ++tried) {
      const space::Candidate c = *next;
      const auto seconds = measure(*space, c, *device, pool);
      if (seconds.ok()) measured.push_back({c, *seconds});
      if (measured.empty()) break;
      next = choose_next(*space, measured, known, rng);
      if (!seconds.ok()) continue;
      const std::string sketch = space->describe(c.sketch);
      auto at = std::find(sketches.begin(), sketches.end(), sketch);
      if (at == sketches.end()) at = sketches.insert(at, sketch);
      // Four significant digits.
      char us[32];
      std::snprintf(us, sizeof us, "%.4g", *seconds * 1e6);
      trials["trials"].push_back({at - sketches.begin(), c.decisions, std::atof(us)});
    }
    trials["sketches"] = sketches;
    out << trials.dump() << std::endl;
  }
  return 0;
}

// A task's design space and those of its trials whose candidates belong to the space.
struct Case {
  const test::MeasuredTask* task;
  space::DesignSpace space;
  std::vector<space::Candidate> candidates;
  std::vector<double> seconds;

  std::vector<double> estimates() const {
    std::vector<double> result;
    for (const auto& c : candidates) result.push_back(space.estimate(c));
    return result;
  }
  // Time of the trial with the least estimate, divided by the least time of a trial.
  double loss(const std::vector<double>& estimates) const {
    const auto chosen = std::min_element(estimates.begin(), estimates.end()) - estimates.begin();
    return seconds[static_cast<size_t>(chosen)] / *std::min_element(seconds.begin(), seconds.end());
  }
};

// Every estimate of the cases reads `constants`, which must outlive them.
std::vector<Case> make_cases(const std::vector<test::MeasuredTask>& tasks,
                             const space::Constants& constants) {
  std::vector<Case> cases;
  for (const auto& task : tasks) {
    auto space = space::DesignSpace::build(task.workload, task.device, {.constants = &constants});
    if (!space.ok()) continue;
    Case made{&task, std::move(*space), {}, {}};
    for (const auto& trial : task.trials) {
      const auto c = test::MeasuredTask::candidate(made.space, trial);
      if (!c.ok()) continue;
      made.candidates.push_back(*c);
      made.seconds.push_back(trial.seconds);
    }
    if (!made.seconds.empty()) cases.push_back(std::move(made));
  }
  return cases;
}

struct Score {
  double correlation = 0, loss = 0;  // means over the cases
};

Score score_of(const std::vector<Case>& cases) {
  Score score;
  for (const Case& c : cases) {
    const auto estimates = c.estimates();
    score.correlation += test::rank_correlation(estimates, c.seconds) / static_cast<double>(cases.size());
    score.loss += c.loss(estimates) / static_cast<double>(cases.size());
  }
  return score;
}

// Prints the quality of the estimate with the changes NAME=VALUE of its constants.
int report(const std::vector<test::MeasuredTask>& tasks, const std::vector<std::string>& changes) {
  const space::Constants constants = with_changes(changes);
  const auto cases = make_cases(tasks, constants);
  std::printf("%-24s %-44s %6s %6s %9s %7s\n", "device", "task", "trials", "tau", "best us", "chosen");
  for (const Case& c : cases) {
    const auto estimates = c.estimates();
    std::printf("%-24s %-44s %6zu %6.2f %9.1f %7.2f\n", c.task->device_id.c_str(), c.task->name.c_str(),
                c.seconds.size(), test::rank_correlation(estimates, c.seconds),
                *std::min_element(c.seconds.begin(), c.seconds.end()) * 1e6, c.loss(estimates));
  }
  const Score score = score_of(cases);
  std::printf("mean rank correlation %.3f, chosen over best %.3f\n", score.correlation, score.loss);
  return 0;
}

int explain(const std::vector<test::MeasuredTask>& tasks, double least) {
  space::Constants constants = space::default_constants();
  constexpr double kNoticed = 0.03;
  double log_loss = 0;
  const auto cases = make_cases(tasks, constants);
  for (const Case& c : cases) {
    const auto estimates = c.estimates();
    const double loss = c.loss(estimates);
    log_loss += std::log(loss) / static_cast<double>(cases.size());
    if (loss < least) continue;
    std::printf("%s %s: %.2f\n", c.task->device_id.c_str(), c.task->name.c_str(), loss);
    const auto fastest = std::min_element(c.seconds.begin(), c.seconds.end()) - c.seconds.begin();
    const auto chosen = std::min_element(estimates.begin(), estimates.end()) - estimates.begin();
    for (const auto at : {static_cast<size_t>(fastest), static_cast<size_t>(chosen)}) {
      std::printf("  %.1f us, estimated %.1f: %s\n   ", c.seconds[at] * 1e6, estimates[at] * 1e6,
                  bench::candidate_text(c.space, c.candidates[at], " ").c_str());
      for (const auto& info : space::constant_table()) {
        double& value = constants.*info.member;
        const double kept = value;
        value = kept / 2;
        const double changed = c.space.estimate(c.candidates[at]) / estimates[at];
        value = kept;
        if (std::abs(changed - 1) > kNoticed) std::printf(" %s %.2f", info.name, changed);
      }
      std::printf("\n");
    }
  }
  std::printf("geometric mean of chosen over fastest %.3f\n", std::exp(log_loss));
  return 0;
}

// Prints the mean scores for several values of each named constant, with the others at their defaults.
int fit(const std::vector<test::MeasuredTask>& tasks, const std::vector<std::string>& names) {
  space::Constants constants = space::default_constants();
  const auto cases = make_cases(tasks, constants);
  constexpr double kFactors[] = {0.25, 0.5, 0.7, 1, 1.4, 2, 4};
  std::printf("%-22s %-12s", "constant", "value");
  for (const double factor : kFactors) std::printf("  x%-10.2g", factor);
  std::printf("\n");
  for (const auto& info : space::constant_table()) {
    if (!names.empty() && std::find(names.begin(), names.end(), info.name) == names.end()) continue;
    double& value = constants.*info.member;
    const double kept = value;
    std::printf("%-22s %-12g", info.name, kept);
    for (const double factor : kFactors) {
      value = kept * factor;
      const Score score = score_of(cases);
      std::printf("  %.3f/%.3f", score.correlation, score.loss);
    }
    std::printf("  %s, %s\n", info.unit, info.meaning);
    value = kept;
  }
  return 0;
}

// Prints the trials as lines of an exported database (record/jsonl.h).
int records(const std::vector<test::MeasuredTask>& tasks) {
  for (const auto& item : test::records_of(tasks))
    std::visit([](const auto& line) { std::printf("%s\n", record::to_json_line(line).c_str()); }, item);
  return 0;
}

// The objective of the descent: the mean log of the slowdown, against the best trial, of the three
// trials with the least estimates, plus a penalty for pairs in the wrong order.
double badness(const std::vector<Case>& cases) {
  constexpr size_t kFirst = 3;
  constexpr double kOrder = 0.2;
  double sum = 0;
  for (const Case& c : cases) {
    const auto estimates = c.estimates();
    std::vector<size_t> order(estimates.size());
    for (size_t i = 0; i < order.size(); ++i) order[i] = i;
    const size_t first = std::min(kFirst, order.size());
    std::partial_sort(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(first), order.end(),
                      [&](size_t a, size_t b) { return estimates[a] < estimates[b]; });
    const double best = *std::min_element(c.seconds.begin(), c.seconds.end());
    for (size_t i = 0; i < first; ++i)
      sum += std::log(c.seconds[order[i]] / best) / static_cast<double>(first);
    sum += kOrder * (1 - test::rank_correlation(estimates, c.seconds));
  }
  return sum / static_cast<double>(cases.size());
}

int descend(const std::vector<std::vector<test::MeasuredTask>>& files) {
  space::Constants constants = space::default_constants();
  std::vector<std::vector<Case>> all;
  for (const auto& tasks : files) all.push_back(make_cases(tasks, constants));
  const auto total = [&] {
    double sum = 0;
    for (const auto& cases : all) sum += badness(cases) / static_cast<double>(all.size());
    return sum;
  };
  const auto print = [&] {
    for (const auto& cases : all) {
      const Score score = score_of(cases);
      std::printf("  rank correlation %.3f, chosen over best %.3f", score.correlation, score.loss);
    }
    std::printf("\n");
    std::fflush(stdout);
  };
  constexpr double kFactors[] = {0.25, 0.5, 0.7, 0.85, 1.2, 1.4, 2, 4};
  constexpr double kGain = 3e-4;  // smaller improvements are noise
  double least = total();
  print();
  for (bool better = true; better;) {
    better = false;
    for (const auto& info : space::constant_table()) {
      double& value = constants.*info.member;
      const double kept = value;
      double chosen = kept;
      for (const double factor : kFactors) {
        value = kept * factor;
        if (const double now = total(); now < least - kGain) {
          least = now;
          chosen = value;
        }
      }
      value = chosen;
      if (chosen == kept) continue;
      better = true;
      std::printf("%s %g -> %g: %.4f", info.name, kept, chosen, least);
      print();
    }
  }
  return 0;
}

}  // namespace
}  // namespace tensorsmith

int main(int argc, char** argv) {
  using namespace tensorsmith;
  if (argc > 4 && std::strcmp(argv[1], "collect") == 0)
    return collect(argv[2], argv[3], argv[4], argc > 5 ? std::atoi(argv[5]) : 24,
                   {argv + std::min(argc, 6), argv + argc});
  if (argc > 2 && std::strcmp(argv[1], "descend") == 0) {
    std::vector<std::vector<test::MeasuredTask>> files;
    for (int i = 2; i < argc; ++i) {
      auto tasks = test::read_measurements(argv[i]);
      if (!tasks.ok()) return std::fprintf(stderr, "%s\n", tasks.error().message().c_str()), 1;
      files.push_back(std::move(*tasks));
    }
    return descend(files);
  }
  if (argc > 2) {
    const auto tasks = test::read_measurements(argv[2]);
    if (!tasks.ok()) return std::fprintf(stderr, "%s\n", tasks.error().message().c_str()), 1;
    if (std::strcmp(argv[1], "records") == 0) return records(*tasks);
    if (std::strcmp(argv[1], "report") == 0) return report(*tasks, {argv + 3, argv + argc});
    if (std::strcmp(argv[1], "explain") == 0) return explain(*tasks, argc > 3 ? std::atof(argv[3]) : 1.1);
    if (std::strcmp(argv[1], "fit") == 0) return fit(*tasks, {argv + 3, argv + argc});
  }
  std::fprintf(
      stderr,
      "bench_estimate collect OUT DEVICE TASKS [SAMPLES [NAME=VALUE...]] | report FILE [NAME=VALUE...] | "
      "explain FILE [LEAST] | fit FILE [NAME...] | records FILE | descend FILE...\n");
  return 1;
}
