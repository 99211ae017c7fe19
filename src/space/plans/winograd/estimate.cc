// The estimate of a Winograd plan.
#include <algorithm>
#include <cmath>

#include "space/estimate/access.h"
#include "space/estimate/micro_kernel.h"
#include "space/estimate/parallel.h"
#include "space/estimate/plan_number.h"
#include "space/plans/winograd/winograd_plan.h"

namespace tensorsmith::space {

namespace {

// Returns the cycles of one vector of points in one pass of a transform: its loads and stores (as
// many as a tile has rows), with the additions hidden among them.
double pass_cycles(const EstimateMachine& m, double loads, double stores) {
  return loads * m.fitted().transform_load + stores * m.fitted().transform_store;
}

// Returns the bytes per cycle for the data between two stages, which takes `bytes` in all. L2 keeps
// a part of it. The cache lines of the rest are written one by one to as many planes as a tile has
// points, which no prefetcher follows, so they are much slower than a stream.
double planes_rate(const EstimateMachine& m, double bytes) {
  const double kept = std::min(1.0, m.fitted().usable_planes * m.l2_bytes / bytes);
  const double beyond =
      std::min(stream_rate_beyond_l2(m, bytes), m.rates.l3_bytes_per_cycle / m.fitted().scattered);
  return 1 / (kept / m.rates.l2_bytes_per_cycle + (1 - kept) / beyond);
}

}  // namespace

// Returns the bytes that a strip keeps between its stages.
double WinogradPlan::strip_bytes(const Choice& c) const {
  const double a = stages_.m + 2;
  const double tiles = (c.strips ? 1 : batch_) * c.strip * tiles_w_;
  return 4 * a * a * tiles * (in_channels_ + out_channels_);
}

double WinogradPlan::product_cycles(const Choice& c, EstimateParts* parts) const {
  const auto& m = context_.machine;
  const double a = stages_.m + 2;
  const auto tile_cycles = [&](double width, double channels) {
    const double vectors = std::ceil(channels / m.lanes(4));
    const double points = c.tile_h * width;
    RegisterTile tile;
    tile.accumulators = tile.products = points * vectors;
    tile.loads = points + vectors;
    tile.broadcasts = points;
    tile.operands = vectors + 1;
    tile.vectors = vectors;
    tile.lanes = m.lanes(4);
    tile.latency = m.rates.fma_latency;
    tile.instructions = tile.accumulators * c.unroll;
    tile.chain = in_channels_;
    tile.loop_cycles = m.fitted().loop_step / c.unroll;
    const double cycles = step_cycles(m, tile);
    if (parts != nullptr && parts->products == 0) set_tile_parts(m, tile, cycles, *parts);  // the widest tile
    return cycles * in_channels_ + m.fitted().accumulator_move * tile.accumulators + m.fitted().loop_exit;
  };
  const bool shifted = shifts_tiles(c);
  const int64_t wide = tiles_w_ / c.tile_w + (shifted ? 1 : 0), rest_w = shifted ? 0 : tiles_w_ % c.tile_w;
  const int64_t panels = out_channels_ / c.tile_c, rest_c = out_channels_ % c.tile_c;
  double row = 0;  // cycles of a row of register tiles
  for (const auto& [channels, count] :
       {std::pair{c.tile_c, panels}, std::pair{rest_c, rest_c > 0 ? int64_t{1} : 0}}) {
    if (count == 0) continue;
    row += count * wide * tile_cycles(c.tile_w, channels);
    if (rest_w > 0) row += count * tile_cycles(rest_w, channels);
  }
  return a * a * (batch_ * (tiles_h_ / c.tile_h)) * row;
}

// The weights are read once per strip, from the cache that keeps them between strips. The part by
// which they are larger than the weights of the definition comes from memory, since a model reads
// all its other weights between two runs.
double WinogradPlan::weights_cycles(const Choice& c) const {
  const auto& m = context_.machine;
  const double a = stages_.m + 2;
  const double bytes = 4 * a * a * (in_channels_ * out_channels_);
  const double strips = c.strips ? batch_ * (tiles_h_ / c.strip) : 1;
  const double again = stream_rate(m, bytes + strip_bytes(c));
  const double first = stream_rate_beyond_l2(m, bytes);
  const double window = a - stages_.m + 1;
  const double more = bytes * (1 - window * window / (a * a));
  return (bytes - more) / first +
         m.fitted().cold_weights * more / std::min(first, m.memory_bytes_per_cycle()) +
         bytes * (strips - 1) / again;
}

double WinogradPlan::data_cycles(const Choice& c) const {
  const auto& m = context_.machine;
  const double tile = stages_.m;
  const double a = tile + 2;
  const double x = tiles_w_ * tile + 2;
  const double channels = in_channels_;
  const double vectors = std::ceil(channels / m.lanes(4));
  const double rows = batch_ * tiles_h_;
  double repeated = 1 + 2 / (tile * tiles_h_);
  if (c.data == DataLocation::kBlock) repeated = 1 + 2 / tile;
  if (c.data == DataLocation::kStrip) repeated = 1 + 2 / (tile * c.strip);
  const double elements = rows * tile * repeated * x * channels;
  double cycles = elements * m.fitted().transposed_element;
  // The data is written and read again, through the cache that it fits.
  const double kept = 4 * (c.data == DataLocation::kBlock   ? a * x * m.lanes(4)
                           : c.data == DataLocation::kStrip ? elements / (rows / c.strip)
                                                            : elements);
  if (kept > m.fitted().usable * m.l1_bytes) cycles += 8 * elements / stream_rate(m, kept);
  cycles += rows * vectors * x * pass_cycles(m, a, a);
  const double tiles = rows * tiles_w_;
  cycles += tiles * vectors * a * pass_cycles(m, a, a);
  // The result is too large for L1, and perhaps for the other caches; it is written and read.
  const double bytes = 4 * a * a * tiles * channels;
  cycles += 2 * bytes / planes_rate(m, strip_bytes(c));
  return cycles;
}

double WinogradPlan::output_cycles(const Choice& c) const {
  const auto& m = context_.machine;
  const double tile = stages_.m;
  const double a = tile + 2;
  const double lanes = m.lanes(4);
  const double vectors = std::ceil(out_channels_ / lanes);
  const double tiles = batch_ * tiles_h_ * tiles_w_;
  double cycles = tiles * vectors * (a * pass_cycles(m, a, tile) + tile * pass_cycles(m, a, 0));
  const double bytes = 4 * a * a * tiles * out_channels_;
  cycles += 2 * bytes / planes_rate(m, strip_bytes(c));
  const auto& result = context_.stage(stages_.result);
  const double points = result.spatial_points();
  cycles += points * m.fitted().transposed_element;
  const double written = points * result.element_bytes;
  cycles += written_cycles(m, written, written * (1 + static_cast<double>(in_channels_) / out_channels_));
  const double width = width_;
  const double epilogue = self_ ? 0 : context_.stage(output_).flops_per_point;
  cycles += points / width * std::ceil(width / lanes) * (m.fitted().written_vector + epilogue);
  return cycles;
}

double WinogradPlan::estimate(Decisions d, EstimateParts* parts) const {
  const Choice c = decode(d);
  const auto& m = context_.machine;
  const double products = product_cycles(c, parts), weights = weights_cycles(c), data = data_cycles(c),
               output = output_cycles(c);
  double cycles = overlapped(products, weights, m.fitted().not_hidden_blocks) + data + output;
  if (parts != nullptr) {
    parts->plan = plan_number(PlanNumber::kWinograd);
    parts->arithmetic = products;
    parts->from_beyond = weights;
    parts->moved = data;
    parts->written = output;
    parts->unrolled = std::log2(static_cast<double>(c.unroll));
    parts->buffered = static_cast<double>(c.data);
    parts->outer_attached = c.strips ? 1 : 0;
    parts->tiles = std::log2(static_cast<double>(c.strips ? batch_ * (tiles_h_ / c.strip) : 1));
    parts->tile_bytes = std::log2(std::max(1.0, strip_bytes(c)));
    parts->epilogue = self_ ? 0 : context_.stage(output_).flops_per_point;
    parts->reduced = std::log2(static_cast<double>(in_channels_));
    parts->row = static_cast<double>(stages_.m);
  }
  double forks = 0;
  if (c.parallel) {
    ParallelLoop loop;
    loop.add_axis(c.strips ? batch_ * (tiles_h_ / c.strip) : context_.threads(), 1, false);
    cycles /= loop.speedup(context_.threads());
    forks = c.strips ? 1 : 3;
    if (c.data == DataLocation::kRoot) forks += 1;
    if (parts != nullptr) {
      set_loop_parts(loop, context_.threads(), *parts);
      parts->forks = forks;
    }
  }
  return cycles * m.seconds_per_cycle() + forks * m.fork_seconds();
}

}  // namespace tensorsmith::space
