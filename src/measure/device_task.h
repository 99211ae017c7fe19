// A task's tensors in a device's memory, several times, with fences.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

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
  // Inputs and fences as they were, and in the outputs what no right result contains.
  Status reset(int set);
  // Nothing if the set is as a right run leaves it, else what is wrong.
  Result<std::optional<std::string>> check(int set);

 private:
  DeviceTask(runtime::Gpu& gpu, TaskSpec spec, const std::byte* data)
      : gpu_(gpu), spec_(std::move(spec)), data_(data) {}
  void make_image();
  std::optional<std::string> compare_with_image(const std::vector<std::byte>& got) const;

  runtime::Gpu& gpu_;
  TaskSpec spec_;
  const std::byte* data_;
  std::vector<int64_t> offsets_;  // in a set, by buffer
  std::vector<std::byte> image_;  // of a set
  std::vector<std::unique_ptr<runtime::GpuMemory>> sets_;
};

}  // namespace tensorsmith::measure
