// A language model on Ansor's records: corpora, new records, likelihoods.
#include "engine/language_records.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

#include "cli_support.h"
#include "engine/language_corpus.h"
#include "learn/lm/prompt.h"
#include "random_language_model.h"

namespace tensorsmith::engine {
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

std::unique_ptr<LanguageDecoder> small_decoder(uint64_t seed) {
  const auto machine = target::probe_local();
  DecoderOptions options;
  options.batch = 16;
  auto decoder = LanguageDecoder::create(
      random_model({.width = 16, .heads = 2, .layers = 1, .hidden = 32}, seed), *machine, options);
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
  DecodingReport report;
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

// All programs of a sketch, and nothing else, are what can be written: their probabilities add up to 1.
TEST(LanguageRecords, ProbabilitiesAddUpToOne) {
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
  const auto context =
      search::AnsorContext::create(replayed->task->fresh, parts.sketch, {parts.placement}, device);
  ASSERT_TRUE(context.ok()) << context.error().message();
  std::vector<record::AnsorParts> programs;
  for (int64_t i = 1; i <= 4; ++i)
    for (int64_t outer = 1; outer <= 72; ++outer)
      for (int64_t inner = 1; inner <= 64; ++inner)
        for (const int64_t unroll : {0, 16, 64, 512, 1024}) {
          if (4 % i != 0 || 72 % (outer * inner) != 0) continue;
          programs.push_back({parts.sketch, parts.placement, {i, outer, inner, unroll}});
        }
  const auto decoder = small_decoder(5);
  DecodingReport report;
  const auto prompt =
      learn::lm::make_prompt(replayed->task->workload, device, device.cores, (*context)->text());
  const auto likelihoods =
      log_likelihoods(*decoder, prompt, **context, programs, learn::lm::Quality::kBest, report);
  ASSERT_TRUE(likelihoods.ok());
  double sum = 0;
  for (const double l : *likelihoods) sum += std::exp(l);
  EXPECT_NEAR(sum, 1, 1e-3);
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
}  // namespace tensorsmith::engine
