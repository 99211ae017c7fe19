// A language model on Ansor's records: corpora, new records, likelihoods.
#include "lab/language_records.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>
#include <set>

#include "cli_support.h"
#include "engine/random_language_model.h"
#include "lab/language_corpus.h"
#include "learn/lm/prompt.h"

namespace tensorsmith::lab::language_records_test {
namespace {

using learn::lm::Corpus;

const std::string kSamples = TENSORSMITH_SOURCE_DIR "/tests/data/ansor/";

std::vector<learn::ImportFile> sample_files() {
  std::vector<learn::ImportFile> files;
  for (const char* name : {"v100", "mi50", "xeon8358"})
    files.push_back({name, kSamples + name + ".jsonl.zst"});
  return files;
}

bool all(const std::string&) { return true; }

TEST(LanguageRecords, ACorpusHoldsThemBesideOurPrograms) {
  const auto workloads = record::AnsorWorkloads::load(kSamples + "workloads.json");
  ASSERT_TRUE(workloads.ok());
  const auto recorded = read_recorded_tasks(sample_files(), *workloads, all);
  ASSERT_TRUE(recorded.ok()) << recorded.error().message();
  EXPECT_EQ(recorded->devices.size(), 3u);
  const std::atomic<bool> cancel = false;
  CorpusOptions options;
  options.devices = {*target::find_device("xeon-8358")};
  options.unmeasured = 4;
  auto made = make_corpus({{.path = "zoo:squeezenet1_1:size=64"}}, options, nullptr, cancel);
  ASSERT_TRUE(made.ok()) << made.error().message();
  const size_t ours = made->sentences.size();
  EXPECT_GT(ours, 20u);
  ASSERT_TRUE(add_recorded(*made, *recorded, 3, 1, cancel).ok());
  EXPECT_GT(made->sentences.size(), ours + 200);
  std::set<int32_t> with_best;
  for (size_t s = ours; s < made->sentences.size(); ++s)
    if (made->sentences[s].quality == learn::lm::Quality::kBest)
      with_best.insert(made->prompts[static_cast<size_t>(made->sentences[s].prompt)].task);
  const auto measured = std::count_if(recorded->tasks.begin(), recorded->tasks.end(),
                                      [](const RecordedTask& task) { return !task.fastest_first().empty(); });
  EXPECT_EQ(std::ssize(with_best), measured) << "each task's fastest is its best";

  const testing::TemporaryDirectory directory;
  const std::string path = directory.file("records.corpus");
  ASSERT_TRUE(write_corpus(*made, path).ok());
  auto read = learn::lm::read_corpus(path);
  ASSERT_TRUE(read.ok()) << read.error().message();
  EXPECT_EQ(read->hash(), made->hash());
  ThreadPool pool(1);
  const auto sentences = CorpusSentences::create(std::move(*read), {}, pool);
  ASSERT_TRUE(sentences.ok());
  EXPECT_EQ((*sentences)->left_out(), 0u);
  size_t tokens = 0;
  for (size_t p = 0; p < (*sentences)->prompts(); ++p) {
    EXPECT_LE((*sentences)->prompt(p).size(), 96u);
    for (const int32_t s : (*sentences)->sentences_of(p)) {
      learn::lm::WrittenAnswer out;
      (*sentences)->write(s, (*sentences)->quality_of(s), true, out);
      ASSERT_EQ(out.positions.size(), out.tokens.size());
      for (size_t t = 0; t < out.tokens.size(); ++t) EXPECT_TRUE(out.allowed[t][out.tokens[t]]);
      tokens += out.tokens.size();
    }
  }
  EXPECT_GT(tokens, 2000u);
}

TEST(LanguageRecords, ACorpusHoldsProgramsOfMetaSchedule) {
  const std::string folder = TENSORSMITH_SOURCE_DIR "/tests/data/metaschedule_cpu";
  const auto databases = learn::find_metaschedule_databases({{"xeon-8358", folder}});
  ASSERT_TRUE(databases.ok());
  const auto recorded = read_recorded_tasks(*databases, all);
  ASSERT_TRUE(recorded.ok()) << recorded.error().message();
  EXPECT_EQ(recorded->tasks.size(), 3u);
  EXPECT_EQ(recorded->records, 15);
  EXPECT_EQ(recorded->failed, 2);
  EXPECT_EQ(recorded->unusable, 0);
  size_t programs = 0;
  for (const RecordedTask& task : recorded->tasks) {
    programs += task.fastest_first().size();
    for (const RecordedSketch& sketch : task.sketches) {
      const auto context = search::AnsorContext::create(task.task->fresh, sketch.sketch, sketch.placements,
                                                        recorded->devices[task.device]);
      ASSERT_TRUE(context.ok()) << task.task->name << ": " << context.error().message();
      for (const auto& program : sketch.programs) {
        const auto parts = sketch.parts_of(program);
        const auto decisions = search::decisions_in_order(**context, parts);
        ASSERT_TRUE(decisions.has_value()) << task.task->name;
        EXPECT_EQ(search::from_decisions(**context, *decisions), parts) << task.task->name;
        const auto trace = record::join_trace(parts);
        ASSERT_TRUE(trace.has_value());
        EXPECT_TRUE(sched::replay(task.task->workload, *trace).ok()) << task.task->name;
      }
    }
  }
  EXPECT_EQ(programs, 13u);
  Corpus corpus;
  ASSERT_TRUE(add_recorded(corpus, *recorded, 96, 1, false).ok());
  EXPECT_GE(corpus.sentences.size(), 12u);  // a program without tiles and unrolling has nothing to say
}

TEST(LanguageRecords, WhatIsHeldOutIsNotRead) {
  const auto workloads = record::AnsorWorkloads::load(kSamples + "workloads.json");
  ASSERT_TRUE(workloads.ok());
  const auto in =
      read_recorded_tasks(sample_files(), *workloads, [](const auto& key) { return !in_share(key, 0.3); });
  const auto out =
      read_recorded_tasks(sample_files(), *workloads, [](const auto& key) { return in_share(key, 0.3); });
  const auto both = read_recorded_tasks(sample_files(), *workloads, all);
  ASSERT_TRUE(in.ok() && out.ok() && both.ok());
  EXPECT_EQ(in->tasks.size() + out->tasks.size(), both->tasks.size());
  std::set<std::string> keys;
  for (const auto& task : in->tasks) keys.insert(task.task->structural_key);
  for (const auto& task : out->tasks) EXPECT_EQ(keys.count(task.task->structural_key), 0u);
  EXPECT_GT(out->tasks.size(), both->tasks.size() / 10);
  EXPECT_LT(out->tasks.size(), both->tasks.size() * 6 / 10);
}

std::unique_ptr<engine::LanguageDecoder> small_decoder(uint64_t seed, int batch = 16) {
  const auto machine = target::probe_local();
  engine::DecoderOptions options;
  options.batch = batch;
  auto decoder = engine::LanguageDecoder::create(
      engine::random_model({.width = 16, .heads = 2, .layers = 1, .hidden = 32}, seed), *machine, options);
  EXPECT_TRUE(decoder.ok());
  return std::move(*decoder);
}

TEST(LanguageRecords, NewRecordsReplay) {
  const uint64_t seed = 3;
  SCOPED_TRACE("seed " + std::to_string(seed));
  const auto workloads = record::AnsorWorkloads::load(kSamples + "workloads.json");
  ASSERT_TRUE(workloads.ok());
  const auto recorded = read_recorded_tasks(sample_files(), *workloads, all);
  ASSERT_TRUE(recorded.ok());
  const auto decoder = small_decoder(seed);
  engine::DecodingReport report;
  RecordWriting options;
  options.count = 4;
  size_t programs = 0;
  for (size_t i = 0; i < recorded->tasks.size(); i += 9) {
    const auto& task = recorded->tasks[i];
    const auto written =
        write_records(*decoder, task, recorded->devices[task.device], *workloads, options, report);
    ASSERT_TRUE(written.ok()) << written.error().message();
    EXPECT_EQ(written->lines.size(), written->programs);
    programs += written->programs;
    for (const auto& line : written->lines) {
      record::AnsorRecord record;
      ASSERT_TRUE(record::parse_ansor_record(line, record).ok());
      EXPECT_EQ(record.workload_key, task.task->key);
      EXPECT_TRUE(workloads->replay(record).ok());
    }
  }
  EXPECT_GT(programs, 40u);
  EXPECT_EQ(report.dead_ends, 0);
}

// The row sums of a small matrix on a GPU: a single sketch, all of whose programs can be listed.
class SmallSum : public ::testing::Test {
 protected:
  void SetUp() override {
    const auto workloads = record::AnsorWorkloads::from_json(
        R"({"[\"sum\"]": {"compute_dag": "data = PLACEHOLDER [4, 72]\nred(i) += data[i, k]"}})");
    ASSERT_TRUE(workloads.ok());
    record::AnsorRecord record;
    ASSERT_TRUE(
        record::parse_ansor_record(
            R"({"i":[["[\"sum\"]","cuda"],[[],[["SP",1,0,4,[2],1],["SP",1,2,72,[2,1],1],["AN",1,4,6],["AN",1,0,5],["PR",1,0,"auto_unroll_max_step$16"]]]],"r":[[0.1],0,1,1],"v":"v0.6"})",
            record)
            .ok());
    const auto replayed = workloads->replay(record);
    ASSERT_TRUE(replayed.ok()) << replayed.error().message();
    const auto parts = record::split_trace(record.trace);
    const auto device = *target::find_device("v100");
    auto context =
        search::AnsorContext::create(replayed->task->fresh, parts.sketch, {parts.placement}, device);
    ASSERT_TRUE(context.ok()) << context.error().message();
    context_ = *context;
    prompt_ = learn::lm::make_prompt(replayed->task->workload, device, context_->text());
    for (int64_t i = 1; i <= 4; ++i)
      for (int64_t outer = 1; outer <= 72; ++outer)
        for (int64_t inner = 1; inner <= 64; ++inner)
          for (const int64_t unroll : {0, 16, 64, 512, 1024}) {
            if (4 % i != 0 || 72 % (outer * inner) != 0) continue;
            programs_.push_back({parts.sketch, parts.placement, {i, outer, inner, unroll}});
          }
  }

  std::vector<double> likelihoods(engine::LanguageDecoder& decoder) {
    const auto made =
        engine::log_likelihoods(decoder, prompt_, *context_, programs_, learn::lm::Quality::kBest, report_);
    EXPECT_TRUE(made.ok());
    return *made;
  }

  std::shared_ptr<const search::AnsorContext> context_;
  learn::lm::Positions prompt_;
  std::vector<record::AnsorParts> programs_;
  engine::DecodingReport report_;
};

