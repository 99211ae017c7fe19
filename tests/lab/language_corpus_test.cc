// Language models that write schedules: corpora and training.
#include "lab/language_corpus.h"

#include <gtest/gtest.h>

#include <cmath>

#include "cli_support.h"
#include "engine/language/language_decoder.h"
#include "ir/text.h"
#include "language_testing.h"
#include "learn/lm/language_training.h"
#include "sched/step.h"
#include "search/pipeline.h"

namespace tensorsmith::lab::language_corpus_test {
namespace {

using learn::lm::kOutputs;
using learn::lm::LanguageModel;

// A database with random programs of two products; programs with larger register tiles are faster.
class CorpusTest : public ::testing::Test {
 protected:
  CorpusTest() {
    auto database = record::Database::open(path_).value();
    EXPECT_TRUE(database->add_device({device_.key(), device_}).ok());
    Rng rng(2);
    for (const auto& task : tasks_) {
      EXPECT_TRUE(database->add_task({task.key, ir::print(task.workload), task.name, task.flops}).ok());
      const auto space = space::DesignSpace::build(task.workload, device_, {}).value();
      for (int i = 0; i < 60; ++i) {
        const auto candidate = space.sample(rng);
        record::Record record;
        record.task_key = task.key;
        record.device_key = device_.key();
        record.trace = sched::print(space.to_trace(candidate).value());
        record.result.seconds = {space.estimate(candidate)};
        record.candidate.point = search::to_point(candidate);
        EXPECT_TRUE(database->add({record}).ok());
      }
    }
  }
  Result<learn::lm::Corpus> make(const std::set<std::string>& held_out = {}) const {
    CorpusOptions options;
    options.databases = {path_};
    options.held_out = held_out;
    const std::atomic<bool> cancel = false;
    return make_corpus({}, options, nullptr, cancel);
  }

  testing::TemporaryDirectory folder_;
  std::string path_ = folder_.file("a.db");
  target::Device device_ = target::find_device("epyc-9654:threads=1").value();
  std::vector<graph::Task> tasks_{matmul_task(128, 128, 64), matmul_task(64, 256, 128)};
};

TEST_F(CorpusTest, EverySentenceIsItsProgram) {
  const auto corpus = make();
  ASSERT_TRUE(corpus.ok()) << corpus.error().message();
  EXPECT_EQ(corpus->tasks.size(), 2u);
  EXPECT_GE(corpus->sentences.size(), 80u);
  ThreadPool pool(1);
  const auto sentences = CorpusSentences::create(*corpus, {}, pool);
  ASSERT_TRUE(sentences.ok()) << sentences.error().message();
  EXPECT_EQ((*sentences)->left_out(), 0u);
  size_t read = 0, best = 0;
  for (size_t p = 0; p < (*sentences)->prompts(); ++p)
    for (const int32_t s : (*sentences)->sentences_of(p)) {
      ++read;
      best += (*sentences)->quality_of(s) == learn::lm::Quality::kBest ? 1 : 0;
      for (const bool similar : {true, false}) {
        learn::lm::WrittenAnswer answer;
        (*sentences)->write(s, learn::lm::Quality::kBest, similar, answer);
        ASSERT_EQ(answer.positions.size(), answer.tokens.size());
        ASSERT_EQ(answer.allowed.size(), answer.tokens.size());
        std::vector<uint8_t> expected;
        for (const int64_t d : corpus->sentences[static_cast<size_t>(s)].decisions)
          learn::lm::append_tokens(d, expected);
        EXPECT_EQ(answer.tokens, expected);
        for (size_t t = 0; t < answer.tokens.size(); ++t) EXPECT_TRUE(answer.allowed[t][answer.tokens[t]]);
      }
    }
  EXPECT_EQ(read, corpus->sentences.size());
  EXPECT_GE(best, 2u);
}

TEST_F(CorpusTest, HeldOutTasksAreNowhere) {
  const auto corpus = make({tasks_[1].key});
  ASSERT_TRUE(corpus.ok()) << corpus.error().message();
  ASSERT_EQ(corpus->tasks.size(), 1u);
  EXPECT_EQ(corpus->tasks[0].key, tasks_[0].key);
  for (const auto& prompt : corpus->prompts) EXPECT_TRUE(prompt.similar.empty()) << "nothing else is known";
}

#if TENSORSMITH_TORCH
// Trains a model, once without and once with an interruption after some steps and a restart from
// the checkpoint.
LanguageModel train_twice(const CorpusSentences& sentences, const learn::lm::LanguageTraining& training,
                          const LanguageModel* base, const learn::TrainingControl& control,
                          const std::string& checkpoint) {
  auto model = learn::lm::train_language_model(sentences, training, base, control);
  EXPECT_TRUE(model.ok()) << model.error().message();
  learn::TrainingControl stopped = control;
  stopped.progress = nullptr;
  stopped.checkpoint = checkpoint;
  int asked = 0;
  stopped.stop = [&] { return ++asked == 70; };
  const auto cut = learn::lm::train_language_model(sentences, training, base, stopped);
  EXPECT_FALSE(cut.ok());
  if (!cut.ok()) {
    EXPECT_EQ(cut.error().code, ErrorCode::kCancelled);
  }
  stopped.stop = nullptr;
  const auto resumed = learn::lm::train_language_model(sentences, training, base, stopped);
  EXPECT_TRUE(resumed.ok()) << resumed.error().message();
  for (const auto& [name, weight] : model->weights)
    EXPECT_EQ(weight.values, resumed->weights.at(name).values) << name;
  EXPECT_EQ(model->metrics, resumed->metrics);
  return std::move(model).value();
}

// Computes the compiled decoder's likelihoods of sentences.
class Likelihoods {
 public:
  Likelihoods(const LanguageModel& model, const CorpusSentences& sentences)
      : decoder_(
            engine::LanguageDecoder::create(model, target::probe_local(1).value(), {.batch = 1}).value()),
        sentences_(sentences) {}

