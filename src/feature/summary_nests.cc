// Summarizes CPU programs of our own design space: lowers the program, and sums the resources that its
// statements use.
#include <utility>
#include <vector>

#include "feature/nest_walk.h"
#include "feature/summary_parts.h"
#include "feature/summary_schema_cpu.h"
#include "lower/lower.h"

namespace tensorsmith::feature {

namespace {

// Values by buffer, in the order in which the buffers were met, so that a sum over them does not
// depend on their addresses.
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

// The work of a statement in one iteration of the innermost loop around it that is neither unrolled nor
// vectorized.
struct Tile {
  double runs = 0;        // executions of the tile in the whole program
  double statements = 1;  // statements in the tile
  double vectors = 1;     // vector instructions of one statement for a whole row of lanes
  double lanes = 1;       // values per instruction
  double lane_use = 1;    // share of the device's vector width that is used
  double loads = 0, broadcasts = 0, gathers = 0;  // instructions per tile; gathers count elements
  double stores = 0, scatters = 0;
  double accumulators = 0;  // vectors that stay in registers over the loops around the tile
  double window = 1;        // iterations for which they stay
  double chunks = 1;        // iterations of the parallel loop
};

// Bytes that come into a cache: all of them, those in short runs, which prefetchers find late, and
// those that are written.
struct Traffic {
  double bytes = 0, short_bytes = 0, written = 0;
};

class NestSummary {
 public:
  NestSummary(const NestTree& tree, const target::CpuMachine& cpu) : tree_(tree), cpu_(cpu) {}

  // Returns the iterations of the loop times those of the loops outside; 1 without a loop.
  double runs_of(NestLoopId loop) const {
    double out = 1;
    for (; loop.valid(); loop = tree_.loops[loop].parent) out *= tree_.loops[loop].extent;
    return out;
  }

  // Returns the bytes that the statements [first, past) touch while the loops of their paths from
  // place `from` on run once.
  double footprint(size_t first, size_t past, size_t from) const {
    ByBuffer<double> bytes;
    for (size_t l = first; l < past; ++l) {
      const NestLeaf& leaf = tree_.leaves[l];
      for (const NestAccess& access : leaf.accesses) {
        double& most = bytes[access.buffer.get()];
        most = std::max(most, touched_by(access, leaf, tree_, from, cpu_.line_bytes).lines * cpu_.line_bytes);
      }
    }
    double sum = 0;
    for (const auto& [buffer, size] : bytes.values()) sum += size;
    return sum;
  }

  double total_footprint() const { return footprint(0, tree_.leaves.size(), 0); }

  // Returns the traffic into a cache of `cache` bytes, which keeps what it can from one run of the
  // program to the next. The outermost loops of which one iteration fits the cache read each
  // element once while they run, because the cache still holds what an iteration needs again.
  Traffic traffic(double cache) const {
    Traffic out;
    if (total_footprint() <= cache) return out;
    for (const NestLoopId root : tree_.roots) add_traffic(root, 0, cache, out);
    for (const NestLeaf& leaf : tree_.leaves) {
      if (leaf.path.empty()) add_leaf(leaf, 0, 1, out);
    }
    return out;
  }

 private:
  void add_traffic(NestLoopId number, size_t depth, double cache, Traffic& out) const {
    const NestLoop& loop = tree_.loops[number];
    if (footprint(loop.first_leaf, loop.past_leaf, depth + 1) <= cache) {
      add_buffers(loop, depth, runs_of(loop.parent), out);
      return;
    }
    for (const NestLoopId child : loop.children) add_traffic(child, depth + 1, cache, out);
    for (size_t l = loop.first_leaf; l < loop.past_leaf; ++l) {
      const NestLeaf& leaf = tree_.leaves[l];
      if (leaf.path.size() == depth + 1) add_leaf(leaf, depth + 1, runs_of(number), out);
    }
  }

