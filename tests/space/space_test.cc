// Properties of design spaces over many workloads.
#include <gtest/gtest.h>

#include <algorithm>
#include <set>

#include "space/design_space.h"
#include "support/print_schedule.h"
#include "support/random_workload.h"
#include "support/standard_workloads.h"

namespace tensorsmith::space::space_test {
namespace {

using namespace tensorsmith::test::standard;

target::Device small_device(int cores, int vector_bytes = 32) {
  target::Device d;
  d.name = "test";
  d.arch = "x86-64";
  d.cpu().vector_bytes = vector_bytes;
  d.cpu().vector_registers = vector_bytes == 64 ? 32 : 16;
  d.cpu().fma_per_cycle = 2;
  d.cpu().cores = cores;
  return d;
}

std::vector<std::pair<std::string, ir::Workload>> workloads() {
  Conv2d conv;
  conv.h = 7;
  conv.w = 9;
  conv.co = 6;
  Conv2d strided = conv;
  strided.stride = 2;
  Conv2d pointwise = conv;
  pointwise.kh = pointwise.kw = 1;
  pointwise.pad = 0;
  return {{"matmul", matmul(17, 33, 10)},
          {"batch_matmul", batch_matmul(3, 5, 16, 8)},
          {"dense_bias_relu", dense_bias_relu(4, 19, 12)},
          {"conv2d", conv2d(conv)},
          {"conv2d_bias_relu", conv2d_bias_relu(conv)},
          {"strided", conv2d_bias_relu(strided)},
          {"pointwise", conv2d_bias_relu(pointwise)},
          {"depthwise", depthwise_conv2d(conv)},
          {"softmax", softmax(5, 37)},
          {"layernorm", layernorm(6, 40)}};
}

DesignSpace build(const ir::Workload& workload, int threads = 2, int vector_bytes = 32) {
  auto space = DesignSpace::build(workload, small_device(threads, vector_bytes), {});
  EXPECT_TRUE(space.ok()) << space.error().message();
  return *space;
}

void expect_replays(const DesignSpace& space, const Candidate& c, const std::string& what) {
  auto trace = space.to_trace(c);
  ASSERT_TRUE(trace.ok()) << what << ": " << trace.error().message();
  auto schedule = sched::replay(space.workload(), *trace);
  ASSERT_TRUE(schedule.ok()) << what << " " << space.describe(c.sketch) << ": " << schedule.error().message()
                             << "\n"
                             << sched::print(*trace);
  auto bounds = sched::infer_bounds(*schedule);
  ASSERT_TRUE(bounds.ok()) << what << ": " << bounds.error().message() << "\n"
                           << test::print_schedule(*schedule);
}

TEST(DesignSpace, SampledTracesReplayOnStandardWorkloads) {
  for (const auto& [name, workload] : workloads()) {
    for (int threads : {1, 2}) {
      const auto space = build(workload, threads);
      Rng rng(5);
      expect_replays(space, space.default_candidate(), name);
      for (int i = 0; i < 60; ++i) {
        Candidate c = space.sample(rng);
        EXPECT_TRUE(space.check(c).ok());
        expect_replays(space, c, name);
        c = space.mutate(c, rng);
        expect_replays(space, c, name);
        if (::testing::Test::HasFatalFailure()) return;
      }
    }
  }
}

TEST(DesignSpace, SampledTracesReplayOnRandomWorkloads) {
  for (uint64_t seed = 1; seed <= 150; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    const auto space = build(test::random_workload(seed));
    Rng rng(seed);
    expect_replays(space, space.default_candidate(), "default");
    for (int i = 0; i < 6; ++i) {
      expect_replays(space, space.sample(rng), "sample");
      if (::testing::Test::HasFatalFailure()) return;
    }
  }
}

// Compares the sizes of small sketches with brute force over the slots.
TEST(DesignSpace, EnumeratesEveryPointOnce) {
  int compared = 0;
  for (const auto& workload :
       {elementwise_chain(5), matmul(2, 3, 2), softmax(2, 3), dense_bias_relu(1, 4, 3)}) {
    const auto space = build(workload);
    for (size_t k = 0; k < space.num_sketches(); ++k) {
      const int sketch = static_cast<int>(k);
      // Counts the tuples of each slot one by one.
      double expected = 1;
      for (const auto& slot : space.slots(sketch)) {
        if (slot.kind == DecisionKind::kCategory) {
          expected *= slot.categories;
          continue;
        }
        int64_t tuples = 0;
        std::vector<int64_t> l(slot.parts, 1);
        for (bool more = true; more;) {
          int64_t product = 1;
          for (int64_t x : l) product *= x;
          if (product <= slot.extent && (slot.max_innermost == 0 || l.back() <= slot.max_innermost)) ++tuples;
          size_t p = l.size();
          while (p > 0 && ++l[p - 1] > slot.extent) l[--p] = 1;
          more = p > 0;
        }
        expected *= static_cast<double>(tuples);
      }
      EXPECT_EQ(space.size(sketch), expected) << space.describe(sketch);
      if (expected > 200000) continue;
      ++compared;
      std::set<std::vector<int64_t>> found;
      for (const auto& c : space.enumerate(sketch, 1000000)) EXPECT_TRUE(found.insert(c.decisions).second);
      EXPECT_EQ(static_cast<double>(found.size()), expected) << space.describe(sketch);
      EXPECT_EQ(space.enumerate(sketch, 3).size(), std::min<size_t>(3, found.size()));
    }
  }
  EXPECT_GE(compared, 6);
}

TEST(DesignSpace, SamplingCoversATinySpace) {
  const auto space = build(elementwise_chain(6), 1);
  std::set<std::pair<int, std::vector<int64_t>>> legal, sampled, reached;
  for (size_t k = 0; k < space.num_sketches(); ++k)
    for (const auto& c : space.enumerate(static_cast<int>(k), 100000))
      if (space.check(c).ok()) legal.insert({c.sketch, c.decisions});
  Rng rng(11);
  Candidate walk = space.default_candidate();
  for (int i = 0; i < 20000; ++i) {
    const Candidate c = space.sample(rng);
    sampled.insert({c.sketch, c.decisions});
    walk = space.mutate(walk, rng);
    reached.insert({walk.sketch, walk.decisions});
  }
  EXPECT_EQ(sampled, legal);
  // Mutation keeps the structure but reaches all of its candidates.
  for (const auto& point : legal) {
    if (point.first == space.default_candidate().sketch) {
      EXPECT_EQ(reached.count(point), 1U);
    }
  }
}

TEST(DesignSpace, MutationChangesAndStaysLegal) {
  for (const auto& [name, workload] : workloads()) {
    const auto space = build(workload);
    Rng rng(3);
    Candidate c = space.default_candidate();
    for (int i = 0; i < 300; ++i) {
      const Candidate next = space.mutate(c, rng);
      EXPECT_NE(next, c) << name;
      EXPECT_TRUE(space.check(next).ok()) << name;
      c = next;
    }
  }
}

TEST(DesignSpace, NeighboursDifferInOneDecision) {
  for (const auto& [name, workload] : workloads()) {
    const auto space = build(workload);
    Rng rng(11);
    for (int i = 0; i < 20; ++i) {
      const Candidate c = space.sample(rng);
      const auto neighbours = space.neighbours(c);
      EXPECT_EQ(neighbours.empty(), space.slots(c.sketch).empty()) << name;
      for (const Candidate& n : neighbours) {
        ASSERT_EQ(n.sketch, c.sketch);
        EXPECT_TRUE(space.check(n).ok()) << name;
        int changed = 0;
        size_t at = 0;
        for (const auto& slot : space.slots(c.sketch)) {
          const size_t width = slot.kind == DecisionKind::kTileLengths ? slot.parts : 1;
          changed += std::equal(c.decisions.begin() + static_cast<std::ptrdiff_t>(at),
                                c.decisions.begin() + static_cast<std::ptrdiff_t>(at + width),
                                n.decisions.begin() + static_cast<std::ptrdiff_t>(at))
                         ? 0
                         : 1;
          at += width;
        }
        EXPECT_EQ(changed, 1) << name;
      }
    }
  }
}

TEST(DesignSpace, CrossoverMixesParents) {
  const auto space = build(matmul(64, 64, 64));
  Rng rng(3);
  int mixed = 0;
  for (int i = 0; i < 300; ++i) {
    const Candidate a = space.sample(rng), b = space.sample(rng);
    const Candidate c = space.crossover(a, b, rng);
    EXPECT_TRUE(space.check(c).ok());
    EXPECT_EQ(c.sketch, a.sketch);
    if (a.sketch != b.sketch) {
      EXPECT_EQ(c, a);
      continue;
    }
    for (size_t k = 0; k < c.decisions.size(); ++k)
      EXPECT_TRUE(c.decisions[k] == a.decisions[k] || c.decisions[k] == b.decisions[k]);
    mixed += c != a && c != b ? 1 : 0;
  }
  EXPECT_GT(mixed, 30);
}

TEST(DesignSpace, TheSameSeedGivesTheSameCandidates) {
  const auto a = build(matmul(30, 40, 50)), b = build(matmul(30, 40, 50));
  EXPECT_EQ(a.default_candidate(), b.default_candidate());
  Rng ra(9), rb(9);
  for (int i = 0; i < 50; ++i) EXPECT_EQ(a.sample(ra), b.sample(rb));
}

TEST(DesignSpace, RescalesToOtherShapes) {
  const auto small = build(matmul(64, 64, 64)), large = build(matmul(200, 300, 50)),
             tiny = build(matmul(3, 5, 2));
  Rng rng(4);
  for (int i = 0; i < 100; ++i) {
    const Candidate c = small.sample(rng);
    const auto same = small.rescale(small, c);
    ASSERT_TRUE(same.ok());
    EXPECT_EQ(*same, c);
    for (const auto* target : {&large, &tiny}) {
      const auto scaled = target->rescale(small, c);
      ASSERT_TRUE(scaled.ok()) << scaled.error().message();
      EXPECT_TRUE(target->check(*scaled).ok());
      EXPECT_EQ(target->describe(scaled->sketch), small.describe(c.sketch));
    }
  }
  const auto other = build(softmax(4, 8));
  const auto none = other.rescale(small, small.default_candidate());
  ASSERT_FALSE(none.ok());
  EXPECT_EQ(none.error().code, ErrorCode::kNotFound);
}

TEST(DesignSpace, RefusesForeignCandidates) {
  const auto space = build(matmul(16, 16, 16));
  Candidate c = space.default_candidate();
  c.decisions.push_back(1);
  EXPECT_EQ(space.check(c).error().code, ErrorCode::kInvalidArgument);
  EXPECT_FALSE(space.to_trace(c).ok());
  c = space.default_candidate();
  c.sketch = 99;
  EXPECT_NE(space.check(c).error().reason.find("99"), std::string::npos);
  c = space.default_candidate();
  c.decisions[0] = 1000;
  const auto status = space.check(c);
  ASSERT_FALSE(status.ok());
  EXPECT_NE(status.error().reason.find("out of range"), std::string::npos);
}

TEST(DesignSpace, RefusesRegisterTilesThatDoNotFit) {
  const auto space = build(matmul(64, 64, 64));
  int refused = 0;
  Candidate c = space.default_candidate();
  for (size_t k = 0; k < space.slots(c.sketch).size(); ++k)
    ASSERT_FALSE(space.slots(c.sketch)[k].name.empty());
  const auto all = space.enumerate(0, 2000000);
  for (size_t i = 0; i < all.size(); i += 97) {
    const auto status = space.check(all[i]);
    if (status.ok()) continue;
    EXPECT_EQ(status.error().code, ErrorCode::kResourceExhausted);
    ++refused;
  }
  EXPECT_GT(refused, 0);
}

// Plans are specific to the kind of device: every loop of a GPU's program is bound or inside a
// bound one.
TEST(DesignSpace, PlansAreOfTheDevice) {
  auto device = small_device(1);
  const auto bound = [&](const target::Device& d) {
    const auto space = DesignSpace::build(matmul(64, 64, 64), d, {});
    EXPECT_TRUE(space.ok());
    const auto trace = space->to_trace(space->default_candidate());
    EXPECT_TRUE(trace.ok());
    return sched::print(*trace).find("threadIdx.x") != std::string::npos;
  };
  EXPECT_FALSE(bound(device));
  device.figures = target::GpuFigures{};
  EXPECT_TRUE(bound(device));
}

// The structures that the rules must find.
TEST(DesignSpace, FindsTheExpectedStructures) {
  Conv2d conv;
  const auto fused = build(conv2d_bias_relu(conv));
  EXPECT_EQ(fused.describe(0), "tile SRS conv into relu with pad");
  EXPECT_EQ(fused.describe(1), "tile SSRSRS conv into relu with pad");
  // The biased value is read twice, but each element of the convolution is still read for only one
  // output element.
  const auto gated = build(conv2d_bias_silu(conv));
  EXPECT_EQ(gated.describe(0), "tile SRS conv into silu with pad");
  const auto rows = build(softmax(8, 100));
  EXPECT_EQ(rows.describe(0), "row-wise div of sum exp max");
  const auto chain = build(elementwise_chain(100));
  EXPECT_EQ(chain.describe(0), "rows out");
  // Overlapping windows are tiled; disjoint ones have no reuse.
  const auto overlapping = build(max_pool(1, 3, 9, 9, 3, 2, 0));
  EXPECT_TRUE(overlapping.describe(1).starts_with("tile SSRSRS")) << overlapping.describe(1);
  const auto disjoint = build(max_pool(1, 3, 8, 8, 2, 2, 0));
  for (size_t k = 0; k < disjoint.num_sketches(); ++k)
    EXPECT_FALSE(disjoint.describe(static_cast<int>(k)).starts_with("tile SSRSRS"));
  // Windows without a sum over channels are unrolled in the tile.
  const auto depthwise = build(depthwise_conv2d(conv));
  EXPECT_EQ(depthwise.describe(2), "window depthwise with pad");
  EXPECT_EQ(overlapping.describe(2), "window " + overlapping.describe(0).substr(sizeof("tile SRS ") - 1));
  for (size_t k = 0; k < fused.num_sketches(); ++k)
    EXPECT_FALSE(fused.describe(static_cast<int>(k)).starts_with("window"));
  const auto plain = build(matmul(8, 8, 8));
  EXPECT_EQ(plain.describe(static_cast<int>(plain.num_sketches()) - 1), "plain C");
}

// Long rows are summed along memory, in vectors; several short rows are summed side by side.
TEST(DesignSpace, DefaultOfMeansReadsAlongMemory) {
  const auto stages_of = [](const DesignSpace& space) {
    const auto trace = space.to_trace(space.default_candidate());
    EXPECT_TRUE(trace.ok());
    const auto schedule = sched::replay(space.workload(), *trace);
    EXPECT_TRUE(schedule.ok());
    return schedule->stages.size();
  };
  const auto lines = build(row_means(512, 49), 1, 64);
  EXPECT_TRUE(lines.describe(lines.default_candidate().sketch).starts_with("row-wise"));
  // The partial sums of a vector are halved until two are left.
  EXPECT_GE(stages_of(lines), 3U + 4U);
  const auto short_rows = build(row_means(512, 4), 1, 64);
  EXPECT_EQ(stages_of(short_rows), 3U);
}

// Channel tiles of a grouped convolution stay inside a group, so that the input channels do not
// depend on the place in the tile: the default has vectors and a register tile like that of a
// convolution without groups.
TEST(DesignSpace, DefaultOfAGroupedConvolutionIsTiledInsideGroups) {
  Conv2d conv;
  conv.h = conv.w = 16;
  conv.ci = 96;
  conv.co = 72;
  conv.groups = 4;
  conv.kh = conv.kw = 1;
  conv.pad = 0;
  const auto space = build(conv2d_bias_relu(conv), 1, 64);
  const Candidate c = space.default_candidate();
  const auto trace = space.to_trace(c);
  ASSERT_TRUE(trace.ok());
  const auto schedule = sched::replay(space.workload(), *trace);
  ASSERT_TRUE(schedule.ok());
  const auto bounds = sched::infer_bounds(*schedule);
  ASSERT_TRUE(bounds.ok());
  const auto stage = *schedule->stage_named("conv");
  const auto& s = schedule->stages[stage];
  int64_t vector = 0, unrolled = 1;
  for (const sched::IteratorId leaf : s.leaves) {
    const auto& it = s.iterators[leaf];
    const int64_t extent = bounds->stages[stage].extents[leaf];
    if (it.annotation == sched::Annotation::kVectorize) vector = extent;
    if (it.annotation == sched::Annotation::kUnroll && it.kind == sched::IterKind::kSpatial)
      unrolled *= extent;
  }
  EXPECT_EQ(vector, 16);
  EXPECT_GE(unrolled, 8);
  const auto& slots = space.slots(c.sketch);
  const auto channels =
      std::find_if(slots.begin(), slots.end(), [](const auto& slot) { return slot.name == "conv.tile.f"; });
  ASSERT_NE(channels, slots.end());
  EXPECT_EQ(channels->extent, 18);
}

// The default of a matrix product keeps both FMA pipes busy: at least latency (4) times pipes (2)
// accumulators, whole vectors, packed weights.
TEST(DesignSpace, DefaultOfAMatrixProductIsSound) {
  const auto space = build(matmul(512, 512, 512), 2, 64);
  const auto trace = space.to_trace(space.default_candidate());
  ASSERT_TRUE(trace.ok());
  const auto schedule = sched::replay(space.workload(), *trace);
  ASSERT_TRUE(schedule.ok());
  const auto bounds = sched::infer_bounds(*schedule);
  ASSERT_TRUE(bounds.ok());
  const auto stage = schedule->stage_named("C.local");
  ASSERT_TRUE(stage.has_value());
  int64_t vector = 0, unrolled = 1;
  const auto& s = schedule->stages[*stage];
  for (const sched::IteratorId leaf : s.leaves) {
    const auto& it = s.iterators[leaf];
    const int64_t extent = bounds->stages[*stage].extents[leaf];
    if (it.annotation == sched::Annotation::kVectorize) vector = extent;
    if (it.annotation == sched::Annotation::kUnroll && it.kind == sched::IterKind::kSpatial)
      unrolled *= extent;
  }
  EXPECT_EQ(vector, 16);
  EXPECT_GE(unrolled, 8);
  EXPECT_LE(unrolled, 32);
  EXPECT_TRUE(schedule->stages[sched::StageId(1)].layout.has_value());
}

}  // namespace
}  // namespace tensorsmith::space::space_test
