// Input: text. parse_trace never crashes, and an accepted trace prints and parses to the same trace.
// Replaying it fails or gives a schedule whose bounds can be inferred.
#include <cstdint>
#include <cstdlib>

#include "sched/step.h"

namespace {

using namespace tensorsmith;  // NOLINT(google-build-using-namespace)

// D[i, j] = max(sum_k A[i, k] * B[k, j], 0) with a constant B. The stages are A 0, B 1, C 2, D 3.
const sched::Schedule& workload() {
  static const sched::Schedule schedule = [] {
    const auto a = ir::placeholder("A", ir::DType::kF32, {12, 8});
    const auto b = ir::placeholder("B", ir::DType::kF32, {8, 16}, true);
    const ir::Axis i{ir::Var("i"), 12};
    const ir::Axis j{ir::Var("j"), 16};
    const ir::Axis k{ir::Var("k"), 8};
    const auto c =
        ir::compute("C", {i, j}, {k}, ir::Combiner::kSum,
                    {ir::load(a->output(), {i.var, k.var}) * ir::load(b->output(), {k.var, j.var})});
    const ir::Axis p{ir::Var("i"), 12};
    const ir::Axis q{ir::Var("j"), 16};
    const auto d =
        ir::compute("D", {p, q}, {}, ir::Combiner::kNone,
                    {ir::max(ir::load(c->output(), {p.var, q.var}), ir::float_imm(ir::DType::kF32, 0))});
    return sched::Schedule::create({{a, b, c, d}, {d->output()}});
  }();
  return schedule;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto trace = sched::parse_trace({reinterpret_cast<const char*>(data), size});
  if (!trace.ok()) return 0;
  const auto again = sched::parse_trace(sched::print(*trace));
  if (!again.ok() || !(*again == *trace)) std::abort();
  const auto schedule = sched::replay(workload(), *trace);
  if (schedule.ok() && !sched::infer_bounds(*schedule).ok()) std::abort();
  return 0;
}
