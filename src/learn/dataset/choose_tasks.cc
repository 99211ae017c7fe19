#include "learn/dataset/choose_tasks.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>

#include "base/rng.h"

namespace tensorsmith::learn {

namespace {

constexpr int kRounds = 100;
// Most programs of a task that are clustered: enough to locate the task's programs, while large
// tasks do not attract all clusters.
constexpr size_t kProgramsPerTask = 200;
// Most programs of all tasks together that the k-medoids method compares.
constexpr size_t kMedoidPrograms = 10'000;

size_t medoid_programs(size_t tasks) {
  return std::clamp(kMedoidPrograms / std::max(tasks, size_t{1}), size_t{1}, kMedoidProgramsPerTask);
}

double squared_distance(const float* point, const double* centroid, size_t width) {
  double sum = 0;
  for (size_t c = 0; c < width; ++c) {
    const double d = point[c] - centroid[c];
    sum += d * d;
  }
  return sum;
}

// Represents each program by the mean of its leaf vectors and their number. Each column is
// standardized to mean 0 and standard deviation 1.
class ProgramVectors {
 public:
  static constexpr size_t kFeatures = feature::kPerStoreWidth;
  static constexpr size_t kWidth = kFeatures + 1;

  void add(const feature::LeafFeatures& leaves) {
    values_.resize(values_.size() + kWidth, 0.0F);
    float* row = values_.data() + values_.size() - kWidth;
    const float count = leaves.vectors.rows;
    for (int l = 0; l < leaves.vectors.rows; ++l) {
      const auto vector = leaves.vectors.row(l);
      for (size_t c = 0; c < kFeatures; ++c) row[c] += vector[c] / count;
    }
    row[kFeatures] = count;
  }
  // Returns the vectors, row-major with width kWidth.
  std::vector<float> standardized() && {
    const size_t rows = values_.size() / kWidth;
    const double n = std::max<size_t>(rows, 1);
    for (size_t c = 0; c < kWidth; ++c) {
      double sum = 0, squares = 0;
      for (size_t i = 0; i < rows; ++i) sum += values_[i * kWidth + c];
      const double mean = sum / n;
      for (size_t i = 0; i < rows; ++i) {
        const double d = values_[i * kWidth + c] - mean;
        squares += d * d;
      }
      const double scale = squares > 1e-9 * n ? 1 / std::sqrt(squares / n) : 0;
      for (size_t i = 0; i < rows; ++i)
        values_[i * kWidth + c] = static_cast<float>((values_[i * kWidth + c] - mean) * scale);
    }
    return std::move(values_);
  }

