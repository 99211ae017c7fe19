// Schedules that a language model writes for a task.
#pragma once

#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "engine/language_decoder.h"
#include "engine/warm_start.h"
#include "graph/tasks.h"
#include "learn/cost_model.h"
#include "search/schedule_writer.h"

namespace tensorsmith::engine {

// Of the softmax over sketches, as TLM draws them: exp(-(seconds / least seconds - 1) / kSketchTemperature).
inline constexpr double kSketchTemperature = 0.3;

struct WriterOptions {
  size_t count = 32;   // different candidates
  size_t written = 4;  // for each of them, of which the best by the scores are taken
  SamplingOptions sampling;
  uint64_t seed = 0;
  // What is not written, as it was measured.
  search::ScheduleWriter::Known known = [](const space::Candidate&) { return false; };
  // Ranks what was written, together with the estimate; null: the likelihood alone does.
  const learn::CostModel* cost_model = nullptr;
};

// A model on the machine at hand. Thread-safe: one answers at a time.
class LanguageWriter {
 public:
  // The model runs on this machine, whatever device it writes for.
  static Result<std::unique_ptr<LanguageWriter>> create(const learn::lm::LanguageModel& model, int threads);

  // The best first; fewer where the space has no more. Sketches get the more answers the faster the estimate's favourites
  // of them are. known: fast programs of other tasks, which it sees.
  Result<std::vector<space::Candidate>> write(const graph::Task& task, const space::DesignSpace& space,
                                              const target::Device& device, const WarmStart& known,
                                              const WriterOptions& options);

  // For a search. All arguments outlive it, as does this object; the design space is built when it is first asked.
  std::shared_ptr<search::ScheduleWriter> of_task(const graph::Task& task, const target::Device& device,
                                                  const space::DesignSpace::Options& options,
                                                  const WarmStart& known);

  DecodingReport report() const;

 private:
  class TaskSketches;
  class TaskWriter;

  LanguageWriter(std::unique_ptr<LanguageDecoder> decoder, const learn::lm::PromptOptions& prompting)
      : decoder_(std::move(decoder)), prompting_(prompting) {}

  mutable std::mutex mutex_;  // of the decoder and the report
  std::unique_ptr<LanguageDecoder> decoder_;
  learn::lm::PromptOptions prompting_;
  DecodingReport report_;
};

}  // namespace tensorsmith::engine
