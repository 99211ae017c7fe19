// Language models that write schedules: compiled decoding, checked against the definition, and
// generation.
#include <gtest/gtest.h>

#include <cmath>

#include "engine/language/language_decoder.h"
#include "engine/language/sketch_contexts.h"
#include "engine/random_language_model.h"
#include "engine/tune/prepare_tasks.h"
#include "language_testing.h"
#include "learn/lm/prompt.h"
#include "search/pipeline.h"

namespace tensorsmith::lab::language_test {
namespace {

using learn::lm::kOutputs;
using learn::lm::LanguageModel;
using learn::lm::Positions;
using Matrix = std::vector<std::vector<double>>;

// The definition (learn/lm/language_model.h) in double precision, without a cache: all positions at
// once.
class Definition {
 public:
  explicit Definition(const LanguageModel& model) : model_(model) {}

  // Returns the scores after each position of the answer.
  Matrix scores(const Positions& prompt, const Positions& answer) const {
    Matrix x;
    for (const Positions* positions : {&prompt, &answer})
      for (size_t i = 0; i < positions->size(); ++i) x.push_back(embed(*positions, i));
    const size_t p = prompt.size();
    for (int l = 0; l < model_.sizes.layers; ++l) {
      const std::string layer = "layer." + std::to_string(l) + ".";
      const Matrix qkv = linear(layer + "qkv", norm(layer + "norm1", x));
      add(x, linear(layer + "out", attention(qkv, p)));
      Matrix up = linear(layer + "up", norm(layer + "norm2", x));
      for (auto& row : up)
        for (double& v : row) v = std::max(v, 0.0);
      add(x, linear(layer + "down", up));
    }
    Matrix all = linear("output", norm("norm", x));
    return {all.begin() + static_cast<ptrdiff_t>(p), all.end()};
  }

 private:
  const std::vector<float>& values(const std::string& name) const { return model_.weights.at(name).values; }

  std::vector<double> embed(const Positions& positions, size_t i) const {
    const auto width = static_cast<size_t>(model_.sizes.width);
    std::vector<double> row(width, 0);
    for (int32_t f = positions.begin[i]; f < positions.begin[i + 1]; ++f) {
      const auto& feature = positions.features[static_cast<size_t>(f)];
      for (size_t w = 0; w < width; ++w)
        row[w] += static_cast<double>(feature.weight) *
                  static_cast<double>(values("embedding")[static_cast<size_t>(feature.entry) * width + w]);
    }
    return row;
  }
  Matrix norm(const std::string& name, Matrix x) const {
    for (auto& row : x) {
      double mean = 0, variance = 0;
      for (const double v : row) mean += v / static_cast<double>(row.size());
      for (const double v : row) variance += (v - mean) * (v - mean) / static_cast<double>(row.size());
      for (size_t i = 0; i < row.size(); ++i)
        row[i] =
            (row[i] - mean) / std::sqrt(variance + 1e-5) * static_cast<double>(values(name + ".weight")[i]) +
            static_cast<double>(values(name + ".bias")[i]);
    }
    return x;
  }
  Matrix linear(const std::string& name, const Matrix& x) const {
    const auto& weight = values(name + ".weight");
    const auto& bias = values(name + ".bias");
    Matrix out;
    for (const auto& row : x) {
      auto& result = out.emplace_back();
      for (size_t o = 0; o < bias.size(); ++o) {
        double sum = static_cast<double>(bias[o]);
        for (size_t i = 0; i < row.size(); ++i)
          sum += row[i] * static_cast<double>(weight[o * row.size() + i]);
        result.push_back(sum);
      }
    }
    return out;
  }
  Matrix attention(const Matrix& qkv, size_t prompt) const {
    const auto width = static_cast<size_t>(model_.sizes.width),
               heads = static_cast<size_t>(model_.sizes.heads);
    const size_t size = width / heads;
    Matrix out(qkv.size(), std::vector<double>(width, 0));
    for (size_t h = 0; h < heads; ++h)
      for (size_t i = 0; i < qkv.size(); ++i) {
        // Positions of a prompt attend to the whole prompt, those of an answer to the prompt and to
        // all positions up to themselves.
        const size_t seen = i < prompt ? prompt : i + 1;
        std::vector<double> weights;
        double sum = 0;
        for (size_t j = 0; j < seen; ++j) {
          double score = 0;
          for (size_t s = 0; s < size; ++s) score += qkv[i][h * size + s] * qkv[j][width + h * size + s];
          weights.push_back(std::exp(score / std::sqrt(static_cast<double>(size))));
          sum += weights.back();
        }
        for (size_t j = 0; j < seen; ++j)
          for (size_t s = 0; s < size; ++s)
            out[i][h * size + s] += weights[j] / sum * qkv[j][2 * width + h * size + s];
      }
    return out;
  }
  static void add(Matrix& x, const Matrix& y) {
    for (size_t i = 0; i < x.size(); ++i)
      for (size_t j = 0; j < x[i].size(); ++j) x[i][j] += y[i][j];
  }

