// A language model that learns from what it writes: it writes schedules, they are measured, and it is trained again on the
// fastest of all that is measured (TLM's iterative optimization, OSDI 2024).
#pragma once

#include <atomic>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/sinks.h"
#include "engine/load_model.h"
#include "learn/lm/language_training.h"
#include "learn/search_model.h"
#include "record/database.h"
#include "search/tuner.h"
#include "target/target.h"

namespace tensorsmith::engine {

struct LanguageLoopOptions {
  std::string base;       // the model that each training begins from, a file
  std::string directory;  // of what the loop keeps: the model of each round, and where it is
  std::string database;   // a file; what is measured goes there, and all of it is learned from
  std::vector<std::string> more_databases;  // that are learned from, too
  std::set<std::string> held_out;           // keys of tasks that are neither measured nor learned from
  int rounds = 4;
  int64_t trials = 1000;  // measurements of a round, shared out to tasks by the scheduler
  int measured = 96;      // programs of each task and device that are learned from, at most
  learn::lm::LanguageTraining training;
  learn::SearchModelOptions cost_model;  // ranks what is written
  uint64_t seed = 0;
  int threads = 1, training_threads = 1;
  std::vector<std::string> worker;  // the command line of measure's worker processes
  bool fleet = false;  // workers of the database measure (engine/fleet_measurer.h), not this machine
};

// A round that is over.
struct LanguageLoopRound {
  int round = 0;  // from 1
  int64_t trials = 0;
  double seconds = 0;  // of measuring
  // Over the tasks: how much faster than the untuned program the fastest known one is, geometric mean; and how many got a
  // faster one in this round.
  double gain = 1;
  size_t improved = 0, tasks = 0;
};

struct LanguageLoopEvents {
  std::function<void(const LanguageLoopRound&)> round;
  std::function<void(int round, const search::TuneProgress&)> measured;
  std::function<void(int round, const learn::TrainingProgress&)> trained;  // on a thread of its own
};

// While a round measures, the model is trained on what the rounds before it measured: what round n writes comes from the
// model of round n - 2. A loop that was killed goes on where it was, in a round after the last measurement. Returns the last
// model. kCancelled when `cancel` is set; kUnsupported for a device that is not local.
Result<learn::lm::LanguageModel> language_loop(const std::vector<ModelSource>& models,
                                               const target::Device& device,
                                               const LanguageLoopOptions& options, const Clock& clock,
                                               LogSink& log, const LanguageLoopEvents& events,
                                               const std::atomic<bool>& cancel);

}  // namespace tensorsmith::engine