  size_t tokens = 0;  // tokens of all evaluated sentences

  // Returns the log probability of a sentence after a prompt, conditioned on the given quality.
  double of(size_t prompt, int32_t sentence, learn::lm::Quality quality) {
    EXPECT_TRUE(decoder_->read(sentences_.prompt(prompt)).ok());
    learn::lm::WrittenAnswer answer;
    sentences_.write(sentence, quality, true, answer);
    decoder_->begin();
    double sum = 0;
    for (size_t t = 0; t < answer.tokens.size(); ++t, ++tokens) {
      const auto scores = decoder_->next(one_of(answer.positions, t));
      EXPECT_TRUE(scores.ok());
      double all = 0;
      for (size_t o = 0; o < kOutputs; ++o)
        if (answer.allowed[t][o]) all += std::exp(static_cast<double>((*scores)[o]));
      sum += static_cast<double>((*scores)[answer.tokens[t]]) - std::log(all);
    }
    return sum;
  }

 private:
  std::unique_ptr<engine::LanguageDecoder> decoder_;
  const CorpusSentences& sentences_;
};

learn::lm::LanguageTraining small_training() {
  learn::lm::LanguageTraining training;
  training.sizes = {.width = 16, .heads = 2, .layers = 1, .hidden = 32};
  training.epochs = 60;
  training.prompts = training.answers = 4;
  training.learning_rate = 1e-2;
  training.validation = 0;
  return training;
}

TEST_F(CorpusTest, TrainingLearnsStopsAndGoesOn) {
  const auto corpus = make();
  ASSERT_TRUE(corpus.ok()) << corpus.error().message();
  ThreadPool pool(1);
  const auto sentences = CorpusSentences::create(*corpus, {}, pool);
  ASSERT_TRUE(sentences.ok()) << sentences.error().message();
  std::vector<double> losses;
  learn::TrainingControl control;
  control.seed = 5;
  control.progress = [&](const learn::TrainingProgress& p) { losses.push_back(p.train_loss); };
  const LanguageModel model =
      train_twice(**sentences, small_training(), nullptr, control, folder_.file("a.checkpoint"));
  ASSERT_GE(losses.size(), 3u);
  EXPECT_LT(losses.back(), 0.8 * losses.front());
  EXPECT_EQ(model.tasks.size(), 2u);
  // Sentences that the model was trained on are likelier than others, and the compiled decoder
  // agrees with training.
  Likelihoods likelihoods(model, **sentences);
  double sum = 0;
  for (size_t p = 0; p < (*sentences)->prompts(); ++p)
    for (const int32_t s : (*sentences)->sentences_of(p))
      sum -= likelihoods.of(p, s, (*sentences)->quality_of(s));
  EXPECT_NEAR(sum / static_cast<double>(likelihoods.tokens), losses.back(), 0.25 * losses.back());
}

TEST_F(CorpusTest, MixedPrecisionLearnsAsWell) {
  const auto corpus = make();
  ASSERT_TRUE(corpus.ok()) << corpus.error().message();
  ThreadPool pool(1);
  const auto sentences = CorpusSentences::create(*corpus, {}, pool);
  ASSERT_TRUE(sentences.ok()) << sentences.error().message();
  double losses[2] = {0, 0};
  for (const bool mixed : {false, true}) {
    learn::TrainingControl control;
    control.seed = 5;
    control.progress = [&](const learn::TrainingProgress& p) { losses[mixed ? 1 : 0] = p.train_loss; };
    auto training = small_training();
    training.mixed_precision = mixed;
    const auto model = learn::lm::train_language_model(**sentences, training, nullptr, control);
    ASSERT_TRUE(model.ok()) << model.error().message();
    for (const auto& [name, weight] : model->weights)
      for (const float w : weight.values) ASSERT_TRUE(std::isfinite(w)) << name;
  }
  EXPECT_NE(losses[0], losses[1]) << "it does something";
  EXPECT_NEAR(losses[1], losses[0], 0.1 * losses[0]);
}

// Returns two values over all pairs of sentences of a prompt that differ in quality, both
// conditioned on the best quality: the mean difference of log probability in favour of the better
// one, and the share of pairs in which the better one is likelier.
std::pair<double, double> mean_margin(const LanguageModel& model, const CorpusSentences& sentences) {
  Likelihoods likelihoods(model, sentences);
  double sum = 0, right = 0, pairs = 0;
  for (size_t p = 0; p < sentences.prompts(); ++p) {
    std::vector<std::pair<learn::lm::Quality, double>> all;
    for (const int32_t s : sentences.sentences_of(p))
      all.emplace_back(sentences.quality_of(s), likelihoods.of(p, s, learn::lm::Quality::kBest));
    for (const auto& better : all)
      for (const auto& worse : all) {
        if (better.first >= worse.first) continue;
        sum += better.second - worse.second;
        right += better.second > worse.second ? 1 : 0;
        pairs += 1;
      }
  }
  return {sum / pairs, right / pairs};
}

TEST_F(CorpusTest, PreferencesMakeTheBetterOneMoreLikely) {
  const auto corpus = make();
  ASSERT_TRUE(corpus.ok()) << corpus.error().message();
  ThreadPool pool(1);
  const auto sentences = CorpusSentences::create(*corpus, {}, pool);
  ASSERT_TRUE(sentences.ok()) << sentences.error().message();
  learn::TrainingControl control;
  control.seed = 6;
  auto training = small_training();
  training.epochs = 20;
  const auto base = learn::lm::train_language_model(**sentences, training, nullptr, control);
  ASSERT_TRUE(base.ok()) << base.error().message();
  training.preference = 0.1;
  training.learning_rate = 3e-3;
  training.epochs = 40;
  training.worst = learn::lm::Quality::kWithin100;
  const LanguageModel model =
      train_twice(**sentences, training, &*base, control, folder_.file("p.checkpoint"));
  const auto before = mean_margin(*base, **sentences), after = mean_margin(model, **sentences);
  EXPECT_GT(after.first, before.first + 2) << "nats";
  EXPECT_GT(after.second, before.second + 0.1) << "of the pairs";
  const auto nothing_to_go_on_from = learn::lm::train_language_model(**sentences, training, nullptr, control);
  ASSERT_FALSE(nothing_to_go_on_from.ok());
  EXPECT_EQ(nothing_to_go_on_from.error().code, ErrorCode::kInvalidArgument);
}

TEST_F(CorpusTest, AModelKnowsWhatPromptsItReads) {
  const auto corpus = make();
  ASSERT_TRUE(corpus.ok()) << corpus.error().message();
  ThreadPool pool(1);
  const auto with = CorpusSentences::create(*corpus, {}, pool);
  const auto without = CorpusSentences::create(*corpus, {.device = false}, pool);
  ASSERT_TRUE(with.ok() && without.ok());
  ASSERT_EQ((*with)->prompts(), (*without)->prompts());
  for (size_t p = 0; p < (*with)->prompts(); ++p)
    EXPECT_EQ((*with)->prompt(p).size(), (*without)->prompt(p).size() + 1) << "the device's position";
  auto training = small_training();
  training.epochs = 1;
  const auto model = learn::lm::train_language_model(**without, training, nullptr, {});
  ASSERT_TRUE(model.ok()) << model.error().message();
  EXPECT_FALSE(model->prompting.device);
  const auto other = learn::lm::train_language_model(**with, training, &*model, {});
  ASSERT_FALSE(other.ok());
  EXPECT_EQ(other.error().code, ErrorCode::kMismatch);
}
#endif

}  // namespace
}  // namespace tensorsmith::lab::language_corpus_test
