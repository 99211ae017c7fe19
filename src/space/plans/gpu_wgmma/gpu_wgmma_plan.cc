#include "space/plans/gpu_wgmma/gpu_wgmma_plan.h"

#include <algorithm>
#include <array>
#include <utility>

#include "sched/tensor_cores.h"
#include "space/plan_kind.h"

namespace tensorsmith::space {

namespace {

constexpr int64_t kColumns[] = {32, 64, 96, 128, 192, 256};
constexpr int64_t kGroupsOfWarps[] = {1, 2, 4};
constexpr int64_t kWgmmaChunkBytes[] = {64, 128};
constexpr int64_t kFewestStages = 2;
constexpr int64_t kWgmmaGroups[] = {1, 2, 4, 8, 16};
constexpr int64_t kThreads = 32 * sched::kWarpgroupWarps;
// Registers of a thread besides its sums, for addresses, descriptors and counters.
constexpr double kWgmmaOtherRegisters = 40;
// With a separate warp that copies, registers only suffice for two warpgroups.
constexpr int64_t kMostGroupsWithOwnWarp = 2;
// Limits the pairs of tiles, all of which code generation tries (codegen/gpu/block_cluster.h).
constexpr int64_t kMostTilesOfClusters = 1 << 14;
constexpr int64_t kMostLines = 256;  // lines of a box
// Bytes that a thread copies at once. Strides of a box are multiples of it.
constexpr int64_t kVectorBytes = 16;

}  // namespace

GpuWgmmaPlan::GpuWgmmaPlan(const PlanContext& context, StageId output, StageId anchor, MmaProduct product)
    : AnchoredPlan(context, output, anchor, {}), product_(std::move(product)) {
  const std::string name = context_.op(anchor_).name + ".wgmma.";
  columns_ = add_category(name + "columns", DecisionRole::kTile, {0.3, 0.7, 0.5, 2, 1, 2});
  down_ = add_category(name + "groups_down", DecisionRole::kTile, {1, 2, 0.3});
  across_ = add_category(name + "groups_across", DecisionRole::kTile, {2, 1, 0.3});
  chunk_ = add_category(name + "chunk", DecisionRole::kTile, {0.5, 2});
  stages_ = add_category(name + "stages", DecisionRole::kUnroll, {0.5, 1, 2, 1, 1});
  copies_ = add_category(name + "copies", DecisionRole::kLocation, {0.5, 1, 3});
  order_ = add_category(name + "order", DecisionRole::kLocation, {1, 1});
  group_ = add_category(name + "group", DecisionRole::kLocation, {1, 0.5, 1, 1, 1});
  persistent_ = add_category(name + "persistent", DecisionRole::kLocation, {1, 1});
  cluster_ = add_category(name + "cluster", DecisionRole::kLocation, {1, 1});
}

GpuWgmmaPlan::Choice GpuWgmmaPlan::decode(Decisions d) const {
  Choice c;
  c.columns_of_group = kColumns[category(d, columns_)];
  c.groups_down = kGroupsOfWarps[category(d, down_)];
  c.groups_across = kGroupsOfWarps[category(d, across_)];
  c.chunk = kWgmmaChunkBytes[category(d, chunk_)] / product_.element_bytes;
  c.stages = static_cast<int64_t>(category(d, stages_)) + kFewestStages;
  c.copies = static_cast<Copies>(category(d, copies_));
  c.columns_outside = category(d, order_) == 1;
  c.group = kWgmmaGroups[category(d, group_)];
  c.persistent = category(d, persistent_) == 1;
  c.cluster = category(d, cluster_) == 1;
  return c;
}

int64_t GpuWgmmaPlan::outer_tiles(const Choice& c) const {
  const int64_t length = extent(c.columns_outside ? product_.columns : product_.rows);
  const int64_t tile = c.columns_outside ? c.columns() : c.rows();
  return (length + tile - 1) / tile;
}

int64_t GpuWgmmaPlan::tiles(const Choice& c) const {
  int64_t all = (extent(product_.rows) + c.rows() - 1) / c.rows() *
                ((extent(product_.columns) + c.columns() - 1) / c.columns());
  for (const AxisId a : product_.batch) all *= extent(a);
  return all;
}

int64_t GpuWgmmaPlan::blocks_at_a_time(const Choice& c) const {
  const auto& m = context_.machine.gpu;
  const int64_t all = std::min(tiles(c), static_cast<int64_t>(m.cores * resident_blocks(m, block(c))));
  return c.cluster ? std::max(all / sched::kClusterBlocks * sched::kClusterBlocks, sched::kClusterBlocks)
                   : all;
}

int64_t GpuWgmmaPlan::run(const Choice& c) const {
  if (c.group > 1) return c.group;
  const int64_t tile = neighbours_in_columns(c) ? c.columns() : c.rows();
  return (extent(neighbours_in_columns(c) ? product_.columns : product_.rows) + tile - 1) / tile;
}

GpuBlock GpuWgmmaPlan::block(const Choice& c) const {
  GpuBlock block;
  const bool own = c.copies == Copies::kOwnWarp;
  block.threads = kThreads * (c.groups() + (own ? 1 : 0));
  const auto aligned = [](int64_t bytes) {
    return (bytes + sched::kWarpgroupTileAlignment - 1) / sched::kWarpgroupTileAlignment *
           sched::kWarpgroupTileAlignment;
  };
  const int64_t chunk = c.chunk * product_.element_bytes * c.stages;
  block.shared_bytes = sched::kWarpgroupTileAlignment + aligned(chunk * c.rows()) +
                       aligned(chunk * c.columns()) + 16 * c.stages;
  const double sums = static_cast<double>(c.columns_of_group) / 2;
  block.registers = kWgmmaOtherRegisters + sums;
  return block;
}

Status GpuWgmmaPlan::check(Decisions d) const {
  const Choice c = decode(d);
  const int64_t rows = extent(product_.rows), columns = extent(product_.columns), sum = extent(product_.sum);
  if (sum % c.chunk != 0) return refuse(anchor_, "the reduction is not a whole number of chunks");
  if (c.stages > sum / c.chunk) return refuse(anchor_, "more stages than chunks");
  if (c.rows() > rows || c.columns() > columns) return refuse(anchor_, "a tile is larger than the output");
  if (outer_tiles(c) % c.group != 0)
    return refuse(anchor_, "the tiles are not a whole number of groups of blocks");
  const auto padded = [](int64_t length, int64_t tile) { return (length + tile - 1) / tile * tile; };
  if (padded(rows, c.rows()) * padded(columns, c.columns()) > 2 * rows * columns)
    return refuse(anchor_, "more than half of the tiles would be tail");
  if (c.copies == Copies::kOwnWarp && c.groups() > kMostGroupsWithOwnWarp)
    return refuse(anchor_, "a separate copying warp serves at most two warpgroups");
  if (std::max(c.rows(), c.columns()) > kMostLines && c.copies != Copies::kThreads)
    return refuse(anchor_, "a copied box has at most 256 lines");
  if (c.cluster && (c.copies != Copies::kOwnWarp || run(c) % sched::kClusterBlocks != 0 ||
                    tiles(c) > kMostTilesOfClusters))
    return refuse(
        anchor_,
        "clusters need a separate copying warp, neighbouring blocks that share an operand, and not too many "
        "tiles");
  if (c.persistent && tiles(c) <= blocks_at_a_time(c))
    return refuse(anchor_, "blocks would be persistent, but each has only one tile");
  for (const Read* read : {&product_.a, &product_.b}) {
    const StageInfo& producer = context_.stage(read->producer);
    if (producer.extent(producer.contiguous_axis) * product_.element_bytes % kVectorBytes != 0)
      return refuse(anchor_, "rows of an operand are not a multiple of 16 bytes");
  }
  return check_block(context_.machine.gpu, block(c), context_.op(anchor_).name, info_.spatial_points());
}

// Draws the decisions that must fit the shapes among those that do, since few of all combinations
// would fit.
void GpuWgmmaPlan::sample(Rng& rng, std::span<int64_t> d) const {
  Plan::sample(rng, d);
  const auto sample_where = [&](size_t slot, const auto& allowed) {
    sample_allowed(rng, slot, d, [&] { return allowed(decode(d)); });
  };
  const int64_t rows = extent(product_.rows), columns = extent(product_.columns), sum = extent(product_.sum);
  for (const size_t slot : {down_, across_}) d[slots()[slot].offset] = 0;
  const auto fits = [&](const Choice& c) {
    return c.rows() <= rows && c.columns() <= columns &&
           (c.copies != Copies::kOwnWarp || c.groups() <= kMostGroupsWithOwnWarp);
  };
  for (const size_t slot : {columns_, down_, across_}) sample_where(slot, fits);
  sample_where(chunk_, [&](const Choice& c) { return sum % c.chunk == 0 && sum >= 2 * c.chunk; });
  sample_where(stages_, [&](const Choice& c) {
    return c.stages <= sum / c.chunk && block(c).shared_bytes <= context_.machine.gpu.shared_bytes;
  });
  sample_where(group_, [&](const Choice& c) { return outer_tiles(c) % c.group == 0; });
  sample_where(persistent_, [&](const Choice& c) { return !c.persistent || tiles(c) > blocks_at_a_time(c); });
  sample_where(cluster_, [&](const Choice& c) {
    return !c.cluster || (c.copies == Copies::kOwnWarp && run(c) % sched::kClusterBlocks == 0 &&
                          tiles(c) <= kMostTilesOfClusters);
  });
}

std::string GpuWgmmaPlan::describe() const { return describe_stages("warpgroups"); }

namespace {

void make_gpu_wgmma(const PlanContext& context, const Group& group, Plans& plans) {
  if (!group.anchor.valid() || group.pattern != nullptr || !group.attached.empty() || !group.pads.empty())
    return;
  if (context.machine.gpu.warp != 32 || context.machine.gpu.capability != target::kHopper) return;
  auto product = match_mma(context, group.root, group.anchor);
  // Factors are rounded to TF32 in registers, but these products read their factors from shared
  // memory.
  if (!product || product->element_bytes == 4 || !multiplies_matrices(context, *product)) return;
  auto plan = std::make_shared<GpuWgmmaPlan>(context, group.root, group.anchor, std::move(*product));
  // The smallest tile and chunk.
  if (plan->check(std::vector<int64_t>(plan->width(), 0)).ok()) plans.push_back(std::move(plan));
}

}  // namespace

extern const PlanKind gpu_wgmma_kind{"gpu_wgmma", make_gpu_wgmma, nullptr, target::DeviceKind::kGpu};

}  // namespace tensorsmith::space
