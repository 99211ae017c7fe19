// Programs of our own design space on CPUs: resources of each statement of the lowered program, added up.
#include <utility>
#include <vector>

#include "feature/nest_walk.h"
#include "feature/summary_parts.h"
#include "lower/lower.h"

namespace tensorsmith::feature {

namespace {

// In the order in which the buffers were met: a sum over them is the same wherever they lie in memory.
template <class T>
class ByBuffer {
 public:
  T& operator[](const ir::BufferNode* buffer) {
    for (auto& [known, value] : values_)
      if (known == buffer) return value;
    return values_.emplace_back(buffer, T()).second;
  }
  const std::vector<std::pair<const ir::BufferNode*, T>>& values() const { return values_; }

 private:
  std::vector<std::pair<const ir::BufferNode*, T>> values_;
};

// What a statement does between two iterations of the loops that are not unrolled.
struct Tile {
  double runs = 0;        // of the tile, over the whole program
  double statements = 1;  // in it
  double vectors = 1;     // vector instructions of one statement of a whole row of lanes
  double lanes = 1;       // values of one instruction
  double lane_use = 1;    // of the width of the device
  double loads = 0, broadcasts = 0, gathers = 0;  // instructions a tile; gathers: elements
  double stores = 0, scatters = 0;
  double accumulators = 0;  // vectors that stay in registers over the loops around the tile
  double window = 1;        // iterations that they stay for
  double chunks = 1;        // of the parallel loop
};

// Bytes that come into a cache: all, and those of them in short runs, which prefetching finds late.
struct Traffic {
  double bytes = 0, short_bytes = 0, written = 0;
};

class NestSummary {
 public:
  NestSummary(const NestTree& tree, const CpuFigures& cpu) : tree_(tree), cpu_(cpu) {}

  double runs_of(int loop) const {
    double out = 1;
    for (; loop >= 0; loop = tree_.loops[static_cast<size_t>(loop)].parent)
      out *= tree_.loops[static_cast<size_t>(loop)].extent;
    return out;
  }

  // Bytes that the statements [first, past) touch while the loops of their paths from place `from` on run
  // once.
  double footprint(int first, int past, size_t from) const {
    ByBuffer<double> bytes;
    for (int l = first; l < past; ++l) {
      const NestLeaf& leaf = tree_.leaves[static_cast<size_t>(l)];
      for (const NestAccess& access : leaf.accesses) {
        double& most = bytes[access.buffer.get()];
        most = std::max(most, touched_by(access, leaf, tree_, from, cpu_.line).lines * cpu_.line);
      }
    }
    double sum = 0;
    for (const auto& [buffer, size] : bytes.values()) sum += size;
    return sum;
  }

  double total_footprint() const { return footprint(0, static_cast<int>(tree_.leaves.size()), 0); }

  // Into a cache of this many bytes, which holds what it can from one run of the program to the next. The
  // outermost loops an iteration of which fits read each element once while they run: what one iteration
  // needs again the cache still has.
  Traffic traffic(double cache) const {
    Traffic out;
    if (total_footprint() <= cache) return out;
    for (const int root : tree_.roots) add_traffic(root, 0, cache, out);
    for (const NestLeaf& leaf : tree_.leaves) {
      if (leaf.path.empty()) add_leaf(leaf, 0, 1, out);
    }
    return out;
  }

 private:
  void add_traffic(int number, size_t depth, double cache, Traffic& out) const {
    const NestLoop& loop = tree_.loops[static_cast<size_t>(number)];
    if (footprint(loop.first_leaf, loop.past_leaf, depth + 1) <= cache) {
      add_buffers(loop, depth, runs_of(loop.parent), out);
      return;
    }
    for (const int child : loop.children) add_traffic(child, depth + 1, cache, out);
    for (int l = loop.first_leaf; l < loop.past_leaf; ++l) {
      const NestLeaf& leaf = tree_.leaves[static_cast<size_t>(l)];
      if (leaf.path.size() == depth + 1) add_leaf(leaf, depth + 1, runs_of(number), out);
    }
  }

