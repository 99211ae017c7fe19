// Requests to the runner, one per model, and its replies: one line of JSON each.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace tensorsmith::oracle {

// How the schedules of a run are chosen.
enum class ScheduleKind : uint8_t {
  kDefault,      // the untuned schedules
  kRandom,       // a random candidate for each task
  kInterpreter,  // no schedules: the reference interpreter evaluates the optimized graph
};

struct RunRequest {
  std::string device = "local";  // as for --device: "local:isa=avx2"
  int threads = 1;
  ScheduleKind schedule = ScheduleKind::kDefault;
  uint64_t seed = 0;  // for kRandom
};

// {"directory": D, "runs": [{"device": "local", "threads": 1, "schedule": "random", "seed": 7},
// ...]}
// The directory holds model.onnx and input_I.bin, the raw contents of input I (little endian,
// row-major).
struct Request {
  std::string directory;
  std::vector<RunRequest> runs;
};

Result<Request> parse_request(std::string_view line);

struct TensorReply {
  std::string name;
  std::string dtype;
  std::vector<int64_t> shape;
};

struct RunReply {
  std::string stage;  // the failed stage: "schedule", "compile", "load", "run", "evaluate"; empty: no failure
  std::string error;
  // Index of an earlier run with the same bytes in each output; -1: none, and output I is in
  // output_RUN_I.bin.
  int same_as = -1;
  std::vector<std::string> schedules;  // a printed trace per task, for kRandom
};

struct Reply {
  std::string stage;  // the failed stage: "request", "import", "optimize", "partition"; then nothing was run
  std::string error;
  std::string code;  // code of the error: ErrorCode's text, or "bug"
  std::vector<TensorReply> inputs;
  std::vector<TensorReply> outputs;
  std::vector<std::string> tasks;  // their names
  std::vector<RunReply> runs;
};

// Prints the reply without a line break.
std::string print(const Reply& reply);

}  // namespace tensorsmith::oracle
