// What the runner is asked to do with one model, and what it answers: one line of JSON each.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/result.h"

namespace tensorsmith::oracle {

// How the schedules of a run are chosen.
enum class ScheduleKind : uint8_t {
  kDefault,      // the untuned ones
  kRandom,       // a random candidate of each task
  kInterpreter,  // none: the reference interpreter evaluates the optimized graph
};

struct RunRequest {
  std::string device = "local";  // as of --device: "local:isa=avx2"
  int threads = 1;
  ScheduleKind schedule = ScheduleKind::kDefault;
  uint64_t seed = 0;  // of kRandom
};

// {"directory": D, "runs": [{"device": "local", "threads": 1, "schedule": "random", "seed": 7}, ...]}
// The directory holds model.onnx and input_I.bin, the raw contents of input I (little endian, row-major).
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
  std::string stage;  // where it failed: "schedule", "compile", "load", "run", "evaluate"; empty: it did not
  std::string error;
  // The run before with the same bytes in each output, -1: none; then output I is in output_RUN_I.bin.
  int same_as = -1;
  std::vector<std::string> schedules;  // a printed trace a task, of kRandom
};

struct Reply {
  std::string stage;  // "request", "import", "optimize", "partition": nothing was run
  std::string error;
  std::string code;  // of the error: ErrorCode's text, or "bug"
  std::vector<TensorReply> inputs;
  std::vector<TensorReply> outputs;
  std::vector<std::string> tasks;  // names
  std::vector<RunReply> runs;
};

// Without a line break.
std::string print(const Reply& reply);

}  // namespace tensorsmith::oracle
