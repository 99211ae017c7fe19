#include "lab/kinds/draft_model.h"

#include <algorithm>
#include <cmath>

#include "feature/per_store_schema.h"
#include "lab/kinds/kinds.h"
#include "lab/kinds/untrained_kind.h"
#include "target/machine.h"

namespace tensorsmith::lab {

namespace {

using feature::kRowBuffers;
using feature::PerStoreRow;

// A buffer that a statement accesses.
struct Buffer : feature::ColumnValues<feature::kBufferFields> {
  Buffer(const PerStoreRow& row, size_t number)
      : feature::ColumnValues<feature::kBufferFields>(row.buffer(number)) {}

  bool reads_only() const { return (*this)["acc_type.Read"] > 0; }
  bool reads_and_writes() const { return (*this)["acc_type.ReadWrite"] > 0; }
  bool present() const { return reads_only() || reads_and_writes() || (*this)["acc_type.Write"] > 0; }
  bool writes() const { return !reads_only(); }
  bool loop_reuse() const { return (*this)["reuse_type.LoopMultipleRead"] > 0; }
  bool serial_reuse() const { return (*this)["reuse_type.SerialMultipleReadWrite"] > 0; }
};
bool vectorized(const PerStoreRow& row) { return row["vec_num"] > 0; }
bool parallel(const PerStoreRow& row) { return row["parallel_num"] > 0; }
double unroll_product(const PerStoreRow& row) {
  return row["unroll_num"] > 0 ? row.quantity("unroll_prod") : 1;
}

// Typical figures of out-of-order cores. They need not be exact, since only the order of candidates
// matters.
constexpr double kLoadsPerCycle = 2;
constexpr double kFmaLatency = 4;
constexpr double kDivideCycles = 8;
constexpr double kMathInstructions = 16;  // evaluation of a vector polynomial
constexpr double kScalarMathCycles = 30;  // a call of the math library
constexpr double kLoopCycles = 1;         // increment, compare, branch
constexpr double kL2LineCycles = 2, kL3LineCycles = 6;
constexpr double kOuterReuseL1 = 0.3, kOuterReuseL2 = 0.5, kOuterReuseL3 = 0.8;
constexpr double kForkSeconds = 5e-6;
constexpr double kCoreBandwidth = 12e9;  // bytes per second that one core gets from memory

// The CPU with `threads` of its cores in use.
struct DraftMachine : target::CpuMachine {
  DraftMachine(const target::Device& device, int threads_in)
      : target::CpuMachine(device), threads(std::clamp<double>(threads_in, 1, cores)) {
    bytes_per_second = std::min(bytes_per_second, kCoreBandwidth * threads);
  }
  double threads;
};

// Returns the number of cache lines that move into a cache of `cache_bytes` bytes. The features
// describe only the innermost reuse: it is lost if its distance exceeds the cache; otherwise the
// lines of a single use remain. The reuse by loops further out is not known and lies between none
// and all: `outer_reuse` (0 to 1) interpolates between the two on a logarithmic scale. A temporary
// that fits into the cache, and data that another statement has just touched, move no lines.
double lines_into(const PerStoreRow& row, const Buffer& buffer, double cache_bytes, double outer_reuse) {
  if (buffer.writes() && row.quantity("alloc_size") > 0 && row.quantity("alloc_size") <= cache_bytes / 2)
    return 0;
  if (buffer.serial_reuse() && buffer.quantity("reuse_dis_bytes") <= cache_bytes / 2) return 0;
  double lines = std::max(buffer.quantity("lines"), 1.0);
  if (buffer.quantity("reuse_ct") > 0.5 && buffer.quantity("reuse_dis_bytes") <= cache_bytes)
    lines /= std::max(buffer.quantity("reuse_ct"), 1.0);
  const double unique = std::max(buffer.quantity("unique_lines"), 1.0);
  return lines > unique ? unique * std::pow(lines / unique, 1 - outer_reuse) : unique;
}

struct StoreCost {
  double core_cycles = 0;   // of the statement when it runs on a single core
  double memory_bytes = 0;  // moved from memory
};

// Detects a reduction that an enclosing loop repeats without need, which compilers hoist out of
// that loop: all its reads are reused directly outside the reduction, over one common loop. Returns
// the extent of that loop, or 1 if there is none.
double repeated_in_vain(const PerStoreRow& row) {
  double reduction = 0, extent = 0;
  for (size_t b = 0; b < kRowBuffers; ++b) {
    const Buffer buffer(row, b);
    if (buffer.present() && buffer.reads_and_writes() && buffer.loop_reuse())
      reduction = buffer.quantity("reuse_dis_iter") * buffer.quantity("reuse_ct");
  }
  if (reduction == 0) return 1;
  for (size_t b = 0; b < kRowBuffers; ++b) {
    const Buffer buffer(row, b);
    if (!buffer.present() || buffer.reads_and_writes()) continue;
    const bool outside =
        buffer.loop_reuse() && std::abs(buffer.quantity("reuse_dis_iter") / reduction - 1) < 0.01;
    if (!outside || (extent > 0 && std::abs(buffer.quantity("reuse_ct") / extent - 1) > 0.01)) return 1;
    extent = buffer.quantity("reuse_ct");
  }
  return std::max(extent, 1.0);
}

double element_bytes_of(const PerStoreRow& row, double iterations) {
  double out = 4;
  for (size_t b = 0; b < kRowBuffers; ++b) {
    const Buffer buffer(row, b);
    if (buffer.present() && buffer.writes())
      out = std::max(1.0, std::round(buffer.quantity("bytes") / iterations));
  }
  return out;
}

double arithmetic_cycles(const PerStoreRow& row, double lanes, const DraftMachine& m) {
  const double adds = row.quantity("float_addsub"), products = row.quantity("float_mul");
  const double math = row.quantity("float_mathfunc") + row.quantity("float_otherfunc");
  const double simple =
      adds + products - std::min(adds, products) + row.quantity("float_cmp") + row.quantity("select_op");
  double out = simple / lanes / m.fma_per_cycle + row.quantity("float_divmod") / lanes * kDivideCycles;
  out += lanes > 1 ? math / lanes * kMathInstructions / m.fma_per_cycle : math * kScalarMathCycles;
  return out;
}

StoreCost cost_of(const PerStoreRow& row, const DraftMachine& m) {
  const double iterations = std::max(row.quantity("outer_prod"), 1.0);
  const double full_lanes = std::max(1.0, m.vector_bytes / element_bytes_of(row, iterations));
  const double length = vectorized(row) ? std::max(row.quantity("vec_len"), 1.0) : 1;
  // Mean number of elements per vector instruction, including an incomplete last vector.
  const double lanes = length / std::ceil(length / full_lanes);
  const double steps = iterations / lanes;
  const double arithmetic = arithmetic_cycles(row, lanes, m);

  // A tile stays in registers only if the loops around it are unrolled.
  const double unrolled = std::max(unroll_product(row), row.quantity("auto_unroll_max_step"));
  double accesses = 0, latency = 0, l2_lines = 0, l3_lines = 0, memory_lines = 0, unique = 0;
  for (size_t b = 0; b < kRowBuffers; ++b) {
    const Buffer buffer(row, b);
    if (buffer.present()) unique += buffer.quantity("unique_bytes");
  }
  for (size_t b = 0; b < kRowBuffers; ++b) {
    const Buffer buffer(row, b);
    if (!buffer.present()) continue;
    const double directions = buffer.reads_and_writes() ? 2 : 1;
    // A reuse distance of 1 means that the innermost loop does not move the access.
    const bool held = buffer.loop_reuse() && buffer.quantity("reuse_dis_iter") < 1.5;
    const double tile_steps = std::max(1.0, buffer.quantity("reuse_dis_iter") / lanes);
    const bool in_registers = buffer.loop_reuse() && tile_steps <= 0.75 * m.registers &&
                              (tile_steps <= 1.01 || unrolled >= tile_steps);
    double instructions = steps;
    if (held) {
      // If the vectorized loop does not move the access, it is a broadcast, which is done once per
      // vector.
      instructions = vectorized(row) ? iterations / std::max(buffer.quantity("reuse_ct"), lanes)
                                     : iterations / std::max(buffer.quantity("reuse_ct"), 1.0);
    } else if (vectorized(row) && buffer.quantity("stride") > 1.5) {
      instructions = iterations * 1.5;  // gathered element by element
    }
    if (!held && in_registers) instructions /= std::max(buffer.quantity("reuse_ct"), 1.0);
    accesses += instructions * directions;
    if (buffer.reads_and_writes()) {
      // Each addition of a sum waits for the previous one; as many chains overlap as there are
      // accumulators.
      const double chains = held ? 1 : std::max(1.0, tile_steps);
      const double chain_steps = held ? iterations : steps;
      // An accumulator that is not in a register is stored and loaded again.
      const double wait = in_registers || held ? kFmaLatency : 2 * kFmaLatency;
      if (buffer.loop_reuse())
        latency = std::max(latency, chain_steps * wait / std::min(chains, 2 * kFmaLatency));
    }
    l2_lines += lines_into(row, buffer, m.l1_bytes, kOuterReuseL1);
    l3_lines += lines_into(row, buffer, m.l2_bytes, unique <= m.l2_bytes ? 1 : kOuterReuseL2);
    memory_lines +=
        unique <= m.last_cache_bytes() ? 0 : lines_into(row, buffer, m.last_cache_bytes(), kOuterReuseL3);
  }
  StoreCost cost;
  const double overhead = iterations / length * kLoopCycles / std::max(1.0, std::min(unrolled, 16.0));
  cost.core_cycles =
      std::max({arithmetic, accesses / kLoadsPerCycle, latency, l2_lines * kL2LineCycles,
                l3_lines * kL3LineCycles}) +
      0.2 * (arithmetic + accesses / kLoadsPerCycle + l2_lines * kL2LineCycles + l3_lines * kL3LineCycles) +
      overhead;
  cost.core_cycles /= repeated_in_vain(row);
  cost.memory_bytes = memory_lines * m.line_bytes;
  return cost;
}

}  // namespace

double draft_seconds(const feature::FeatureMatrix& features, const target::Device& device, int threads) {
  const DraftMachine m(device, threads);
  double seconds = 0, forks = 0;
  for (int r = 0; r < features.rows; ++r) {
    const PerStoreRow row(features.row(r));
    const StoreCost cost = cost_of(row, m);
    double speedup = 1;
    if (parallel(row)) {
      const double chunks = std::max(row.quantity("parallel_prod"), 1.0);
      speedup = chunks / std::ceil(chunks / m.threads);
      forks = std::max(forks, 1.0);
    }
    const double memory = cost.memory_bytes /
                          (parallel(row) ? m.bytes_per_second : std::min(m.bytes_per_second, kCoreBandwidth));
    seconds += std::max(cost.core_cycles / m.clock_hz / speedup, memory);
  }
  return seconds + forks * kForkSeconds;
}

namespace {

// Predicts seconds that cannot be compared between tasks.
class DraftModel final : public UntrainedModel {
 public:
  static constexpr const char* kKind = "draft";
  using UntrainedModel::UntrainedModel;

  learn::ModelInputs inputs() const override { return {.rows = true}; }

 private:
  double seconds_of(const learn::ProgramQuery& query) const override {
    return draft_seconds(*query.rows, *query.device, query.device->compute_units()) + 1e-12;
  }
};

}  // namespace

const learn::CostModelKind& draft_kind() { return untrained_kind<DraftModel>(); }

}  // namespace tensorsmith::lab
