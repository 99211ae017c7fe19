#include "runtime/device/probe.h"

#include <algorithm>

namespace tensorsmith::runtime {
namespace {

// Larger than any cache, but small enough for devices with little memory.
constexpr int64_t kMostCopiedBytes = int64_t{512} << 20;
constexpr int64_t kCacheMultiple = 4;
constexpr int64_t kCopyThreads = 128, kBytesPerThread = 16;
constexpr int kPasses = 8;
constexpr int kShortLaunches = 200;

// Returns the shortest of several times of a sequence of launches of the kernel.
Result<double> fastest(Gpu& gpu, const GpuModule& module, std::span<const GpuSpan> buffers, int64_t blocks,
                       int launches) {
  const std::vector<Launch> all(launches,
                                Launch{"copy", {blocks, 1, 1}, {kCopyThreads, 1, 1}, 0, {{0, 0}, {1, 0}}});
  TS_ASSIGN_OR_RETURN(const auto sequence, gpu.make_sequence());
  TS_RETURN_IF_ERROR(sequence->add(module, all, buffers, {}));
  TS_ASSIGN_OR_RETURN(double best, sequence->time());
  for (int pass = 0; pass < kPasses; ++pass) {
    TS_ASSIGN_OR_RETURN(const double seconds, sequence->time());
    best = std::min(best, seconds);
  }
  return std::max(best, 1e-9);
}

}  // namespace

Result<GpuMeasurements> measure_gpu(Gpu& gpu) {
  const GpuProperties& p = gpu.properties();
  const int64_t unit = kCopyThreads * kBytesPerThread;
  const int64_t wanted = std::max<int64_t>(kCacheMultiple * p.l2_bytes, int64_t{64} << 20);
  const int64_t most = std::min(kMostCopiedBytes, p.max_buffer_bytes / 4);
  const int64_t blocks = std::max<int64_t>(std::min(wanted, most) / unit, 1);
  TS_ASSIGN_OR_RETURN(const auto module, gpu.load(p.place.platform->copy_module));
  TS_ASSIGN_OR_RETURN(const auto from, gpu.allocate(blocks * unit));
  TS_ASSIGN_OR_RETURN(const auto to, gpu.allocate(blocks * unit));
  TS_RETURN_IF_ERROR(gpu.fill(from->all(), 1));
  TS_RETURN_IF_ERROR(gpu.fill(to->all(), 2));
  const GpuSpan buffers[] = {from->all(), to->all()};
  GpuMeasurements measured;
  TS_ASSIGN_OR_RETURN(const double copied, fastest(gpu, *module, buffers, blocks, 1));
  measured.memory_bandwidth_gbs = 1e-9 * (2 * blocks * unit) / copied;
  TS_ASSIGN_OR_RETURN(const double launched, fastest(gpu, *module, buffers, 1, kShortLaunches));
  measured.launch_overhead_us = 1e6 * launched / kShortLaunches;
  return measured;
}

}  // namespace tensorsmith::runtime
