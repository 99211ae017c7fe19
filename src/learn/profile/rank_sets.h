// How well scores rank the programs of a workload: means over random sets of them.
#pragma once

#include <span>
#include <vector>

#include "learn/profile/profiled_programs.h"

namespace tensorsmith::learn {

// Of sets of programs of one workload.
struct RankScores {
  double top_half = 0;   // share of the faster half that is among the half with the best scores
  double misranked = 0;  // share of pairs in the wrong order
  double top1_gap = 0;   // seconds of the program with the best score over those of the fastest, minus 1
  double rmse = 0;       // of the logarithms of relative speeds, each set's mean taken off
};
// labels, scores: by program, higher is faster.
RankScores rank_scores(std::span<const double> labels, std::span<const double> scores);
void add(RankScores& sum, const RankScores& x, double weight);

struct RankSetOptions {
  int64_t set_size = 64;
  int draws = 20;  // of sets
  uint64_t seed = 0;
};

// Sets of a task's programs, drawn by the seed and the task's key: the same whatever made the scores.
class RankSets {
 public:
  // The task has at least set_size programs.
  RankSets(const ProfiledPrograms& data, size_t task, const RankSetOptions& options);
  const std::vector<size_t>& programs() const { return programs_; }
  // scores: by programs()
  RankScores mean(std::span<const double> scores) const;

 private:
  std::vector<size_t> programs_;
  std::vector<double> labels_;
  std::vector<std::vector<size_t>> draws_;
};

// Tasks with as many programs.
std::vector<size_t> tasks_with(const ProfiledPrograms& data, int64_t programs);

struct TaskRanking {
  size_t task = 0;
  int64_t programs = 0;
  RankScores scores;
};
// Of each task with at least set_size programs, by the model's seconds. kInvalidArgument where there is none.
Result<std::vector<TaskRanking>> rank_tasks(const ProfiledPrograms& data, const CostModel& model,
                                            const RankSetOptions& options);

}  // namespace tensorsmith::learn