// Only these programs can be written: their probabilities add up to 1.
TEST_F(SmallSum, ProbabilitiesAddUpToOne) {
  double sum = 0;
  for (const double l : likelihoods(*small_decoder(5))) sum += std::exp(l);
  EXPECT_NEAR(sum, 1, 1e-3);
}

TEST_F(SmallSum, ABeamAsWideAsAllPrefixesFindsTheLikeliest) {
  const auto decoder = small_decoder(5, static_cast<int>(programs_.size()));
  auto expected = likelihoods(*decoder);
  std::sort(expected.begin(), expected.end(), std::greater<>());
  Rng rng(0);
  const int beam = static_cast<int>(programs_.size());
  engine::RecordRequest request{programs_.size(), {.beam = beam}, {}};
  const auto found = engine::generate_records(*decoder, prompt_, *context_, request, rng, report_);
  ASSERT_TRUE(found.ok()) << found.error().message();
  ASSERT_EQ(found->size(), programs_.size());
  for (size_t i = 0; i < found->size(); ++i) EXPECT_NEAR((*found)[i].log_likelihood, expected[i], 1e-3);
  // Without the likeliest program, the second becomes the first.
  request.count = 1;
  const record::AnsorParts likeliest = found->front().parts;
  request.excluded = [&](const record::AnsorParts& parts) { return parts == likeliest; };
  const auto second = engine::generate_records(*decoder, prompt_, *context_, request, rng, report_);
  ASSERT_TRUE(second.ok() && second->size() == 1);
  EXPECT_EQ(second->front().parts, (*found)[1].parts);
}

