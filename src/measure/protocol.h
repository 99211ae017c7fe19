// What the measurer asks its worker and what the worker answers.
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

// One tensor of a task, in the shared memory that comes with the message.
struct TensorSpec {
  ir::DType dtype = ir::DType::kF32;
  std::vector<int64_t> shape;  // logical
  int64_t offset = 0;          // in the shared memory
  Tolerance tolerance;         // outputs only

  int64_t elements() const;
  int64_t bytes() const { return elements() * ir::bytes_of(dtype); }
};

// kTask, with the descriptor of a memory file: inputs and expected outputs. Answer: kTaskReady; an ok
// result's reason says what the worker's sandbox lacks, if anything.
struct TaskSpec {
  std::vector<TensorSpec> inputs;   // by workload.inputs()
  std::vector<TensorSpec> outputs;  // by workload.outputs
  int64_t memory_bytes = 0;         // of the memory file
  int64_t memory_limit_bytes = 0;   // for the candidates, beyond what the worker itself needs
  int threads = 1;                  // for the candidates; a worker's first task decides
};

// kRun: load, check, time. Answer: kResult.
struct RunRequest {
  std::vector<char> object;
  std::string symbol;
  std::vector<runtime::Launch> launches;  // devices, whose object is a module
  int64_t shared_workspace_bytes = 0;
  int64_t thread_workspace_bytes = 0;
  std::vector<lower::PreparedConstant> prepared;
  int64_t flush_bytes = 0;
  TimingOptions timing;
  // Run once, and store the outputs as the expected ones instead of comparing them.
  bool make_reference = false;
};

std::vector<char> encode(const TaskSpec& task);
std::vector<char> encode(const RunRequest& request);
std::vector<char> encode(const record::MeasureResult& result);
// kCorrupt if the bytes are no such message, or sizes are out of range.
Result<TaskSpec> decode_task(const std::vector<char>& bytes);
Result<RunRequest> decode_run(const std::vector<char>& bytes);
Result<record::MeasureResult> decode_result(const std::vector<char>& bytes);

}  // namespace tensorsmith::measure
