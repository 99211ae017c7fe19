#include "measure/disturbance.h"

#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <fstream>
#include <limits>
#include <string>

#include "measure/timing.h"

namespace tensorsmith::measure {

namespace {

// Columns of /proc/stat that are neither idle time nor contained in another column: user, nice,
// system, irq, softirq, steal.
constexpr int kBusyColumns[] = {0, 1, 2, 5, 6, 7};
constexpr int kStatColumns = 8;

double timeval_seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
}

// Returns the busy ticks of a line's columns; nullopt if they are damaged or all 0.
std::optional<double> busy_ticks(std::string_view columns) {
  double ticks[kStatColumns] = {};
  double all = 0;
  for (double& value : ticks) {
    columns.remove_prefix(std::min(columns.find_first_not_of(' '), columns.size()));
    int64_t number = 0;
    const auto [end, error] = std::from_chars(columns.data(), columns.data() + columns.size(), number);
    if (error != std::errc() || number < 0) return std::nullopt;
    columns.remove_prefix(end - columns.data());
    value = static_cast<double>(number);
    all += value;
  }
  if (all == 0) return std::nullopt;
  double busy = 0;
  for (const int column : kBusyColumns) busy += ticks[column];
  return busy;
}

}  // namespace

std::optional<double> busy_seconds(std::string_view stat, std::span<const int> processors,
                                   double ticks_per_second) {
  size_t found = 0;
  double ticks = 0;
  while (stat.starts_with("cpu")) {
    const std::string_view line = stat.substr(3, stat.find('\n') - 3);
    stat.remove_prefix(std::min(stat.find('\n'), stat.size() - 1) + 1);
    int number = -1;  // the first line is the sum of all processors
    const auto [end, error] = std::from_chars(line.data(), line.data() + line.size(), number);
    if (error != std::errc()) continue;
    if (!std::binary_search(processors.begin(), processors.end(), number)) continue;
    const auto busy = busy_ticks(line.substr(end - line.data()));
    if (!busy) return std::nullopt;
    ticks += *busy;
    ++found;
  }
  if (found == 0 || found != processors.size()) return std::nullopt;
  return ticks / ticks_per_second;
}

ReadLoad system_load(const ProcessorPaths& paths) {
  const Processors all = processors(paths);
  if (all.quota < static_cast<double>(all.allowed.size())) return [] { return std::nullopt; };
  const auto ticks = static_cast<double>(::sysconf(_SC_CLK_TCK));
  return [path = paths.proc + "/stat", allowed = all.allowed, ticks]() -> std::optional<ProcessorLoad> {
    std::ifstream file(path);
    std::string text;
    for (std::string line; std::getline(file, line) && line.starts_with("cpu");) text += line + "\n";
    const double now = raw_seconds();
    const auto busy = busy_seconds(text, allowed, ticks);
    if (!busy) return std::nullopt;
    return ProcessorLoad{now, *busy, static_cast<int>(allowed.size())};
  };
}

double own_seconds() {
  double sum = 0;
  for (const int who : {RUSAGE_SELF, RUSAGE_CHILDREN}) {
    rusage usage{};
    if (::getrusage(who, &usage) == 0)
      sum += timeval_seconds(usage.ru_utime) + timeval_seconds(usage.ru_stime);
  }
  return sum;
}

std::optional<double> DisturbanceMeter::sample(double begin) {
  const auto load = read_ ? read_() : std::nullopt;
  if (!load) return std::nullopt;
  const Sample now{load->now, load->busy, own_()};
  const double from = std::min(begin, now.now - kDisturbanceWindow);
  while (samples_.size() > 1 && samples_[1].now <= from) samples_.pop_front();
  samples_.push_back(now);
  const Sample& first = samples_.front();
  const double seconds = now.now - first.now;
  if (seconds < kLeastDisturbanceWindow) return std::nullopt;
  const double others = (now.busy - first.busy) - (now.own - first.own);
  last_ = std::clamp(others / (load->processors * seconds), 0.0, 1.0);
  return last_;
}

void DisturbanceMeter::restart() {
  samples_.clear();
  [[maybe_unused]] const auto unknown = sample(0);
}

std::optional<double> DisturbanceMeter::begin() {
  const auto known = sample(std::numeric_limits<double>::infinity());
  if (!samples_.empty()) begin_ = samples_.back().now;
  return known ? known : last_;
}

std::optional<double> DisturbanceMeter::end() { return sample(begin_); }

}  // namespace tensorsmith::measure
