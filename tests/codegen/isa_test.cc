// Code for a weaker instruction set must not use a stronger one: measured on a better machine, its times
// would be of a device that does not exist.
#include <gtest/gtest.h>

#include <regex>

#include "lower/lower.h"
#include "runner.h"
#include "space/design_space.h"
#include "support/standard_workloads.h"

namespace tensorsmith::test {
namespace {

std::string assembly(const ir::Workload& workload, const target::Device& device, const sched::Trace& trace) {
  const auto schedule = sched::replay(workload, trace);
  EXPECT_TRUE(schedule.ok()) << schedule.error().message();
  const auto lowered = lower::lower(*schedule);
  EXPECT_TRUE(lowered.ok()) << lowered.error().message();
  const auto text = codegen::emit_assembly(lowered->program, device, {});
  EXPECT_TRUE(text.ok()) << text.error().message();
  return text.ok() ? *text : "";
}

TEST(InstructionSet, IsObeyed) {
  constexpr uint64_t kSeed = 11;
  Rng rng(kSeed);
  int wide_programs = 0;
  for (const target::Device& device : local_devices()) {
    // AVX-512 is known by its registers: zmm, masks, and numbers from 16 on.
    const bool avx512 = device.has_feature("avx512f"), avx = device.has_feature("avx");
    const std::regex beyond(avx512 ? "%none"
                            : avx  ? "%zmm|%k[0-7]|%[xy]mm(1[6-9]|2[0-9]|3[01])"
                                   : "%zmm|%ymm|\tv");
    for (const ir::Workload& workload :
         {standard::matmul(33, 65, 40), standard::softmax(6, 70), standard::elementwise_chain(1000)}) {
      const auto space = space::DesignSpace::build(workload, device, {});
      ASSERT_TRUE(space.ok());
      for (int i = 0; i < 6; ++i) {
        const auto trace = space->to_trace(i == 0 ? space->default_candidate() : space->sample(rng));
        if (!trace.ok()) continue;
        const std::string text = assembly(workload, device, *trace);
        std::smatch found;
        EXPECT_FALSE(std::regex_search(text, found, beyond)) << device.name << ": " << found.str() << " in\n"
                                                             << sched::print(*trace) << "seed " << kSeed;
        wide_programs += avx512 && text.find("%zmm") != std::string::npos ? 1 : 0;
      }
    }
  }
  // The patterns would see it: where AVX-512 may be used it is.
  if (local_devices().front().has_feature("avx512f")) {
    EXPECT_GT(wide_programs, 0);
  }
}

}  // namespace
}  // namespace tensorsmith::test