  void add_buffers(const NestLoop& loop, size_t from, double runs, Traffic& out) const {
    ByBuffer<Traffic> buffers;
    for (int l = loop.first_leaf; l < loop.past_leaf; ++l) {
      const NestLeaf& leaf = tree_.leaves[static_cast<size_t>(l)];
      for (const NestAccess& access : leaf.accesses) {
        Traffic& most = buffers[access.buffer.get()];
        const Touched touched = touched_by(access, leaf, tree_, from, cpu_.line);
        const double bytes = touched.lines * cpu_.line * leaf.share;
        most.written = std::max(most.written, access.write ? bytes : 0);
        if (bytes <= most.bytes) continue;
        most.bytes = bytes;
        most.short_bytes = touched.run < 4 * cpu_.line ? bytes : 0;
      }
    }
    for (const auto& [buffer, t] : buffers.values()) {
      out.bytes += runs * t.bytes;
      out.short_bytes += runs * t.short_bytes;
      out.written += runs * t.written;
    }
  }

  void add_leaf(const NestLeaf& leaf, size_t from, double runs, Traffic& out) const {
    for (const NestAccess& access : leaf.accesses) {
      const double bytes = touched_by(access, leaf, tree_, from, cpu_.line).lines * cpu_.line * leaf.share;
      out.bytes += runs * bytes;
      out.written += access.write ? runs * bytes : 0;
    }
  }

