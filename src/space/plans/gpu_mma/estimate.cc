// The estimate of products on tensor cores.
#include <algorithm>
#include <cmath>

#include "sched/tensor_cores.h"
#include "space/estimate/gpu_access.h"
#include "space/estimate/gpu_constants.h"
#include "space/estimate/mma_traffic.h"
#include "space/plans/gpu_mma/gpu_mma_plan.h"

namespace tensorsmith::space {

namespace {

constexpr double kWordBytes = 4;  // a lane's narrowest full access

double mma_cycles(const target::GpuMachine& m) {
  const GpuConstants& k = gpu_constants();
  if (m.capability < target::kAmpere) return k.mma_cycles_turing;
  if (m.capability == target::kAmpere) return k.mma_cycles_a100;
  return m.capability < target::kHopper ? k.mma_cycles_ampere : k.mma_cycles_hopper;
}

}  // namespace

double GpuMmaPlan::estimate(Decisions d, EstimateParts*) const {
  const Choice c = decode(d);
  const auto& m = context_.machine.gpu;
  const GpuConstants& k = gpu_constants();
  const double bytes = product_.element_bytes;
  GpuKernel kernel;
  kernel.block = block(c);
  kernel.blocks = as_double(covered(product_.rows, c.rows()) / c.rows()) *
                  as_double(covered(product_.columns, c.columns()) / c.columns());
  double batch = 1;
  for (const AxisId a : product_.batch) batch *= extent(a);
  kernel.blocks *= batch;
  const double warps = c.warps(), chunks = this->chunks(c);
  const double steps = c.chunk * bytes / sched::kMmaStepBytes;  // steps of a chunk
  const double fragments_down = c.warp_rows / sched::kMmaRows;
  const double fragments_across = c.warp_columns / sched::kMmaColumns;
  // The number of instructions that the arithmetic units would execute in the cycles of the tensor
  // cores. It is divided by the estimate's factor for arithmetic, which only applies to the former.
  const double cycles = mma_cycles(m);
  const double products = warps * fragments_down * fragments_across * steps;
  kernel.products = chunks * products * cycles * m.lanes / m.warp / k.product;
  // Loads of fragments: 512 bytes each, without bank conflicts.
  const double loads = warps * (fragments_down + fragments_across / 2) * steps;
  kernel.values = chunks * loads * k.fragment_loads / k.value;
  if (product_.element_bytes == 4) kernel.values += chunks * loads * 4 * k.tf32_rounding / k.value;
  kernel.steps = chunks * warps;
  kernel.words = c.vector_bytes / kWordBytes;
  const double stored = as_double(c.rows() * c.columns()) * context_.stage(output_).element_bytes;
  GpuAccess copies;
  for (const auto& [read, own] : {std::pair(&product_.a, product_.rows), {&product_.b, product_.columns}}) {
    const Copy copy = copy_of(c, *read, own);
    const double accesses = std::ceil(copy.elements() / copy.vector / kernel.block.threads);
    copies.instructions += accesses * warps;
    copies.sectors += copy.contiguous
                          ? copy.elements() / copy.run * std::ceil(copy.run * bytes / kSectorBytes)
                          : copy.elements();
    if (context_.stage(read->producer).has_select)
      kernel.guarded += chunks * copy.elements() / copy.vector / m.warp;
  }
  // Copies that run ahead take cycles but are not waited for. Others are ordinary accesses.
  if (c.stages > 1) {
    kernel.values += chunks * (k.access * copies.instructions + k.sector * copies.sectors) / k.value;
  } else {
    kernel.memory.add(copies, chunks);
  }
  kernel.store_sectors = stored / kSectorBytes;
  // A chunk is requested `stages - 1` chunks before its use.
  const double resident = std::min(resident_blocks(m, kernel.block), std::ceil(kernel.blocks / m.cores));
  const double chunk_cycles = resident * (products * cycles + loads * k.fragment_loads);
  const double ahead = as_double(c.stages - 1) * chunk_cycles / k.wait;
  kernel.waits = 1 + chunks * (std::max(0.0, 1 - ahead) + k.meeting / std::max(resident, 1.0));
  double once = kernel.blocks * stored;
  for (const Read* read : {&product_.a, &product_.b})
    once += context_.stage(read->producer).spatial_points() * bytes;
  kernel.bytes_once = once;
  kernel.bytes_again = std::max(0.0, dram_bytes(c, kernel.blocks) + kernel.blocks * stored - once);
  return gpu_seconds(m, kernel);
}

double GpuMmaPlan::dram_bytes(const Choice& c, double blocks) const {
  const auto& m = context_.machine.gpu;
  const double together = std::max(1.0, resident_blocks(m, block(c)) * m.cores);
  return operand_bytes(
      context_, anchor_, product_,
      {c.rows(), c.columns(), tiles_along(product_.rows, c.rows()),
       tiles_along(product_.columns, c.columns()), c.columns_outside, c.group, blocks, together});
}

}  // namespace tensorsmith::space
