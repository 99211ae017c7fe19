// Iterative training of a language model: it writes schedules, they are measured, and it is trained
// again on the fastest of all measured programs (TLM's iterative optimization, OSDI 2024).
#pragma once

#include <atomic>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "base/clock.h"
#include "base/sinks.h"
#include "engine/fleet/fleet_measurer.h"
#include "engine/model/load_model.h"
#include "learn/lm/language_training.h"
#include "learn/search_model.h"
#include "record/database.h"
#include "search/tuner.h"
#include "target/target.h"

namespace tensorsmith::lab {

struct LanguageLoopOptions {
  std::string base;       // model file that each training starts from
  std::string directory;  // where the loop keeps the model of each round and its own state
  engine::Where where;    // its database gets the measurements; all of its programs are training data
  std::vector<std::string> more_databases;  // further databases of training data
  std::set<std::string> held_out;           // keys of tasks that are neither measured nor trained on
  int rounds = 4;
  int64_t trials = 1000;  // measurements per round; the scheduler divides them among tasks
  int measured = 96;      // most programs per task and device in the training data
  learn::lm::LanguageTraining training;
  learn::SearchModelOptions cost_model;  // ranks the written schedules
  uint64_t seed = 0;
  int threads = 1, training_threads = 1;
};

// A finished round.
struct LanguageLoopRound {
  int round = 0;  // from 1
  int64_t trials = 0;
  double seconds = 0;  // time spent on measuring
  // gain: speed-up of the fastest known program over the untuned one, geometric mean over the
  // tasks. improved: tasks whose fastest program became faster in this round.
  double gain = 1;
  size_t improved = 0, tasks = 0;
};

struct LanguageLoopEvents {
  std::function<void(const LanguageLoopRound&)> round;
  std::function<void(int round, const search::TuneProgress&)> measured;
  // Called on the training thread.
  std::function<void(int round, const learn::TrainingProgress&)> trained;
};

// While a round measures, the model is trained on the measurements of the rounds before it, so
// round n writes with the model of round n - 2. A loop that was killed resumes after its last
// measurement, even within a round. Returns the last model. kCancelled when `cancel` is set;
// kUnsupported for a device that is not local.
Result<learn::lm::LanguageModel> language_loop(const std::vector<engine::ModelSource>& models,
                                               const target::Device& device,
                                               const LanguageLoopOptions& options, const Clock& clock,
                                               LogSink& log, const LanguageLoopEvents& events,
                                               const std::atomic<bool>& cancel);

}  // namespace tensorsmith::lab
