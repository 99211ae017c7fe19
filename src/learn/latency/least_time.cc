#include "learn/latency/least_time.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>

#include "ir/analysis.h"
#include "sched/tensor_cores.h"
#include "target/micro_architecture.h"

namespace tensorsmith::learn {
namespace {

double extent_of(const std::vector<ir::Axis>& axes) {
  double out = 1;
  for (const ir::Axis& axis : axes) out *= axis.extent;
  return out;
}

double bytes_of(const ir::Buffer& buffer) {
  double out = ir::bytes_of(buffer->dtype);
  for (const int64_t extent : buffer->shape) out *= extent;
  return out;
}

bool rounds_to_tf32(const ir::Expr& body) {
  bool found = false;
  ir::for_each_expr(body, [&](const ir::Expr& e) {
    const auto* call = ir::as<ir::Call>(e);
    found |= call != nullptr && call->intrinsic == ir::Intrinsic::kRoundTf32;
  });
  return found;
}

// Returns the products of these operands that tensor cores compute per cycle and lane; 0 if they do
// not support the operands.
double tensor_core_products(const ir::Expr& body, const target::Device& device) {
  const int capability = target::compute_capability(device);
  double most = 0;
  for (const ir::Load* load : ir::loads_of(body)) {
    const ir::DType type = load->buffer->dtype;
    if (type == ir::DType::kF32 && !rounds_to_tf32(body)) continue;
    if (sched::has_mma(capability, type, type))
      most = std::max(most, sched::kMostMmaBytes / ir::bytes_of(type));
  }
  return most;
}

// Returns the least number of operations on 4-byte lanes that a reduction takes.
double lane_operations(const ir::Operation& op, const target::Device& device) {
  if (op.is_placeholder() || !op.has_reduction()) return 0;
  const ir::Expr& body = op.bodies.front();
  bool product = false;
  ir::for_each_expr(body, [&](const ir::Expr& e) {
    const auto* binary = std::get_if<ir::Binary>(&e->kind);
    // Index arithmetic is excluded by its type.
    product |= binary != nullptr && binary->op == ir::BinaryOp::kMul && e.dtype() == body.dtype();
    product |= std::holds_alternative<ir::Call>(e->kind);
  });
  // Short integers may be multiplied in pairs or fours; at best, two short floats fit into a lane.
  double of_a_lane = ir::is_float(body.dtype()) ? std::max(4.0 / ir::bytes_of(body.dtype()), 1.0) : 4.0;
  if (product) of_a_lane = std::max(of_a_lane, tensor_core_products(body, device));
  const double operations = product && op.combiner == ir::Combiner::kSum ? 2 : 1;
  return extent_of(op.spatial) * extent_of(op.reduce) * operations / of_a_lane;
}

// Returns the number of iterations of the largest parallel loop nest.
double chunks_of(const feature::LeafFeatures& leaves) {
  double out = 1;
  for (int r = 0; r < leaves.vectors.rows; ++r) {
    const feature::PerStoreRow leaf(leaves.vectors.row(r));
    out = std::max(out, std::round(leaf.quantity("parallel_prod")));
  }
  return out;
}

}  // namespace

// If few elements of a tensor are taken (Gather, Slice), only these count.
std::vector<double> read_bytes(const ir::Workload& workload) {
  std::map<const ir::BufferNode*, double> reads;
  for (const ir::OperationRef& op : workload.operations) {
    if (op->is_placeholder()) continue;
    const double points = extent_of(op->spatial) * extent_of(op->reduce);
    for (const ir::Expr& body : op->bodies) {
      for (const ir::Load* load : ir::loads_of(body)) reads[load->buffer.get()] += points;
    }
  }
  std::vector<double> out;
  for (const ir::Buffer& input : workload.inputs())
    out.push_back(std::min(bytes_of(input), reads[input.get()] * ir::bytes_of(input->dtype)));
  return out;
}

double streaming_seconds(double bytes, const target::Device& device) {
  if (device.memory_bandwidth_gbs <= 0) return 0;
  const double l2 =
      device.l2_bytes * (device.kind() == target::DeviceKind::kCpu ? std::max(device.cpu().cores, 1) : 1);
  return bytes > l2 + device.l3_bytes ? bytes / (device.memory_bandwidth_gbs * 1e9) : 0;
}

namespace {

// Returns the peak rate at the highest clock: a CPU may run faster than the sustained clock that
// the peak of a known device is computed with.
double highest_rate(const target::Device& device) {
  double rate = device.peak_f32_gflops * 1e9;
  if (device.kind() != target::DeviceKind::kCpu) return rate;
  if (device.cpu().fma_per_cycle > 0) rate *= target::products_per_cycle(device) / device.cpu().fma_per_cycle;
  if (device.clock_ghz > 0) rate *= std::max(device.boost_clock_ghz / device.clock_ghz, 1.0);
  return rate;
}

}  // namespace

double least_seconds(const ir::Workload& workload, const sched::Schedule& schedule,
                     const feature::LeafFeatures& leaves, const target::Device& device) {
  const double cores = std::max(device.compute_units(), 1);
  const double busy =
      device.kind() == target::DeviceKind::kCpu ? std::min(1.0, chunks_of(leaves) / cores) : 1.0;
  double seconds = device.kind() == target::DeviceKind::kGpu ? device.launch_overhead_us * 1e-6 : 0;
  if (device.peak_f32_gflops > 0) {
    double defined = 0, scheduled = 0;
    for (const ir::OperationRef& op : workload.operations) defined += lane_operations(*op, device);
    for (const sched::Stage& stage : schedule.stages)
      scheduled += stage.attach == sched::AttachKind::kInlined ? 0 : lane_operations(*stage.op, device);
    seconds = std::max(seconds, std::min(defined, scheduled) / (highest_rate(device) * busy));
  }
  double read = 0, written = 0;
  for (const double bytes : read_bytes(workload)) read += bytes;
  for (const ir::Buffer& output : workload.outputs) written += bytes_of(output);
  if (device.kind() == target::DeviceKind::kCpu && device.clock_ghz > 0) {
    const double clock = std::max(device.clock_ghz, device.boost_clock_ghz);
    const double vector = cores * busy * clock * 1e9 * std::max(device.cpu().vector_bytes, 4);
    seconds = std::max({seconds, read / (2 * vector), written / vector});
  }
  return std::max(seconds, streaming_seconds(read + written, device));
}

}  // namespace tensorsmith::learn
