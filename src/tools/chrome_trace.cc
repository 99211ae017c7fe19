#include "tools/chrome_trace.h"

#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "engine/model/model_timer.h"
#include "tools/console.h"

namespace tensorsmith::tools {

namespace {

constexpr double kMicroseconds = 1e6;  // unit of the format
constexpr int kRunsRow = 1, kKernelsRow = 2;

nlohmann::json event(const std::string& name, const char* category, int row, double start, double seconds) {
  return {{"name", name},
          {"cat", category},
          {"ph", "X"},
          {"pid", 1},
          {"tid", row},
          {"ts", start * kMicroseconds},
          {"dur", seconds * kMicroseconds}};
}

nlohmann::json row_name(int row, const char* name) {
  return {{"name", "thread_name"}, {"ph", "M"}, {"pid", 1}, {"tid", row}, {"args", {{"name", name}}}};
}

}  // namespace

Result<std::string> chrome_trace(runtime::Model& model, int runs, uint64_t seed) {
  TS_ASSIGN_OR_RETURN(const std::vector<engine::ProfiledRun> all,
                      engine::profile_runs(model, runs, seed, SystemClock()));
  const runtime::ModelDescription& description = model.description();
  nlohmann::json events = {row_name(kRunsRow, "runs"), row_name(kKernelsRow, "kernels")};
  for (const engine::ProfiledRun& run : all) {
    const auto number = &run - all.data();
    events.push_back(event("run " + std::to_string(number), "run", kRunsRow, run.start_seconds, run.seconds));
    double at = run.start_seconds;
    for (size_t c = 0; c < run.calls.size(); ++c) {
      const runtime::CallInfo& call = description.calls[c];
      nlohmann::json one = event(call.task, "kernel", kKernelsRow, at, run.calls[c]);
      one["args"] = {{"call", c}, {"symbol", call.symbol}, {"flops", call.flops}};
      if (run.calls[c] > 0) one["args"]["GFLOP/s"] = call.flops / run.calls[c] / 1e9;
      events.push_back(std::move(one));
      at += run.calls[c];
    }
  }
  const nlohmann::json trace = {{"displayTimeUnit", "ms"},
                                {"otherData",
                                 {{"model", description.name},
                                  {"device", description.device},
                                  {"threads", model.num_threads()},
                                  {"tensorsmith", description.tool_version}}},
                                {"traceEvents", events}};
  return json_text(trace) + "\n";
}

}  // namespace tensorsmith::tools
