// A language model and the records of Ansor: sentences of them, new records, recorded programs ranked.
#pragma once

#include <array>
#include <atomic>
#include <string>
#include <vector>

#include "engine/language_decoder.h"
#include "engine/recorded_tasks.h"
#include "learn/cost_model.h"
#include "learn/lm/corpus.h"

namespace tensorsmith::engine {

// Adds measured programs, at most `measured` of each task and device (places_to_learn). How good they are is within the
// task and device. kCancelled when `cancel` is set.
Status add_recorded(learn::lm::Corpus& corpus, const RecordedTasks& recorded, size_t measured, int threads,
                    const std::atomic<bool>& cancel);

struct RecordWriting {
  size_t count = 10;  // different programs of each task
  SamplingOptions sampling;
  learn::lm::PromptOptions prompting;  // the model's
  uint64_t seed = 0;
};

struct WrittenRecords {
  std::vector<std::string> lines;  // of what TVM reads, that replay
  size_t programs = 0;             // that were written, also those that do not replay
};

// New programs of the task: none that its records have a time of. Sketches get the more of them the faster their fastest
// recorded program is, by TLM's rule (LanguageWriter's). Fewer where the sketches have no more.
Result<WrittenRecords> write_records(LanguageDecoder& decoder, const RecordedTask& task,
                                     const target::Device& device, const record::AnsorWorkloads& workloads,
                                     const RecordWriting& options, DecodingReport& report);

struct RecordRanking {
  size_t programs = 256;               // of a task, at most: spread over their times, the fastest is one
  learn::lm::PromptOptions prompting;  // the model's
  const learn::CostModel* cost_model = nullptr;  // ranks them, too; null: none does
};

// The fastest of the first so many of a ranking is what is looked at.
inline constexpr std::array<size_t, 4> kRankedFirst = {1, 5, 10, 32};

// How well a task's fastest recorded programs are found: seconds of the fastest one over those of the fastest among the first
// kRankedFirst.
struct RankedTask {
  using Found = std::array<double, kRankedFirst.size()>;
  size_t programs = 0;  // that were ranked
  Found likeliest{};    // by the language model, asked for the best
  Found contrasted{};   // by how much likelier they are among the best than among the slow
  Found predicted{};    // by the cost model
  Found chance{};       // the mean over all choices
};

// Errors: those of the decoder and of the cost model.
Result<RankedTask> rank_records(LanguageDecoder& decoder, const RecordedTask& task,
                                const target::Device& device, const RecordRanking& options,
                                DecodingReport& report);

// The mean of seconds.front() over the least of k that are drawn of the seconds, which ascend.
double mean_of_chance(const std::vector<double>& seconds, size_t k);

}  // namespace tensorsmith::engine
