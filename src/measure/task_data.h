// A task's inputs and expected outputs, in memory that a worker can map.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/result.h"
#include "ir/workload.h"
#include "lower/interpreter.h"
#include "measure/protocol.h"

namespace tensorsmith::measure {

// For each placeholder of the workload, in order: the values that the contents must stay below because they
// are used as an index, directly or through other operations (Gather); 0 = no limit.
std::vector<int64_t> index_limits(const ir::Workload& workload);

// How floats are distributed: in [-1, 1), or normally with deviation 1, as a network's values roughly are (what a GPU's
// clock holds out depends on the bits that its units see).
enum class InputValues : uint8_t { kUniform, kNormal };

// Seeded contents of all placeholders.
std::vector<lower::Tensor> random_inputs(const ir::Workload& workload, uint64_t seed,
                                         InputValues values = InputValues::kUniform);

// The memory file of a task and what is where in it. Layout: inputs, then outputs, each 64-byte aligned.
class TaskData {
 public:
  // Inputs are filled in; the outputs are zero until the caller writes them.
  static Result<std::unique_ptr<TaskData>> create(const ir::Workload& workload,
                                                  std::span<const lower::Tensor> inputs,
                                                  int64_t memory_limit_bytes, int threads);
  ~TaskData();
  TaskData(const TaskData&) = delete;
  TaskData& operator=(const TaskData&) = delete;

  const TaskSpec& spec() const { return spec_; }
  int fd() const { return fd_; }
  std::byte* output(size_t i) { return address_ + spec_.outputs[i].offset; }
  // The expected outputs are final: whoever maps the file from here on can no longer write to it (where the
  // kernel has that seal, Linux 5.1). This process's own mapping stays as it is.
  void seal();
  // Sets the tolerances from the expected outputs, once they are there.
  void set_tolerances(const ir::Workload& workload);

 private:
  TaskData() = default;
  TaskSpec spec_;
  int fd_ = -1;
  std::byte* address_ = nullptr;
};

// Compares expected outputs that a compiled program made with the definition of the workload: the first, the
// last and random elements of each output, as many as fit a budget of operations, at least 64 (or all).
// Tolerances are those of the data. Error kMismatch names the element.
Status verify_points(const ir::Workload& workload, std::span<const lower::Tensor> inputs, TaskData& data,
                     double budget_flops, uint64_t seed);

}  // namespace tensorsmith::measure
