// The estimate of products by warpgroups.
#include <algorithm>
#include <cmath>

#include "sched/tensor_cores.h"
#include "space/estimate/gpu_access.h"
#include "space/estimate/gpu_constants.h"
#include "space/estimate/mma_traffic.h"
#include "space/plans/gpu_wgmma/gpu_wgmma_plan.h"

namespace tensorsmith::space {

double GpuWgmmaPlan::estimate(Decisions d, EstimateParts*) const {
  const Choice c = decode(d);
  const auto& m = context_.machine.gpu;
  const GpuConstants& k = gpu_constants();
  const double bytes = product_.element_bytes;
  GpuKernel kernel;
  kernel.block = block(c);
  kernel.blocks = tiles(c);
  const double warps = sched::kWarpgroupWarps * c.groups(),
               chunks = as_double(extent(product_.sum)) / as_double(c.chunk);
  // Products of 16 rows, 8 columns and 32 bytes of the reduction, in a chunk of a block.
  const double products = as_double(c.rows() / sched::kMmaRows) *
                          as_double(c.columns() / sched::kMmaColumns) * as_double(c.chunk) * bytes /
                          sched::kMmaStepBytes;
  const double resident = std::min(resident_blocks(m, kernel.block), std::ceil(kernel.blocks / m.cores));
  // An instruction reads its rows and columns from shared memory, and narrow instructions wait for
  // these reads.
  const double read =
      as_double(c.groups()) * as_double(sched::kWarpgroupRows + c.columns_of_group) * c.chunk * bytes;
  const double chunk_cycles = std::max(products * k.wgmma_cycles, read / k.wgmma_bytes);
  // The factor depends on who waits for whom between chunks; several resident blocks hide each
  // other's waits.
  double slower = 1;
  if (c.copies == Copies::kThreads) slower = k.wgmma_threads_copy;
  if (c.copies == Copies::kBoxes) slower = k.wgmma_meeting;
  if (c.copies == Copies::kOwnWarp && c.groups() == 1) slower = k.wgmma_one_group;
  slower = 1 + (slower - 1) / resident;
  if (c.cluster) slower *= k.wgmma_cluster;
  // The estimate's own factors for arithmetic only apply to the arithmetic units.
  const double together = resident * m.warps(kernel.block.threads);
  kernel.products =
      chunks * chunk_cycles * slower * m.lanes / m.warp / (k.product * (1 + k.few_warps / together));
  const double stored = as_double(c.rows() * c.columns()) * context_.stage(output_).element_bytes;
  if (c.copies == Copies::kThreads) {
    GpuAccess copies;
    for (const auto& [read_of, own] : {std::pair(&product_.a, c.rows()), {&product_.b, c.columns()}}) {
      const double tile = own * c.chunk * bytes;
      copies.instructions += tile / (kMaxVectorBytes * m.warp);
      copies.sectors += tile / kSectorBytes;
    }
    kernel.values = chunks * (k.access * copies.instructions + k.sector * copies.sectors) / k.value;
  }
  kernel.steps = chunks * warps;
  kernel.store_sectors = stored / kSectorBytes;
  // A chunk is requested `stages - 1` chunks before its use. Blocks that have several tiles only
  // wait for the first one.
  const double ahead = (c.stages - 1) * resident * chunk_cycles * slower / k.wait;
  const double of_tiles =
      c.persistent && c.copies == Copies::kOwnWarp ? kernel.blocks / as_double(blocks_at_a_time(c)) : 1;
  kernel.waits = 1 / of_tiles + chunks * std::max(0.0, 1 - ahead);
  double once = kernel.blocks * stored;
  for (const Read* operand : {&product_.a, &product_.b})
    once += context_.stage(operand->producer).spatial_points() * bytes;
  kernel.bytes_once = once;
  kernel.bytes_again = std::max(0.0, dram_bytes(c) + kernel.blocks * stored - once);
  kernel.words = kMaxVectorBytes / 4;
  return gpu_seconds(m, kernel);
}

double GpuWgmmaPlan::dram_bytes(const Choice& c) const {
  return operand_bytes(context_, anchor_, product_,
                       {c.rows(), c.columns(), (extent(product_.rows) + c.rows() - 1) / c.rows(),
                        (extent(product_.columns) + c.columns() - 1) / c.columns(), c.columns_outside,
                        c.group, as_double(tiles(c)), as_double(blocks_at_a_time(c))});
}

}  // namespace tensorsmith::space