TEST_F(SmallSum, OneOfOneTokenIsTheLikeliestEachTime) {
  const auto decoder = small_decoder(5);
  Rng rng(0);
  const auto first =
      engine::generate_records(*decoder, prompt_, *context_, {1, {.temperature = 0}, {}}, rng, report_);
  const auto drawn =
      engine::generate_records(*decoder, prompt_, *context_, {3, {.top_k = 1}, {}}, rng, report_);
  ASSERT_TRUE(first.ok() && drawn.ok());
  ASSERT_EQ(drawn->size(), 1u) << "they are all the same";
  EXPECT_EQ(drawn->front().parts, first->front().parts);
}

TEST(LanguageRecords, NothingThatWasMeasuredIsWritten) {
  const uint64_t seed = 11;
  SCOPED_TRACE("seed " + std::to_string(seed));
  const auto workloads = record::AnsorWorkloads::load(kSamples + "workloads.json");
  ASSERT_TRUE(workloads.ok());
  auto recorded = read_recorded_tasks(sample_files(), *workloads, all);
  ASSERT_TRUE(recorded.ok());
  // A task with few programs, all of which are measured as soon as they are written.
  const auto relu =
      std::find_if(recorded->tasks.begin(), recorded->tasks.end(), [](const RecordedTask& task) {
        return task.task->name.find("relu") != std::string::npos && !task.fastest_first().empty();
      });
  ASSERT_NE(relu, recorded->tasks.end());
  const auto decoder = small_decoder(seed);
  engine::DecodingReport report;
  RecordWriting options;
  options.count = 6;
  std::set<std::string> lines;
  for (uint64_t round = 0; round < 3; ++round) {
    options.seed = round;
    const auto written =
        write_records(*decoder, *relu, recorded->devices[relu->device], *workloads, options, report);
    ASSERT_TRUE(written.ok()) << written.error().message();
    EXPECT_GT(written->lines.size(), 0u);
    for (const auto& line : written->lines) {
      EXPECT_TRUE(lines.insert(line).second) << line;
      record::AnsorRecord record;
      ASSERT_TRUE(record::parse_ansor_record(line, record).ok());
      const auto parts = record::split_trace(record.trace);
      auto& sketch = *std::find_if(relu->sketches.begin(), relu->sketches.end(),
                                   [&](const auto& s) { return s.sketch == parts.sketch; });
      const auto place = std::find(sketch.placements.begin(), sketch.placements.end(), parts.placement);
      sketch.programs.push_back({static_cast<size_t>(place - sketch.placements.begin()),
                                 {parts.numbers.begin(), parts.numbers.end()},
                                 1.0});
    }
  }
}

