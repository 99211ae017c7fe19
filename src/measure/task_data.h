// A task's inputs and expected outputs in memory that a worker can map.
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

// Returns for each placeholder of the workload, in order, the exclusive upper bound of its values
// if they are used as an index, directly or through other operations (Gather); 0 = no limit.
std::vector<int64_t> index_limits(const ir::Workload& workload);

// Distribution of floats: uniform in [-1, 1), or normal with deviation 1, as in real networks (the
// clock that a GPU sustains depends on the bits that its units process).
enum class InputValues : uint8_t { kUniform, kNormal };

// Generates the contents of all placeholders from a seed.
std::vector<lower::Tensor> random_inputs(const ir::Workload& workload, uint64_t seed,
                                         InputValues values = InputValues::kUniform);

// The memory file of a task with its layout: inputs, then outputs, each 64-byte aligned.
class TaskData {
 public:
  // Copies the inputs; the outputs are zero until the caller writes them.
  static Result<std::unique_ptr<TaskData>> create(const ir::Workload& workload,
                                                  std::span<const lower::Tensor> inputs,
                                                  int64_t memory_limit_bytes, int threads,
                                                  bool measure_energy = false);
  ~TaskData();
  TaskData(const TaskData&) = delete;
  TaskData& operator=(const TaskData&) = delete;

  const TaskSpec& spec() const { return spec_; }
  int fd() const { return fd_; }
  std::byte* output(size_t i) { return address_ + spec_.outputs[i].offset; }
  // Makes the expected outputs final: mappings made from now on cannot write to the file (if the
  // kernel has that seal, Linux 5.1). This process's own mapping stays writable.
  void seal();
  // Computes the tolerances from the expected outputs, which must be complete.
  void set_tolerances(const ir::Workload& workload);

 private:
  TaskData() = default;
  TaskSpec spec_;
  int fd_ = -1;
  std::byte* address_ = nullptr;
};

// Compares expected outputs that a compiled program made with the definition of the workload: the
// first, the last and random elements of each output, as many as the budget of operations permits
// but at least 64 (or all). The tolerances are those of `data`. kMismatch names the element.
Status verify_points(const ir::Workload& workload, std::span<const lower::Tensor> inputs, TaskData& data,
                     double budget_flops, uint64_t seed);

}  // namespace tensorsmith::measure
