// Programs of tasks as sentences of the tensor language, as `lm corpus` writes them and language
// models read them.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/thread_pool.h"
#include "engine/model/load_model.h"
#include "engine/tune/warm_start.h"
#include "learn/lm/corpus.h"
#include "search/ansor_answer.h"
#include "search/space_answer.h"

namespace tensorsmith::lab {

struct CorpusOptions {
  std::vector<target::Device> devices;  // devices of the unmeasured programs
  size_t unmeasured = 100;              // programs per task and device, half of them the best by the estimate
  std::vector<std::string> databases;   // databases of the measured programs
  size_t measured = 96;                 // most programs per task and device of a database
  std::set<std::string> held_out;       // keys of tasks that must not be in the corpus
  uint64_t seed = 0;
  int threads = 1;
};

struct CorpusProgress {
  size_t tasks = 0, of = 0;
  size_t sentences = 0;
};

// Makes a corpus of unmeasured programs of the models' tasks and measured programs of the
// databases. kCancelled when `cancel` is set.
Result<learn::lm::Corpus> make_corpus(const std::vector<engine::ModelSource>& models,
                                      const CorpusOptions& options,
                                      const std::function<void(const CorpusProgress&)>& progress,
                                      const std::atomic<bool>& cancel);

// Given `count` programs sorted by time, returns the positions of at most `most` to learn from: the
// fastest make up half, the others are spread evenly.
std::vector<size_t> places_to_learn(size_t count, size_t most);

// A corpus with the design spaces of its tasks. Immutable.
class CorpusSentences final : public learn::lm::SentenceSource {
 public:
  // Leaves out prompts whose sketch no longer exists in this version, together with their
  // sentences.
  static Result<std::unique_ptr<CorpusSentences>> create(learn::lm::Corpus corpus,
                                                         const learn::lm::PromptOptions& prompting,
                                                         ThreadPool& pool);

  size_t prompts() const override { return prompts_.size(); }
  const learn::lm::Positions& prompt(size_t number) const override { return prompts_[number].positions; }
  const learn::lm::PromptOptions& prompting() const override { return prompting_; }
  const std::string& task_of(size_t number) const override { return prompts_[number].task; }
  std::span<const int32_t> sentences_of(size_t number) const override { return prompts_[number].sentences; }
  learn::lm::Quality quality_of(int32_t sentence) const override {
    return corpus_.sentences[sentence].quality;
  }
  void write(int32_t sentence, learn::lm::Quality quality, bool similar,
             learn::lm::WrittenAnswer& out) const override;
  std::string hash() const override { return hash_; }
  std::vector<std::string> tasks() const override;
  std::vector<std::string> devices() const override;

  size_t left_out() const { return left_out_; }

 private:
  struct Prompt {
    std::string task;  // its key
    learn::lm::Positions positions;
    std::shared_ptr<const search::SketchContext> context, without_similar;
    // Set instead of the two contexts if the sketch comes from Ansor's records.
    std::shared_ptr<const search::AnsorContext> records;
    std::vector<int32_t> sentences;
  };
  // nullopt if the sketch does not exist in this version.
  static std::optional<Prompt> prompt_of_space(const std::string& task, const ir::Workload& workload,
                                               const space::DesignSpace& space, const target::Device& device,
                                               const learn::lm::Corpus::Prompt& prompt,
                                               const learn::lm::PromptOptions& prompting);
  static std::optional<Prompt> prompt_of_records(const std::string& task, const ir::Workload& workload,
                                                 const target::Device& device,
                                                 const learn::lm::Corpus::Prompt& prompt,
                                                 const learn::lm::PromptOptions& prompting);
  static bool can_be_read(const Prompt& prompt, const learn::lm::Corpus::Sentence& sentence);
  learn::lm::Corpus corpus_;
  learn::lm::PromptOptions prompting_;
  std::vector<Prompt> prompts_;
  std::vector<size_t> prompt_of_;  // index into prompts_, by prompt of the corpus
  size_t left_out_ = 0;
  std::string hash_;
};

}  // namespace tensorsmith::lab
