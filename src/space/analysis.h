// Facts about a workload that the sketch rules need: how each operation reads others, what is cheap
// to recompute, and what has data reuse.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "ir/workload.h"
#include "space/ids.h"

namespace tensorsmith::space {

// One index of a read as a function of the reader's axes (spatial, then reduce). It is affine, or
// affine in floor(axis / block) of some axes. Example of the latter: the input channels of a
// grouped convolution, in which a block of output channels belongs to one group.
struct ReadIndex {
  bool affine = false;
  bool blocked = false;  // has a block > 1; then not affine
  int64_t constant = 0;
  IdVector<AxisId, int64_t> coefficients;  // empty if neither affine nor blocked
  IdVector<AxisId, int64_t> blocks;        // 1 = the axis itself; empty if not blocked

  // Adds factor * other, which is over the same axes. If an axis occurs with two different blocks,
  // the result is neither affine nor blocked.
  void add(const ReadIndex& other, int64_t factor);
  // Returns the only axis with a coefficient if that coefficient is 1 (with any constant), else
  // none.
  AxisId single_axis() const;
};

// A read of another operation's output; equal reads of one operation are listed once.
struct Read {
  StageId producer;
  bool affine = false;                  // all indices are affine
  bool blocked = false;                 // some index is blocked, the others are affine
  bool guarded = false;                 // inside a select
  int loads = 1;                        // number of loads in the body that it stands for
  IdVector<AxisId, ReadIndex> indices;  // by axis of the producer
  // Elements by which a step along each axis moves the row-major address, inside a block; empty if
  // neither affine nor blocked.
  IdVector<AxisId, int64_t> strides;

  // The stride inside a block.
  int64_t stride(AxisId axis) const { return strides[axis]; }  // `strides` must not be empty
  bool depends_on(AxisId axis) const { return strides.empty() || stride(axis) != 0; }
  // Returns how many points of an axis share an address: the gcd of the blocks over the indices; 1
  // = no blocks.
  int64_t block_of(AxisId axis) const;
  // Returns whether both are known to read the same element at every point of a reader with these
  // extents.
  bool same_element(const Read& other, const IdVector<AxisId, int64_t>& extents) const;
  // Fills affine, blocked and strides from the indices. `strides_of_dims`: those of the producer's
  // storage.
  void summarize(const std::vector<int64_t>& strides_of_dims, size_t axes);
};

struct StageInfo {
  bool placeholder = false, constant = false, output = false;
  bool reduction = false;
  bool arg_reduction = false;  // has two outputs
  size_t num_spatial = 0;
  IdVector<AxisId, int64_t> extents;
  std::vector<Read> reads;
  std::vector<StageId> consumers;  // stages that read it, ascending
  bool expensive = false;          // exp, log, division, ... in the body
  bool has_select = false;
  std::optional<ir::Intrinsic> dot;  // kind of dot product of packed elements in the body
  bool indirect = false;             // some index is not affine
  // True for a reduction in which some read does not depend on a spatial axis of extent > 1, or
  // whose windows overlap.
  bool data_reuse = false;
  double flops_per_point = 0;  // rough operation count of the body; transcendental functions weigh more
  int element_bytes = 4;       // of its output as stored
  // The last spatial axis of extent > 1 (contiguous in the output), none for a scalar.
  AxisId contiguous_axis;

  int64_t extent(AxisId axis) const { return extents[axis]; }
  // Extent of the output's last dimension.
  int64_t row_extent() const { return num_spatial > 0 ? extents[AxisId(num_spatial - 1)] : 1; }
  double spatial_points() const;
  double reduce_points() const;
  size_t num_axes() const { return extents.size(); }
  IdRange<AxisId> axes() const { return extents.ids(); }
  IdRange<AxisId> spatial_axes() const { return {AxisId(0), AxisId(num_spatial)}; }
  IdRange<AxisId> reduce_axes() const { return {AxisId(num_spatial), extents.next()}; }
  bool is_reduce(AxisId axis) const { return axis.place() >= num_spatial; }
};

// For each axis of one stage, an axis of another stage or none.
using AxisMap = IdVector<AxisId, AxisId>;

struct WorkloadAnalysis {
  IdVector<StageId, StageInfo> stages;

  // `widens`: copies of 16-bit floats that all readers convert to f32 are stored as f32
  // (codegen/widen.h).
  explicit WorkloadAnalysis(const ir::Workload& workload, bool widens = false);

  // Returns the axis map of a read of producer p by consumer c: for each spatial axis of p, the
  // axis of c that alone indexes it, with coefficient 1 and constant 0, or none.
  AxisMap axis_map(const Read& read) const;
  // Returns whether the consumer, which has no reduction, reads every element of the producer at
  // most once per element of its own: in one affine read, each index of which is a distinct axis of
  // the consumer.
  bool reads_elementwise(StageId consumer, StageId producer) const;
};

}  // namespace tensorsmith::space
