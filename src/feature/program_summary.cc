#include "feature/program_summary.h"

#include <algorithm>
#include <array>

#include "feature/summary_parts.h"
#include "feature/summary_schema.h"
#include "sched/tensor_cores.h"

namespace tensorsmith::feature {

namespace {

constexpr size_t kMostResources =
    std::max({kTiledGpuResources.size(), kFlatGpuResources.size(), kCpuTiledResources.size(),
              kLeafResources.size(), kNestResources.size()});
constexpr size_t kMostColumns =
    std::max({kGpuTiledColumns.size(), kGpuFlatColumns.size(), kCpuTiledColumns.size(),
              kCpuOtherColumns.size(), kCpuNestsColumns.size()});

// Adds the columns that every kind has.
void add_common(const WorkloadAccess& access, const target::Device& device, ProgramSummary& out) {
  Quantities<kCommonColumns> columns;
  columns.set("flops", access.flops);
  columns.set("input_bytes", access.input_bytes);
  columns.set("output_bytes", access.output_bytes);
  columns.set("intensity", access.flops / std::max(access.input_bytes + access.output_bytes, 1.0));
  columns.set("compute_seconds", access.flops / (std::max(device.peak_f32_gflops, 1.0) * 1e9));
  columns.set("roofline_seconds", out.roofline_seconds);
  add_columns(columns, out);
  if (device.kind() != target::DeviceKind::kGpu) return;
  const target::GpuMachine gpu(device);
  Quantities<kGpuDeviceColumns> figures;
  figures.set("device_cycles", gpu.cores * gpu.clock_hz);
  figures.set("device_bandwidth", gpu.bytes_per_second);
  figures.set("device_l2", gpu.l2_bytes);
  figures.set("device_balance", gpu.flops_per_second / gpu.bytes_per_second);
  add_columns(figures, out);
}

ProgramKind summarize(const WorkloadAccess& access, const LeafFeatures& leaves, const sched::Trace& trace,
                      const target::Device& device, ProgramSummary& out) {
  const bool gpu = device.kind() == target::DeviceKind::kGpu;
  if (!gpu && access.workload != nullptr && summarize_nests(access, trace, device, out))
    return ProgramKind::kCpuNests;
  const TraceSummary steps = summarize_trace(trace, access, gpu);
  const Tiles* tiles = steps.tiles ? &*steps.tiles : nullptr;
  if (!gpu) {
    summarize_cpu(access, tiles, steps, leaves, device, out);
    return tiles != nullptr ? ProgramKind::kCpuTiled : ProgramKind::kCpuOther;
  }
  if (tiles == nullptr) {
    summarize_flat_gpu(access, steps, total_leaves(leaves), device, out);
    return ProgramKind::kGpuFlat;
  }
  summarize_tiled_gpu(access, *tiles, steps, device, out);
  return ProgramKind::kGpuTiled;
}

bool on_tensor_cores(const WorkloadAccess& access, const target::Device& device) {
  return access.mma_factors &&
         sched::has_mma(target::compute_capability(device), *access.mma_factors, *access.mma_factors);
}

// Resources and columns do not describe tensor cores; the times that follow from them would be
// hundreds of times too long.
double mma_roofline(const WorkloadAccess& access, const target::Device& device) {
  const target::GpuMachine gpu(device);
  const double rate = gpu.flops_per_second * sched::kMostMmaBytes / ir::bytes_of(*access.mma_factors);
  return std::max(
      {access.flops / rate, (access.input_bytes + access.output_bytes) / gpu.bytes_per_second, 1e-7});
}

SummarySchema make_schema(ProgramKind kind, std::span<const Column> resources,
                          std::span<const Column> columns) {
  const std::string name(to_string(kind));
  return {
      {name + ".resources", "Seconds for which a program keeps each resource of the device busy", resources},
      {name + ".columns", "Properties of a program and its device", columns}};
}

}  // namespace

std::string_view to_string(ProgramKind kind) {
  switch (kind) {
    case ProgramKind::kGpuTiled:
      return "gpu-tiled";
    case ProgramKind::kGpuFlat:
      return "gpu-flat";
    case ProgramKind::kCpuTiled:
      return "cpu-tiled";
    case ProgramKind::kCpuOther:
      return "cpu-other";
    case ProgramKind::kCpuNests:
      return "cpu-nests";
  }
  return "";
}

LeafTotals total_leaves(const LeafFeatures& leaves) {
  LeafTotals out;
  out.leaves = leaves.vectors.rows;
  for (int l = 0; l < leaves.vectors.rows; ++l) {
    const PerStoreRow row(leaves.vectors.row(l));
    out.float_ops += row.quantity("float_addsub") + row.quantity("float_mul") + row.quantity("float_divmod") +
                     row.quantity("float_cmp");
    out.math_ops += row.quantity("float_mathfunc") + row.quantity("float_otherfunc");
    out.int_ops += row.quantity("int_addsub") + row.quantity("int_mul");
    out.int_divisions += row.quantity("int_divmod");
    out.int_compares += row.quantity("int_cmp");
    out.selects += row.quantity("bool_op") + row.quantity("select_op");
    const double runs = row.quantity("outer_prod");
    out.runs += runs;
    out.most_runs = std::max(out.most_runs, runs);
    for (size_t b = 0; b < kRowBuffers; ++b) {
      out.bytes += row.buffer(b).quantity("bytes");
      out.lines += row.buffer(b).quantity("lines");
    }
    const std::pair grid = {std::round(row.quantity("blockIdx_x_len")),
                            std::round(row.quantity("threadIdx_x_len"))};
    if (std::find(out.grids.begin(), out.grids.end(), grid) == out.grids.end()) out.grids.push_back(grid);
    out.grid = std::max(out.grid, grid.first);
    out.threads = std::max(out.threads, grid.second);
  }
  return out;
}

ByAxis<double> touched_extents(const WorkloadAccess::Read& read, std::span<const double> spatial,
                               std::span<const double> reduce) {
  ByAxis<double> out(read.dims.size(), 1);
  for (size_t d = 0; d < read.dims.size(); ++d) {
    for (const auto& term : read.dims[d]) {
      const double size = (term.reduce ? reduce : spatial)[term.axis];
      out[d] += std::abs(term.coefficient) * (size - 1);
    }
  }
  return out;
}

double touched_elements(const WorkloadAccess::Read& read, std::span<const double> spatial,
                        std::span<const double> reduce) {
  double out = 1;
  for (const auto& dim : read.dims) {
    double extent = 1;
    for (const auto& term : dim) {
      const double size = (term.reduce ? reduce : spatial)[term.axis];
      extent += std::abs(term.coefficient) * (size - 1);
    }
    out *= extent;
  }
  return out;
}

double contiguous_elements(std::span<const double> extents, std::span<const int64_t> shape) {
  double out = 1;
  for (size_t d = extents.size(); d-- > 0;) {
    out *= extents[d];
    if (extents[d] < shape[d]) break;
  }
  return out;
}

Unrolling unroll_loops(double copies, std::span<const UnrollLoop> loops, double limit) {
  Unrolling out;
  out.copies = copies;
  bool more = true;
  for (const UnrollLoop& loop : loops) {
    if (loop.extent <= 1) continue;
    if (more && out.copies * loop.extent <= limit) {
      out.copies *= loop.extent;
      continue;
    }
    more = false;
    (loop.reduce ? out.rest_reduce : out.rest_spatial) *= loop.extent;
  }
  return out;
}

const SummarySchema& summary_schema(ProgramKind kind) {
  // Indexed by kind.
  static const std::array<SummarySchema, kProgramKinds> kSchemas = {
      make_schema(ProgramKind::kGpuTiled, kTiledGpuResources, kGpuTiledColumns),
      make_schema(ProgramKind::kGpuFlat, kFlatGpuResources, kGpuFlatColumns),
      make_schema(ProgramKind::kCpuTiled, kCpuTiledResources, kCpuTiledColumns),
      make_schema(ProgramKind::kCpuOther, kLeafResources, kCpuOtherColumns),
      make_schema(ProgramKind::kCpuNests, kNestResources, kCpuNestsColumns)};
  return kSchemas[static_cast<size_t>(kind)];
}

namespace {

ProgramSummary empty_summary() {
  ProgramSummary out;
  // Reserves the size of the largest kind, since growing step by step took a tenth of the time of a
  // summary.
  out.resources.reserve(kMostResources);
  out.columns.reserve(kMostColumns);
  return out;
}

// Adds what all kinds have.
void complete(const WorkloadAccess& access, const target::Device& device, ProgramSummary& out) {
  out.structure = access.structure;
  if (on_tensor_cores(access, device)) {
    out.structure = WorkloadStructure::kMma;
    out.roofline_seconds = mma_roofline(access, device);
  }
  add_common(access, device, out);
  const SummarySchema& schema = summary_schema(out.kind);
  TS_CHECK(out.resources.size() == schema.resources.columns.size() &&
               out.columns.size() == schema.columns.columns.size(),
           "a program summary of another length than its schema");
}

}  // namespace

ProgramSummary summarize_program(const WorkloadAccess& access, const LeafFeatures& leaves,
                                 const sched::Trace& trace, const target::Device& device) {
  ProgramSummary out = empty_summary();
  out.kind = summarize(access, leaves, trace, device, out);
  complete(access, device, out);
  return out;
}

std::optional<ProgramSummary> summarize_schedule(const WorkloadAccess& access,
                                                 const sched::Schedule& schedule,
                                                 const target::Device& device) {
  if (device.kind() == target::DeviceKind::kGpu || access.workload == nullptr) return std::nullopt;
  ProgramSummary out = empty_summary();
  if (!summarize_nests(access, schedule, device, out)) return std::nullopt;
  out.kind = ProgramKind::kCpuNests;
  complete(access, device, out);
  return out;
}

}  // namespace tensorsmith::feature
