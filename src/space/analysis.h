// What the sketch rules need to know about a workload: how each operation reads others, what is cheap to
// recompute, what has data reuse.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "ir/workload.h"
#include "space/ids.h"

namespace tensorsmith::space {

// One index of a read as a function of the reader's axes (spatial, then reduce): affine, or affine in
// floor(axis / block) of some axes (the input channels of a grouped convolution: one block of output channels
// a group).
struct ReadIndex {
  bool affine = false;
  bool blocked = false;  // with a block > 1; not affine then
  int64_t constant = 0;
  std::vector<int64_t> coefficients;  // by axis; empty if neither affine nor blocked
  std::vector<int64_t> blocks;        // by axis, 1 = the axis itself; empty if not blocked

  // Adds factor * other, which is over the same axes. An axis in two ways makes it neither affine nor
  // blocked.
  void add(const ReadIndex& other, int64_t factor);
  // The only axis with a coefficient, if that coefficient is 1 (the constant may be anything); else -1.
  int single_axis() const;
};

// A read of another operation's output; equal reads of one operation are listed once.
struct Read {
  StageId producer;
  bool affine = false;   // all indices
  bool blocked = false;  // some index is blocked, the others are affine
  bool guarded = false;  // below a select
  int loads = 1;         // of the body that it stands for
  std::vector<ReadIndex> indices;
  // By axis: elements the row-major address moves, inside a block; empty if neither affine nor blocked.
  std::vector<int64_t> strides;

  // Inside a block.
  int64_t stride(int axis) const { return strides[static_cast<size_t>(axis)]; }  // not empty
  bool depends_on(int axis) const { return strides.empty() || stride(axis) != 0; }
  // How many points of an axis share an address as far as a block goes, gcd over the indices; 1 = no blocks.
  int64_t block_of(int axis) const;
  // Whether both are known to read the same element at every point of a reader with these extents.
  bool same_element(const Read& other, const std::vector<int64_t>& extents) const;
  // Fills affine, blocked and strides from the indices; strides_of_dims: of the producer's storage.
  void summarize(const std::vector<int64_t>& strides_of_dims, size_t axes);
};

struct StageInfo {
  bool placeholder = false, constant = false, output = false;
  bool reduction = false;
  bool arg_reduction = false;  // two outputs
  int num_spatial = 0, num_reduce = 0;
  std::vector<int64_t> extents;  // by axis: spatial, then reduce
  std::vector<Read> reads;
  std::vector<StageId> consumers;  // those that read it, ascending
  bool expensive = false;          // exp, log, division, ... in the body
  bool has_select = false;
  std::optional<ir::Intrinsic> dot;  // kDot4 or kDot2 in the body
  bool indirect = false;             // an index that is not affine
  // A reduction one of whose reads misses a spatial axis of extent > 1, or whose windows overlap.
  bool data_reuse = false;
  double flops_per_point = 0;  // rough operation count of the body, transcendental ones weighted
  int element_bytes = 4;
  // The last spatial axis of extent > 1 (contiguous in the output), or -1 for a scalar.
  int contiguous_axis = -1;

  int64_t extent(int axis) const { return extents[static_cast<size_t>(axis)]; }
  double spatial_points() const;
  double reduce_points() const;
  int num_axes() const { return num_spatial + num_reduce; }
};

struct WorkloadAnalysis {
  IdVector<StageId, StageInfo> stages;

  explicit WorkloadAnalysis(const ir::Workload& workload);

  // Axis map of a read of producer p by consumer c: for each of p's spatial axes the axis of c that indexes
  // it alone with coefficient 1 and constant 0 (-1 otherwise).
  std::vector<int> axis_map(const Read& read) const;
  // The consumer reads every element of the producer at most once per element of its own, without reduction
  // or guard: one read, each index a distinct own spatial axis.
  bool reads_elementwise(StageId consumer, StageId producer) const;
};

}  // namespace tensorsmith::space
