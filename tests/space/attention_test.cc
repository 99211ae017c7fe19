// Attention in the design space: which workloads have a sketch of it, that every candidate of it
// computes what the workload says, interpreted and compiled, and the shape of its default.
#include <gtest/gtest.h>

#include <cmath>
#include <string>

#include "codegen/runner.h"
#include "ir/text.h"
#include "lower/interpreter.h"
#include "lower/lower.h"
#include "space/design_space.h"

namespace tensorsmith::space::attention_test {
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

struct Shape {
  int64_t batch = 2, queries = 24, keys = 32, depth = 8, width = 16;
};

// Operations applied to the scores, as expressions of s[b, i, j].
enum class Mask { kNone, kScaled, kCausal, kHidden };

// softmax(q * k^T) * v as src/graph makes it, over [1, batch, ...] or, with one batch, over
// matrices.
std::string text_of(const Shape& s, Mask mask, bool residual = false) {
  const auto n = [](int64_t extent) { return std::to_string(extent); };
  const std::string b = "[1, " + n(s.batch) + ", ", q = n(s.queries), k = n(s.keys), w = n(s.width);
  const std::string rows = "a: 1, b: " + n(s.batch) + ", i: " + q;
  std::string scores = "score";
  std::string text = "workload {\n  input q: f32" + b + q + ", " + n(s.depth) + "]\n  input k: f32" + b +
                     n(s.depth) + ", " + k + "]\n  input v: f32" + b + k + ", " + w + "]\n";
  text +=
      "  score: f32[" + rows + ", j: " + k + "] = sum{r: " + n(s.depth) + "} q[0, b, i, r] * k[0, b, r, j]\n";
  if (mask != Mask::kNone) {
    text += "  scaled: f32[" + rows + ", j: " + k + "] = score[0, b, i, j] * 0.35\n";
    scores = "scaled";
  }
  if (mask == Mask::kCausal) {
    text += "  const mask: f32[1, 1, " + q + ", " + k + "]\n";
    text += "  masked: f32[" + rows + ", j: " + k + "] = scaled[0, b, i, j] + mask[0, 0, i, j]\n";
    scores = "masked";
  }
  if (mask == Mask::kHidden) {
    text += "  masked: f32[" + rows + ", j: " + k + "] = select(j <= i, scaled[0, b, i, j], -1000000.0)\n";
    scores = "masked";
  }
  text += "  most: f32[" + rows + ", j: 1] = max{r: " + k + "} " + scores + "[a, b, i, r]\n";
  text += "  grown: f32[" + rows + ", j: " + k + "] = exp(" + scores + "[a, b, i, j] - most[a, b, i, 0])\n";
  text += "  sums: f32[" + rows + ", j: 1] = sum{r: " + k + "} grown[a, b, i, r]\n";
  text +=
      "  product: f32[" + rows + ", d: " + w + "] = sum{r: " + k + "} grown[0, b, i, r] * v[0, b, r, d]\n";
  text += "  attention: f32[" + rows + ", d: " + w + "] = product[a, b, i, d] / sums[a, b, i, 0]\n";
  if (!residual) return text + "  output attention\n}\n";
  text += "  input x: f32" + b + q + ", " + w + "]\n";
  text += "  added: f32[" + rows + ", d: " + w + "] = attention[a, b, i, d] + x[a, b, i, d]\n";
  return text + "  output added\n}\n";
}

ir::Workload parse(const std::string& text) {
  auto workload = ir::parse_workload(text);
  TS_CHECK(workload.ok(), workload.ok() ? "" : text + workload.error().message());
  return std::move(workload).value();
}

DesignSpace build(const ir::Workload& workload, const target::Device& on) {
  auto space = DesignSpace::build(workload, on, {});
  EXPECT_TRUE(space.ok()) << space.error().message();
  return *space;
}

int attention_sketch(const DesignSpace& space) {
  for (int k = 0; k < static_cast<int>(space.num_sketches()); ++k)
    if (space.describe(k).find("attention") == 0) return k;
  return -1;
}

Candidate sample_of(const DesignSpace& space, int sketch, Rng& rng) {
  for (;;) {
    Candidate c = space.sample(rng);
    if (c.sketch == sketch) return c;
  }
}

struct Case {
  std::string name;
  ir::Workload workload;
};

std::vector<Case> cases() {
  return {
      {"plain", parse(text_of({}, Mask::kNone))},
      {"scaled", parse(text_of({1, 33, 47, 5, 12}, Mask::kScaled))},
      {"mask in whole tiles", parse(text_of({2, 32, 48, 8, 16}, Mask::kCausal))},
      {"causal", parse(text_of({3, 29, 29, 16, 20}, Mask::kCausal))},
      {"hidden", parse(text_of({2, 19, 70, 7, 33}, Mask::kHidden))},
      {"residual", parse(text_of({2, 40, 129, 8, 16}, Mask::kScaled, true))},
      {"fewer keys than lanes", parse(text_of({2, 21, 11, 6, 5}, Mask::kCausal))},
  };
}

std::vector<lower::Tensor> random_inputs(const ir::Workload& workload, uint64_t seed) {
  Rng rng(seed);
  std::vector<lower::Tensor> inputs;
  for (const auto& input : workload.inputs())
    inputs.push_back(lower::random_tensor(input->dtype, input->shape, rng, 0));
  return inputs;
}

// Checks samples of the sketch, mutated and crossed over, executed by `run`.
template <typename Run>
void check_samples(const Case& c, const target::Device& on, uint64_t seed, int samples, const Run& run) {
  SCOPED_TRACE(c.name + ", seed " + std::to_string(seed) + ", " + std::to_string(on.cpu().cores) + " cores");
  const auto inputs = random_inputs(c.workload, seed);
  const auto expected = lower::evaluate(c.workload, inputs);
  ASSERT_TRUE(expected.ok()) << expected.error().message();
  const DesignSpace space = build(c.workload, on);
  const int sketch = attention_sketch(space);
  ASSERT_GE(sketch, 0);
  Rng rng(seed);
  for (int i = 0; i < samples; ++i) {
    Candidate candidate = sample_of(space, sketch, rng);
    if (i % 3 == 1) candidate = space.mutate(candidate, rng);
    if (i % 3 == 2) candidate = space.crossover(candidate, sample_of(space, sketch, rng), rng);
    const auto trace = space.to_trace(candidate);
    ASSERT_TRUE(trace.ok());
    const std::string what = space.describe(candidate.sketch) + "\n" + sched::print(*trace);
    const auto schedule = sched::replay(c.workload, *trace);
    ASSERT_TRUE(schedule.ok()) << schedule.error().message() << "\n" << what;
    const auto lowered = lower::lower(*schedule);
    ASSERT_TRUE(lowered.ok()) << lowered.error().message() << "\n" << what;
    auto prepared = inputs;
    for (const auto& constant : lowered->prepared) {
      auto made = lower::prepare(constant, inputs[constant.input]);
      ASSERT_TRUE(made.ok()) << what;
      prepared[constant.input] = std::move(*made);
    }
    const Result<std::vector<lower::Tensor>> got = run(lowered->program, prepared);
    ASSERT_TRUE(got.ok()) << got.error().message() << "\n" << what;
    ASSERT_EQ(test::compare(got->front(), expected->front(), 1e-4, 1e-5), "") << what;
  }
}

TEST(Attention, EveryCandidateComputesTheWorkload) {
  uint64_t seed = 0;
  for (const Case& c : cases()) {
    for (const int cores : {1, 2}) {
      check_samples(c, device(cores == 1 ? 32 : 16, cores), ++seed, 9,
                    [](const auto& program, auto& inputs) { return lower::run(program, inputs); });
      if (::testing::Test::HasFatalFailure()) return;
    }
  }
}

TEST(Attention, CompiledCandidatesComputeTheWorkload) {
  uint64_t seed = 100;
  for (const Case& c : cases()) {
    for (target::Device on : test::local_devices()) {
      on.cpu().cores = 1 + static_cast<int>(++seed % 2);
      check_samples(c, on, seed, 3, [&](const auto& program, auto& inputs) {
        return test::compile_and_run(program, on, inputs, on.cpu().cores);
      });
      if (::testing::Test::HasFatalFailure()) return;
    }
  }
}

// A constant mask is packed in the order in which the register tiles of the scores read it, if
// these tiles divide the mask.
TEST(Attention, MasksArePackedWhereTilesDivideThem) {
  const ir::Workload workload = parse(text_of({2, 32, 48, 8, 16}, Mask::kCausal));
  const DesignSpace space = build(workload, device(32, 1));
  Rng rng(5);
  int packed = 0, others = 0;
  for (int i = 0; i < 60; ++i) {
    const Candidate c = sample_of(space, attention_sketch(space), rng);
    const auto value = [&](const std::string& name) {
      for (size_t k = 0; k < c.decisions.size(); ++k)
        if (space.slots(c.sketch)[k].name == name) return c.decisions[k];
      return int64_t{0};
    };
    int64_t columns = value("score.tile.columns");
    if (columns > 8) columns -= columns % 8;
    const bool whole = 32 % value("product.rows") == 0 && 48 % columns == 0;
    const std::string trace = sched::print(*space.to_trace(c));
    EXPECT_EQ(trace.find("pack_layout") != std::string::npos, whole) << trace;
    ++(whole ? packed : others);
  }
  EXPECT_GT(packed, 0);
  EXPECT_GT(others, 0);
}

TEST(Attention, OtherWorkloadsHaveNoSketchOfIt) {
  const std::string text = text_of({}, Mask::kScaled);
  const auto replaced = [&](const std::string& from, const std::string& to) {
    std::string other = text;
    const size_t at = other.find(from);
    TS_CHECK(at != std::string::npos, "no '" + from + "' in the workload");
    other.replace(at, from.size(), to);
    return attention_sketch(build(parse(other), device(32, 1)));
  };
  EXPECT_GE(replaced("scaled[a, b, i, r]", "scaled[a, b, i, r]"), 0);
  // No sketch if the scores are an output too, the maximum is over other rows, or the sum is over
  // something else.
  EXPECT_LT(replaced("  output attention", "  output scaled\n  output attention"), 0);
  EXPECT_LT(replaced("max{r: 32} scaled[a, b, i, r]", "max{r: 24} scaled[a, b, r, i]"), 0);
  EXPECT_LT(replaced("sum{r: 32} grown[a, b, i, r]", "sum{r: 32} scaled[a, b, i, r]"), 0);
}

// In the default the scores of a block stay in the L2 cache, and register tiles fill the registers.
TEST(Attention, DefaultIsSound) {
  for (const int64_t n : {197, 512, 1000, 4096}) {
    const DesignSpace space = build(parse(text_of({12, n, n, 64, 64}, Mask::kCausal)), device(64, 1));
    const Candidate c = space.default_candidate();
    SCOPED_TRACE(n);
    ASSERT_EQ(c.sketch, attention_sketch(space));
    const auto value = [&](const std::string& name) {
      for (size_t i = 0; i < c.decisions.size(); ++i)
        if (space.slots(c.sketch)[i].name == name) return c.decisions[i];
      ADD_FAILURE() << "no decision " << name;
      return int64_t{0};
    };
    EXPECT_LE(value("product.rows") * n * 8, 1 << 20);
    EXPECT_GE(value("product.rows"), 8);
    EXPECT_GE(value("score.tile.columns"), 16);
    EXPECT_GE(value("product.tile.columns"), 16);
  }
}

}  // namespace
}  // namespace tensorsmith::space::attention_test
