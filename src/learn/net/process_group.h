// Processes, on one or several machines, that train one model together (torch.distributed's Gloo).
// Internal to learn/net.
#pragma once

#include <torch/types.h>

#include <memory>
#include <string>
#include <vector>

#include "base/result.h"
#include "learn/training.h"

namespace tensorsmith::learn::net {

using torch::Tensor;

// All processes must call the functions in the same order. The results are identical, bit by bit,
// in all processes. kIo if another process has ended or does not respond in time.
class ProcessGroup {
 public:
  // Waits for the other processes. Returns null for training by one process.
  static Result<std::unique_ptr<ProcessGroup>> join(const Processes& processes);
  virtual ~ProcessGroup() = default;

  virtual int rank() const = 0;
  virtual int count() const = 0;
  // Replaces the values by their sum over all processes. The tensor must be contiguous and on the
  // CPU.
  virtual Status sum(Tensor& values) = 0;
  // Replaces the values by those of process 0; likewise.
  virtual Status broadcast(Tensor& values) = 0;

  Result<bool> any(bool here);
  Result<std::string> broadcast(std::string bytes);
  // Replaces the tensors, on any device, by those of process 0.
  Status broadcast(const std::vector<std::pair<std::string, Tensor>>& state);
  // Replaces the gradients of the parameters by their weighted sums over all processes. A missing
  // gradient counts as zeros. number: also replaced by its sum.
  Status sum_gradients(const std::vector<Tensor>& parameters, double weight, double& number);
  // kMismatch if another process has a different text. what: "trains with other data or
  // parameters".
  Status check_same(const std::string& text, const std::string& what);
};

// Returns the range of `count` elements that is the share of process `rank`: its first element and
// the first of the next share. Shares consist of whole units, except for the last.
std::pair<size_t, size_t> share_of(size_t count, size_t unit, int rank, int processes);

}  // namespace tensorsmith::learn::net
