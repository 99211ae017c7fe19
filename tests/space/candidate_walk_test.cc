// Constrained decoding: every walk ends at a legal candidate, and values that it forbids are hardly
// ever legal.
#include "space/candidate_walk.h"

#include <gtest/gtest.h>

#include <set>

#include "ir/text.h"
#include "support/random_workload.h"
#include "support/standard_workloads.h"

namespace tensorsmith::space::candidate_walk_test {
namespace {

target::Device device(int vector_bytes, int cores) {
  target::Device d;
  d.name = "test";
  d.arch = "x86-64";
  d.cpu().vector_bytes = vector_bytes;
  d.cpu().vector_registers = vector_bytes == 64 ? 32 : 16;
  d.cpu().fma_per_cycle = 2;
  d.cpu().cores = cores;
  return d;
}

std::vector<int64_t> allowed_values(const CandidateWalk& walk) {
  std::vector<int64_t> values;
  for (int64_t v = walk.least(); v <= walk.most(); ++v)
    if (walk.allows(v)) values.push_back(v);
  return values;
}

// Takes any allowed value with the same probability. Every step has one, and the end is legal.
Candidate walk_at_random(const DesignSpace& space, const SketchGrammar& grammar, Rng& rng) {
  CandidateWalk walk(grammar);
  while (!walk.done()) {
    const auto values = allowed_values(walk);
    EXPECT_FALSE(values.empty()) << "a dead end";
    if (values.empty()) break;
    const int64_t value = values[rng.below(values.size())];
    EXPECT_TRUE(walk.take(value));
    EXPECT_TRUE(space.check(walk.candidate()).ok());
  }
  return walk.candidate();
}

// Compares with brute force: the values that legal candidates have next.
TEST(CandidateWalk, AllowsWhatSomeLegalCandidateHas) {
  const char* const texts[] = {
      "workload {\n  input x: f32[6, 8]\n  const w: f32[8, 10]\n"
      "  y: f32[i: 6, j: 10] = sum{k: 8} x[i, k] * w[k, j]\n  output y\n}",
      "workload {\n  input x: f32[9, 20]\n  y: f32[i: 9, j: 20] = exp(x[i, j])\n  output y\n}",
      "workload {\n  input x: f32[2, 9, 9]\n  y: f32[c: 2, h: 7, w: 7] = max{r: 3, s: 3} x[c, h + r, w + s]\n"
      "  output y\n}",
  };
  const uint64_t seed = 17;
  SCOPED_TRACE("seed " + std::to_string(seed));
  Rng rng(seed);
  constexpr size_t kMost = 400'000;
  size_t legal_values = 0, missing = 0, sketches = 0;
  for (const char* text : texts) {
    const auto workload = ir::parse_workload(text);
    ASSERT_TRUE(workload.ok()) << workload.error().message();
    const auto space = DesignSpace::build(*workload, device(32, 1), {});
    ASSERT_TRUE(space.ok());
    for (size_t k = 0; k < space->num_sketches(); ++k) {
      const int sketch = static_cast<int>(k);
      if (space->size(sketch) > kMost) continue;
      std::vector<Candidate> legal;
      for (auto& c : space->enumerate(sketch, kMost))
        if (space->check(c).ok()) legal.push_back(std::move(c));
      const auto grammar = SketchGrammar::create(*space, sketch);
      ASSERT_EQ(grammar.ok(), !legal.empty());
      if (!grammar.ok()) continue;
      ++sketches;
      for (int trial = 0; trial < 5; ++trial) {
        std::vector<const Candidate*> possible;
        for (const auto& c : legal) possible.push_back(&c);
        CandidateWalk walk(*grammar);
        while (!walk.done()) {
          const size_t place = walk.next().place;
          std::set<int64_t> expected;
          for (const auto* c : possible) expected.insert(c->decisions[place]);
          const auto found = allowed_values(walk);
          for (const int64_t v : found)
            EXPECT_EQ(expected.count(v), 1u) << "allowed, but nothing legal has it";
          ASSERT_FALSE(found.empty());
          legal_values += expected.size();
          missing += expected.size() - found.size();
          const int64_t value = found[rng.below(found.size())];
          ASSERT_TRUE(walk.take(value));
          std::erase_if(possible, [&](const Candidate* c) { return c->decisions[place] != value; });
        }
      }
    }
  }
  EXPECT_GE(sketches, 4u);
  RecordProperty("legal_values", std::to_string(legal_values));
  RecordProperty("missing", std::to_string(missing));
  std::printf("%zu sketches, %zu legal values, %zu not found\n", sketches, legal_values, missing);
  EXPECT_LE(missing, legal_values / 100);
}

TEST(CandidateWalk, NeverEndsWhereNothingCanFollow) {
  const uint64_t seed = 5;
  SCOPED_TRACE("seed " + std::to_string(seed));
  Rng rng(seed);
  std::vector<ir::Workload> workloads;
  for (int i = 0; i < 40; ++i) workloads.push_back(test::random_workload(rng.next()));
  workloads.push_back(test::standard::conv2d_bias_relu({.h = 28, .w = 28, .ci = 32, .co = 48}));
  workloads.push_back(test::standard::depthwise_conv2d({.h = 14, .w = 14, .ci = 24}));
  workloads.push_back(test::standard::softmax(64, 100));
  workloads.push_back(test::standard::matmul(128, 300, 96));
  for (const auto& workload : workloads) {
    for (const int vector_bytes : {16, 64}) {
      const auto space = DesignSpace::build(workload, device(vector_bytes, 2), {});
      ASSERT_TRUE(space.ok()) << space.error().message();
      for (size_t k = 0; k < space->num_sketches(); ++k) {
        const auto grammar = SketchGrammar::create(*space, static_cast<int>(k));
        if (!grammar.ok()) continue;
        const Candidate c = walk_at_random(*space, *grammar, rng);
        ASSERT_TRUE(space->check(c).ok()) << space->describe(static_cast<int>(k));
      }
    }
  }
}

// Every legal candidate can be reached by a walk.
TEST(CandidateWalk, FollowsWhatWasSampled) {
  Rng rng(3);
  const auto workload = test::standard::conv2d_bias_relu({.h = 28, .w = 28, .ci = 32, .co = 48});
  const auto space = DesignSpace::build(workload, device(64, 1), {});
  ASSERT_TRUE(space.ok());
  for (int i = 0; i < 200; ++i) {
    const Candidate c = space->sample(rng);
    const auto grammar = SketchGrammar::create(*space, c.sketch);
    ASSERT_TRUE(grammar.ok());
    CandidateWalk walk(*grammar);
    while (!walk.done()) {
      const int64_t value = c.decisions[walk.next().place];
      EXPECT_GE(value, walk.least());
      EXPECT_LE(value, walk.most());
      walk.follow(c);
    }
    EXPECT_EQ(walk.candidate(), c);
  }
}

}  // namespace
}  // namespace tensorsmith::space::candidate_walk_test
