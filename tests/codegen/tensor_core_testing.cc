#include "codegen/tensor_core_testing.h"

#include <gtest/gtest.h>

#include "ir/text.h"
#include "lower/lower.h"
#include "sched/device_limits.h"
#include "space/gpu_program.h"

namespace tensorsmith::test {

using lower::Tensor;
using space::Candidate;
using space::DesignSpace;

target::Device device(const char* name) {
  auto found = target::find_device(name);
  EXPECT_TRUE(found.ok());
  return found.ok() ? *found : target::Device{};
}

DesignSpace space_of(const ir::Workload& workload, const target::Device& gpu) {
  auto built = DesignSpace::build(workload, gpu, {});
  EXPECT_TRUE(built.ok()) << built.error().message();
  return *built;
}

bool is_kind(const DesignSpace& space, int sketch, const char* plan) {
  return space.describe(sketch).find(plan) != std::string::npos;
}

bool has_kind(const DesignSpace& space, const char* plan) {
  for (size_t s = 0; s < space.num_sketches(); ++s)
    if (is_kind(space, static_cast<int>(s), plan)) return true;
  return false;
}

std::vector<Candidate> draw(const DesignSpace& space, uint64_t seed, size_t count, const char* plan) {
  Rng rng(seed);
  std::vector<Candidate> found;
  for (int i = 0; i < 600 && found.size() < count; ++i) {
    Candidate c = space.sample(rng);
    if (is_kind(space, c.sketch, plan)) found.push_back(std::move(c));
  }
  return found;
}

ir::Program program_of(const DesignSpace& space, const Candidate& c, const target::Device& gpu) {
  const auto trace = space.to_trace(c);
  EXPECT_TRUE(trace.ok()) << trace.error().message();
  const auto schedule = sched::replay(space.workload(), *trace);
  EXPECT_TRUE(schedule.ok()) << schedule.error().message() << sched::print(*trace);
  const auto bounds = sched::infer_bounds(*schedule);
  EXPECT_TRUE(bounds.ok()) << bounds.error().message();
  const Status limits = sched::check_device_limits(*schedule, *bounds, gpu);
  EXPECT_TRUE(limits.ok()) << limits.error().message() << sched::print(*trace);
  const auto lowered = lower::lower(*schedule);
  EXPECT_TRUE(lowered.ok()) << lowered.error().message();
  EXPECT_EQ(broken_gpu_rule(lowered->program), "") << ir::print(lowered->program);
  return lowered->program;
}

std::vector<Tensor> random_inputs(const ir::Workload& workload, uint64_t seed) {
  Rng rng(seed);
  std::vector<Tensor> inputs;
  for (const ir::Buffer& b : workload.inputs())
    inputs.push_back(lower::random_tensor(b->dtype, b->shape, rng, 4));
  return inputs;
}

codegen::GpuSource source_of(const ir::Program& program, const target::Device& gpu) {
  auto source = codegen::emit_gpu(program, gpu, {}, codegen::cuda_c());
  EXPECT_TRUE(source.ok()) << source.error().message();
  return source.ok() ? std::move(source).value() : codegen::GpuSource{};
}

}  // namespace tensorsmith::test