  const NestTree& tree_;
  const CpuFigures& cpu_;
};

Tile tile_of(const NestLeaf& leaf, const NestTree& tree, const CpuFigures& cpu) {
  Tile out;
  const auto loop_at = [&](size_t p) -> const NestLoop& {
    return tree.loops[static_cast<size_t>(leaf.path[p])];
  };
  double iterations = leaf.share;
  for (size_t p = 0; p < leaf.path.size(); ++p) {
    iterations *= loop_at(p).extent;
    if (loop_at(p).kind == ir::ForKind::kParallel) out.chunks *= std::max(loop_at(p).extent, 1.0);
  }
  // The tile: the innermost loops as far as they are unrolled or of lanes.
  size_t begin = leaf.path.size();
  double row = 1;
  uint64_t unrolled = 0;
  while (begin > 0) {
    const NestLoop& loop = loop_at(begin - 1);
    if (loop.kind == ir::ForKind::kVectorized) {
      row *= std::max(loop.extent, 1.0);
    } else if (loop.kind == ir::ForKind::kUnrolled) {
      out.statements *= std::max(loop.extent, 1.0);
      unrolled |= uint64_t{1} << (begin - 1);
    } else {
      break;
    }
    --begin;
  }
  out.vectors = std::ceil(row / cpu.lanes);
  out.lanes = row / out.vectors;
  out.lane_use = out.lanes / cpu.lanes;
  out.runs = iterations / (row * out.statements);
  // Instructions of an access: one for each iteration of the unrolled loops that moves it, as far as these do
  // not come to the same element; none in the tile where the loops around it do not move it: then it is done
  // once for all their iterations.
  for (const NestAccess& access : leaf.accesses) {
    const bool local = access.buffer->scope == ir::MemoryScope::kLocal;
    double count = access.count, elements = 1;
    for (size_t p = begin; p < leaf.path.size(); ++p) {
      if ((unrolled >> p & 1U) != 0 && access.moves(p)) count *= std::max(loop_at(p).extent, 1.0);
    }
    elements = touched_by(access, leaf, tree, begin, cpu.line).elements / (access.vector_step > 0 ? row : 1);
    count = std::min(count, std::max(elements, 1.0) * std::max(access.count < 1 ? access.count : 1.0, 0.0));
    double hoisted = 1;
    for (size_t p = begin; p-- > 0 && !access.moves(p);) hoisted *= std::max(loop_at(p).extent, 1.0);
    if (access.write && leaf.update) {
      out.accumulators = count * (access.vector_step > 0 ? out.vectors : 1);
      out.window = hoisted;
    }
    // Values that never leave the registers: a local tensor in tiles that do not move in it.
    if (local && hoisted > 1 && out.accumulators > cpu.registers) hoisted = 1;
    const double times = count / hoisted;
    const bool contiguous = access.vector_step == 1, uniform = access.vector_step == 0;
    double& kind = access.write ? (contiguous || uniform ? out.stores : out.scatters)
                                : (contiguous ? out.loads
                                   : uniform  ? out.broadcasts
                                              : out.gathers);
    kind += times * (contiguous ? out.vectors : uniform ? 1 : row);
  }
  return out;
}

void summarize(const NestTree& tree, const WorkloadAccess& access, const target::Device& device,
               SummarySink& out, double& roofline_seconds) {
  const CpuFigures cpu(device);
  const NestSummary nests(tree, cpu);
  double multiply_adds = 0, others = 0, divisions = 0, calls = 0, scalars = 0, selects = 0;
  double loads = 0, broadcasts = 0, gathers = 0, stores = 0, scatters = 0, latency = 0, spills = 0;
  double tiles = 0, windows = 0, code = 0, busiest = 0, serial = 0, flops = 0, instructions = 0;
  double starts = 0, chunks = 1, heaviest = -1;
  Tile heavy;
  const NestLeaf* heavy_leaf = nullptr;
  for (const NestLeaf& leaf : tree.leaves) {
    const Tile tile = tile_of(leaf, tree, cpu);
    // Seconds of a cycle on each core for work that the chunks share.
    const double cycle = std::ceil(tile.chunks / cpu.cores) / tile.chunks / cpu.clock_hz;
    const double vectors = tile.runs * tile.statements * tile.vectors;  // instructions for one operation
    const double arithmetic = vectors * (leaf.multiply_adds + leaf.others + leaf.selects) / cpu.fma;
    // 256 bits a port and cycle are what today's cores load; a whole vector of 512 takes two ports.
    const double ports = std::max(tile.lanes / 8, 1.0) / 2;
    const double read = tile.runs * (tile.loads * ports + tile.broadcasts * 0.5 + tile.gathers);
    const double written = tile.runs * (tile.stores * 2 * ports + tile.scatters);
    const double chain = tile.accumulators > 0 ? tile.runs * 4 * tile.statements * tile.vectors /
                                                     std::max(tile.accumulators, 1.0)
                                               : 0;
    const double slots = (vectors * (leaf.multiply_adds + leaf.others + leaf.selects) +
                          tile.runs * (tile.loads + tile.broadcasts + 2 * tile.gathers + tile.stores +
                                       2 * tile.scatters + 2)) /
                         4;
    const double bottleneck = std::max({arithmetic, read, written, chain, slots}) * cycle;
    multiply_adds += vectors * leaf.multiply_adds / cpu.fma * cycle;
    others += vectors * leaf.others / cpu.fma * cycle;
    selects += vectors * leaf.selects / cpu.fma * cycle;
    divisions += vectors * leaf.divisions * tile.lanes / 2 * cycle;
    calls += vectors * leaf.calls * 20 * cycle;
    scalars += tile.lanes <= 1 ? tile.runs * tile.statements * cycle : 0;
    loads += tile.runs * tile.loads * ports * cycle;
    broadcasts += tile.runs * tile.broadcasts * 0.5 * cycle;
    gathers += tile.runs * tile.gathers * cycle;
    stores += tile.runs * tile.stores * 2 * ports * cycle;
    scatters += tile.runs * tile.scatters * cycle;
    latency += chain * cycle;
    if (tile.accumulators > cpu.registers - 2)
      spills += tile.runs * 2 * (tile.accumulators - cpu.registers + 2) * cycle;
    tiles += tile.runs * cycle;
    windows += tile.runs / tile.window * 10 * cycle;
    instructions += slots * cycle;
    const double length = tile.statements * tile.vectors * (leaf.multiply_adds + leaf.others + 1);
    if (length > 2000) code += tile.runs * (length - 2000) * cycle;
    busiest += bottleneck;
    serial += cpu.cores > 1 && tile.chunks <= 1 ? bottleneck : 0;
    flops += tile.runs * tile.statements * tile.vectors * tile.lanes *
             (2 * leaf.multiply_adds + leaf.others + leaf.divisions + 8 * leaf.calls);
    if (bottleneck > heaviest) {
      heaviest = bottleneck;
      heavy = tile;
      heavy_leaf = &leaf;
      chunks = tile.chunks;
    }
  }
  for (size_t l = 0; l < tree.loops.size(); ++l) {
    if (tree.loops[l].kind == ir::ForKind::kParallel) starts += nests.runs_of(tree.loops[l].parent);
  }
  const double footprint = nests.total_footprint();
  const double share = std::ceil(chunks / cpu.cores) / chunks;  // of a core in what the heaviest nest moves
  std::array<Traffic, 3> traffic;
  for (size_t c = 0; c < traffic.size(); ++c) traffic[c] = nests.traffic(0.8 * cpu.caches[c]);
  const double from_l2 = share / (32 * cpu.clock_hz), from_l3 = share / (10 * cpu.clock_hz);

  flops = std::max(flops, 1.0);
  roofline_seconds = std::max({flops / cpu.flops_per_second, traffic[2].bytes / cpu.bytes_per_second, 1e-7});
  out.resource("multiply_adds", multiply_adds);
  out.resource("others", others);
  out.resource("selects", selects);
  out.resource("divisions", divisions);
  out.resource("calls", calls);
  out.resource("scalars", scalars);
  out.resource("loads", loads);
  out.resource("broadcasts", broadcasts);
  out.resource("gathers", gathers);
  out.resource("stores", stores);
  out.resource("scatters", scatters);
  out.resource("latency", latency);
  out.resource("spills", spills);
  out.resource("tiles", tiles);
  out.resource("windows", windows);
  out.resource("instructions", instructions);
  out.resource("code", code);
  out.resource("busiest", busiest);
  out.resource("serial", serial);
  out.resource("from_l2", traffic[0].bytes * from_l2);
  out.resource("from_l2_short", traffic[0].short_bytes * from_l2);
  out.resource("from_l3", traffic[1].bytes * from_l3);
  out.resource("from_l3_short", traffic[1].short_bytes * from_l3);
  out.resource("to_l3", traffic[1].written * from_l3);
  out.resource("from_memory", traffic[2].bytes / cpu.bytes_per_second);
  out.resource("from_memory_short", traffic[2].short_bytes / cpu.bytes_per_second);
  out.resource("to_memory", traffic[2].written / cpu.bytes_per_second);
  out.resource("start", 1e-7);
  out.resource("parallel_starts", cpu.cores > 1 ? 5e-6 * starts : 0);

  static const NestLeaf kNone;
  const NestLeaf& leaf = heavy_leaf != nullptr ? *heavy_leaf : kNone;
  const double instructions_read = std::max(heavy.loads + heavy.broadcasts + heavy.gathers, 1e-3);
  out.log_column("flops_over_workload", flops / std::max(access.flops, 1.0));
  out.log_column("executed_flops", flops);
  out.log_column("footprint", footprint);
  out.log_column("footprint_l2", footprint / std::max(cpu.caches[1], 1.0));
  out.column("leaves", static_cast<double>(tree.leaves.size()));
  out.column("heavy_share", heaviest / std::max(busiest, 1e-12));
  out.log_column("heavy_statements", heavy.statements);
  out.log_column("heavy_vectors", heavy.vectors);
  out.column("heavy_lane_use", heavy.lane_use);
  out.log_column("heavy_accumulators", std::max(heavy.accumulators, 0.5));
  out.log_column("heavy_window", heavy.window);
  out.log_column("heavy_runs", std::max(heavy.runs, 1e-3));
  out.log_column(
      "heavy_reads_per_operation",
      instructions_read /
          std::max(heavy.statements * heavy.vectors * (leaf.multiply_adds + leaf.others + 0.1), 1e-3));
  out.column("heavy_gather_share", heavy.gathers / instructions_read);
  out.column("heavy_broadcast_share", heavy.broadcasts / instructions_read);
  out.log_column("heavy_register_pressure", std::max(heavy.accumulators, 0.5) / cpu.registers);
  out.column("update", leaf.update ? 1 : 0);
  out.log_column("chunks", chunks);
  out.log_column("device_lanes", cpu.lanes);
}

}  // namespace

bool summarize_nests(const WorkloadAccess& access, const sched::Trace& trace, const target::Device& device,
                     SummarySink& out, double& roofline_seconds) {
  NestTree tree;
  if (access.workload != nullptr) {
    const auto schedule = sched::replay(*access.workload, trace);
    if (!schedule.ok()) return false;
    const auto lowered = lower::lower(*schedule);
    if (!lowered.ok()) return false;
    tree = walk_nests(lowered->program);
  }
  summarize(tree, access, device, out, roofline_seconds);
  return true;
}

}  // namespace tensorsmith::feature
