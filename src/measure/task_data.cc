#include "measure/task_data.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <unordered_map>

#include "base/hash.h"
#include "base/processors.h"
#include "base/rng.h"
#include "base/thread_pool.h"
#include "ir/analysis.h"

namespace tensorsmith::measure {
namespace {

constexpr int64_t kAlignment = 64;
int64_t aligned(int64_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

using Limits = std::unordered_map<const ir::BufferNode*, int64_t>;

void lower_limit(Limits& limits, const ir::Buffer& buffer, int64_t limit) {
  if (!ir::is_int(buffer->dtype) || limit <= 0) return;
  auto [it, fresh] = limits.emplace(buffer.get(), limit);
  if (!fresh) it->second = std::min(it->second, limit);
}

// Limits every buffer that is read by e.
void limit_loads(Limits& limits, const ir::Expr& e, int64_t limit) {
  for (const ir::Load* load : ir::loads_of(e)) lower_limit(limits, load->buffer, limit);
}

// Generates each block with a generator of its own, so that the values do not depend on the number
// of threads. A single thread would take seconds for some hundred million values.
lower::Tensor normal_tensor(const ir::BufferNode& buffer, Rng& rng) {
  constexpr int64_t kBlock = int64_t{1} << 18;
  lower::Tensor tensor = lower::Tensor::zeros(buffer.dtype, buffer.shape);
  const int64_t n = tensor.num_elements(), blocks = (n + kBlock - 1) / kBlock;
  std::vector<Rng> rngs;
  for (int64_t b = 0; b < blocks; ++b) rngs.push_back(rng.fork());
  const auto fill = [&](int64_t begin, int64_t end) {
    for (int64_t b = begin; b < end; ++b) {
      for (int64_t i = b * kBlock; i < std::min(n, (b + 1) * kBlock); ++i)
        tensor.set(i, ir::scalar_float(buffer.dtype, rngs[b].normal()));
    }
  };
  if (blocks <= 1)
    fill(0, blocks);
  else
    ThreadPool(std::min<int64_t>(processors().at_once, blocks)).parallel_for(blocks, 1, fill);
  return tensor;
}

}  // namespace

std::vector<int64_t> index_limits(const ir::Workload& workload) {
  Limits limits;
  // Goes from consumers to producers: a limit of an operation's output also limits the integers
  // that it is computed from.
  for (auto it = workload.operations.rbegin(); it != workload.operations.rend(); ++it) {
    const ir::Operation& op = **it;
    for (size_t b = 0; b < op.bodies.size(); ++b) {
      const auto found = limits.find(op.outputs[b].get());
      if (found != limits.end()) limit_loads(limits, op.bodies[b], found->second);
      for (const ir::Load* load : ir::loads_of(op.bodies[b])) {
        for (size_t d = 0; d < load->indices.size(); ++d)
          limit_loads(limits, load->indices[d], load->buffer->shape[d]);
      }
    }
  }
  std::vector<int64_t> result;
  for (const auto& input : workload.inputs()) {
    const auto it = limits.find(input.get());
    result.push_back(it == limits.end() ? 0 : it->second);
  }
  return result;
}

std::vector<lower::Tensor> random_inputs(const ir::Workload& workload, uint64_t seed, InputValues values) {
  Rng rng(seed);
  const std::vector<int64_t> limits = index_limits(workload);
  std::vector<lower::Tensor> tensors;
  for (const auto& op : workload.operations) {
    if (!op->is_placeholder()) continue;
    const ir::Buffer& input = op->output();
    const int64_t limit = limits[tensors.size()];
    if (values == InputValues::kNormal && ir::is_float(input->dtype)) {
      tensors.push_back(normal_tensor(*input, rng));
      continue;
    }
    const bool i8 = input->dtype == ir::DType::kI8;
    if (limit > 0 || (!i8 && input->dtype != ir::DType::kU8)) {
      tensors.push_back(lower::random_tensor(input->dtype, input->shape, rng, limit));
      continue;
    }
    // Bytes take all values of their range, so that saturating instructions are detected.
    tensors.push_back(lower::Tensor::zeros(input->dtype, input->shape));
    const int64_t least = op->reduced_range ? ir::reduced_range_min(input->dtype) : i8 ? -128 : 0;
    const int64_t most = op->reduced_range ? ir::reduced_range_max(input->dtype) : i8 ? 127 : 255;
    for (std::byte& value : tensors.back().data) value = static_cast<std::byte>(rng.uniform_int(least, most));
  }
  return tensors;
}

Result<std::unique_ptr<TaskData>> TaskData::create(const ir::Workload& workload,
                                                   std::span<const lower::Tensor> inputs,
                                                   int64_t memory_limit_bytes, int threads,
                                                   bool measure_energy) {
  std::unique_ptr<TaskData> data(new TaskData);
  TaskSpec& spec = data->spec_;
  const auto place = [&](const ir::Buffer& buffer) {
    TensorSpec tensor;
    tensor.dtype = buffer->dtype;
    tensor.shape = buffer->shape;
    tensor.offset = spec.memory_bytes;
    spec.memory_bytes = aligned(spec.memory_bytes + tensor.bytes());
    return tensor;
  };
  for (const auto& input : workload.inputs()) spec.inputs.push_back(place(input));
  for (const auto& output : workload.outputs) spec.outputs.push_back(place(output));
  spec.memory_bytes = std::max(spec.memory_bytes, kAlignment);
  // The worker holds the tensors a second time, plus prepared copies of constants.
  spec.memory_limit_bytes = memory_limit_bytes + 4 * spec.memory_bytes;
  spec.threads = threads;
  spec.measure_energy = measure_energy;

  const auto failed = [&](const char* what) {
    return Error{ErrorCode::kResourceExhausted, "",
                 std::string(what) + " for " + std::to_string(spec.memory_bytes) + " bytes of task data"};
  };
  data->fd_ = ::memfd_create("tensorsmith-task", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (data->fd_ < 0 || ::ftruncate(data->fd_, spec.memory_bytes) != 0)
    return failed("cannot create a memory file");
  void* address = ::mmap(nullptr, spec.memory_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, data->fd_, 0);
  if (address == MAP_FAILED) return failed("cannot map memory");
  data->address_ = static_cast<std::byte*>(address);
  for (size_t i = 0; i < inputs.size(); ++i) {
    TS_CHECK(std::ssize(inputs[i].data) == spec.inputs[i].bytes(), "input sizes differ");
    if (!inputs[i].data.empty())
      std::memcpy(data->address_ + spec.inputs[i].offset, inputs[i].data.data(), inputs[i].data.size());
  }
  return data;
}

TaskData::~TaskData() {
  if (address_) ::munmap(address_, spec_.memory_bytes);
  if (fd_ >= 0) ::close(fd_);
}

void TaskData::seal() { (void)::fcntl(fd_, F_ADD_SEALS, F_SEAL_FUTURE_WRITE | F_SEAL_SHRINK | F_SEAL_GROW); }

void TaskData::set_tolerances(const ir::Workload& workload) {
  for (size_t i = 0; i < spec_.outputs.size(); ++i)
    spec_.outputs[i].tolerance = tolerance_for(workload, i, output(i));
}

Status verify_points(const ir::Workload& workload, std::span<const lower::Tensor> inputs, TaskData& data,
                     double budget_flops, uint64_t seed) {
  Rng rng(seed);
  const double flops = std::max(1.0, ir::flop_count(workload));
  for (size_t o = 0; o < data.spec().outputs.size(); ++o) {
    const TensorSpec& tensor = data.spec().outputs[o];
    const int64_t n = tensor.elements();
    if (n == 0) continue;
    // An element of a whole chain of reductions may need far more than its share; the minimum
    // number is always checked.
    const double affordable = budget_flops / flops * n;
    const auto count = std::min(n, static_cast<int64_t>(std::clamp(affordable, 64.0, 4096.0)));
    std::vector<int64_t> points = {0, n - 1};
    while (std::ssize(points) < count) points.push_back(rng.below(n));
    std::sort(points.begin(), points.end());
    points.erase(std::unique(points.begin(), points.end()), points.end());
    TS_ASSIGN_OR_RETURN(const auto values, lower::evaluate_points(workload, inputs, o, points));
    const int64_t element_bytes = ir::bytes_of(tensor.dtype);
    std::vector<std::byte> got(points.size() * element_bytes), expected(points.size() * element_bytes);
    for (size_t i = 0; i < points.size(); ++i) {
      ir::store_scalar(values[i], expected.data() + i * element_bytes);
      std::memcpy(got.data() + i * element_bytes, data.output(o) + points[i] * element_bytes, element_bytes);
    }
    auto mismatch = compare(tensor.dtype, std::ssize(points), got.data(), expected.data(), tensor.tolerance);
    if (!mismatch) continue;
    mismatch->index = points[mismatch->index];
    return Error{ErrorCode::kMismatch, "output " + std::to_string(o),
                 describe(*mismatch, std::ssize(points))};
  }
  return {};
}

}  // namespace tensorsmith::measure
