// A task's tensors in a device's memory, several times, with fences.
#pragma once

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/processors.h"
#include "base/thread_pool.h"
#include "measure/compare.h"
#include "measure/protocol.h"
#include "runtime/device/gpu.h"

namespace tensorsmith::measure {

// Each set holds all tensors, with known bytes between them:
//   | fence | input | fence | ... | output | fence |
// Runs go from set to set, so that their data do not stay in the device's cache where they would not in a model.
class DeviceTask {
 public:
  // data: of the task's memory file, which outlives this object, as gpu does. rotate_bytes: what all sets together are
  // to exceed, where that takes no more than kMaxSets. Errors as of Gpu.
  static constexpr int64_t kMaxSets = 256;
  static Result<std::unique_ptr<DeviceTask>> create(runtime::Gpu& gpu, TaskSpec spec, const std::byte* data,
                                                    int64_t rotate_bytes);

  const TaskSpec& spec() const { return spec_; }
  int sets() const { return static_cast<int>(sets_.size()); }
  const std::byte* input(size_t i) const { return data_ + spec_.inputs[i].offset; }
  // Inputs, then outputs.
  std::vector<runtime::GpuSpan> buffers(int set) const;
  // Inputs and fences as they were, and in the outputs what no right result contains. After a check that found nothing
  // wrong only outputs are copied.
  Status reset(int set);
  // Runs begin that no check has seen.
  void run_begins() { std::fill(inputs_hold_.begin(), inputs_hold_.end(), 0); }
  // The output as the last run left it in set 0.
  Status copy_output(size_t i, std::byte* to);
  // Nothing if the set is as a right run leaves it, else what is wrong.
  Result<std::optional<std::string>> check(int set);

 private:
  static constexpr int kMostThreads = 8;  // that compare
  DeviceTask(runtime::Gpu& gpu, TaskSpec spec, const std::byte* data)
      : gpu_(gpu),
        spec_(std::move(spec)),
        data_(data),
        threads_(std::min(processors().at_once, kMostThreads)) {}
  void make_image();
  std::optional<std::string> compare_with_image();
  std::optional<Mismatch> compare_output(const TensorSpec& tensor, const std::byte* got);

  runtime::Gpu& gpu_;
  TaskSpec spec_;
  const std::byte* data_;
  std::vector<int64_t> offsets_;  // in a set, by buffer
  std::vector<std::byte> image_;  // of a set
  std::vector<std::unique_ptr<runtime::GpuMemory>> sets_;
  std::vector<std::byte> got_;  // of the set that is checked
  std::vector<char>
      inputs_hold_;  // by set: inputs and fences were seen to be as they were, and nothing ran since
  ThreadPool threads_;
};

}  // namespace tensorsmith::measure