  const LanguageModel& model_;
};

Positions random_positions(Rng& rng, size_t count) {
  Positions positions;
  for (size_t i = 0; i < count; ++i) {
    for (int f = 0; f < 5; ++f)
      positions.features.push_back(
          {static_cast<int32_t>(rng.below(learn::lm::kFeatures)), static_cast<float>(rng.normal())});
    positions.end_position();
  }
  return positions;
}

TEST(LanguageDecoder, ComputesWhatTheModelIsDefinedAs) {
  const uint64_t seed = 20261125;
  SCOPED_TRACE("seed " + std::to_string(seed));
  Rng rng(seed);
  const LanguageModel model =
      engine::random_model({.width = 32, .heads = 4, .layers = 2, .hidden = 64}, seed);
  const engine::DecoderOptions options{.batch = 3, .longest_prompt = 12, .longest_answer = 9};
  const auto decoder = engine::LanguageDecoder::create(model, target::probe_local(1).value(), options);
  ASSERT_TRUE(decoder.ok()) << decoder.error().message();
  for (const size_t prompt_length : {size_t{12}, size_t{5}, size_t{1}}) {
    const Positions prompt = random_positions(rng, prompt_length);
    std::vector<Positions> answers;
    std::vector<Matrix> expected;
    for (int a = 0; a < options.batch; ++a) {
      answers.push_back(random_positions(rng, static_cast<size_t>(options.longest_answer)));
      expected.push_back(Definition(model).scores(prompt, answers.back()));
    }
    ASSERT_TRUE((*decoder)->read(prompt).ok());
    (*decoder)->begin();
    for (size_t t = 0; t < static_cast<size_t>(options.longest_answer); ++t) {
      Positions now;
      for (const auto& answer : answers) {
        const Positions one = one_of(answer, t);
        now.features.insert(now.features.end(), one.features.begin(), one.features.end());
        now.end_position();
      }
      const auto scores = (*decoder)->next(now);
      ASSERT_TRUE(scores.ok());
      for (size_t a = 0; a < answers.size(); ++a)
        for (size_t o = 0; o < kOutputs; ++o)
          ASSERT_NEAR(static_cast<double>((*scores)[a * kOutputs + o]), expected[a][t][o], 1e-3)
              << "answer " << a << " token " << t << " output " << o;
    }
  }
}

TEST(Generate, WritesDifferentLegalCandidatesThatAreNotExcluded) {
  const auto device = target::find_device("epyc-9654:threads=2").value();
  const auto task = matmul_task(100, 96, 64);
  const auto prepared = engine::prepare_task(task, device).value();
  const space::DesignSpace& space = prepared->design();
  const auto contexts = engine::sketch_contexts(*prepared, {});
  // An untrained model, which would write anything if the grammar allowed it.
  const LanguageModel model = engine::random_model({.width = 16, .heads = 2, .layers = 1, .hidden = 32}, 3);
  const auto decoder = engine::LanguageDecoder::create(model, target::probe_local(1).value(), {.batch = 8});
  ASSERT_TRUE(decoder.ok()) << decoder.error().message();
  std::set<uint64_t> excluded;
  const auto not_wanted = [&](const space::Candidate& c) { return excluded.count(c.hash()) > 0; };
  engine::DecodingReport report;
  size_t sketches = 0;
  for (const auto& context : contexts) {
    if (context == nullptr || context->grammar.decisions().empty()) continue;
    ++sketches;
    const auto prompt =
        learn::lm::make_prompt(task.workload, device, space.describe(context->grammar.sketch()));
    for (int round = 0; round < 2; ++round) {
      Rng rng(7), same(7);
      const engine::GenerateRequest request{12, {}, not_wanted, {}};
      const auto written = engine::generate(**decoder, prompt, *context, request, rng, report);
      ASSERT_TRUE(written.ok());
      const auto again = engine::generate(**decoder, prompt, *context, request, same, report);
      ASSERT_EQ(written->size(), again->size());
      // Sketches with few decisions have fewer programs.
      if (space.size(context->grammar.sketch()) > 1000) {
        EXPECT_EQ(written->size(), 12u) << space.describe(context->grammar.sketch());
      }
      for (size_t i = 0; i < written->size(); ++i) {
        const space::Candidate& c = (*written)[i].candidate;
        EXPECT_EQ(c, (*again)[i].candidate) << "the same seed";
        EXPECT_TRUE(space.check(c).ok());
        EXPECT_TRUE(excluded.insert(c.hash()).second) << "different ones";
        EXPECT_LE((*written)[i].log_likelihood, 0);
      }
    }
    Rng rng(1);
    const auto likeliest =
        engine::generate(**decoder, prompt, *context, {4, {.temperature = 0}, {}, {}}, rng, report);
    ASSERT_TRUE(likeliest.ok());
    EXPECT_EQ(likeliest->size(), 1u);
    // Each program begins with the given prefix.
    space::Candidate parent = context->grammar.draft();
    for (int i = 0; i < 5; ++i) parent = space.mutate(parent, rng);
    const auto given = search::decisions_in_order(context->grammar, parent);
    for (const size_t kept : {size_t{0}, given.size() / 2, given.size()}) {
      const auto rewritten =
          engine::generate(**decoder, prompt, *context, {8, {}, {}, {{&parent, kept}}}, rng, report);
      ASSERT_TRUE(rewritten.ok());
      ASSERT_GE(rewritten->size(), 1u);
      for (const auto& one : *rewritten) {
        EXPECT_TRUE(space.check(one.candidate).ok());
        const auto decisions = search::decisions_in_order(context->grammar, one.candidate);
        EXPECT_TRUE(
            std::equal(given.begin(), given.begin() + static_cast<ptrdiff_t>(kept), decisions.begin()));
      }
      if (kept == given.size()) {
        EXPECT_EQ(rewritten->front().candidate, parent);
      }
    }
  }
  EXPECT_GE(sketches, 1u);
  EXPECT_EQ(report.dead_ends, 0);
  EXPECT_EQ(report.too_long, 0);
  EXPECT_GT(report.forbidden, 0) << "the grammar had something to forbid";
}

// All answers of a small sketch, with the probability of each token among the allowed ones by the
// definition.
class Enumeration {
 public:
  struct Answer {
    space::Candidate candidate;
    double log_likelihood = 0;
    // Maxima over the tokens: the number of allowed tokens that are likelier, and their probability
    // among the allowed ones.
    int rank = 0;
    double above = 0;
  };

