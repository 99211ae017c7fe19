#include "space/estimate/mma_traffic.h"

#include <algorithm>
#include <cmath>

#include "space/estimate/gpu_constants.h"

namespace tensorsmith::space {

namespace {

// Returns the elements along the reduction that the operand has per row or column. A window axis
// counts only if it is the sole axis of an index; elements that overlapping windows share are thus
// counted once.
double sum_elements(const StageInfo& anchor, const MmaProduct& product, const Read& read) {
  double elements = anchor.extent(product.sum);
  for (const AxisId r : product.window)
    for (const ReadIndex& index : read.indices)
      if (index.single_axis() == r) elements *= anchor.extent(r);
  return elements;
}

}  // namespace

double operand_bytes(const PlanContext& context, StageId anchor, const MmaProduct& product,
                     const MmaBlocks& blocks) {
  const StageInfo& info = context.stage(anchor);
  const double down = blocks.down, across = blocks.across;
  const double inner = blocks.columns_outside ? down : across, outer = blocks.columns_outside ? across : down;
  const double inner_in_wave = std::clamp(blocks.together / blocks.group, 1.0, inner);
  const double outer_in_wave = std::clamp(blocks.together / inner_in_wave, 1.0, outer);
  const double rows = blocks.columns_outside ? inner_in_wave : outer_in_wave;
  const double columns = blocks.columns_outside ? outer_in_wave : inner_in_wave;
  const double wave =
      product.element_bytes * (sum_elements(info, product, product.a) * rows * blocks.rows +
                               sum_elements(info, product, product.b) * columns * blocks.columns);
  double all = 0;
  for (const Read* read : {&product.a, &product.b})
    all += context.stage(read->producer).spatial_points() * product.element_bytes;
  const double waves = std::ceil(blocks.tiles / blocks.together);
  return all <= gpu_constants().l2_share * context.machine.gpu.l2_bytes ? all : std::max(all, waves * wave);
}

}  // namespace tensorsmith::space
