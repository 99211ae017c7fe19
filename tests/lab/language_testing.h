// Parts of the tests of language models that write schedules.
#pragma once

#include <string>

#include "graph/tasks.h"
#include "ir/structural.h"
#include "learn/lm/vocabulary.h"
#include "support/standard_workloads.h"

namespace tensorsmith::lab {

inline graph::Task matmul_task(int64_t m, int64_t n, int64_t k) {
  graph::Task task;
  task.workload = test::standard::matmul(m, n, k);
  task.key = ir::structural_key(task.workload);
  task.name = "matmul_" + std::to_string(m);
  task.flops = ir::flop_count(task.workload);
  task.calls = 1;
  return task;
}

// Returns the position `i` alone.
inline learn::lm::Positions one_of(const learn::lm::Positions& from, size_t i) {
  learn::lm::Positions one;
  one.features.assign(from.features.begin() + from.begin[i], from.features.begin() + from.begin[i + 1]);
  one.end_position();
  return one;
}

}  // namespace tensorsmith::lab
