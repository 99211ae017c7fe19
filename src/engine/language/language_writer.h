// Generates schedules for a task with a language model.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "engine/language/language_decoder.h"
#include "engine/tune/warm_start.h"
#include "learn/cost_model.h"
#include "search/schedule_writer.h"

namespace tensorsmith::engine {

// Temperature of the softmax over sketches, as in TLM: exp(-(seconds / least seconds - 1) /
// kSketchTemperature).
inline constexpr double kSketchTemperature = 0.3;

struct WriterOptions {
  size_t count = 32;   // number of different candidates
  size_t written = 4;  // answers generated per candidate; those with the best scores are kept
  SamplingOptions sampling;
  uint64_t seed = 0;
  // True for candidates that must not be written because they were already measured.
  search::ScheduleWriter::Known known = [](const space::Candidate&) { return false; };
  // Ranks the written candidates together with the estimate; null: they are ranked by likelihood
  // alone.
  const learn::CostModel* cost_model = nullptr;
};

// A language model that runs on this machine. Thread-safe; calls are serialized.
class LanguageWriter {
 public:
  // The model runs on this machine, whatever device it writes schedules for.
  static Result<std::unique_ptr<LanguageWriter>> create(const learn::lm::LanguageModel& model, int threads);

  // Returns candidates, the best first; fewer if the space has no more. A sketch gets more answers
  // the faster its best candidates are by the estimate. `known`: fast programs of other tasks,
  // which the model sees while it writes.
  Result<std::vector<space::Candidate>> write(const search::PreparedTask& task, const WarmStart& known,
                                              const WriterOptions& options);

  // Returns a writer for a search. `known` and this object must outlive it.
  std::shared_ptr<search::ScheduleWriter> of_task(std::shared_ptr<const search::PreparedTask> task,
                                                  const WarmStart& known);

  DecodingReport report() const;

 private:
  class TaskSketches;
  class TaskWriter;

  LanguageWriter(std::unique_ptr<LanguageDecoder> decoder, const learn::lm::PromptOptions& prompting)
      : decoder_(std::move(decoder)), prompting_(prompting) {}

  mutable std::mutex mutex_;  // guards decoder_ and report_
  std::unique_ptr<LanguageDecoder> decoder_;
  learn::lm::PromptOptions prompting_;
  DecodingReport report_;
};

}  // namespace tensorsmith::engine
