// Language models on records of Ansor: adds them to a corpus, writes new records, and ranks
// recorded programs.
#pragma once

#include <array>
#include <atomic>
#include <string>
#include <vector>

#include "engine/language/language_decoder.h"
#include "lab/recorded_tasks.h"
#include "learn/cost_model.h"
#include "learn/lm/corpus.h"

namespace tensorsmith::lab {

// Adds measured programs, at most `measured` of each task and device (places_to_learn). Their
// quality is relative to the programs of the same task and device. kCancelled when `cancel` is set.
Status add_recorded(learn::lm::Corpus& corpus, const RecordedTasks& recorded, size_t measured, int threads,
                    const std::atomic<bool>& cancel);

struct RecordWriting {
  size_t count = 10;  // different programs per task
  engine::SamplingOptions sampling;
  learn::lm::PromptOptions prompting;  // of the language model
  uint64_t seed = 0;
};

struct WrittenRecords {
  std::vector<std::string> lines;  // records that replay, in the format that TVM reads
  size_t programs = 0;             // programs written, including those that do not replay
};

// Writes new programs of the task: none that its records have a time for. A sketch gets more of
// them the faster its fastest recorded program is, by TLM's rule (see LanguageWriter). Returns
// fewer if the sketches have no more.
Result<WrittenRecords> write_records(engine::LanguageDecoder& decoder, const RecordedTask& task,
                                     const target::Device& device, const record::AnsorWorkloads& workloads,
                                     const RecordWriting& options, engine::DecodingReport& report);

struct RecordRanking {
  size_t programs = 256;  // most programs of a task; spread over their times, including the fastest
  learn::lm::PromptOptions prompting;            // of the language model
  const learn::CostModel* cost_model = nullptr;  // a model that ranks the programs as well; null: none
};

// Numbers k for which the fastest of the first k ranked programs is evaluated.
inline constexpr std::array<size_t, 4> kRankedFirst = {1, 5, 10, 32};

// How well rankings find a task's fastest recorded programs: the time of the fastest one over that
// of the fastest among the first k of a ranking, for each k in kRankedFirst.
struct RankedTask {
  using Found = std::array<double, kRankedFirst.size()>;
  size_t programs = 0;  // number of ranked programs
  Found likeliest{};    // ranked by the language model's likelihood, asked for the best quality
  Found contrasted{};   // ranked by the ratio of the likelihoods for the best and for slow quality
  Found predicted{};    // ranked by the cost model
  Found chance{};       // expected value of a random ranking
};

// Errors: those of the decoder and of the cost model.
Result<RankedTask> rank_records(engine::LanguageDecoder& decoder, const RecordedTask& task,
                                const target::Device& device, const RecordRanking& options,
                                engine::DecodingReport& report);

// Returns the mean of seconds.front() / (least of k seconds drawn at random). `seconds` is
// ascending.
double mean_of_chance(const std::vector<double>& seconds, size_t k);

}  // namespace tensorsmith::lab