  void add_buffers(const NestLoop& loop, size_t from, double runs, Traffic& out) const {
    ByBuffer<Traffic> buffers;
    for (size_t l = loop.first_leaf; l < loop.past_leaf; ++l) {
      const NestLeaf& leaf = tree_.leaves[l];
      for (const NestAccess& access : leaf.accesses) {
        Traffic& most = buffers[access.buffer.get()];
        const Touched touched = touched_by(access, leaf, tree_, from, cpu_.line_bytes);
        const double bytes = touched.lines * cpu_.line_bytes * leaf.share;
        most.written = std::max(most.written, access.write ? bytes : 0);
        if (bytes <= most.bytes) continue;
        most.bytes = bytes;
        most.short_bytes = touched.run < 4 * cpu_.line_bytes ? bytes : 0;
      }
    }
    for (const auto& [buffer, t] : buffers.values()) {
      out.bytes += runs * t.bytes;
      out.short_bytes += runs * t.short_bytes;
      out.written += runs * t.written;
    }
  }

  // Adds a statement that is in no loop of which one iteration fits the cache: in each of its `runs` runs,
  // each access brings in all lines that it touches. Only `bytes` and `written` are counted here. Models
  // were trained on features in which such a statement has no short_bytes, so this must stay so.
  void add_leaf(const NestLeaf& leaf, size_t from, double runs, Traffic& out) const {
    for (const NestAccess& access : leaf.accesses) {
      const double bytes =
          touched_by(access, leaf, tree_, from, cpu_.line_bytes).lines * cpu_.line_bytes * leaf.share;
      out.bytes += runs * bytes;
      out.written += access.write ? runs * bytes : 0;
    }
  }

  const NestTree& tree_;
  const target::CpuMachine& cpu_;
};

// The loops of a leaf's tile: those from place `begin` of its path to the end. All of them are unrolled or
// vectorized, and the loop before them is neither.
struct TileLoops {
  size_t begin;
  double row = 1;         // iterations of the vectorized loops: values of one statement
  uint64_t unrolled = 0;  // bit p: the loop at place p is unrolled
};

const NestLoop& loop_at(const NestLeaf& leaf, const NestTree& tree, size_t p) {
  return tree.loops[leaf.path[p]];
}
double iterations_of(const NestLoop& loop) { return std::max(loop.extent, 1.0); }

// Adds the instructions of an access to its tile. There is one for each iteration of the unrolled loops
// that move it, but not more than there are different elements. If the loops just around the tile do not
// move the access, it is executed once for all their iterations.
void add_access(const NestAccess& access, const NestLeaf& leaf, const NestTree& tree, const TileLoops& loops,
                const target::CpuMachine& cpu, Tile& out) {
  const bool local = access.buffer->scope == ir::MemoryScope::kLocal;
  double count = access.count;
  for (size_t p = loops.begin; p < leaf.path.size(); ++p) {
    if ((loops.unrolled >> p & 1U) != 0 && access.moves(p)) count *= iterations_of(loop_at(leaf, tree, p));
  }
  const double elements = touched_by(access, leaf, tree, loops.begin, cpu.line_bytes).elements /
                          (access.vector_step > 0 ? loops.row : 1);
  count = std::min(count, std::max(elements, 1.0) * std::max(access.count < 1 ? access.count : 1.0, 0.0));
  double hoisted = 1;
  for (size_t p = loops.begin; p-- > 0 && !access.moves(p);) hoisted *= iterations_of(loop_at(leaf, tree, p));
  if (access.write && leaf.update) {
    out.accumulators = count * (access.vector_step > 0 ? out.vectors : 1);
    out.window = hoisted;
  }
  // A local tensor that the loops around the tile do not move stays in registers, unless there are
  // too many accumulators.
  if (local && hoisted > 1 && out.accumulators > cpu.registers) hoisted = 1;
  const double times = count / hoisted;
  const bool contiguous = access.vector_step == 1, uniform = access.vector_step == 0;
  double& kind = access.write ? (contiguous || uniform ? out.stores : out.scatters)
                              : (contiguous ? out.loads
                                 : uniform  ? out.broadcasts
                                            : out.gathers);
  kind += times * (contiguous ? out.vectors : uniform ? 1 : loops.row);
}

Tile tile_of(const NestLeaf& leaf, const NestTree& tree, const target::CpuMachine& cpu) {
  Tile out;
  double iterations = leaf.share;
  for (size_t p = 0; p < leaf.path.size(); ++p) {
    const NestLoop& loop = loop_at(leaf, tree, p);
    iterations *= loop.extent;
    if (loop.kind == ir::ForKind::kParallel) out.chunks *= iterations_of(loop);
  }
  TileLoops loops{leaf.path.size()};
  for (; loops.begin > 0; --loops.begin) {
    const NestLoop& loop = loop_at(leaf, tree, loops.begin - 1);
    if (loop.kind == ir::ForKind::kVectorized) {
      loops.row *= iterations_of(loop);
    } else if (loop.kind == ir::ForKind::kUnrolled) {
      out.statements *= iterations_of(loop);
      loops.unrolled |= uint64_t{1} << (loops.begin - 1);
    } else {
      break;
    }
  }
  out.vectors = std::ceil(loops.row / cpu.lanes());
  out.lanes = loops.row / out.vectors;
  out.lane_use = out.lanes / cpu.lanes();
  out.runs = iterations / (loops.row * out.statements);
  for (const NestAccess& access : leaf.accesses) add_access(access, leaf, tree, loops, cpu, out);
  return out;
}

// Sums over all leaves. Unless stated otherwise, the numbers are seconds of the core that executes the
// most chunks.
struct NestSums {
  double multiply_adds = 0, others = 0, divisions = 0, calls = 0, scalars = 0, selects = 0;
  double loads = 0, broadcasts = 0, gathers = 0, stores = 0, scatters = 0, latency = 0, spills = 0;
  double tiles = 0, windows = 0, code = 0, busiest = 0, serial = 0, instructions = 0;
  double flops = 0;  // operations executed
  // The leaf with the longest bottleneck.
  double heaviest = -1, chunks = 1;
  Tile heavy;
  const NestLeaf* heavy_leaf = nullptr;

