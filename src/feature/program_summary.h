// A program as a whole, in the terms of the device that runs it: how long each of its resources would be busy
// if nothing else mattered, and the shape of its tiles. Unlike per-store rows, which know how often a
// statement runs, this knows what a multiprocessor or core holds at a time: occupancy, waves and their tail,
// lines that a warp touches, bank conflicts, footprints against caches, what is unrolled and what is not.
//
// Sources of programs that others compile (TVM): the workload's accesses (which axis moves along which
// dimension), the trace's tile sizes, and the leaves' counts; a program without a multi-level tiled
// contraction has the leaves' counts only. Of our own: the loops that are compiled (feature/nest_walk.h).
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
#include "sched/step.h"
#include "target/target.h"

namespace tensorsmith::feature {

// Of what is written here and of the rows that trees read of it (learn/latency/tensorsmith_model.h); a model keeps it.
inline constexpr int kSummaryVersion = 4;

// Programs of one kind have the same resources and columns.
enum class ProgramKind : uint8_t {
  kGpuTiled,  // shared-memory tiles of a product's two operands, accumulators in registers
  kGpuFlat,   // a thread an output or less: elementwise, pooling, reductions
  kCpuTiled,  // multi-level tiles of a product
  kCpuOther,
  kCpuNests,  // compiled by Tensorsmith: every loop and statement is looked at
};
inline constexpr int kProgramKinds = 5;
std::string_view to_string(ProgramKind kind);

// What the computation is made of, by structure and not by name. Programs of the same kind and structure
// compare.
enum class WorkloadStructure : uint8_t {
  kContraction,  // sum of a product over an axis that moves along dimensions of its own: matmul, conv2d
  kWindow,       // sum of a product over windows only: depthwise conv2d
  kPooling,      // reduction of one tensor over windows
  kReduction,    // reduction of one tensor over dimensions of its own
  kElementwise,  // no reduction
  kComposite,    // several reductions: softmax
  kMma,  // on a GPU with tensor cores, sum of a product that they may compute: of f16, bf16, bytes, TF32
};
inline constexpr int kWorkloadStructures = 7;

// Extents of axes. More axes than this: the program counts as not tiled.
inline constexpr int kMaxAxes = 8;

// A number for each axis or dimension, at most kMaxAxes of them. Summaries are made by the hundred thousand, so it takes no memory
// from the heap.
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
  operator std::span<const T>() const { return {values_.data(), size_}; }  // NOLINT: it is one

 private:
  std::array<T, kMaxAxes> values_;
  size_t size_ = 0;
};

// What there is to know of a workload, once for all its programs.
struct WorkloadAccess {
  struct Term {
    bool reduce = false;
    size_t axis = 0;  // among the spatial or the reduce axes
    int64_t coefficient = 0;
  };
  struct Read {
    std::vector<std::vector<Term>> dims;  // by dimension: its index as a sum over axes, without constants
    std::vector<int64_t> shape;
    bool windowed() const;  // a dimension that several axes move along
  };
  // Of the product, empty without one.
  std::vector<int64_t> spatial, reduce;
  std::vector<Read> reads;  // two

  WorkloadStructure structure = WorkloadStructure::kElementwise;  // on devices without tensor cores
  std::optional<ir::DType> mma_factors;      // of a product that tensor cores may compute: their type
  double input_bytes = 0, output_bytes = 0;  // of the whole workload, each element once
  double flops = 0;
  // Of programs that Tensorsmith compiles: to replay their traces on. Null: somebody else's code.
  std::shared_ptr<const ir::Workload> workload;

  bool has_product() const { return reads.size() == 2; }
};
// flops: as the records count them.
WorkloadAccess analyze_accesses(const ir::Workload& workload, double flops);

// Tile sizes by axis and level, outermost first; level 0 is what the others leave of the axis.
struct Tiles {
  ByAxis<std::array<double, 5>> spatial;  // GPU: block, vthread, thread, two inner; CPU: four, and 1
  ByAxis<std::array<double, 3>> reduce;   // GPU: loads of a tile, two inner; CPU: two, and 1
};

struct TraceSummary {
  std::optional<Tiles> tiles;
  std::array<double, 2> fetch_vector = {1, 1};  // GPU tiled: vector lengths of the fetches of read 0 and 1
  std::array<double, 2> flat_threads = {0, 0};  // other programs: the first two split lengths
  double unroll = 0;                            // largest auto_unroll_max_step
  int kernels = 0;                              // blockIdx annotations
  int inlined = 0, vectorized = 0, attached = 0;
  bool cross_thread_reduction = false;
};
TraceSummary summarize_trace(const sched::Trace& trace, const WorkloadAccess& access, bool gpu);

struct ProgramSummary {
  ProgramKind kind = ProgramKind::kCpuOther;
  WorkloadStructure structure = WorkloadStructure::kElementwise;
  // max(operations / peak, bytes from memory / bandwidth) of the device, at least 1e-7.
  double roofline_seconds = 0;
  // Seconds of each resource, not negative: what a sum with fitted factors estimates the program by.
  std::vector<double> resources;
  std::vector<float> columns;  // shape and ratios; logarithms to base 2 unless a count; finite
};
struct SummarySchema {
  Schema resources, columns;  // in the order of a summary's numbers
};
const SummarySchema& summary_schema(ProgramKind kind);

ProgramSummary summarize_program(const WorkloadAccess& access, const LeafFeatures& leaves,
                                 const sched::Trace& trace, const target::Device& device);

}  // namespace tensorsmith::feature