  Enumeration(const LanguageModel& model, const Positions& prompt, const search::SketchContext& context)
      : definition_(model), prompt_(prompt) {
    search::SpaceAnswer answer(context);
    const learn::lm::TokenWalk walk(answer);
    go_on(answer, walk, {}, {});
    std::sort(answers.begin(), answers.end(),
              [](const Answer& a, const Answer& b) { return a.log_likelihood > b.log_likelihood; });
  }

  std::vector<Answer> answers;     // the likeliest first
  std::map<size_t, int> prefixes;  // by length

  const Answer* find(const space::Candidate& candidate) const {
    for (const Answer& one : answers)
      if (one.candidate == candidate) return &one;
    return nullptr;
  }

 private:
  void go_on(const search::SpaceAnswer& answer, const learn::lm::TokenWalk& walk, const Positions& before,
             const Answer& so_far) {
    if (walk.done()) {
      answers.push_back(so_far);
      answers.back().candidate = answer.candidate();
      return;
    }
    Positions positions = before;
    walk.describe(learn::lm::Quality::kBest, positions);
    ++prefixes[positions.size()];
    const std::vector<double> scores = definition_.scores(prompt_, positions).back();
    const auto allowed = walk.allowed();
    double of_allowed = 0;
    for (size_t o = 0; o < kOutputs; ++o)
      if (allowed[o]) of_allowed += std::exp(scores[o]);
    for (size_t o = 0; o < kOutputs; ++o) {
      if (!allowed[o]) continue;
      Answer longer = so_far;
      longer.log_likelihood += scores[o] - std::log(of_allowed);
      int rank = 0;
      double above = 0;
      for (size_t other = 0; other < kOutputs; ++other)
        if (allowed[other] && scores[other] > scores[o]) {
          ++rank;
          above += std::exp(scores[other]) / of_allowed;
        }
      longer.rank = std::max(longer.rank, rank);
      longer.above = std::max(longer.above, above);
      search::SpaceAnswer next_answer(answer);
      learn::lm::TokenWalk next(walk, next_answer);
      ASSERT_TRUE(next.take(static_cast<uint8_t>(o)));
      go_on(next_answer, next, positions, longer);
    }
  }

