// Chooses the tasks to measure on a new device if only few can be measured. Uses features of the
// programs but no times.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "learn/dataset/store.h"

namespace tensorsmith::learn {

enum class TaskChoice : uint8_t {
  kRandom,
  // As in CDMPP (EuroSys 2024): groups the programs' features into k clusters. For each cluster, in
  // descending order of size, picks the task among those left whose programs are on average nearest
  // to the centroid.
  kKmeans,
  // k-medoids: picks the tasks that are nearest to all others. The distance of a task from another
  // is the mean distance of its programs to the other's nearest program. Greedy, so its gain is at
  // least 1 - 1/e of the best (Nemhauser, Wolsey, Fisher, 1978); tasks are weighted by their number
  // of programs. k-means picks typical members of large clusters; this method avoids that tasks far
  // from everything measured must be predicted.
  kMedoids,
};
std::string_view to_string(TaskChoice choice);  // "random", "kmeans", "medoids"
Result<TaskChoice> parse_task_choice(const std::string& name);

// Returns k of the device's workloads in ascending order, or all if there are no more than k.
// Programs without features are ignored.
std::vector<uint32_t> choose_tasks(const Store& store, uint32_t device, int k, TaskChoice choice,
                                   uint64_t seed);

// kMedoidProgramsPerTask: most randomly drawn programs that represent a task; with many tasks
// fewer, since comparing all pairs of programs would take minutes. kMostTaskWeight: upper limit on
// the number of programs that a task is weighted by, so that large tasks do not attract the whole
// choice.
inline constexpr size_t kMedoidProgramsPerTask = 40, kMostTaskWeight = 200;

// A task that could be measured next, represented by some of its programs.
struct CandidateTask {
  std::vector<feature::LeafFeatures> programs;  // empty: the task is never chosen
  double weight = 1;      // importance, e.g. number of programs to predict, uncertainty of the prediction
  bool measured = false;  // if true, it is not chosen, and represents the tasks near it
};
// Returns the indices of the k tasks to measure next, the most valuable first, or all if there are
// no more. Greedy k-medoids (TaskChoice::kMedoids) in addition to the tasks that are already
// measured.
std::vector<size_t> next_tasks(std::span<const CandidateTask> tasks, size_t k);

struct Clusters {
  size_t width = 0;
  std::vector<double> centroids;  // clusters x width
  std::vector<size_t> of;         // cluster of each point
  std::vector<size_t> sizes;
};
// Lloyd's k-means with k-means++ initialization (Arthur and Vassilvitskii, 2007). points: row-major
// with width `width`, at least k of them.
Clusters cluster(std::span<const float> points, size_t width, size_t k, uint64_t seed);

}  // namespace tensorsmith::learn
