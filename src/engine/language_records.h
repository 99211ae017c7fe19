// A language model and the records of Ansor: sentences of them, new records, recorded programs ranked.
#pragma once

#include <atomic>
#include <string>
#include <vector>

#include "engine/language_decoder.h"
#include "engine/recorded_tasks.h"
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

// New programs of the task, not measured. Sketches get the more of them the faster their fastest recorded program is, by
// TLM's rule (LanguageWriter's). Fewer where the sketches have no more.
Result<WrittenRecords> write_records(LanguageDecoder& decoder, const RecordedTask& task,
                                     const target::Device& device, const record::AnsorWorkloads& workloads,
                                     const RecordWriting& options, DecodingReport& report);

// How well the likelihood finds the fastest of a task's recorded programs.
struct RankedTask {
  size_t programs = 0;  // that were ranked
  // Seconds of the fastest over those of the fastest among the 1 and the 5 likeliest; and the mean of that for ones chosen by
  // chance.
  double top_1 = 0, top_5 = 0, chance_1 = 0, chance_5 = 0;
};

// most: programs that are ranked, at most, spread over their times; the fastest is one.
Result<RankedTask> rank_records(LanguageDecoder& decoder, const RecordedTask& task,
                                const target::Device& device, const learn::lm::PromptOptions& prompting,
                                size_t most, DecodingReport& report);

// The mean of seconds.front() over the least of k that are drawn of the seconds, which ascend.
double mean_of_chance(const std::vector<double>& seconds, size_t k);

}  // namespace tensorsmith::engine
