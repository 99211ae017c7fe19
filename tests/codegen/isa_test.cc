// Code for a weaker instruction set must not use a stronger one: measured on a better machine, its
// times would be those of a device that does not exist.
#include <gtest/gtest.h>

#include <iostream>
#include <regex>

#include "codegen/llvm/codegen.h"
#include "isas.h"
#include "lower/lower.h"
#include "runner.h"
#include "space/design_space.h"
#include "support/small_workloads.h"
#include "support/standard_workloads.h"

namespace tensorsmith::test::isa_test {
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
    // AVX-512 code uses zmm registers, masks, and register numbers from 16 on.
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
  // Check of the patterns: AVX-512 instructions are found where they are allowed.
  if (local_devices().front().has_feature("avx512f")) {
    EXPECT_GT(wide_programs, 0);
  }
}

// Instructions that code for each instruction set must and must not contain. The code is only
// inspected, so processors that are not available are covered, too. The tests codegen_*.ISA tell
// which of them ran.
TEST(InstructionSet, EachHasItsCode) {
  const struct {
    const char* isa;
    const char* floats;   // expected for a product of floats
    const char* bytes;    // expected for a product of bytes
    const char* bf16;     // expected for a product of bf16 elements
    const char* nowhere;  // forbidden in all three
  } cases[] = {
      {"sse4.2", "mulps.*%xmm", "pmaddwd.*%xmm", "mulps.*%xmm", "%ymm|%zmm|\tv[a-z]"},
      {"avx", "vmulps.*%ymm", "vpmaddwd.*%xmm", "vmulps.*%ymm",
       "%zmm|%k[0-7]|vfmadd|vpdpbusd|\tvp(add|sub|mul|mull|madd|and|or|xor|shuf|max|min)[a-z]*\t.*%ymm"},
      {"avx2", "vfmadd[0-9]*ps.*%ymm", "vpmaddwd.*%ymm", "vfmadd[0-9]*ps.*%ymm",
       "%zmm|%k[0-7]|vpdpbusd|vdpbf16ps"},
      {"avxvnni", "vfmadd[0-9]*ps.*%ymm", "vpdpbusd.*%ymm", "vfmadd[0-9]*ps.*%ymm", "%zmm|%k[0-7]|vdpbf16ps"},
      {"avx512", "vfmadd[0-9]*ps.*%zmm", "vpmaddwd.*%zmm", "vfmadd[0-9]*ps.*%zmm", "vpdpbusd|vdpbf16ps"},
      {"avx512vnni", "vfmadd[0-9]*ps.*%zmm", "vpdpbusd.*%zmm", "vfmadd[0-9]*ps.*%zmm", "vdpbf16ps"},
      {"avx512bf16", "vfmadd[0-9]*ps.*%zmm", "vpdpbusd.*%zmm", "vdpbf16ps.*%zmm", "%tmm"},
      {"amx", "vfmadd[0-9]*ps.*%zmm", "tdpb[us][us]d.*%tmm", "tdpbf16ps.*%tmm", "%none"},
  };
  ASSERT_EQ(std::size(cases), all_isas().size());
  Rng rng(5);
  const ir::Workload bytes = small::quantized_matmul(64, 64, 64, rng);
  for (const auto& c : cases) {
    target::Device device = device_with(c.isa);
    device.cpu().cores = 1;  // on two cores, packing so small operands takes longer than it saves
    const std::pair<ir::Workload, const char*> workloads[] = {{standard::matmul(64, 64, 64), c.floats},
                                                              {bytes, c.bytes},
                                                              {small::bf16_matmul(64, 64, 64, true), c.bf16},
                                                              {standard::softmax(6, 70), ""},
                                                              {small::conv2d(8, 12, 16, 3, 1, 1), ""}};
    for (const auto& [workload, has] : workloads) {
      const auto space = space::DesignSpace::build(workload, device, {});
      ASSERT_TRUE(space.ok()) << space.error().message();
      const auto trace = space->to_trace(space->default_candidate());
      ASSERT_TRUE(trace.ok()) << trace.error().message();
      const std::string text = assembly(workload, device, *trace);
      EXPECT_TRUE(std::regex_search(text, std::regex(has))) << c.isa << " without " << has << "\n" << text;
      std::smatch found;
      EXPECT_FALSE(std::regex_search(text, found, std::regex(c.nowhere)))
          << c.isa << ": " << found.str() << "\n"
          << sched::print(*trace);
      const auto lowered = lower::lower(*sched::replay(workload, *trace));
      const auto kernel = backend().compile(lowered->program, device, {});
      ASSERT_TRUE(kernel.ok()) << kernel.error().message();
      EXPECT_TRUE(undefined_symbols(kernel->object).empty()) << c.isa;
    }
  }
}

// Makes a log show which instruction sets it covers.
TEST(InstructionSet, WhichCanRunHere) {
  std::string runs, lacks;
  for (const std::string& isa : all_isas()) (local_device_with(isa) ? runs : lacks) += " " + isa;
  std::cout << "executed on this processor:" << runs
            << "; only compiled:" << (lacks.empty() ? " none" : lacks) << "\n";
  EXPECT_EQ(runs.empty(), target::probe_local()->arch != "x86-64");
}

}  // namespace
}  // namespace tensorsmith::test::isa_test
