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
  IdVector<AxisId, int64_t> coefficients;  // empty if neither affine nor blocked
  IdVector<AxisId, int64_t> blocks;        // 1 = the axis itself; empty if not blocked

  // Adds factor * other, which is over the same axes. An axis in two ways makes it neither affine nor
  // blocked.
  void add(const ReadIndex& other, int64_t factor);
  // The only axis with a coefficient, if that coefficient is 1 (the constant may be anything), or none.
  AxisId single_axis() const;
};

// A read of another operation's output; equal reads of one operation are listed once.
struct Read {
  StageId producer;
  bool affine = false;                  // all indices
  bool blocked = false;                 // some index is blocked, the others are affine
  bool guarded = false;                 // below a select
  int loads = 1;                        // of the body that it stands for
  IdVector<AxisId, ReadIndex> indices;  // by axis of the producer
  // Elements the row-major address moves, inside a block; empty if neither affine nor blocked.
  IdVector<AxisId, int64_t> strides;

  // Inside a block.
  int64_t stride(AxisId axis) const { return strides[axis]; }  // not empty
  bool depends_on(AxisId axis) const { return strides.empty() || stride(axis) != 0; }
  // How many points of an axis share an address as far as a block goes, gcd over the indices; 1 = no blocks.
  int64_t block_of(AxisId axis) const;
  // Whether both are known to read the same element at every point of a reader with these extents.
  bool same_element(const Read& other, const IdVector<AxisId, int64_t>& extents) const;
  // Fills affine, blocked and strides from the indices; strides_of_dims: of the producer's storage.
  void summarize(const std::vector<int64_t>& strides_of_dims, size_t axes);
};

struct StageInfo {
  bool placeholder = false, constant = false, output = false;
  bool reduction = false;
  bool arg_reduction = false;  // two outputs
  size_t num_spatial = 0;
  IdVector<AxisId, int64_t> extents;
  std::vector<Read> reads;
  std::vector<StageId> consumers;  // those that read it, ascending
  bool expensive = false;          // exp, log, division, ... in the body
  bool has_select = false;
  std::optional<ir::Intrinsic> dot;  // of packed elements in the body
  bool indirect = false;             // an index that is not affine
  // A reduction one of whose reads misses a spatial axis of extent > 1, or whose windows overlap.
  bool data_reuse = false;
  double flops_per_point = 0;  // rough operation count of the body, transcendental ones weighted
  int element_bytes = 4;       // of its output as it is stored
  // The last spatial axis of extent > 1 (contiguous in the output), none for a scalar.
  AxisId contiguous_axis;

  int64_t extent(AxisId axis) const { return extents[axis]; }
  // Of the output's last dimension.
  int64_t row_extent() const { return num_spatial > 0 ? extents[AxisId(num_spatial - 1)] : 1; }
  double spatial_points() const;
  double reduce_points() const;
  size_t num_axes() const { return extents.size(); }
  IdRange<AxisId> axes() const { return extents.ids(); }
  IdRange<AxisId> spatial_axes() const { return {AxisId(0), AxisId(num_spatial)}; }
  IdRange<AxisId> reduce_axes() const { return {AxisId(num_spatial), extents.next()}; }
  bool is_reduce(AxisId axis) const { return axis.place() >= num_spatial; }
};

// By axis of one stage: an axis of another, or none.
using AxisMap = IdVector<AxisId, AxisId>;

struct WorkloadAnalysis {
  IdVector<StageId, StageInfo> stages;

  // widens: copies of short floats that all readers convert are stored as f32 (codegen/widen.h).
  explicit WorkloadAnalysis(const ir::Workload& workload, bool widens = false);

  // Axis map of a read of producer p by consumer c: for each of p's spatial axes the axis of c that indexes
  // it alone with coefficient 1 and constant 0 (none otherwise).
  AxisMap axis_map(const Read& read) const;
  // The consumer reads every element of the producer at most once per element of its own, without reduction
  // or guard: one read, each index a distinct own spatial axis.
  bool reads_elementwise(StageId consumer, StageId producer) const;
};

}  // namespace tensorsmith::space