  Definition definition_;
  Positions prompt_;
};

// A sketch with few candidates, which can all be listed.
class SmallSketchTest : public ::testing::Test {
 protected:
  static constexpr uint64_t kSeed = 20261126;
  static constexpr double kMostListed = 3000;  // most points of a sketch
  SmallSketchTest() {
    const auto device = target::find_device("epyc-9654:threads=1").value();
    const auto task = matmul_task(4, 4, 3);
    const auto prepared = engine::prepare_task(task, device).value();
    const space::DesignSpace& space = prepared->design();
    for (const auto& context : engine::sketch_contexts(*prepared, {})) {
      if (context == nullptr || context->grammar.decisions().size() < 2) continue;
      const int sketch = context->grammar.sketch();
      const Positions prompt = learn::lm::make_prompt(task.workload, device, space.describe(sketch));
      if (space.size(sketch) > kMostListed) continue;
      auto all = std::make_unique<Enumeration>(model_, prompt, *context);
      if (all_ != nullptr && all->answers.size() <= all_->answers.size()) continue;
      context_ = context;
      prompt_ = prompt;
      all_ = std::move(all);
    }
    EXPECT_NE(all_, nullptr);
  }
  std::unique_ptr<engine::LanguageDecoder> decoder(int batch) const {
    return engine::LanguageDecoder::create(model_, target::probe_local(1).value(), {.batch = batch}).value();
  }

