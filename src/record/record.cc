#include "record/record.h"

#include <algorithm>
#include <array>
#include <limits>

#include "base/hash.h"
#include "base/statistics.h"

namespace tensorsmith::record {

namespace {
constexpr std::array<std::pair<Outcome, std::string_view>, 9> kOutcomeNames = {{
    {Outcome::kOk, "ok"},
    {Outcome::kInvalidSchedule, "invalid_schedule"},
    {Outcome::kBuildError, "build_error"},
    {Outcome::kBuildTimeout, "build_timeout"},
    {Outcome::kCrash, "crash"},
    {Outcome::kRunTimeout, "run_timeout"},
    {Outcome::kMemoryLimit, "memory_limit"},
    {Outcome::kWrongOutput, "wrong_output"},
    {Outcome::kWorkerLost, "worker_lost"},
}};
}  // namespace

std::string_view to_string(Outcome outcome) {
  for (const auto& [value, name] : kOutcomeNames) {
    if (value == outcome) return name;
  }
  return "unknown";
}

std::optional<Outcome> parse_outcome(std::string_view name) {
  for (const auto& [value, known] : kOutcomeNames) {
    if (known == name) return value;
  }
  return std::nullopt;
}

MeasureResult failure(Outcome outcome, std::string reason) {
  MeasureResult result;
  result.outcome = outcome;
  result.reason = std::move(reason);
  return result;
}

double MeasureResult::best_estimate() const {
  if (!ok() || seconds.empty()) return std::numeric_limits<double>::infinity();
  return median(seconds);
}

std::string Record::key() const {
  Hasher hasher;
  hasher.add(std::string_view("record"))
      .add(std::string_view(task_key))
      .add(std::string_view(device_key))
      .add(settings.threads)
      .add(settings.flush_cache)
      .add(std::string_view(trace))
      .add(code_version);
  return hasher.hex128();
}

}  // namespace tensorsmith::record
