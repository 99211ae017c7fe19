#include "tools/chrome_trace.h"

#include <nlohmann/json.hpp>

#include "base/clock.h"
#include "engine/model_timer.h"
#include "tools/console.h"

namespace tensorsmith::tools {

namespace {

constexpr double kMicroseconds = 1e6;  // the format's unit
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
  const SystemClock clock;
  engine::ModelBuffers buffers(model, seed);
  const std::vector<const void*> inputs = buffers.inputs();
  const std::vector<void*> outputs = buffers.outputs();
  TS_RETURN_IF_ERROR(model.run(inputs, outputs));
  const runtime::ModelDescription& description = model.description();
  nlohmann::json events = {row_name(kRunsRow, "runs"), row_name(kKernelsRow, "kernels")};
  const double begin = clock.monotonic_seconds();
  for (int run = 0; run < runs; ++run) {
    model.reset_profile();
    const double start = clock.monotonic_seconds() - begin;
    TS_RETURN_IF_ERROR(model.run(inputs, outputs));
    const double seconds = clock.monotonic_seconds() - begin - start;
    events.push_back(event("run " + std::to_string(run), "run", kRunsRow, start, seconds));
    double at = start;
    const std::vector<runtime::CallTime> times = model.profile();
    for (size_t c = 0; c < times.size(); ++c) {
      const runtime::CallInfo& call = description.calls[c];
      nlohmann::json one = event(call.task, "kernel", kKernelsRow, at, times[c].total_seconds);
      one["args"] = {{"call", c}, {"symbol", call.symbol}, {"flops", call.flops}};
      if (times[c].total_seconds > 0) one["args"]["GFLOP/s"] = call.flops / times[c].total_seconds / 1e9;
      events.push_back(std::move(one));
      at += times[c].total_seconds;
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
