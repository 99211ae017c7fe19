#include "lab/explain.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "feature/profile_schema.h"
#include "learn/profile/transfer.h"
#include "target/assumed.h"
#include "target/machine.h"

namespace tensorsmith::lab {
namespace {

// Counters whose permutation importance is below this share of the variance are not reported.
constexpr double kLeastImportance = 0.01;
constexpr size_t kMostCounters = 10;
// A part that is busy for at least this share of the time counts as the limit of the program.
constexpr double kIsLimit = 0.6;
// Least ratio of two demands that is worth reporting as a difference.
constexpr double kMuchMore = 1.15;

double count_of(const std::map<std::string, double>& counters, const std::string& name) {
  const auto at = counters.find(name);
  return at == counters.end() ? 0 : at->second;
}

double quantity(const feature::Column& column, float number) {
  const double x = number;
  return column.scale == feature::Scale::kSignedLog2 ? std::copysign(std::exp2(std::abs(x)) - 1, x) : x;
}

Result<size_t> find_task(const learn::ProfiledPrograms& data, const std::string& wanted) {
  std::vector<size_t> found;
  std::string names;
  for (size_t t = 0; t < data.tasks.size(); ++t) {
    if (data.tasks[t].key == wanted || data.tasks[t].name == wanted) return t;
    if (data.tasks[t].name.starts_with(wanted)) found.push_back(t);
    names += (names.empty() ? "" : ", ") + data.tasks[t].name;
  }
  if (found.size() == 1) return found[0];
  return Error{
      ErrorCode::kNotFound, "task '" + wanted + "'",
      (found.empty() ? "there is no profiled task whose name begins with this text; the profiled tasks are: "
                     : "the names of several profiled tasks begin with this text: ") +
          names};
}

std::vector<BufferTraffic> traffic_of(const std::map<std::string, double>& counters) {
  constexpr std::string_view kPrefix = "buffer.", kBytes = ".bytes";
  std::vector<BufferTraffic> out;
  for (const auto& [name, bytes] : counters) {
    if (!name.starts_with(kPrefix) || !name.ends_with(kBytes)) continue;
    const std::string buffer = name.substr(kPrefix.size(), name.size() - kPrefix.size() - kBytes.size());
    const std::string begin = std::string(kPrefix) + buffer;
    out.push_back(
        {buffer, bytes, count_of(counters, begin + ".l1.misses"), count_of(counters, begin + ".l2.misses")});
  }
  std::stable_sort(out.begin(), out.end(),
                   [](const auto& a, const auto& b) { return a.l1_misses > b.l1_misses; });
  return out;
}

// Returns the changes of the most important counters, most important first.
std::vector<CounterChange> changes(const learn::ProfiledProgram& best, const learn::ProfiledProgram& typical,
                                   std::span<const double> importance) {
  std::vector<CounterChange> out;
  for (size_t c = 0; c < importance.size(); ++c) {
    const feature::Column& column = feature::kCpuProfileColumns[c];
    if (importance[c] >= kLeastImportance)
      out.push_back({column.name(), importance[c], quantity(column, best.profile[c]),
                     quantity(column, typical.profile[c])});
  }
  std::stable_sort(out.begin(), out.end(),
                   [](const auto& a, const auto& b) { return a.importance > b.importance; });
  out.resize(std::min(out.size(), kMostCounters));
  return out;
}

std::string ratio_text(double best, double typical) {
  if (best == typical) return "as many";
  if (best == 0) return "none";
  if (typical == 0) return "some, whereas a typical one has none";
  return best < typical ? fmt::format("{:.2g} times fewer", typical / best)
                        : fmt::format("{:.2g} times as many", best / typical);
}

void add_limit_sentence(Explanation& out) {
  const Demand& limit = out.best[out.limit];
  const double share = limit.busy_share(out.best_seconds);
  const auto percent = std::lround(100 * share);
  if (share >= kIsLimit) {
    out.sentences.push_back(
        fmt::format("The fastest program is limited by {}: busy for {} % of its time.", limit.part, percent));
  } else {
    out.sentences.push_back(
        fmt::format("No part of the core is busy for most of the fastest program's time; {} is the busiest, "
                    "with {} %.",
                    limit.part, percent));
  }
  if (percent < 100)
    out.sentences.push_back(
        fmt::format("The counters do not explain the other {} %; the core may wait for results of earlier "
                    "instructions, or for memory.",
                    100 - percent));
}

// Divides the demands of each part that would take longer than a program took, so that it takes all of that
// time. Both programs get the same factor, since the rate or the counter is wrong for both. Returns the parts
// with their factors, or an empty text.
std::string fit_demands(Explanation& out) {
  std::string parts;
  for (size_t d = 0; d < out.best.size(); ++d) {
    const double excess =
        std::max(out.best[d].seconds / out.best_seconds, out.typical[d].seconds / out.typical_seconds);
    if (excess <= 1) continue;
    out.best[d].seconds /= excess;
    out.typical[d].seconds /= excess;
    parts += fmt::format("{}{} (by {:.2f})", parts.empty() ? "" : ", ", out.best[d].part, excess);
  }
  return parts;
}

void add_excess_sentence(const std::string& parts, Explanation& out) {
  if (parts.empty()) return;
  out.sentences.push_back(fmt::format(
      "By the rates in the device file, these parts would take longer than the program, which is impossible, "
      "so their times are divided: {}. Either the processor is faster there than the file says, or the "
      "counters are higher than the real ones.",
      parts));
}

void add_difference_sentence(Explanation& out) {
  const Demand* most = nullptr;
  double saved = 0;
  for (size_t d = 0; d < out.best.size(); ++d) {
    const double less = out.typical[d].seconds - out.best[d].seconds;
    if (less <= saved || out.typical[d].seconds < kMuchMore * out.best[d].seconds) continue;
    saved = less;
    most = &out.typical[d];
  }
  if (most == nullptr) return;
  const size_t at = most - out.typical.data();
  out.sentences.push_back(
      fmt::format("It is {:.2g} times as fast as a typical one, which spends {:.2g} times as much on {}.",
                  out.typical_seconds / out.best_seconds,
                  most->seconds / std::max(out.best[at].seconds, 1e-12), most->part));
}

void add_sentences(const std::string& divided, Explanation& out) {
  add_limit_sentence(out);
  add_excess_sentence(divided, out);
  add_difference_sentence(out);
  if (!out.counters.empty()) {
    const CounterChange& first = out.counters.front();
    out.sentences.push_back(
        fmt::format("Among all {} programs, the counter `{}` explains most of the differences in time; the "
                    "fastest has {}.",
                    out.programs, first.name, ratio_text(first.best, first.typical)));
  }
  double misses = 0;
  for (const BufferTraffic& buffer : out.buffers) misses += buffer.l1_misses;
  if (misses > 0)
    out.sentences.push_back(fmt::format("{:.0f} % of its L1 misses are accesses to `{}`.",
                                        100 * out.buffers.front().l1_misses / misses,
                                        out.buffers.front().buffer));
}

}  // namespace

double Demand::busy_share(double program_seconds) const {
  return program_seconds > 0 ? std::min(seconds / program_seconds, 1.0) : 0;
}

double unexplained_seconds(const std::vector<Demand>& demands, double program_seconds) {
  double busiest = 0;
  for (const Demand& demand : demands) busiest = std::max(busiest, demand.seconds);
  return std::max(program_seconds - busiest, 0.0);
}

std::vector<Demand> demands_of(const std::map<std::string, double>& counters, const target::Device& device) {
  const target::CpuMachine cpu(device);
  const double cycle = cpu.seconds_per_cycle(), line = cpu.line_bytes;
  const auto of = [&](const char* name) { return count_of(counters, name); };
  return {
      {"multiply-adds", of("fma") / cpu.fma_per_cycle * cycle},
      {"other vector arithmetic", (of("arithmetic") + of("scalar_float")) / cpu.fma_per_cycle * cycle},
      {"instruction issue", of("instructions") / cpu.rates.issue_per_cycle * cycle},
      {"loads", (of("loads") + of("broadcasts") + of("reloads")) / cpu.rates.loads_per_cycle * cycle},
      {"reads from L2", of("l1.misses") * line / cpu.rates.l2_bytes_per_cycle * cycle},
      {"reads from L3", of("l2.misses") * line / cpu.rates.l3_bytes_per_cycle * cycle},
      {"reads from memory", of("l3.misses") * line / cpu.bytes_per_second},
  };
}

target::Device with_fitting_clock(const learn::ProfiledPrograms& data) {
  target::Device device = target::with_assumed_figures(data.device);
  double least = device.clock_ghz;
  for (const learn::ProfiledProgram& program : data.programs) {
    const double cycles = count_of(program.counters, "fma") / device.cpu().fma_per_cycle;
    least = std::max(least, 1e-9 * cycles / program.seconds);
  }
  device.clock_ghz = least;
  return device;
}

Result<Explanation> explain(const learn::ProfiledPrograms& data, const std::string& task) {
  if (data.programs.empty() || data.programs.front().profile.size() != feature::kCpuProfileColumns.size())
    return Error{ErrorCode::kUnsupported, "profiles",
                 "do not come from a simulation of a CPU, which explanations need"};
  TS_ASSIGN_OR_RETURN(const size_t number, find_task(data, task));
  std::vector<size_t> programs = data.of_task(number);
  if (programs.size() < kFewestPrograms)
    return Error{
        ErrorCode::kInvalidArgument, "task '" + task + "'",
        fmt::format("has {} profiled programs, but an explanation needs {}; measure and profile more",
                    programs.size(), kFewestPrograms)};
  std::stable_sort(programs.begin(), programs.end(),
                   [&](size_t a, size_t b) { return data.programs[a].seconds < data.programs[b].seconds; });
  const learn::ProfiledProgram& best = data.programs[programs.front()];
  const learn::ProfiledProgram& typical = data.programs[programs[programs.size() / 2]];
  Explanation out;
  out.task = data.tasks[number].name;
  out.programs = programs.size();
  out.best_seconds = best.seconds;
  out.typical_seconds = typical.seconds;
  const target::Device device = with_fitting_clock(data);
  out.clock_ghz = device.clock_ghz;
  out.best = demands_of(best.counters, device);
  out.typical = demands_of(typical.counters, device);
  const std::string divided = fit_demands(out);
  for (size_t d = 0; d < out.best.size(); ++d)
    if (out.best[d].seconds > out.best[out.limit].seconds) out.limit = d;
  TS_ASSIGN_OR_RETURN(const auto importance,
                      learn::importance(data, programs, learn::FeatureSet::kProfile, 0));
  out.counters = changes(best, typical, importance);
  out.buffers = traffic_of(best.counters);
  add_sentences(divided, out);
  return out;
}

}  // namespace tensorsmith::lab
