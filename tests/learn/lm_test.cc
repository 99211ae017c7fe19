// The tensor language: numbers, positions, answers token by token, files.
#include <gtest/gtest.h>

#include <filesystem>
#include <set>

#include "base/rng.h"
#include "cli_support.h"
#include "ir/text.h"
#include "learn/lm/corpus.h"
#include "learn/lm/language_model.h"
#include "learn/lm/prompt.h"
#include "learn/tensor_file.h"

namespace tensorsmith::learn::lm::lm_test {
namespace {

int64_t number_of(const std::vector<uint8_t>& tokens) {
  int64_t value = 0;
  for (const uint8_t token : tokens) value = value * kRadix + token % kRadix;
  return value;
}

TEST(TensorLanguage, ANumberHasOneSpelling) {
  std::set<std::vector<uint8_t>> spellings;
  Rng rng(1);
  for (int i = 0; i < 30'000; ++i) {
    const int64_t value = i < 20'000 ? i : static_cast<int64_t>(rng.next() >> (2 + rng.below(60)));
    std::vector<uint8_t> tokens;
    append_tokens(value, tokens);
    EXPECT_EQ(number_of(tokens), value);
    for (size_t t = 0; t < tokens.size(); ++t) EXPECT_EQ(tokens[t] >= kRadix, t + 1 < tokens.size());
    if (tokens.size() > 1) {
      EXPECT_NE(tokens[0], kRadix) << "a leading zero";
    }
    EXPECT_TRUE(i >= 20'000 || spellings.insert(tokens).second);
  }
}

// The model's features of numbers distinguish them, including numbers that were not in any
// training.
TEST(TensorLanguage, NumbersHaveFeaturesOfTheirOwn) {
  std::set<std::vector<std::pair<int32_t, float>>> seen;
  for (int64_t value = 0; value < 3000; ++value) {
    Positions positions;
    positions.add_number(NumberKind::kExtent, value);
    std::vector<std::pair<int32_t, float>> features;
    for (const Feature& f : positions.features) {
      EXPECT_GE(f.entry, 0);
      EXPECT_LT(f.entry, kNumberFeatures);
      features.emplace_back(f.entry, f.weight);
    }
    EXPECT_TRUE(seen.insert(features).second) << value;
  }
}

TEST(TensorLanguage, PromptsTellWhatDiffers) {
  const auto prompt = [](const std::string& rows, const char* sketch, int vector_bytes, size_t most = 96,
                         bool device_told = true) {
    const auto workload = ir::parse_workload("workload {\n  input x: f32[" + rows +
                                             ", 8]\n  const w: f32[8, 10]\n  y: f32[i: " + rows +
                                             ", j: 10] = sum{k: 8} x[i, k] * w[k, j]\n  output y\n}");
    EXPECT_TRUE(workload.ok());
    target::Device device;
    device.cpu().vector_bytes = vector_bytes;
    const Positions p = make_prompt(*workload, device, sketch, {.device = device_told, .most = most});
    for (const Feature& f : p.features) {
      EXPECT_GE(f.entry, 0);
      EXPECT_LT(f.entry, kFeatures);
      EXPECT_TRUE(std::isfinite(f.weight));
    }
    return p;
  };
  const Positions base = prompt("6", "tile SSRSRS y", 32);
  EXPECT_EQ(base.features, prompt("6", "tile SSRSRS y", 32).features);
  EXPECT_NE(base.features, prompt("7", "tile SSRSRS y", 32).features);
  EXPECT_NE(base.features, prompt("6", "tile SRS y", 32).features);
  EXPECT_NE(base.features, prompt("6", "tile SSRSRS y", 64).features);
  // Device, plan, operation, three axes, two reads.
  EXPECT_EQ(base.size(), 8u);
  EXPECT_EQ(prompt("6", "tile SSRSRS y", 32, 5).size(), 5u);
  const Positions blind = prompt("6", "tile SSRSRS y", 32, 96, false);
  EXPECT_EQ(blind.size(), 7u);
  EXPECT_EQ(blind.features, prompt("6", "tile SSRSRS y", 64, 96, false).features);
  EXPECT_EQ(without_number("conv2d_12"), "conv2d");
  EXPECT_EQ(without_number("i0"), "i0");
  EXPECT_EQ(without_number("7"), "7");
}

// An answer that is any of a set of number sequences of equal length.
class ListedAnswer final : public Answer {
 public:
  explicit ListedAnswer(std::vector<std::vector<int64_t>> all) : left_(std::move(all)) {}
  bool done() const override { return taken.size() == left_.front().size(); }
  int64_t least() const override { return 0; }
  int64_t most() const override {
    int64_t most = 0;
    for (const auto& one : left_) most = std::max(most, one[taken.size()]);
    return most;
  }
  bool allows(int64_t value) const override {
    for (const auto& one : left_)
      if (one[taken.size()] == value) return true;
    return false;
  }
  bool take(int64_t value) override {
    if (!allows(value)) return false;
    std::erase_if(left_, [&](const auto& one) { return one[taken.size()] != value; });
    taken.push_back(value);
    return true;
  }
  void describe(Positions&) const override {}
  std::vector<int64_t> examples() const override { return {left_.front()[taken.size()]}; }

  std::vector<int64_t> taken;

 private:
  std::vector<std::vector<int64_t>> left_;
};

TEST(TokenWalk, EveryWalkEndsAndEveryAnswerIsAWalk) {
  const uint64_t seed = 11;
  SCOPED_TRACE("seed " + std::to_string(seed));
  Rng rng(seed);
  for (int round = 0; round < 60; ++round) {
    std::vector<std::vector<int64_t>> all(1 + rng.below(6));
    for (auto& one : all)
      for (int i = 0; i < 3; ++i)
        one.push_back(static_cast<int64_t>(rng.below(rng.bernoulli(0.5) ? 70 : 20'000)));
    for (int i = 0; i < 10; ++i) {
      ListedAnswer answer(all);
      TokenWalk walk(answer);
      while (!walk.done()) {
        const TokenMask allowed = walk.allowed();
        ASSERT_TRUE(allowed.any()) << "a dead end";
        std::vector<uint8_t> tokens;
        for (int t = 0; t < kOutputs; ++t)
          if (allowed[static_cast<size_t>(t)]) {
            tokens.push_back(static_cast<uint8_t>(t));
          } else {
            EXPECT_FALSE(walk.take(static_cast<uint8_t>(t)));
          }
        ASSERT_TRUE(walk.take(tokens[rng.below(tokens.size())]));
      }
      EXPECT_NE(std::find(all.begin(), all.end(), answer.taken), all.end());
    }
    // The search for a prefix begins with an example, the first of the list, so that one is always
    // found.
    ListedAnswer answer({all.front()});
    TokenWalk walk(answer);
    std::vector<uint8_t> tokens;
    for (const int64_t value : all.front()) append_tokens(value, tokens);
    for (const uint8_t token : tokens) {
      EXPECT_EQ(walk.allowed().count(), 1u);
      EXPECT_TRUE(walk.take(token));
    }
    EXPECT_TRUE(walk.done());
    EXPECT_EQ(answer.taken, all.front());
  }
}

Corpus sample_corpus() {
  Corpus corpus;
  target::Device device;
  device.name = "test";
  device.arch = "x86-64";
  corpus.devices = {device};
  corpus.tasks = {{"key", "name", "workload {\n}", 0}};
  corpus.prompts = {{0, 3, "tile SRS y", {{1, 2}, {3, 4}}, {}}, {0, 1, "split", {}, {"", "unroll"}}};
  TokenMask mask;
  mask[0] = mask[65] = mask[127] = true;
  corpus.sentences = {{0, Quality::kBest, {7, 300}, {mask, mask, mask}},
                      {0, Quality::kUnmeasured, {1, 2}, {mask, mask}}};
  return corpus;
}

TEST(CorpusFile, ComesBackAsItWasWritten) {
  const tensorsmith::testing::TemporaryDirectory dir;
  const std::string path = dir.file("a.corpus");
  const Corpus corpus = sample_corpus();
  ASSERT_TRUE(write_corpus(corpus, path).ok());
  const auto read = read_corpus(path);
  ASSERT_TRUE(read.ok()) << read.error().message();
  EXPECT_EQ(read->hash(), corpus.hash());
  ASSERT_EQ(read->sentences.size(), 2u);
  EXPECT_EQ(read->sentences[0].decisions, corpus.sentences[0].decisions);
  EXPECT_EQ(read->sentences[0].allowed, corpus.sentences[0].allowed);
  EXPECT_EQ(read->prompts[0].similar, corpus.prompts[0].similar);
  EXPECT_EQ(read->prompts[1].placements, corpus.prompts[1].placements);
  // A corpus that refers to an entry that does not exist.
  Corpus wrong = corpus;
  wrong.sentences[1].prompt = 9;
  ASSERT_TRUE(write_corpus(wrong, path).ok());
  EXPECT_EQ(read_corpus(path).error().code, ErrorCode::kCorrupt);
  EXPECT_EQ(read_language_model(path).error().code, ErrorCode::kCorrupt) << "a file of another kind";
  EXPECT_EQ(read_corpus(dir.file("none")).error().code, ErrorCode::kNotFound);
}

TEST(LanguageModelFile, ComesBackAsItWasWritten) {
  const tensorsmith::testing::TemporaryDirectory dir;
  const std::string path = dir.file("a.lm");
  LanguageModel model;
  model.sizes = {8, 2, 1, 16};
  Rng rng(4);
  for (const auto& [name, shape] : weight_shapes(model.sizes)) {
    auto& weight = model.weights[name];
    weight.shape = shape;
    int64_t count = 1;
    for (const int64_t extent : shape) count *= extent;
    for (int64_t i = 0; i < count; ++i) weight.values.push_back(static_cast<float>(rng.normal()));
  }
  model.prompting = {.device = false, .most = 40};
  model.tasks = {"a", "b"};
  model.devices = {"test"};
  model.command = "lm pretrain";
  model.metrics = "{}";
  ASSERT_TRUE(write_language_model(model, path).ok());
  const auto read = read_language_model(path);
  ASSERT_TRUE(read.ok()) << read.error().message();
  EXPECT_EQ(read->sizes, model.sizes);
  EXPECT_EQ(read->prompting, model.prompting);
  EXPECT_EQ(read->tasks, model.tasks);
  for (const auto& [name, weight] : model.weights) EXPECT_EQ(read->weights.at(name).values, weight.values);
  // A file that does not say how prompts are made is rejected; no default is assumed.
  auto file = read_tensor_file(path).value();
  file.metadata.erase("prompting");
  ASSERT_TRUE(write_tensor_file(file, path).ok());
  EXPECT_EQ(read_language_model(path).error().code, ErrorCode::kCorrupt);
  file.metadata["version"] = "1";
  ASSERT_TRUE(write_tensor_file(file, path).ok());
  EXPECT_EQ(read_language_model(path).error().code, ErrorCode::kMismatch);
  model.weights["norm.bias"].values[0] = std::numeric_limits<float>::quiet_NaN();
  ASSERT_TRUE(write_language_model(model, path).ok());
  EXPECT_EQ(read_language_model(path).error().code, ErrorCode::kCorrupt);
}

}  // namespace
}  // namespace tensorsmith::learn::lm::lm_test
