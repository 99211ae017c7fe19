// Which model's schedules suit another model.
#pragma once

#include <set>
#include <string>
#include <vector>

#include "engine/warm_start.h"
#include "graph/tasks.h"

namespace tensorsmith::engine {

// A model whose tasks may have been tuned.
struct SourceModel {
  std::string name;
  std::set<std::string> tasks;  // by key
};

// How source models are ranked.
enum class SourceRanking : uint8_t {
  kGain,       // by `gain`
  kHeuristic,  // by `heuristic`
};

struct SourceScore {
  std::string name;
  size_t tasks = 0;    // of the source, with programs in classes that the target has
  double covered = 0;  // share of the target's untuned time in classes that the source has programs of
  // Transfer-tuning (PACT 2022): sum over classes c of P_c * sqrt(W_c); P_c = the class's share of the
  // target's untuned time, W_c = the source's programs of the class.
  double heuristic = 0;
  // Expected speed-up over untuned: 1 / sum over tasks of share / s, where s is the largest s'^(1 / (1 + d)) of the
  // source's tasks of the class; s' = how much its fastest program gained there over its untuned one, at least 1, and
  // d = shape_distance. A gain counts the less the further its shapes are.
  double gain = 1;
};

// By source, best first by `ranking`. seconds: by task of the target, of all its calls, untuned.
std::vector<SourceScore> rank_sources(const std::vector<graph::Task>& target,
                                      const std::vector<double>& seconds,
                                      const std::vector<SourceModel>& sources, const WarmStart& known,
                                      SourceRanking ranking);

}  // namespace tensorsmith::engine