// A cost model that knows the true times.
class Oracle final : public learn::CostModel {
 public:
  explicit Oracle(std::map<std::string, double> seconds) : seconds_(std::move(seconds)) {}
  Result<std::vector<learn::Prediction>> predict(
      std::span<const learn::ProgramQuery> queries) const override {
    std::vector<learn::Prediction> out;
    for (const auto& query : queries) out.push_back({.seconds = seconds_.at(sched::print(*query.trace))});
    return out;
  }
  learn::ModelInputs inputs() const override { return {.trace = true}; }
  const learn::ModelCard& card() const override { return card_; }
  Status save(const std::string&) const override { return Error{ErrorCode::kUnsupported, "", ""}; }

 private:
  std::map<std::string, double> seconds_;
  learn::ModelCard card_;
};

TEST(LanguageRecords, WhoKnowsTheTimesFindsTheFastest) {
  const auto workloads = record::AnsorWorkloads::load(kSamples + "workloads.json");
  ASSERT_TRUE(workloads.ok());
  const auto recorded = read_recorded_tasks(sample_files(), *workloads, all);
  ASSERT_TRUE(recorded.ok());
  const auto decoder = small_decoder(5);
  engine::DecodingReport report;
  size_t tasks = 0;
  for (size_t i = 0; i < recorded->tasks.size(); i += 20) {
    const RecordedTask& task = recorded->tasks[i];
    if (task.fastest_first().size() < 2) continue;
    std::map<std::string, double> seconds, inverse;
    for (const auto& sketch : task.sketches)
      for (const auto& program : sketch.programs) {
        const std::string trace = sched::print(*record::join_trace(sketch.parts_of(program)));
        seconds[trace] = program.seconds;
        inverse[trace] = -program.seconds;
      }
    const Oracle right(seconds), wrong(inverse);
    RecordRanking options;
    options.cost_model = &right;
    const auto best = rank_records(*decoder, task, recorded->devices[task.device], options, report);
    options.cost_model = &wrong;
    const auto worst = rank_records(*decoder, task, recorded->devices[task.device], options, report);
    ASSERT_TRUE(best.ok() && worst.ok());
    EXPECT_EQ(best->predicted[0], 1);
    double slowest = 0;
    for (const auto& [trace, s] : seconds) slowest = std::max(slowest, s);
    EXPECT_EQ(worst->predicted[0], task.best_seconds() / slowest);
    EXPECT_EQ(worst->predicted[3], 1) << "all of them are among the first 32";
    EXPECT_EQ(best->likeliest, worst->likeliest);
    EXPECT_LE(worst->predicted[0], best->likeliest[0]);
    ++tasks;
  }
  EXPECT_GT(tasks, 5u);
}

TEST(LanguageRecords, TheMeanOfChanceIsThatOfAllChoices) {
  const std::vector<double> seconds{1, 2, 2.5, 4, 8};
  double sum = 0;
  int choices = 0;
  for (size_t a = 0; a < 5; ++a)
    for (size_t b = a + 1; b < 5; ++b, ++choices) sum += 1 / std::min(seconds[a], seconds[b]);
  EXPECT_NEAR(mean_of_chance(seconds, 2), sum / choices, 1e-12);
  EXPECT_NEAR(mean_of_chance(seconds, 9), 1, 1e-12);
  EXPECT_NEAR(mean_of_chance(seconds, 1), (1 + 0.5 + 0.4 + 0.25 + 0.125) / 5, 1e-12);
}

}  // namespace
}  // namespace tensorsmith::lab::language_records_test
