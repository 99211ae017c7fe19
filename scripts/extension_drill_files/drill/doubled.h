// A workload that the drill's tests schedule, and what its programs compute.
#pragma once

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "lower/interpreter.h"
#include "lower/lower.h"
#include "sched/step.h"

namespace tensorsmith::drill {

// y[i, j] = x[i, j] + x[i, j], 6x10 elements.
inline ir::Workload doubled() {
  const auto x = ir::placeholder("x", ir::DType::kF32, {6, 10});
  const ir::Axis i{ir::Var("i"), 6}, j{ir::Var("j"), 10};
  const ir::Expr element = ir::load(x->output(), {i.var, j.var});
  const auto y = ir::compute("y", {i, j}, {}, ir::Combiner::kNone, {element + element});
  ir::Workload workload;
  workload.operations = {x, y};
  workload.outputs = {y->output()};
  return workload;
}

// Fails unless the scheduled program doubles its input.
inline void expect_doubles(const sched::Schedule& schedule, const std::string& what) {
  lower::Tensor x = lower::Tensor::zeros(ir::DType::kF32, {6, 10});
  for (int64_t e = 0; e < x.num_elements(); ++e) x.set(e, ir::scalar_float(ir::DType::kF32, 0.5 * e - 7));
  const auto lowered = lower::lower(schedule);
  ASSERT_TRUE(lowered.ok()) << what << lowered.error().message();
  const auto y = lower::run(lowered->program, std::vector{x});
  ASSERT_TRUE(y.ok()) << what << y.error().message();
  for (int64_t e = 0; e < x.num_elements(); ++e) EXPECT_EQ((*y)[0].at(e).f, 2 * x.at(e).f) << what;
}

}  // namespace tensorsmith::drill