  const ::testing::ScopedTrace trace_{__FILE__, __LINE__, "seed " + std::to_string(kSeed)};
  LanguageModel model_ = engine::random_model({.width = 16, .heads = 2, .layers = 1, .hidden = 32}, kSeed);
  std::shared_ptr<const search::SketchContext> context_;
  Positions prompt_;
  std::unique_ptr<Enumeration> all_;  // for the largest sketch among those with few candidates
};

TEST_F(SmallSketchTest, ABeamAsWideAsAllPrefixesFindsTheLikeliest) {
  int widest = 0;
  for (const auto& [length, count] : all_->prefixes) widest = std::max(widest, count);
  ASSERT_GE(all_->answers.size(), 20u);
  ASSERT_LE(widest, 1024);
  const int beam = std::max(widest, static_cast<int>(all_->answers.size()));
  const auto wide = decoder(beam);
  Rng rng(1);
  engine::DecodingReport report;
  engine::GenerateRequest request{all_->answers.size(), {.beam = beam}, {}, {}};
  const auto expect_likeliest = [&](size_t count, size_t without) {
    request.count = count;
    const auto found = engine::generate(*wide, prompt_, *context_, request, rng, report);
    ASSERT_TRUE(found.ok()) << found.error().message();
    ASSERT_EQ(found->size(), std::min(count, all_->answers.size() - without));
    for (size_t i = 0; i < found->size(); ++i) {
      const auto* answer = all_->find((*found)[i].candidate);
      ASSERT_NE(answer, nullptr);
      EXPECT_NEAR((*found)[i].log_likelihood, answer->log_likelihood, 1e-3);
      EXPECT_NEAR((*found)[i].log_likelihood, all_->answers[i + without].log_likelihood, 1e-3) << i;
    }
  };
  expect_likeliest(all_->answers.size(), 0);
  expect_likeliest(5, 0);
  std::set<uint64_t> excluded;
  for (size_t i = 0; i < 3; ++i) excluded.insert(all_->answers[i].candidate.hash());
  request.excluded = [&](const space::Candidate& c) { return excluded.count(c.hash()) > 0; };
  expect_likeliest(5, 3);
  EXPECT_EQ(report.dead_ends + report.too_long, 0);
}

TEST_F(SmallSketchTest, ANarrowBeamIsNoWiderThanTheDecoder) {
  const auto narrow = decoder(4);
  Rng rng(1);
  engine::DecodingReport report;
  // Takes the likeliest token each time, as without a beam.
  const auto one = engine::generate(*narrow, prompt_, *context_, {1, {.beam = 1}, {}, {}}, rng, report);
  const auto greedy =
      engine::generate(*narrow, prompt_, *context_, {1, {.temperature = 0}, {}, {}}, rng, report);
  ASSERT_TRUE(one.ok() && greedy.ok());
  ASSERT_EQ(one->size(), 1u);
  EXPECT_EQ(one->front().candidate, greedy->front().candidate);
  const auto four = engine::generate(*narrow, prompt_, *context_, {4, {.beam = 4}, {}, {}}, rng, report);
  ASSERT_TRUE(four.ok());
  ASSERT_GE(four->size(), 2u);
  for (const auto& found : *four)
    EXPECT_NEAR(found.log_likelihood, all_->find(found.candidate)->log_likelihood, 1e-3);
  const auto too_wide = engine::generate(*narrow, prompt_, *context_, {4, {.beam = 5}, {}, {}}, rng, report);
  ASSERT_FALSE(too_wide.ok());
  EXPECT_EQ(too_wide.error().code, ErrorCode::kInvalidArgument);
}

TEST_F(SmallSketchTest, OnlyTheLikeliestTokensAreDrawn) {
  const auto many = decoder(32);
  Rng rng(2);
  engine::DecodingReport report;
  const auto draw = [&](const engine::SamplingOptions& sampling) {
    return engine::generate(*many, prompt_, *context_, {all_->answers.size(), sampling, {}, {}}, rng, report)
        .value();
  };
  for (const int k : {1, 2, 3}) {
    const auto drawn = draw({.top_k = k});
    EXPECT_GE(drawn.size(), k == 1 ? 1u : 3u);
    int most = 0;
    for (const auto& one : drawn) most = std::max(most, all_->find(one.candidate)->rank);
    EXPECT_EQ(most, k - 1);
  }
  for (const double p : {1e-6, 0.5, 0.8}) {
    const auto drawn = draw({.top_p = p});
    EXPECT_GE(drawn.size(), p < 0.01 ? 1u : 2u);
    for (const auto& one : drawn) EXPECT_LT(all_->find(one.candidate)->above, p + 1e-6);
  }
  EXPECT_EQ(draw({.top_p = 1e-6}).size(), 1u) << "the likeliest token alone";
}

}  // namespace
}  // namespace tensorsmith::lab::language_test
