// Messages between the measurer and its worker.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/result.h"
#include "ir/dtype.h"
#include "lower/lower.h"
#include "measure/compare.h"
#include "measure/timing.h"
#include "record/record.h"
#include "runtime/launch.h"
#include "sched/schedule.h"

namespace tensorsmith::measure {

// One tensor of a task in the shared memory that is sent with the message.
struct TensorSpec {
  ir::DType dtype = ir::DType::kF32;
  std::vector<int64_t> shape;  // logical
  int64_t offset = 0;          // in the shared memory
  Tolerance tolerance;         // outputs only

  int64_t elements() const;
  int64_t bytes() const { return ir::bytes_of(dtype, elements()); }
};

// kTask, sent with the descriptor of a memory file that holds inputs and expected outputs. Answer:
// kTaskReady; the reason of an ok result names missing parts of the worker's sandbox, if any.
struct TaskSpec {
  std::vector<TensorSpec> inputs;   // in the order of workload.inputs()
  std::vector<TensorSpec> outputs;  // in the order of workload.outputs
  int64_t memory_bytes = 0;         // of the memory file
  int64_t memory_limit_bytes = 0;   // for candidates, beyond what the worker itself needs
  int threads = 1;                  // for candidates; the first task of a worker sets it
  bool measure_energy = false;      // of candidates; the first task of a worker sets it
};

// kRun: load, check, time. Answer: kResult.
struct RunRequest {
  std::vector<char> object;
  std::string symbol;
  std::vector<runtime::Launch> launches;  // only for devices, whose object is a module
  int64_t shared_workspace_bytes = 0;
  int64_t thread_workspace_bytes = 0;
  std::vector<lower::PreparedConstant> prepared;
  int64_t flush_bytes = 0;
  TimingOptions timing;
  // Runs the program once, and stores its outputs as the expected ones instead of comparing them.
  bool make_reference = false;
};

std::vector<char> encode(const TaskSpec& task);
std::vector<char> encode(const RunRequest& request);
std::vector<char> encode(const record::MeasureResult& result);
// kCorrupt if the bytes are not such a message or sizes are out of range.
Result<TaskSpec> decode_task(const std::vector<char>& bytes);
Result<RunRequest> decode_run(const std::vector<char>& bytes);
Result<record::MeasureResult> decode_result(const std::vector<char>& bytes);

}  // namespace tensorsmith::measure