  void add(const NestLeaf& leaf, const Tile& tile, const target::CpuMachine& cpu) {
    // Seconds per cycle of work that the chunks distribute over the cores.
    const double cycle = std::ceil(tile.chunks / cpu.cores) / tile.chunks / cpu.clock_hz;
    const double vectors = tile.runs * tile.statements * tile.vectors;  // instructions per operation
    const double fma = cpu.products(tile.lanes);
    // Other arithmetic partly has its own pipes, which matters if there is only one pipe for
    // multiplications.
    const double other = (fma + 2) / 2;
    const double arithmetic = vectors * (leaf.multiply_adds / fma + (leaf.others + leaf.selects) / other);
    // Two loads and one store per cycle, half as many for vectors that the core splits into halves.
    const double ports = tile.lanes > cpu.port_lanes() ? 1 : 0.5;
    const double read = tile.runs * (tile.loads * ports + tile.broadcasts * 0.5 + tile.gathers);
    const double written = tile.runs * (tile.stores * 2 * ports + tile.scatters);
    const double chain = tile.accumulators > 0 ? tile.runs * 4 * tile.statements * tile.vectors /
                                                     std::max(tile.accumulators, 1.0)
                                               : 0;
    const double slots =
        (vectors * (cpu.product_instructions * leaf.multiply_adds + leaf.others + leaf.selects) +
         tile.runs *
             (tile.loads + tile.broadcasts + 2 * tile.gathers + tile.stores + 2 * tile.scatters + 2)) /
        cpu.rates.issue_per_cycle;
    const double bottleneck = std::max({arithmetic, read, written, chain, slots}) * cycle;
    add_arithmetic(leaf, tile, vectors, cycle, fma, other);
    add_accesses(tile, ports, cycle, cpu);
    latency += chain * cycle;
    instructions += slots * cycle;
    busiest += bottleneck;
    serial += cpu.cores > 1 && tile.chunks <= 1 ? bottleneck : 0;
    if (bottleneck > heaviest) {
      heaviest = bottleneck;
      heavy = tile;
      heavy_leaf = &leaf;
      chunks = tile.chunks;
    }
  }

