// Measures how well scores rank the programs of a workload, as means over random sets of programs.
#pragma once

#include <span>
#include <vector>

#include "learn/profile/profiled_programs.h"

namespace tensorsmith::learn {

// Metrics of a ranking of programs of one workload.
struct RankScores {
  double top_half = 0;   // share of the faster half that is in the half with the best scores
  double misranked = 0;  // share of pairs that are ranked wrongly
  double top1_gap = 0;   // seconds of the program with the best score / seconds of the fastest program - 1
  double rmse = 0;       // of log relative speeds, after the mean difference of the set is removed
};
// labels, scores: one per program; higher is faster.
RankScores rank_scores(std::span<const double> labels, std::span<const double> scores);
void add(RankScores& sum, const RankScores& x, double weight);

struct RankSetOptions {
  int64_t set_size = 64;
  int draws = 20;  // number of sets
  uint64_t seed = 0;
};

// Random sets of a task's programs. They depend only on the seed and the task's key, so they are
// the same for all models that are compared.
class RankSets {
 public:
  // The task must have at least set_size programs.
  RankSets(const ProfiledPrograms& data, size_t task, const RankSetOptions& options);
  const std::vector<size_t>& programs() const { return programs_; }
  // scores: in the order of programs().
  RankScores mean(std::span<const double> scores) const;

 private:
  std::vector<size_t> programs_;
  std::vector<double> labels_;
  std::vector<std::vector<size_t>> draws_;
};

// Returns the tasks with at least `programs` programs.
std::vector<size_t> tasks_with(const ProfiledPrograms& data, int64_t programs);

struct TaskRanking {
  size_t task = 0;
  int64_t programs = 0;
  RankScores scores;
};
// Ranks the programs of each task with at least set_size programs by the model's seconds.
// kInvalidArgument if there is no such task.
Result<std::vector<TaskRanking>> rank_tasks(const ProfiledPrograms& data, const CostModel& model,
                                            const RankSetOptions& options);

}  // namespace tensorsmith::learn
