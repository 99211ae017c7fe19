#include "engine/tune/source_models.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <numeric>

#include "search/kernel_class.h"

namespace tensorsmith::engine {

std::vector<SourceScore> rank_sources(const std::vector<graph::Task>& target,
                                      const std::vector<double>& seconds,
                                      const std::vector<SourceModel>& sources, const WarmStart& known,
                                      SourceRanking ranking) {
  const double total = std::accumulate(seconds.begin(), seconds.end(), 0.0);
  std::vector<uint64_t> classes;
  std::map<uint64_t, double> share_of_class;
  for (size_t t = 0; t < target.size(); ++t) {
    classes.push_back(search::kernel_class(target[t].workload));
    share_of_class[classes[t]] += total > 0 ? seconds[t] / total : 0;
  }
  std::vector<SourceScore> scores;
  for (const SourceModel& source : sources) {
    SourceScore score;
    score.name = source.name;
    std::map<uint64_t, std::vector<std::string>> of_class;
    for (const auto& [kernel_class, share] : share_of_class) {
      double programs = 0;
      for (const std::string& key : known.tasks_of_class(kernel_class)) {
        if (source.tasks.count(key) == 0) continue;
        of_class[kernel_class].push_back(key);
        programs += known.programs_of(key);
      }
      score.tasks += of_class[kernel_class].size();
      score.covered += programs > 0 ? share : 0;
      score.heuristic += share * std::sqrt(programs);
    }
    double time = 0;
    for (size_t t = 0; t < target.size(); ++t) {
      double speedup = 1;
      for (const std::string& key : of_class[classes[t]]) {
        const double distance = search::shape_distance(target[t].workload, known.workload_of(key));
        speedup = std::max(speedup, std::pow(known.speedup_of(key).value_or(1), 1 / (1 + distance)));
      }
      time += total > 0 ? seconds[t] / total / speedup : 0;
    }
    score.gain = time > 0 ? 1 / time : 1;
    scores.push_back(std::move(score));
  }
  const auto value = [&](const SourceScore& s) {
    return ranking == SourceRanking::kGain ? s.gain : s.heuristic;
  };
  std::stable_sort(scores.begin(), scores.end(),
                   [&](const SourceScore& a, const SourceScore& b) { return value(a) > value(b); });
  return scores;
}

}  // namespace tensorsmith::engine
