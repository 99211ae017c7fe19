// A task's tensors in device memory, in several copies, with guard bytes (fences) between them.
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

// Each set holds all tensors, separated by fences with known bytes:
//   | fence | input | fence | ... | output | fence |
// Successive runs use different sets, so that their data do not stay in the device's cache in a way
// that they would not in a model.
class DeviceTask {
 public:
  // data: contents of the task's memory file; it and `gpu` must outlive this object. rotate_bytes:
  // the total size that all sets should exceed, if at most kMaxSets sets suffice for that. Errors
  // as in Gpu.
  static constexpr int64_t kMaxSets = 256;
  static Result<std::unique_ptr<DeviceTask>> create(runtime::Gpu& gpu, TaskSpec spec, const std::byte* data,
                                                    int64_t rotate_bytes);

  const TaskSpec& spec() const { return spec_; }
  int sets() const { return sets_.size(); }
  const std::byte* input(size_t i) const { return data_ + spec_.inputs[i].offset; }
  // Buffers of the inputs, then of the outputs.
  std::vector<runtime::GpuSpan> buffers(int set) const;
  // Restores inputs and fences, and fills the outputs with values that no correct result contains.
  // After a successful check only the outputs are copied.
  Status reset(int set);
  // Must be called before further runs, after which the result of the last check no longer holds.
  void run_begins() { std::fill(inputs_hold_.begin(), inputs_hold_.end(), 0); }
  // Copies the output that the last run left in set 0.
  Status copy_output(size_t i, std::byte* to);
  // Returns nullopt if the set is as a correct run leaves it, else what is wrong.
  Result<std::optional<std::string>> check(int set);

 private:
  static constexpr int kMostThreads = 8;  // threads that compare
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
  std::vector<int64_t> offsets_;  // offset in a set, by buffer
  std::vector<std::byte> image_;  // initial contents of a set
  std::vector<std::unique_ptr<runtime::GpuMemory>> sets_;
  std::vector<std::byte> got_;  // contents of the set that is being checked
  std::vector<char>
      inputs_hold_;  // by set: a check found inputs and fences unchanged, and nothing has run since
  ThreadPool threads_;
};

}  // namespace tensorsmith::measure
