// Summaries of whole programs in terms of the device that runs them: how long each resource would
// be busy if nothing else mattered, and the shape of the tiles. Per-store rows only know how often
// a statement runs. Summaries also know what a multiprocessor or core holds at a time: occupancy,
// waves and their tail, cache lines that a warp touches, bank conflicts, footprints relative to the
// caches, and what is unrolled.
//
// For programs that others compile (TVM), the sources are the accesses of the workload (which axis
// moves along which dimension), the tile sizes in the trace and the counts of the leaves. A program
// without a multi-level tiled contraction only has the counts of the leaves. For our own programs,
// the source is the loops that are compiled (feature/nest_walk.h).
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "feature/per_store.h"
#include "ir/workload.h"
#include "sched/schedule.h"
#include "sched/step.h"
#include "target/target.h"

namespace tensorsmith::feature {

// Version of the summaries and of the rows that trees derive from them
// (learn/latency/tensorsmith_model.h); models store it.
inline constexpr int kSummaryVersion = 4;

// Programs of one kind have the same resources and columns.
enum class ProgramKind : uint8_t {
  kGpuTiled,  // shared-memory tiles of a product's two operands, accumulators in registers
  kGpuFlat,   // a thread computes one output or less: elementwise, pooling, reductions
  kCpuTiled,  // multi-level tiles of a product
  kCpuOther,
  kCpuNests,  // compiled by Tensorsmith: every loop and statement is analyzed
};
inline constexpr int kProgramKinds = 5;
std::string_view to_string(ProgramKind kind);

// The structure of a computation, independent of names. Programs of the same kind and structure are
// comparable.
enum class WorkloadStructure : uint8_t {
  kContraction,  // sum of a product over an axis that has dimensions of its own: matmul, conv2d
  kWindow,       // sum of a product over windows only: depthwise conv2d
  kPooling,      // reduction of one tensor over windows
  kReduction,    // reduction of one tensor over dimensions of its own
  kElementwise,  // no reduction
  kComposite,    // several reductions: softmax
  kMma,          // on GPUs with tensor cores: sum of a product that they may compute (f16, bf16, bytes, TF32)
};
inline constexpr int kWorkloadStructures = 7;

// Most spatial axes, reduce axes or dimensions. A program with more counts as not tiled.
inline constexpr int kMaxAxes = 8;

// A number for each axis or dimension, at most kMaxAxes of them. It takes no heap memory, because
// summaries are computed by the hundred thousand.
template <class T>
class ByAxis {
 public:
  ByAxis() = default;
  ByAxis(size_t size, T value) : size_(size) { std::fill_n(values_.begin(), size, value); }
  void push_back(T value) { values_[size_++] = value; }
  size_t size() const { return size_; }
  T& operator[](size_t i) { return values_[i]; }
  const T& operator[](size_t i) const { return values_[i]; }
  const T* begin() const { return values_.data(); }
  const T* end() const { return values_.data() + size_; }
  operator std::span<const T>() const { return {values_.data(), size_}; }  // NOLINT: implicit on purpose

 private:
  std::array<T, kMaxAxes> values_;
  size_t size_ = 0;
};

// Properties of a workload, computed once for all its programs.
struct WorkloadAccess {
  struct Term {
    bool reduce = false;
    size_t axis = 0;  // among the spatial or the reduce axes
    int64_t coefficient = 0;
  };
  struct Read {
    std::vector<std::vector<Term>> dims;  // by dimension: its index as a sum over axes, without constants
    std::vector<int64_t> shape;
    bool windowed() const;  // whether several axes move along one dimension
  };
  // The extents of the axes of the product, and its reads; empty without a product.
  std::vector<int64_t> spatial, reduce;
  std::vector<Read> reads;  // two

  WorkloadStructure structure = WorkloadStructure::kElementwise;  // structure on devices without tensor cores
  std::optional<ir::DType> mma_factors;      // type of the factors if tensor cores may compute the product
  double input_bytes = 0, output_bytes = 0;  // of the whole workload, each element counted once
  double flops = 0;
  // The workload on which the traces of programs compiled by Tensorsmith are replayed. Null for
  // programs of other compilers.
  std::shared_ptr<const ir::Workload> workload;

  bool has_product() const { return reads.size() == 2; }
};
// `flops`: operations as the records count them.
WorkloadAccess analyze_accesses(const ir::Workload& workload, double flops);

// Tile sizes by axis and level, outermost first. Level 0 is the number of tiles that the other
// levels leave.
struct Tiles {
  ByAxis<std::array<double, 5>> spatial;  // GPU: blocks, vthreads, threads, two inner; CPU: four, and 1
  ByAxis<std::array<double, 3>> reduce;   // GPU: steps that load a tile, two inner; CPU: two, and 1
};

struct TraceSummary {
  std::optional<Tiles> tiles;
  std::array<double, 2> fetch_vector = {1, 1};  // tiled GPU programs: vector lengths of both reads' fetches
  std::array<double, 2> flat_threads = {0, 0};  // other programs: the first two split lengths
  double unroll = 0;                            // largest auto_unroll_max_step
  int kernels = 0;                              // number of blockIdx annotations
  int inlined = 0, vectorized = 0, attached = 0;
  bool cross_thread_reduction = false;
};
TraceSummary summarize_trace(const sched::Trace& trace, const WorkloadAccess& access, bool gpu);

struct ProgramSummary {
  ProgramKind kind = ProgramKind::kCpuOther;
  WorkloadStructure structure = WorkloadStructure::kElementwise;
  // Roofline on the device: max(operations / peak, bytes from memory / bandwidth), at least 1e-7.
  double roofline_seconds = 0;
  // Seconds of each resource, not negative. Their sum with fitted factors estimates the time of the
  // program.
  std::vector<double> resources;
  std::vector<float> columns;  // shape and ratios; logarithms to base 2 except for counts; finite
};
struct SummarySchema {
  Schema resources, columns;  // in the order of a summary's numbers
};
const SummarySchema& summary_schema(ProgramKind kind);

ProgramSummary summarize_program(const WorkloadAccess& access, const LeafFeatures& leaves,
                                 const sched::Trace& trace, const target::Device& device);
// Returns the same summary from the schedule, which is then not replayed, for our own programs on CPUs:
// `access.workload` must be set. nullopt for other programs and for schedules that cannot be lowered.
std::optional<ProgramSummary> summarize_schedule(const WorkloadAccess& access,
                                                 const sched::Schedule& schedule,
                                                 const target::Device& device);

}  // namespace tensorsmith::feature
