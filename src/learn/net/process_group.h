// Processes that train one model together, on one machine or several (torch.distributed's Gloo). Internal to learn/net.
#pragma once

#include <torch/types.h>

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "learn/training.h"

namespace tensorsmith::learn::net {

using torch::Tensor;

// All processes call its functions in the same order. Whatever they give is the same, bit by bit, in each.
// kIo where another process is gone or does not come in time.
class ProcessGroup {
 public:
  // Waits for the others. Null for a training of one process.
  static Result<std::unique_ptr<ProcessGroup>> join(const Processes& processes);
  virtual ~ProcessGroup() = default;

  virtual int rank() const = 0;
  virtual int count() const = 0;
  // Of all processes, in place. On the CPU, contiguous.
  virtual Status sum(Tensor& values) = 0;
  // Those of the process 0, in place.
  virtual Status broadcast(Tensor& values) = 0;

  Result<bool> any(bool here);
  Result<std::string> broadcast(std::string bytes);
  // Those of the process 0, in place, wherever they are.
  Status broadcast(const std::vector<std::pair<std::string, Tensor>>& state);
  // Makes the gradients of the parameters the sums of all processes' times their weights. A parameter without a gradient
  // counts as zeros. number: added up, too.
  Status sum_gradients(const std::vector<Tensor>& parameters, double weight, double& number);
  // kMismatch where another process has another text. what: "trains with other data or parameters".
  Status check_same(const std::string& text, const std::string& what);
};

// The first of `count` elements that are the process's share, and the first that are the next's: in whole units, but for the
// last.
std::pair<size_t, size_t> share_of(size_t count, size_t unit, int rank, int processes);

}  // namespace tensorsmith::learn::net
