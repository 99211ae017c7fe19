// Ranks source models by how well their schedules suit another model.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "engine/tune/warm_start.h"
#include "graph/tasks.h"

namespace tensorsmith::engine {

// A model whose tasks may have been tuned before.
struct SourceModel {
  std::string name;
  std::set<std::string> tasks;  // by key
};

// Criterion for ranking source models.
enum class SourceRanking : uint8_t {
  kGain,       // by `gain`
  kHeuristic,  // by `heuristic`
};

struct SourceScore {
  std::string name;
  size_t tasks = 0;    // tasks of the source that have programs and are of a kernel class of the target
  double covered = 0;  // share of the target's untuned time in classes for which the source has programs
  // Heuristic of transfer-tuning (PACT 2022): sum over classes c of P_c * sqrt(W_c); P_c = the
  // class's share of the target's untuned time, W_c = the number of the source's programs of the
  // class.
  double heuristic = 0;
  // Expected speed-up over untuned: 1 / sum over tasks of share / s, where s is the largest s'^(1 /
  // (1 + d)) over the source's tasks of the same class, s' is the speed-up of the task's fastest
  // program over its untuned one, at least 1, and d = shape_distance. So a speed-up counts less the
  // further the shapes are apart.
  double gain = 1;
};

// Returns the scores of the sources, best first by `ranking`. `seconds` are the untuned times of
// the target's tasks, each over all its calls.
std::vector<SourceScore> rank_sources(const std::vector<graph::Task>& target,
                                      const std::vector<double>& seconds,
                                      const std::vector<SourceModel>& sources, const WarmStart& known,
                                      SourceRanking ranking);

}  // namespace tensorsmith::engine
