// Design spaces of GPUs over the tasks of whole networks: too large to run here, but every
// candidate is legal on its device, and its program keeps the rules that threads rely on.
#include <gtest/gtest.h>

#include <set>

#include "gpu_program.h"
#include "graph/graph.h"
#include "graph/tasks.h"
#include "graph/zoo/zoo.h"
#include "ir/text.h"
#include "lower/lower.h"
#include "sched/device_limits.h"
#include "space/design_space.h"

namespace tensorsmith::space::gpu_zoo_test {
namespace {

void expect_legal(const DesignSpace& space, const Candidate& c, const target::Device& device) {
  ASSERT_TRUE(space.check(c).ok()) << space.check(c).error().message();
  const auto trace = space.to_trace(c);
  ASSERT_TRUE(trace.ok()) << trace.error().message();
  const std::string what = space.describe(c.sketch) + "\n" + sched::print(*trace);
  const auto schedule = sched::replay(space.workload(), *trace);
  ASSERT_TRUE(schedule.ok()) << what << schedule.error().message();
  const auto bounds = sched::infer_bounds(*schedule);
  ASSERT_TRUE(bounds.ok()) << what << bounds.error().message();
  const Status limits = sched::check_device_limits(*schedule, *bounds, device);
  ASSERT_TRUE(limits.ok()) << what << limits.error().message();
  const auto lowered = lower::lower(*schedule);
  ASSERT_TRUE(lowered.ok()) << what << lowered.error().message();
  ASSERT_EQ(test::broken_gpu_rule(lowered->program), "") << what << ir::print(lowered->program);
}

TEST(GpuZoo, CandidatesAreLegal) {
  const char* devices[] = {"v100", "a100", "h100", "mi50", "k80"};
  uint64_t seed = 7;
  std::set<std::string> seen;
  for (const char* network :
       {"squeezenet1_1", "mobilenet_v3_large", "resnet50", "bert_tiny", "gpt2", "efficientnet_b0"}) {
    const auto request = graph::zoo::parse_request(network);
    ASSERT_TRUE(request.ok()) << request.error().message();
    auto graph = graph::zoo::import(*request);
    ASSERT_TRUE(graph.ok()) << graph.error().message();
    ASSERT_TRUE(graph::optimize(*graph).ok());
    const auto partition = graph::partition(*graph);
    ASSERT_TRUE(partition.ok()) << partition.error().message();
    for (const auto& task : partition->tasks) {
      if (!seen.insert(task.key).second) continue;
      const auto device = target::find_device(devices[++seed % std::size(devices)]);
      ASSERT_TRUE(device.ok());
      SCOPED_TRACE(device->name + " " + network + " " + task.name + " seed " + std::to_string(seed));
      const auto space = DesignSpace::build(task.workload, *device, {});
      ASSERT_TRUE(space.ok()) << space.error().message();
      Rng rng(seed);
      expect_legal(*space, space->default_candidate(), *device);
      expect_legal(*space, space->plain_candidate(), *device);
      for (int i = 0; i < 4 && !HasFatalFailure(); ++i) expect_legal(*space, space->sample(rng), *device);
      if (HasFatalFailure()) return;
    }
  }
  EXPECT_GT(seen.size(), 100U);
}

}  // namespace
}  // namespace tensorsmith::space::gpu_zoo_test
