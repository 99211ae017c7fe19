// Which tasks to measure on a new device, when only few can be: from the programs alone, no times.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "learn/dataset/store.h"

namespace tensorsmith::learn {

enum class TaskChoice : uint8_t {
  kRandom,
  // CDMPP (EuroSys 2024): k clusters of the programs' features; the clusters are visited by descending size,
  // and from each the task is picked that is not picked yet and whose programs are nearest to the centroid on
  // average.
  kKmeans,
  // The tasks that are nearest to all others (k-medoids): a task is as far from another as its programs are
  // on average from the other's nearest program. Greedy, which is within 1 - 1/e of the best gain (Nemhauser,
  // Wolsey, Fisher, 1978), and tasks weigh by their number of programs. k-means picks what is typical of
  // large clusters; this leaves nothing to be predicted that is far from all that is measured.
  kMedoids,
};
std::string_view to_string(TaskChoice choice);  // "random", "kmeans", "medoids"
Result<TaskChoice> parse_task_choice(const std::string& name);

// k of the device's workloads, ascending; all where it has no more. Programs that have no features do not
// count.
std::vector<uint32_t> choose_tasks(const Store& store, uint32_t device, int k, TaskChoice choice,
                                   uint64_t seed);

// Programs that stand for a task, drawn at random; fewer where there are so many tasks that comparing every program with every other
// would take minutes. And the most that a task counts for by its number of programs, so that large tasks do not draw all of the choice.
inline constexpr size_t kMedoidProgramsPerTask = 40, kMostTaskWeight = 200;

// A task that could be measured next, by some of its programs.
struct CandidateTask {
  std::vector<feature::LeafFeatures> programs;  // none: it is not chosen
  double weight = 1;      // what it counts: how many programs are to be predicted, how uncertain that is
  bool measured = false;  // already: it is not chosen, and stands for what is near it
};
// Places of the k tasks to measure next, the most valuable first; all where there are no more. Greedy k-medoids
// (TaskChoice::kMedoids) around the tasks that are measured already.
std::vector<size_t> next_tasks(std::span<const CandidateTask> tasks, size_t k);

struct Clusters {
  size_t width = 0;
  std::vector<double> centroids;  // clusters x width
  std::vector<size_t> of;         // by point
  std::vector<size_t> sizes;
};
// Lloyd's k-means from k-means++ seeds (Arthur and Vassilvitskii, 2007). points: row-major, width wide, at
// least k of them.
Clusters cluster(std::span<const float> points, size_t width, size_t k, uint64_t seed);

}  // namespace tensorsmith::learn