 private:
  void add_arithmetic(const NestLeaf& leaf, const Tile& tile, double vectors, double cycle, double fma,
                      double other) {
    multiply_adds += vectors * leaf.multiply_adds / fma * cycle;
    others += vectors * leaf.others / other * cycle;
    selects += vectors * leaf.selects / other * cycle;
    divisions += vectors * leaf.divisions * tile.lanes / 2 * cycle;
    calls += vectors * leaf.calls * 40 / other * cycle;
    scalars += tile.lanes <= 1 ? tile.runs * tile.statements * cycle : 0;
    const double length = tile.statements * tile.vectors * (leaf.multiply_adds + leaf.others + 1);
    if (length > 2000) code += tile.runs * (length - 2000) * cycle;
    flops += tile.runs * tile.statements * tile.vectors * tile.lanes *
             (2 * leaf.multiply_adds + leaf.others + leaf.divisions + 8 * leaf.calls);
  }

  void add_accesses(const Tile& tile, double ports, double cycle, const target::CpuMachine& cpu) {
    loads += tile.runs * tile.loads * ports * cycle;
    broadcasts += tile.runs * tile.broadcasts * 0.5 * cycle;
    gathers += tile.runs * tile.gathers * cycle;
    stores += tile.runs * tile.stores * 2 * ports * cycle;
    scatters += tile.runs * tile.scatters * cycle;
    if (tile.accumulators > cpu.registers - 2)
      spills += tile.runs * 2 * (tile.accumulators - cpu.registers + 2) * cycle;
    tiles += tile.runs * cycle;
    windows += tile.runs / tile.window * 10 * cycle;
  }
};

void set_statements(const NestSums& sums, Quantities<kNestResources>& seconds) {
  seconds.set("multiply_adds", sums.multiply_adds);
  seconds.set("others", sums.others);
  seconds.set("selects", sums.selects);
  seconds.set("divisions", sums.divisions);
  seconds.set("calls", sums.calls);
  seconds.set("scalars", sums.scalars);
  seconds.set("loads", sums.loads);
  seconds.set("broadcasts", sums.broadcasts);
  seconds.set("gathers", sums.gathers);
  seconds.set("stores", sums.stores);
  seconds.set("scatters", sums.scatters);
  seconds.set("latency", sums.latency);
  seconds.set("spills", sums.spills);
  seconds.set("tiles", sums.tiles);
  seconds.set("windows", sums.windows);
  seconds.set("instructions", sums.instructions);
  seconds.set("code", sums.code);
  seconds.set("busiest", sums.busiest);
  seconds.set("serial", sums.serial);
}

// `traffic`: into L1, L2 and the last-level cache.
void set_traffic(const std::array<Traffic, 3>& traffic, double chunks, const target::CpuMachine& cpu,
                 Quantities<kNestResources>& seconds) {
  // Share of the traffic that the busiest core moves, as if all nests were split like the heaviest one.
  const double share = std::ceil(chunks / cpu.cores) / chunks;
  const double from_l2 = share / (cpu.rates.l2_bytes_per_cycle * cpu.clock_hz);
  const double from_l3 = share / (cpu.rates.l3_bytes_per_cycle * cpu.clock_hz);
  // Prefetching overlaps the levels, so bytes only count at the level that they come from.
  const auto beyond = [&](size_t level, auto what) {
    return std::max(what(traffic[level]) - what(traffic[level + 1]), 0.0);
  };
  const auto bytes = [](const Traffic& t) { return t.bytes; };
  const auto short_bytes = [](const Traffic& t) { return t.short_bytes; };
  const auto written = [](const Traffic& t) { return t.written; };
  seconds.set("from_l2", beyond(0, bytes) * from_l2);
  seconds.set("from_l2_short", beyond(0, short_bytes) * from_l2);
  seconds.set("from_l3", beyond(1, bytes) * from_l3);
  seconds.set("from_l3_short", beyond(1, short_bytes) * from_l3);
  seconds.set("to_l3", beyond(1, written) * from_l3);
  seconds.set("from_memory", traffic[2].bytes / cpu.bytes_per_second);
  seconds.set("from_memory_short", traffic[2].short_bytes / cpu.bytes_per_second);
  seconds.set("to_memory", traffic[2].written / cpu.bytes_per_second);
}

void set_heaviest(const NestSums& sums, const target::CpuMachine& cpu, Quantities<kNestColumns>& columns) {
  const Tile& heavy = sums.heavy;
  static const NestLeaf kNone;
  const NestLeaf& leaf = sums.heavy_leaf != nullptr ? *sums.heavy_leaf : kNone;
  const double reads = std::max(heavy.loads + heavy.broadcasts + heavy.gathers, 1e-3);
  columns.set("heavy_share", sums.heaviest / std::max(sums.busiest, 1e-12));
  columns.set("heavy_statements", heavy.statements);
  columns.set("heavy_vectors", heavy.vectors);
  columns.set("heavy_lane_use", heavy.lane_use);
  columns.set("heavy_accumulators", std::max(heavy.accumulators, 0.5));
  columns.set("heavy_window", heavy.window);
  columns.set("heavy_runs", std::max(heavy.runs, 1e-3));
  columns.set(
      "heavy_reads_per_operation",
      reads / std::max(heavy.statements * heavy.vectors * (leaf.multiply_adds + leaf.others + 0.1), 1e-3));
  columns.set("heavy_gather_share", heavy.gathers / reads);
  columns.set("heavy_broadcast_share", heavy.broadcasts / reads);
  columns.set("heavy_register_pressure", std::max(heavy.accumulators, 0.5) / cpu.registers);
  columns.set("update", leaf.update ? 1 : 0);
  columns.set("chunks", sums.chunks);
}

void summarize(const NestTree& tree, const WorkloadAccess& access, const target::Device& device,
               ProgramSummary& out) {
  const target::CpuMachine cpu(device);
  const NestSummary nests(tree, cpu);
  NestSums sums;
  for (const NestLeaf& leaf : tree.leaves) sums.add(leaf, tile_of(leaf, tree, cpu), cpu);
  double starts = 0;
  for (const NestLoop& loop : tree.loops) {
    if (loop.kind == ir::ForKind::kParallel) starts += nests.runs_of(loop.parent);
  }
  const double footprint = nests.total_footprint(), flops = std::max(sums.flops, 1.0);
  std::array<Traffic, 3> traffic;
  const std::array<double, 3> caches = {cpu.l1_bytes, cpu.l2_bytes, cpu.last_cache_bytes()};
  for (size_t c = 0; c < traffic.size(); ++c) traffic[c] = nests.traffic(0.8 * caches[c]);
  out.roofline_seconds =
      std::max({flops / cpu.flops_per_second, traffic[2].bytes / cpu.bytes_per_second, 1e-7});

  Quantities<kNestResources> seconds;
  set_statements(sums, seconds);
  set_traffic(traffic, sums.chunks, cpu, seconds);
  seconds.set("parallel_starts", cpu.cores > 1 ? 1e-6 * cpu.rates.parallel_overhead_us * starts : 0);
  add_resources(seconds, out);

  Quantities<kNestColumns> columns;
  columns.set("flops_over_workload", flops / std::max(access.flops, 1.0));
  columns.set("executed_flops", flops);
  columns.set("footprint", footprint);
  columns.set("footprint_l2", footprint / std::max(cpu.l2_bytes, 1.0));
  columns.set("leaves", tree.leaves.size());
  set_heaviest(sums, cpu, columns);
  columns.set("device_lanes", cpu.lanes());
  add_columns(columns, out);
}

}  // namespace

bool summarize_nests(const WorkloadAccess& access, const sched::Trace& trace, const target::Device& device,
                     ProgramSummary& out) {
  const auto schedule = sched::replay(*access.workload, trace);
  return schedule.ok() && summarize_nests(access, *schedule, device, out);
}

bool summarize_nests(const WorkloadAccess& access, const sched::Schedule& schedule,
                     const target::Device& device, ProgramSummary& out) {
  const auto lowered = lower::lower(schedule);
  if (!lowered.ok()) return false;
  summarize(walk_nests(lowered->program), access, device, out);
  return true;
}

}  // namespace tensorsmith::feature
