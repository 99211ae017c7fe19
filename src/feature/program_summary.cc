#include "feature/program_summary.h"

#include <array>

#include "feature/summary_parts.h"

namespace tensorsmith::feature {

namespace {

// What every kind has.
void add_common(const WorkloadAccess& access, const target::Device& device, double roofline,
                SummarySink& out) {
  out.log_column("flops", access.flops);
  out.log_column("input_bytes", access.input_bytes);
  out.log_column("output_bytes", access.output_bytes);
  out.log_column("intensity", access.flops / std::max(access.input_bytes + access.output_bytes, 1.0));
  out.log_column("compute_seconds", access.flops / (std::max(device.peak_f32_gflops, 1.0) * 1e9));
  out.log_column("roofline_seconds", roofline);
  if (device.kind != target::DeviceKind::kGpu) return;
  const GpuFigures gpu(device);
  out.log_column("device_cycles", gpu.cores * gpu.clock_hz);
  out.log_column("device_bandwidth", gpu.bytes_per_second);
  out.log_column("device_l2", gpu.l2_bytes);
  out.log_column("device_balance", gpu.flops_per_second / gpu.bytes_per_second);
}

ProgramKind summarize(const WorkloadAccess& access, const LeafFeatures& leaves, const sched::Trace& trace,
                      const target::Device& device, SummarySink& out, double& roofline) {
  const bool gpu = device.kind == target::DeviceKind::kGpu;
  if (!gpu && access.workload != nullptr && summarize_nests(access, trace, device, out, roofline)) {
    add_common(access, device, roofline, out);
    return ProgramKind::kCpuNests;
  }
  const TraceSummary steps = summarize_trace(trace, access, gpu);
  const Tiles* tiles = steps.tiles ? &*steps.tiles : nullptr;
  ProgramKind kind = tiles != nullptr ? ProgramKind::kCpuTiled : ProgramKind::kCpuOther;
  if (gpu) {
    const LeafTotals totals = total_leaves(leaves);
    kind = tiles != nullptr ? ProgramKind::kGpuTiled : ProgramKind::kGpuFlat;
    if (tiles != nullptr) {
      summarize_tiled_gpu(access, *tiles, steps, totals, device, out, roofline);
    } else {
      summarize_flat_gpu(access, steps, totals, device, out, roofline);
    }
  } else {
    summarize_cpu(access, tiles, steps, leaves, device, out, roofline);
  }
  add_common(access, device, roofline, out);
  return kind;
}

// The names of a kind, from a small example of it.
SummarySink example(ProgramKind kind) {
  WorkloadAccess access;
  Tiles tiles;
  LeafFeatures leaves;
  LeafTotals totals;
  SummarySink out;
  double roofline = 0;
  access.flops = access.input_bytes = access.output_bytes = 8;
  access.spatial = access.reduce = {1};
  access.reads = {{{{{false, 0, 1}}, {{true, 0, 1}}}, {1, 1}}, {{{{true, 0, 1}}}, {1}}};
  tiles.spatial = {{1, 1, 1, 1, 1}};
  tiles.reduce = {{1, 1, 1}};
  target::Device device;
  device.kind = kind == ProgramKind::kGpuTiled || kind == ProgramKind::kGpuFlat ? target::DeviceKind::kGpu
                                                                                : target::DeviceKind::kCpu;
  switch (kind) {
    case ProgramKind::kGpuTiled:
      summarize_tiled_gpu(access, tiles, {}, totals, device, out, roofline);
      break;
    case ProgramKind::kGpuFlat:
      summarize_flat_gpu(access, {}, totals, device, out, roofline);
      break;
    case ProgramKind::kCpuTiled:
    case ProgramKind::kCpuOther:
      summarize_cpu(access, kind == ProgramKind::kCpuTiled ? &tiles : nullptr, {}, leaves, device, out,
                    roofline);
      break;
    case ProgramKind::kCpuNests:
      summarize_nests(access, {}, device, out, roofline);
  }
  add_common(access, device, roofline, out);
  return out;
}

const SummarySink& names_of(ProgramKind kind) {
  static const std::array<SummarySink, kProgramKinds> kExamples = {
      example(ProgramKind::kGpuTiled), example(ProgramKind::kGpuFlat), example(ProgramKind::kCpuTiled),
      example(ProgramKind::kCpuOther), example(ProgramKind::kCpuNests)};
  return kExamples[static_cast<size_t>(kind)];
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
    const auto row = leaves.vectors.row(l);
    out.float_ops += linear(row, 1) + linear(row, 2) + linear(row, 3) + linear(row, 4);
    out.math_ops += linear(row, 5) + linear(row, 6);
    out.int_ops += linear(row, 8) + linear(row, 9);
    out.int_divisions += linear(row, 10);
    out.int_compares += linear(row, 11);
    out.selects += linear(row, 14) + linear(row, 15);
    const double runs = linear(row, 161);
    out.runs += runs;
    out.most_runs = std::max(out.most_runs, runs);
    for (int b = 0; b < 5; ++b) {
      out.bytes += linear(row, 57 + 18 * b + 3);
      out.lines += linear(row, 57 + 18 * b + 5);
    }
    out.grid = std::max(out.grid, std::round(linear(row, 50)));
    out.threads = std::max(out.threads, std::round(linear(row, 53)));
  }
  return out;
}

void touched_extents(const WorkloadAccess::Read& read, std::span<const double> spatial,
                     std::span<const double> reduce, std::vector<double>& out) {
  out.assign(read.dims.size(), 1);
  for (size_t d = 0; d < read.dims.size(); ++d) {
    for (const auto& term : read.dims[d]) {
      const double size = (term.reduce ? reduce : spatial)[static_cast<size_t>(term.axis)];
      out[d] += std::abs(static_cast<double>(term.coefficient)) * (size - 1);
    }
  }
}

double touched_elements(const WorkloadAccess::Read& read, std::span<const double> spatial,
                        std::span<const double> reduce) {
  double out = 1;
  for (const auto& dim : read.dims) {
    double extent = 1;
    for (const auto& term : dim) {
      const double size = (term.reduce ? reduce : spatial)[static_cast<size_t>(term.axis)];
      extent += std::abs(static_cast<double>(term.coefficient)) * (size - 1);
    }
    out *= extent;
  }
  return out;
}

double contiguous_elements(const std::vector<double>& extents, const std::vector<int64_t>& shape) {
  double out = 1;
  for (size_t d = extents.size(); d-- > 0;) {
    out *= extents[d];
    if (extents[d] < static_cast<double>(shape[d])) break;
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

const std::vector<const char*>& resource_names(ProgramKind kind) { return names_of(kind).resource_names; }
const std::vector<const char*>& summary_column_names(ProgramKind kind) { return names_of(kind).column_names; }

ProgramSummary summarize_program(const WorkloadAccess& access, const LeafFeatures& leaves,
                                 const sched::Trace& trace, const target::Device& device) {
  ProgramSummary out;
  SummarySink sink;
  out.kind = summarize(access, leaves, trace, device, sink, out.roofline_seconds);
  out.resources = std::move(sink.resources);
  out.columns = std::move(sink.columns);
  return out;
}

}  // namespace tensorsmith::feature
