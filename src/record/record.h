// A measurement: what was measured, how, where and with which code version, and why it failed.
// Plain data.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"
#include "record/candidate.h"
#include "sched/step.h"

namespace tensorsmith::record {

// Version of the meaning of measurements. It is increased if older records would mislead, for
// example after a change of the meaning of traces or of the timing protocol. Changes of the speed
// of our code do not need it, since each tuning run measures the records that it builds on again.
inline constexpr int kCodeVersion = 1;

enum class Outcome : uint8_t {
  kOk,
  kInvalidSchedule,  // does not replay or cannot be lowered
  kBuildError,
  kBuildTimeout,
  kCrash,  // signal in the worker; the reason names it
  kRunTimeout,
  kMemoryLimit,
  kWrongOutput,  // the reason gives the worst element
  kWorkerLost,   // the worker could not be started or did not answer: not the candidate's fault
};
std::string_view to_string(Outcome outcome);  // "ok", "build_error", ...: stored, so never renamed
std::optional<Outcome> parse_outcome(std::string_view name);

struct MeasureResult {
  Outcome outcome = Outcome::kOk;
  std::string reason;           // empty when kOk
  std::vector<double> seconds;  // one per repeat, each the mean of `runs_per_repeat` runs
  int runs_per_repeat = 0;
  bool stopped_early = false;  // hopeless against the best, with fewer repeats than requested
  double build_seconds = 0;
  double measure_seconds = 0;  // wall time in the worker
  // Share of processor time that others took meanwhile (disturbance.h); nullopt: not known.
  std::optional<double> disturbance = {};
  // Energy of one run, if it was measured. It is kept beside the record (record/energy.h).
  std::optional<double> joules = {};

  bool ok() const { return outcome == Outcome::kOk; }
  double best_estimate() const;  // median of seconds; +inf when not ok or empty
};
// A result without a time; `outcome` must not be kOk.
MeasureResult failure(Outcome outcome, std::string reason);

// How a measurement was made; part of the content key.
struct MeasureSettings {
  int threads = 1;
  bool flush_cache = false;
  friend bool operator==(const MeasureSettings&, const MeasureSettings&) = default;
};

struct Record {
  std::string task_key;    // ir::structural_key of the workload
  std::string device_key;  // target::Device::key()
  MeasureSettings settings;
  std::string trace;  // sched::print(trace)
  MeasureResult result;
  int64_t unix_ms = 0;
  int code_version = kCodeVersion;
  CandidateOrigin candidate;

  // Content key of (task, device, settings, trace, code version); equal keys are never measured
  // twice.
  std::string key() const;
};

}  // namespace tensorsmith::record
