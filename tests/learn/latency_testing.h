// A small store of artificial programs whose times are a function of their features and their
// device, so that a model can learn them.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "base/rng.h"
#include "learn/dataset/store.h"
#include "learn/latency/queries.h"
#include "record/record_testing.h"

namespace tensorsmith::learn::testing {

inline size_t column(const std::string& name) { return feature::per_store_schema().find(name).value(); }
inline float slog(double x) { return static_cast<float>(std::log2(x + 1)); }

struct MadeProgram {
  double operations = 0, bytes = 0;
  int vector_length = 1, chunks = 1;  // CPU; for GPUs: threads per block, blocks
  int leaves = 1;                     // all alike, except that only the first has the operations
};

inline feature::LeafFeatures make_leaves(const MadeProgram& program, bool gpu) {
  feature::LeafFeatures out;
  out.vectors.rows = program.leaves;
  out.vectors.values.assign(static_cast<size_t>(program.leaves) * feature::kPerStoreWidth, 0.0F);
  for (int l = 0; l < program.leaves; ++l) {
    float* row = out.vectors.values.data() + static_cast<size_t>(l) * feature::kPerStoreWidth;
    const auto set = [&](const char* name, double value) { row[column(name)] = slog(value); };
    if (l == 0) {
      set("float_mul", program.operations / 2);
      set("float_addsub", program.operations / 2);
    }
    set("B0.unique_bytes", program.bytes);
    set("B0.lines", program.bytes / 64);
    set("outer_prod", program.operations / 2);
    if (gpu) {
      row[column("is_gpu")] = 1;
      set("threadIdx_x_len", program.vector_length);
      set("blockIdx_x_len", program.chunks);
    } else {
      set("vec_num", program.vector_length > 1 ? 1 : 0);
      set("vec_len", program.vector_length > 1 ? program.vector_length : 0);
      set("parallel_prod", program.chunks);
    }
    out.row_numbers.push_back(l);
    out.positions.push_back(3 + 4 * l);
  }
  out.tree_nodes = 8 * program.leaves;
  return out;
}

// A closed formula, close to the times of real programs.
inline double made_seconds(const MadeProgram& program, const target::Device& device) {
  const double lanes = device.kind() == target::DeviceKind::kGpu ? 256 : 16;
  const double speed = device.peak_f32_gflops * 1e9 * std::min(1.0, program.vector_length / lanes) * 0.5;
  return 2e-6 + program.operations / speed + program.bytes / (device.memory_bandwidth_gbs * 1e9) +
         1e-7 * program.leaves;
}

struct MadeStoreOptions {
  std::vector<std::string> devices = {"v100", "xeon8358"};
  int tasks = 12, programs = 40;  // programs per task and device
  double noise = 0;               // standard deviation of the logarithm
  double failures = 0;            // share of failed programs
  double device_spread = 0;       // standard deviation of the logarithm of a random factor per device
  uint64_t seed = 1;
};

// Writes a store to `path`. Programs of a task differ in their tiles, which the trace names.
inline void make_store(const std::string& path, const MadeStoreOptions& options = {}) {
  auto writer = StoreWriter::create(path);
  ASSERT_TRUE(writer.ok()) << writer.error().message();
  Rng rng(options.seed);
  Rng factors(options.seed + 1);
  std::vector<double> device_factors;
  for (size_t d = 0; d < options.devices.size(); ++d)
    device_factors.push_back(std::exp(options.device_spread * factors.normal()));
  for (int task = 0; task < options.tasks; ++task) {
    StoredWorkload workload;
    workload.key = "workload" + std::to_string(task);
    workload.name = task % 3 == 0 ? "conv2d" : task % 3 == 1 ? "matmul" : "pool";
    workload.text = "none";
    workload.flops = std::exp2(20 + 10 * rng.uniform());
    const double bytes = workload.flops / std::exp2(1 + 6 * rng.uniform());
    for (size_t d = 0; d < options.devices.size(); ++d) {
      const std::string& name = options.devices[d];
      const target::Device device = target::find_device(name).value();
      const bool gpu = device.kind() == target::DeviceKind::kGpu;
      StoreRecord record;
      record.workload = (*writer)->add_workload(workload);
      record.device = (*writer)->add_device(name);
      for (int p = 0; p < options.programs; ++p) {
        MadeProgram program;
        program.operations = workload.flops * (1 + rng.uniform());
        program.bytes = bytes * (1 + 3 * rng.uniform());
        program.vector_length = 1 << rng.below(gpu ? 11 : 6);
        program.chunks = 1 << rng.below(10);
        program.leaves = 1 + static_cast<int>(rng.below(3));
        record.leaves = make_leaves(program, gpu);
        record.trace.steps = {sched::Split{0, 0, {program.vector_length, program.chunks}},
                              sched::Unroll{0, static_cast<int64_t>(rng.below(1 << 20))}};
        record.mean_seconds =
            made_seconds(program, device) * device_factors[d] * std::exp(options.noise * rng.normal());
        record.error_no = 0;
        if (rng.uniform() < options.failures) {
          record.error_no = 4;
          record.mean_seconds = std::numeric_limits<double>::infinity();
        }
        record.seconds = {record.mean_seconds};
        ASSERT_TRUE((*writer)->add(record).ok());
      }
    }
  }
  ASSERT_TRUE((*writer)->finish().ok());
}

// An artificial store, its devices, and its records in order.
class MadeStore {
 public:
  explicit MadeStore(const MadeStoreOptions& options = {}) : MadeStore(options, "store") {}
  MadeStore(const MadeStoreOptions& options, const std::string& name) {
    make_store(folder_.file(name), options);
    auto opened = Store::open(folder_.file(name));
    EXPECT_TRUE(opened.ok()) << opened.error().message();
    store_ = std::move(*opened);
    devices_ = devices_of(*store_).value();
  }
  const Store& store() const { return *store_; }
  const std::vector<target::Device>& devices() const { return devices_; }
  const record::testing::TempDir& folder() const { return folder_; }
  // Returns eight of every ten records for training and one for validation.
  TrainingData data() const {
    TrainingData out;
    out.store = store_.get();
    out.devices = pointers_to(devices_);
    for (int64_t i = 0; i < store_->size(); ++i) {
      if (i % 10 < 8) out.train.push_back(i);
      if (i % 10 == 8) out.validation.push_back(i);
    }
    return out;
  }
  std::vector<int64_t> test() const {
    std::vector<int64_t> out;
    for (int64_t i = 9; i < store_->size(); i += 10) out.push_back(i);
    return out;
  }

 private:
  record::testing::TempDir folder_;
  std::unique_ptr<Store> store_;
  std::vector<target::Device> devices_;
};

}  // namespace tensorsmith::learn::testing
