// The analytic model of a Winograd plan, calibrated on a core with two vector pipes:
// see docs/decisions/008-fitting-the-estimate.md.
#include <algorithm>
#include <cmath>

#include "space/estimate/parallel.h"
#include "space/plans/winograd/winograd_plan.h"

namespace tensorsmith::space {

namespace {

// Cycles of an element that moves between planes of channels and rows of channels.
constexpr double kTransposeCycles = 0.4;

// What comes from the third cache of lines that lie apart, of what comes in a stream.
constexpr double kScattered = 0.4;

// Cycles of a vector of points of one pass of a transform: as many loads and stores as a tile has rows, and
// additions among them.
double pass_cycles(int64_t loads, int64_t stores) {
  return static_cast<double>(loads) * 0.6 + static_cast<double>(stores) * 1.2;
}

// Of what lies between two stages and takes `bytes` in all. Its lines are written one by one to as many
// planes as a tile has points, which no prefetcher follows: from the third cache on they come much slower
// than a stream.
double bytes_per_cycle(const Machine& m, double bytes) {
  if (bytes <= 1.1 * m.l2_bytes) return m.l2_bytes_per_cycle;
  return bytes <= 0.75 * m.l3_bytes ? kScattered * m.l3_bytes_per_cycle
                                    : std::min(m.memory_bytes_per_cycle, kScattered * m.l3_bytes_per_cycle);
}

}  // namespace

// What a strip keeps between its stages.
double WinogradPlan::strip_bytes(const Choice& c) const {
  const double a = static_cast<double>(stages_.m + 2);
  const double tiles = static_cast<double>((c.strips ? 1 : batch_) * c.strip * tiles_w_);
  return 4 * a * a * tiles * static_cast<double>(in_channels_ + out_channels_);
}

double WinogradPlan::product_cycles(const Choice& c) const {
  const auto& m = context_.machine;
  const double a = static_cast<double>(stages_.m + 2);
  const auto tile_cycles = [&](int64_t width, int64_t channels) {
    const double vectors = std::ceil(static_cast<double>(channels) / static_cast<double>(m.lanes(4)));
    const double points = static_cast<double>(c.tile_h * width);
    const double accumulators = points * vectors;
    const double loads = points + vectors;
    double cycles = std::max({accumulators / m.fma_per_cycle, loads / m.loads_per_cycle,
                              (accumulators + loads) / m.issue_per_cycle, 1.4 * m.fma_latency});
    const double excess = accumulators + vectors + 1 - static_cast<double>(m.registers);
    if (excess > 0) cycles += 2 * excess;
    return (cycles + 0.5 / static_cast<double>(c.unroll)) * static_cast<double>(in_channels_) +
           2 * accumulators + 20;
  };
  const bool shifted = shifts_tiles(c);
  const int64_t wide = tiles_w_ / c.tile_w + (shifted ? 1 : 0), rest_w = shifted ? 0 : tiles_w_ % c.tile_w;
  const int64_t panels = out_channels_ / c.tile_c, rest_c = out_channels_ % c.tile_c;
  double row = 0;  // of a row of register tiles
  for (const auto& [channels, count] :
       {std::pair{c.tile_c, panels}, std::pair{rest_c, rest_c > 0 ? int64_t{1} : 0}}) {
    if (count == 0) continue;
    row += static_cast<double>(count * wide) * tile_cycles(c.tile_w, channels);
    if (rest_w > 0) row += static_cast<double>(count) * tile_cycles(rest_w, channels);
  }
  return a * a * static_cast<double>(batch_ * (tiles_h_ / c.tile_h)) * row;
}

// The weights are read once a strip: from where they stay between strips.
double WinogradPlan::weights_cycles(const Choice& c) const {
  const auto& m = context_.machine;
  const double a = static_cast<double>(stages_.m + 2);
  const double bytes = 4 * a * a * static_cast<double>(in_channels_ * out_channels_);
  const double strips = c.strips ? static_cast<double>(batch_ * (tiles_h_ / c.strip)) : 1;
  const double again = bytes + strip_bytes(c) <= 0.75 * m.l2_bytes   ? m.l2_bytes_per_cycle
                       : bytes + strip_bytes(c) <= 0.75 * m.l3_bytes ? m.l3_bytes_per_cycle
                                                                     : m.memory_bytes_per_cycle;
  const double first = bytes <= 0.75 * m.l3_bytes ? m.l3_bytes_per_cycle : m.memory_bytes_per_cycle;
  return bytes / first + bytes * (strips - 1) / again;
}

double WinogradPlan::data_cycles(const Choice& c) const {
  const auto& m = context_.machine;
  const auto tile = static_cast<double>(stages_.m);
  const double a = tile + 2;
  const double x = static_cast<double>(tiles_w_) * tile + 2;
  const double channels = static_cast<double>(in_channels_);
  const double vectors = std::ceil(channels / static_cast<double>(m.lanes(4)));
  const double rows = static_cast<double>(batch_ * tiles_h_);
  double repeated = 1 + 2 / (tile * static_cast<double>(tiles_h_));
  if (c.data == DataLocation::kBlock) repeated = 1 + 2 / tile;
  if (c.data == DataLocation::kStrip) repeated = 1 + 2 / (tile * static_cast<double>(c.strip));
  const double elements = rows * tile * repeated * x * channels;
  double cycles = elements * kTransposeCycles;
  // Written and read again from the cache it fits.
  const double kept = 4 * (c.data == DataLocation::kBlock   ? a * x * static_cast<double>(m.lanes(4))
                           : c.data == DataLocation::kStrip ? elements / (rows / static_cast<double>(c.strip))
                                                            : elements);
  if (kept > 0.5 * m.l2_bytes) {
    cycles += 8 * elements / (kept > 0.75 * m.l3_bytes ? m.memory_bytes_per_cycle : m.l3_bytes_per_cycle);
  } else if (kept > 0.5 * m.l1_bytes) {
    cycles += 8 * elements / m.l2_bytes_per_cycle;
  }
  cycles += rows * vectors * x * pass_cycles(stages_.m + 2, stages_.m + 2);
  const double tiles = rows * static_cast<double>(tiles_w_);
  cycles += tiles * vectors * a * pass_cycles(stages_.m + 2, stages_.m + 2);
  // Its result is too large for the first cache, and may be for the others; it is written and read.
  const double bytes = 4 * a * a * tiles * channels;
  cycles += 2 * bytes / bytes_per_cycle(m, strip_bytes(c));
  return cycles;
}

double WinogradPlan::output_cycles(const Choice& c) const {
  const auto& m = context_.machine;
  const auto tile = static_cast<double>(stages_.m);
  const double a = tile + 2;
  const double lanes = static_cast<double>(m.lanes(4));
  const double vectors = std::ceil(static_cast<double>(out_channels_) / lanes);
  const double tiles = static_cast<double>(batch_ * tiles_h_ * tiles_w_);
  double cycles =
      tiles * vectors * (a * pass_cycles(stages_.m + 2, stages_.m) + tile * pass_cycles(stages_.m + 2, 0));
  const double bytes = 4 * a * a * tiles * static_cast<double>(out_channels_);
  cycles += 2 * bytes / bytes_per_cycle(m, strip_bytes(c));
  const double points = context_.stage(stages_.result).spatial_points();
  cycles += points * kTransposeCycles;
  const double width = static_cast<double>(width_);
  const double epilogue = self_ ? 0 : context_.stage(output_).flops_per_point;
  cycles += points / width * std::ceil(width / lanes) * (2 + epilogue);
  return cycles;
}

double WinogradPlan::estimate(Decisions d) const {
  const Choice c = decode(d);
  const auto& m = context_.machine;
  double cycles = std::max(product_cycles(c), weights_cycles(c)) +
                  0.3 * std::min(product_cycles(c), weights_cycles(c)) + data_cycles(c) + output_cycles(c);
  double forks = 0;
  if (c.parallel) {
    ParallelLoop loop;
    loop.add_axis(c.strips ? static_cast<double>(batch_ * (tiles_h_ / c.strip)) : context_.threads, 1, false);
    cycles /= loop.speedup(context_.threads);
    forks = c.strips ? 1 : 3;
    if (c.data == DataLocation::kRoot) forks += 1;
  }
  return cycles * m.seconds_per_cycle + forks * m.fork_seconds;
}

}  // namespace tensorsmith::space
