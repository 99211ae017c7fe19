#include "search/plausible.h"

#include <algorithm>
#include <cmath>

namespace tensorsmith::search {

namespace {

// Eight-bit dot products reach 4 times the f32 peak, Winograd's filtering saves up to 5 of 6
// products, operations on padding or constants are eliminated, and clocks reach up to twice the
// sustained one.
constexpr double kMostTimesPeak = 32;
// No processor reaches this clock; used for devices with unknown clock.
constexpr double kMostGigahertz = 7;
constexpr double kLeastSeconds = 1e-9;
constexpr double kStoresPerCycle = 2;

}  // namespace

double implausible_below(double flops, double output_bytes, const target::Device& device) {
  const double cores = std::max(device.compute_units(), 1),
               vector_bytes = std::max(device.register_bytes(), 1);
  double peak = 1e9 * device.peak_f32_gflops;
  if (peak <= 0)
    peak = 1e9 * kMostGigahertz * cores * 2 * std::max(device.fma_per_cycle(), 1.0) * vector_bytes / 4;
  const double store_rate = 1e9 * kMostGigahertz * cores * kStoresPerCycle * vector_bytes;
  return std::max({kLeastSeconds, flops / (kMostTimesPeak * peak), output_bytes / store_rate});
}

double implausible_below(const ir::Workload& workload, const target::Device& device) {
  double bytes = 0;
  for (const ir::Buffer& output : workload.outputs)
    bytes += ir::bytes_of(output->dtype, output->num_elements());
  return implausible_below(ir::flop_count(workload), bytes, device);
}

bool is_plausible(const record::MeasureResult& result, double least) {
  const double seconds = result.best_estimate();
  return std::isfinite(seconds) && seconds >= least;
}

}  // namespace tensorsmith::search