 private:
  std::vector<float> values_;
};

// Randomly drawn programs of each task. begin: index of each task's first record; one more at the
// end.
struct Drawn {
  std::vector<int64_t> records;
  std::vector<size_t> begin = {0};
};

Drawn draw(const std::map<uint32_t, std::vector<int64_t>>& tasks, size_t each, Rng& rng) {
  Drawn out;
  for (const auto& [workload, all] : tasks) {
    std::vector<int64_t> some = all;
    rng.shuffle(some);
    some.resize(std::min(some.size(), each));
    out.records.insert(out.records.end(), some.begin(), some.end());
    out.begin.push_back(out.records.size());
  }
  return out;
}

std::vector<uint32_t> by_clusters(const Store& store, const std::map<uint32_t, std::vector<int64_t>>& tasks,
                                  size_t k, Rng& rng) {
  const auto [records, begin] = draw(tasks, kProgramsPerTask, rng);
  constexpr size_t width = ProgramVectors::kWidth;
  ProgramVectors vectors;
  feature::LeafFeatures leaves;
  for (const int64_t record : records) {
    store.leaves(record, leaves);
    vectors.add(leaves);
  }
  const std::vector<float> points = std::move(vectors).standardized();
  const Clusters clusters = cluster(points, width, k, rng.next());
  std::vector<size_t> order(k);
  std::iota(order.begin(), order.end(), size_t{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return clusters.sizes[a] > clusters.sizes[b]; });
  std::vector<uint32_t> chosen;
  for (const size_t c : order) {
    double nearest = std::numeric_limits<double>::infinity();
    uint32_t best = 0;
    size_t task = 0;
    for (const auto& [workload, all] : tasks) {
      double sum = 0;
      for (size_t i = begin[task]; i < begin[task + 1]; ++i)
        sum += std::sqrt(
            squared_distance(points.data() + i * width, clusters.centroids.data() + c * width, width));
      const double mean = sum / (begin[task + 1] - begin[task]);
      ++task;
      if (mean < nearest && std::find(chosen.begin(), chosen.end(), workload) == chosen.end()) {
        nearest = mean;
        best = workload;
      }
    }
    chosen.push_back(best);
  }
  return chosen;
}

// Returns a tasks x tasks matrix: entry (a, b) is the mean distance of the programs of task a to
// their nearest program of task b. begin: index of each task's first point; one more at the end.
std::vector<double> task_distances(std::span<const float> points, size_t width,
                                   std::span<const size_t> begin) {
  const size_t tasks = begin.size() - 1;
  std::vector<double> out(tasks * tasks, 0);
  for (size_t a = 0; a < tasks; ++a) {
    for (size_t b = 0; b < tasks; ++b) {
      if (a == b) continue;
      double sum = 0;
      for (size_t i = begin[a]; i < begin[a + 1]; ++i) {
        float nearest = std::numeric_limits<float>::infinity();
        for (size_t j = begin[b]; j < begin[b + 1]; ++j) {
          float square = 0;
          const float *x = points.data() + i * width, *y = points.data() + j * width;
          for (size_t c = 0; c < width; ++c) square += (x[c] - y[c]) * (x[c] - y[c]);
          nearest = std::min(nearest, square);
        }
        sum += std::sqrt(double{nearest});
      }
      out[a * tasks + b] = sum / (begin[a + 1] - begin[a]);
    }
  }
  return out;
}

std::vector<uint32_t> by_medoids(const Store& store, const std::map<uint32_t, std::vector<int64_t>>& tasks,
                                 size_t k, Rng& rng) {
  const auto [records, begin] = draw(tasks, medoid_programs(tasks.size()), rng);
  std::vector<uint32_t> workloads;
  std::vector<CandidateTask> candidates;
  for (const auto& [workload, all] : tasks) {
    workloads.push_back(workload);
    CandidateTask& candidate = candidates.emplace_back();
    candidate.weight = std::min(all.size(), kMostTaskWeight);
    for (size_t i = begin[candidates.size() - 1]; i < begin[candidates.size()]; ++i)
      store.leaves(records[i], candidate.programs.emplace_back());
  }
  std::vector<uint32_t> chosen;
  for (const size_t place : next_tasks(candidates, k)) chosen.push_back(workloads[place]);
  return chosen;
}

constexpr std::pair<TaskChoice, std::string_view> kChoices[] = {
    {TaskChoice::kRandom, "random"}, {TaskChoice::kKmeans, "kmeans"}, {TaskChoice::kMedoids, "medoids"}};

}  // namespace

std::string_view to_string(TaskChoice choice) {
  for (const auto& [known, name] : kChoices) {
    if (known == choice) return name;
  }
  return "";
}

Result<TaskChoice> parse_task_choice(const std::string& name) {
  for (const auto& [choice, known] : kChoices) {
    if (name == known) return choice;
  }
  return Error{ErrorCode::kInvalidArgument, "",
               "'" + name + "' is not a way to choose tasks; use medoids, kmeans or random"};
}

std::vector<size_t> next_tasks(std::span<const CandidateTask> tasks, size_t k) {
  const size_t n = tasks.size();
  ProgramVectors vectors;
  std::vector<size_t> begin = {0};
  for (const CandidateTask& task : tasks) {
    const size_t count = std::min(task.programs.size(), medoid_programs(n));
    for (size_t i = 0; i < count; ++i) vectors.add(task.programs[i]);
    begin.push_back(begin.back() + count);
  }
  const std::vector<float> points = std::move(vectors).standardized();
  const std::vector<double> distances = task_distances(points, ProgramVectors::kWidth, begin);
  std::vector<double> nearest(n, std::numeric_limits<double>::infinity());
  std::vector<bool> taken(n, false);
  const auto take = [&](size_t b) {
    taken[b] = true;
    for (size_t a = 0; a < n; ++a) nearest[a] = std::min(nearest[a], distances[a * n + b]);
  };
  for (size_t b = 0; b < n; ++b) {
    if (tasks[b].programs.empty()) {
      taken[b] = true;  // without programs its location is unknown
    } else if (tasks[b].measured) {
      take(b);
    }
  }
  std::vector<size_t> chosen;
  while (chosen.size() < k) {
    double least = std::numeric_limits<double>::infinity();
    size_t best = n;
    for (size_t b = 0; b < n; ++b) {
      if (taken[b]) continue;
      double sum = 0;
      for (size_t a = 0; a < n; ++a) {
        if (!tasks[a].programs.empty()) sum += tasks[a].weight * std::min(nearest[a], distances[a * n + b]);
      }
      if (best == n || sum < least) {
        least = sum;
        best = b;
      }
    }
    if (best == n) break;
    chosen.push_back(best);
    take(best);
  }
  return chosen;
}

Clusters cluster(std::span<const float> points, size_t width, size_t k, uint64_t seed) {
  const size_t n = points.size() / width;
  TS_CHECK(k > 0 && k <= n, "cluster: more clusters than points");
  Rng rng(seed);
  Clusters out;
  out.width = width;
  const auto add_centroid = [&](size_t point) {
    for (size_t c = 0; c < width; ++c) out.centroids.push_back(points[point * width + c]);
  };
  add_centroid(rng.below(n));
  std::vector<double> nearest(n, std::numeric_limits<double>::infinity());
  for (size_t j = 1; j < k; ++j) {
    double total = 0;
    for (size_t i = 0; i < n; ++i) {
      nearest[i] = std::min(nearest[i], squared_distance(points.data() + i * width,
                                                         out.centroids.data() + (j - 1) * width, width));
      total += nearest[i];
    }
    // With fewer distinct points than clusters, take any point.
    add_centroid(total > 0 ? rng.weighted(nearest) : rng.below(n));
  }
  out.of.assign(n, 0);
  for (int round = 0; round < kRounds; ++round) {
    bool moved = round == 0;
    for (size_t i = 0; i < n; ++i) {
      size_t best = 0;
      double distance = std::numeric_limits<double>::infinity();
      for (size_t j = 0; j < k; ++j) {
        const double d = squared_distance(points.data() + i * width, out.centroids.data() + j * width, width);
        if (d < distance) {
          distance = d;
          best = j;
        }
      }
      moved = moved || best != out.of[i];
      out.of[i] = best;
    }
    out.sizes.assign(k, 0);
    std::vector<double> sums(k * width, 0);
    for (size_t i = 0; i < n; ++i) {
      ++out.sizes[out.of[i]];
      for (size_t c = 0; c < width; ++c) sums[out.of[i] * width + c] += points[i * width + c];
    }
    if (!moved) break;
    for (size_t j = 0; j < k; ++j) {
      if (out.sizes[j] == 0) continue;  // an empty cluster keeps its centroid
      for (size_t c = 0; c < width; ++c) out.centroids[j * width + c] = sums[j * width + c] / out.sizes[j];
    }
  }
  return out;
}

std::vector<uint32_t> choose_tasks(const Store& store, uint32_t device, int k, TaskChoice choice,
                                   uint64_t seed) {
  std::map<uint32_t, std::vector<int64_t>> tasks;
  for (int64_t i = 0; i < store.size(); ++i) {
    const Store::Entry entry = store.entry(i);
    if (entry.device == device && entry.rows > 0) tasks[entry.workload].push_back(i);
  }
  std::vector<uint32_t> all;
  for (const auto& [workload, records] : tasks) all.push_back(workload);
  const size_t wanted = std::min<size_t>(std::max(k, 0), all.size());
  Rng rng(seed);
  if (wanted < all.size()) {
    if (choice == TaskChoice::kRandom || wanted == 0) {
      rng.shuffle(all);
      all.resize(wanted);
    } else if (choice == TaskChoice::kKmeans) {
      all = by_clusters(store, tasks, wanted, rng);
    } else {
      all = by_medoids(store, tasks, wanted, rng);
    }
  }
  std::sort(all.begin(), all.end());
  return all;
}

}  // namespace tensorsmith::learn
