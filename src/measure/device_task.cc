#include "measure/device_task.h"

#include <algorithm>
#include <cstring>
#include <mutex>
#include <utility>

namespace tensorsmith::measure {
namespace {

constexpr int64_t kDeviceFenceBytes = runtime::kGpuOffsetAlignment;
constexpr std::byte kFence{0xA5};

int64_t device_aligned(int64_t bytes) {
  return (bytes + runtime::kGpuOffsetAlignment - 1) / runtime::kGpuOffsetAlignment *
         runtime::kGpuOffsetAlignment;
}

}  // namespace

Result<std::unique_ptr<DeviceTask>> DeviceTask::create(runtime::Gpu& gpu, TaskSpec spec,
                                                       const std::byte* data, int64_t rotate_bytes) {
  std::unique_ptr<DeviceTask> task(new DeviceTask(gpu, std::move(spec), data));
  task->make_image();
  const auto bytes = std::ssize(task->image_);
  const int64_t sets = std::clamp<int64_t>((rotate_bytes + bytes - 1) / bytes, 1, kMaxSets);
  for (int64_t i = 0; i < sets; ++i) {
    auto memory = gpu.allocate(bytes);
    // Continues with fewer sets if memory is exhausted after the first.
    if (!memory.ok() && i > 0 && memory.error().code == ErrorCode::kResourceExhausted) break;
    if (!memory.ok()) return std::move(memory).error();
    task->sets_.push_back(std::move(memory).value());
    task->inputs_hold_.push_back(0);
    TS_RETURN_IF_ERROR(task->reset(i));
  }
  return task;
}

void DeviceTask::make_image() {
  int64_t end = kDeviceFenceBytes;
  for (const auto* list : {&spec_.inputs, &spec_.outputs}) {
    for (const TensorSpec& tensor : *list) {
      offsets_.push_back(end);
      end = device_aligned(end + tensor.bytes() + kDeviceFenceBytes);
    }
  }
  image_.assign(end, kFence);
  for (size_t i = 0; i < offsets_.size(); ++i) {
    std::byte* place = image_.data() + offsets_[i];
    const bool input = i < spec_.inputs.size();
    const TensorSpec& tensor = input ? spec_.inputs[i] : spec_.outputs[i - spec_.inputs.size()];
    if (tensor.bytes() == 0) continue;
    if (input) {
      std::memcpy(place, data_ + tensor.offset, tensor.bytes());
    } else {
      poison(data_ + tensor.offset, tensor.bytes(), place);
    }
  }
}

std::vector<runtime::GpuSpan> DeviceTask::buffers(int set) const {
  std::vector<runtime::GpuSpan> spans;
  const runtime::GpuMemory* memory = sets_[set].get();
  for (size_t i = 0; i < offsets_.size(); ++i) {
    const size_t inputs = spec_.inputs.size();
    const int64_t bytes = i < inputs ? spec_.inputs[i].bytes() : spec_.outputs[i - inputs].bytes();
    spans.push_back({memory, offsets_[i], bytes});
  }
  return spans;
}

Status DeviceTask::reset(int set) {
  // The next runs may change the set until a check follows.
  const bool inputs_hold = std::exchange(inputs_hold_[set], 0) != 0;
  const runtime::GpuMemory* memory = sets_[set].get();
  if (!inputs_hold) return gpu_.copy_in(memory->all(), image_.data());
  for (size_t i = 0; i < spec_.outputs.size(); ++i) {
    const int64_t offset = offsets_[spec_.inputs.size() + i], bytes = spec_.outputs[i].bytes();
    if (bytes > 0) TS_RETURN_IF_ERROR(gpu_.copy_in({memory, offset, bytes}, image_.data() + offset));
  }
  return {};
}

Result<std::optional<std::string>> DeviceTask::check(int set) {
  got_.resize(image_.size());
  TS_RETURN_IF_ERROR(gpu_.copy_out(sets_[set]->all(), got_.data()));
  std::optional<std::string> wrong = compare_with_image();
  inputs_hold_[set] = wrong ? 0 : 1;
  return wrong;
}

Status DeviceTask::copy_output(size_t i, std::byte* to) {
  return gpu_.copy_out({sets_[0].get(), offsets_[spec_.inputs.size() + i], spec_.outputs[i].bytes()}, to);
}

// Compares parts in parallel, since an output of some hundred megabytes would take longer than the
// kernel.
std::optional<Mismatch> DeviceTask::compare_output(const TensorSpec& tensor, const std::byte* got) {
  const std::byte* expected = data_ + tensor.offset;
  const int64_t elements = tensor.elements(), bytes = ir::bytes_of(tensor.dtype);
  // The number of elements that may be wrong applies to the whole tensor.
  if (tensor.tolerance.allowed > 0) return compare(tensor.dtype, elements, got, expected, tensor.tolerance);
  constexpr int64_t kLeastElements = 1 << 16;
  std::mutex mutex;
  std::optional<Mismatch> first;
  int64_t count = 0;
  threads_.parallel_for(elements, kLeastElements, [&](int64_t begin, int64_t end) {
    auto found =
        compare(tensor.dtype, end - begin, got + begin * bytes, expected + begin * bytes, tensor.tolerance);
    if (!found) return;
    found->index += begin;
    const std::lock_guard lock(mutex);
    count += found->count;
    if (!first || found->index < first->index) first = found;
  });
  if (first) first->count = count;
  return first;
}

std::optional<std::string> DeviceTask::compare_with_image() {
  const std::vector<std::byte>& got = got_;
  int64_t clean = 0;  // all bytes before it were compared
  const auto unchanged = [&](int64_t end) {
    const bool same = std::memcmp(got.data() + clean, image_.data() + clean, end - clean) == 0;
    clean = end;
    return same;
  };
  const std::string outside = "writes outside of its outputs: ";
  for (size_t i = 0; i < offsets_.size(); ++i) {
    const bool input = i < spec_.inputs.size();
    const size_t number = input ? i : i - spec_.inputs.size();
    const std::string name = (input ? "input " : "output ") + std::to_string(number);
    if (!unchanged(offsets_[i])) return outside + "before " + name;
    const TensorSpec& tensor = input ? spec_.inputs[number] : spec_.outputs[number];
    if (input) {
      if (!unchanged(offsets_[i] + tensor.bytes())) return outside + name;
      continue;
    }
    const auto mismatch = compare_output(tensor, got.data() + offsets_[i]);
    if (mismatch) return name + ": " + describe(*mismatch, tensor.elements());
    clean = offsets_[i] + tensor.bytes();
  }
  if (!unchanged(std::ssize(got))) return outside + "after the last output";
  return std::nullopt;
}

}  // namespace tensorsmith::measure
