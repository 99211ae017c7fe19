#include "space/plan.h"

#include <algorithm>
#include <cmath>

#include "ir/analysis.h"

namespace tensorsmith::space {

Machine Machine::of(const target::Device& device) {
  Machine m;
  m.vector_bytes = std::max(device.vector_bytes, 8);
  m.registers = std::max(device.vector_registers, 8);
  m.masked_memory = device.has_feature("avx512vl") && device.has_feature("avx512bw");
  m.fma_per_cycle = device.fma_per_cycle > 0 ? device.fma_per_cycle : 1;
  m.dot4_operations = target::has_dot4(device) ? 1 : 5;
  // Two FMAs, and halves that are taken apart, mostly once for several products.
  const bool dot2 = target::has_dot2(device);
  m.dot2_operations = dot2 ? 1 : 3;
  m.dot2_latency = dot2 ? 6 : 2 * m.fma_latency;
  const double ghz = device.clock_ghz > 0 ? device.clock_ghz : 2.5;
  m.seconds_per_cycle = 1e-9 / ghz;
  if (device.l1_bytes > 0) m.l1_bytes = static_cast<double>(device.l1_bytes);
  if (device.l2_bytes > 0) m.l2_bytes = static_cast<double>(device.l2_bytes);
  m.l3_bytes =
      device.l3_bytes > 0 ? static_cast<double>(device.l3_bytes) / std::max(device.cores, 1) : m.l2_bytes;
  if (device.memory_bandwidth_gbs > 0) m.memory_bytes_per_cycle = device.memory_bandwidth_gbs / ghz;
  return m;
}

std::string PlanContext::axis_name(int s, int axis) const {
  const auto& o = op(s);
  const auto a = static_cast<size_t>(axis);
  return a < o.spatial.size() ? o.spatial[a].var.name() : o.reduce[a - o.spatial.size()].var.name();
}

namespace {

Read compose(const Read& outer, const Read& inner, size_t axes, const ir::Operation& target) {
  Read result;
  result.producer = inner.producer;
  result.guarded = outer.guarded || inner.guarded;
  result.loads = outer.loads * inner.loads;
  for (const auto& index : inner.indices) {
    ReadIndex composed;
    if (index.affine) {
      composed.affine = true;
      composed.constant = index.constant;
      composed.coefficients.assign(axes, 0);
      for (size_t k = 0; k < outer.indices.size(); ++k) composed.add(outer.indices[k], index.coefficients[k]);
    }
    result.indices.push_back(std::move(composed));
  }
  result.summarize(target.output()->effective_strides(), axes);
  return result;
}

}  // namespace

int64_t written_size(const ir::Workload& workload, size_t stage, const std::vector<bool>& inlined,
                     const std::vector<int64_t>& written) {
  int64_t largest = 0;
  for (const ir::Expr& body : workload.operations[stage]->bodies) {
    const int64_t size = ir::written_size(body, [&](const ir::Load& load) -> int64_t {
      const auto producer = workload.producer_of(load.buffer.get());
      return producer && inlined[*producer] ? written[*producer] : 0;
    });
    largest = std::max(largest, size);
  }
  return largest;
}

bool inlining_fits(const ir::Workload& workload, const std::vector<bool>& inlined) {
  std::vector<int64_t> written(inlined.size(), 0);
  for (size_t s = 0; s < inlined.size(); ++s) {
    written[s] = written_size(workload, s, inlined, written);
    if (written[s] > kMaxWrittenSize) return false;
  }
  return true;
}

std::vector<Read> effective_reads(const PlanContext& context, int stage) {
  std::vector<Read> result;
  const auto& extents = context.stage(stage).extents;
  const auto axes = extents.size();
  for (const auto& read : context.stage(stage).reads) {
    std::vector<Read> pending{read};
    while (!pending.empty()) {
      Read next = std::move(pending.back());
      pending.pop_back();
      if (!context.inlined[static_cast<size_t>(next.producer)]) {
        const auto equal = std::find_if(result.begin(), result.end(),
                                        [&](const Read& other) { return other.same_element(next, extents); });
        if (equal == result.end()) {
          result.push_back(std::move(next));
        } else {
          equal->guarded = equal->guarded && next.guarded;
          equal->loads += next.loads;
        }
        continue;
      }
      for (const auto& inner : context.stage(next.producer).reads)
        pending.push_back(compose(next, inner, axes, context.op(inner.producer)));
    }
  }
  return result;
}

size_t Plan::add_tile(std::string name, int64_t extent, int parts, int64_t unit, int64_t max_innermost,
                      bool divide) {
  Slot slot;
  slot.decision = DecisionSlot{
      std::move(name), DecisionKind::kTileLengths, DecisionRole::kTile, extent, parts, max_innermost, 0};
  slot.tiles.emplace(extent, parts, max_innermost, divide);
  slot.unit = unit;
  slot.offset = width();
  slots_.push_back(std::move(slot));
  return slots_.size() - 1;
}

size_t Plan::add_category(std::string name, DecisionRole role, std::vector<double> weights) {
  TS_CHECK(!weights.empty(), "a category slot has a category");
  Slot slot;
  slot.decision =
      DecisionSlot{std::move(name), DecisionKind::kCategory, role, 0, 0, 0, static_cast<int>(weights.size())};
  slot.weights = std::move(weights);
  slot.offset = width();
  slots_.push_back(std::move(slot));
  return slots_.size() - 1;
}

void Plan::sample_slot(Rng& rng, size_t slot, std::span<int64_t> decisions) const {
  const auto& s = slots_[slot];
  if (s.tiles) {
    s.tiles->sample(rng, s.unit, decisions.subspan(s.offset, s.width()));
  } else {
    decisions[s.offset] = static_cast<int64_t>(rng.weighted(s.weights));
  }
}

void Plan::sample(Rng& rng, std::span<int64_t> decisions) const {
  for (size_t s = 0; s < slots_.size(); ++s) sample_slot(rng, s, decisions);
}

std::vector<double> Plan::footprint(const Read& read, std::span<const double> ranges) const {
  std::vector<double> result;
  for (size_t d = 0; d < read.indices.size(); ++d) {
    const auto& index = read.indices[d];
    const double whole = static_cast<double>(context_.stage(read.producer).extents[d]);
    double range = 1;
    if (index.coefficients.empty()) {
      range = whole;
    } else {
      for (size_t a = 0; a < ranges.size(); ++a) {
        const double steps =
            index.blocked ? std::ceil(ranges[a] / static_cast<double>(index.blocks[a])) : ranges[a];
        range += static_cast<double>(std::abs(index.coefficients[a])) * (steps - 1);
      }
    }
    result.push_back(std::min(range, whole));
  }
  return result;
}

int64_t largest_divisor(int64_t n, int64_t limit) {
  for (int64_t d = std::min(n, limit); d > 1; --d)
    if (n % d == 0) return d;
  return 1;
}

int64_t vector_lanes(int64_t length, int64_t lanes) {
  // Long vectors of bytes and halves that are no power of two are taken apart element by element.
  constexpr int64_t kAnyLength = 16, kWorthwhile = 8;
  const int64_t divisor = largest_divisor(length, lanes), power = std::min(length & -length, lanes);
  return divisor > kAnyLength && power >= kWorthwhile ? power : divisor;
}

double read_cycles(int64_t stride, double length, double lanes) {
  const double vectors = std::ceil(length / lanes);
  const auto distance = static_cast<double>(std::abs(stride));
  if (distance <= 1) return vectors;
  if (distance <= 4) return vectors * (2 * distance + 1);
  return length * 1.5;
}

double tail_factor(int64_t extent, int64_t tile, bool vectorized, sched::TailPolicy tail) {
  if (tail == sched::TailPolicy::kPeel || tile < 1 || extent % tile == 0) return 1;
  return vectorized ? 4 : 1.5;
}

void combine_lanes(TraceMaker& maker, TraceMaker::StageId stage, int64_t lanes, int64_t vector,
                   std::vector<TraceMaker::StageId>& partials) {
  const size_t spatial = maker.num_spatial(stage);
  while (lanes > 2 && lanes % 2 == 0) {
    const int64_t half = lanes > vector && lanes % vector == 0 ? vector : lanes / 2;
    const auto halves =
        maker.split(stage, maker.leaves(stage)[spatial], {half}, sched::TailPolicy::kPredicate);
    const int made = maker.rfactor(stage, halves[1], spatial);
    const auto loops = maker.leaves(made);  // spatial, lanes, the parts to be added
    std::vector<TraceMaker::LoopId> order(loops.begin(),
                                          loops.begin() + static_cast<std::ptrdiff_t>(spatial));
    order.push_back(loops[spatial + 1]);
    order.push_back(loops[spatial]);
    maker.reorder(made, order);
    maker.annotate(made, loops[spatial + 1], sched::Annotation::kUnroll);
    maker.annotate(made, loops[spatial], sched::Annotation::kVectorize);
    partials.push_back(made);
    lanes = half;
  }
}

void parallelize(TraceMaker& maker, TraceMaker::StageId stage, const std::vector<TraceMaker::LoopId>& outer,
                 size_t count) {
  const std::vector<TraceMaker::LoopId> fused(outer.begin(),
                                              outer.begin() + static_cast<std::ptrdiff_t>(count));
  if (fused.empty()) return;
  maker.annotate(stage, maker.fuse(stage, fused), sched::Annotation::kParallel);
}

void emit_copy_stage(TraceMaker& maker, TraceMaker::StageId stage, std::span<const int64_t> extents,
                     int contiguous_axis, int64_t lanes, bool parallel, sched::TailPolicy tail) {
  const auto loops = maker.leaves(stage);
  if (contiguous_axis < 0) return;
  const auto c = static_cast<size_t>(contiguous_axis);
  std::vector<TraceMaker::LoopId> rows, ones, vectors{loops[c]};
  for (size_t a = 0; a < loops.size(); ++a)
    if (a != c) (extents[a] > 1 ? rows : ones).push_back(loops[a]);
  if (extents[c] > lanes) vectors = maker.split(stage, loops[c], {lanes}, tail);
  std::vector<TraceMaker::LoopId> order = rows;
  order.insert(order.end(), ones.begin(), ones.end());
  order.insert(order.end(), vectors.begin(), vectors.end());
  maker.reorder(stage, order);
  if (extents[c] > 1) maker.annotate(stage, vectors.back(), sched::Annotation::kVectorize);
  if (!parallel) return;
  if (rows.empty() && vectors.size() > 1) rows.push_back(vectors.front());
  // Ones stand between the rows and the vectors, so only rows are fused.
  parallelize(maker, stage, rows, std::min<size_t>(rows.size(), 3));
}

}  // namespace tensorsmith::space
