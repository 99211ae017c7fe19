// Input: a module ('{' first) or a line of a database of MetaSchedule. Neither reading nor replaying
// crashes, and the steps of a replay make its schedule.
#include <cstdint>
#include <cstdlib>

#include "record/metaschedule/replay.h"
#include "support/print_schedule.h"

namespace {

using namespace tensorsmith;  // NOLINT(google-build-using-namespace)

// A product and what is added to it.
record::TirModule product() {
  const auto a = ir::placeholder("a", ir::DType::kF32, {16, 8});
  const auto b = ir::placeholder("b", ir::DType::kF32, {8, 12});
  const ir::Axis i{ir::Var("i"), 16}, j{ir::Var("j"), 12}, k{ir::Var("k"), 8};
  const auto c = ir::compute("c", {i, j}, {k}, ir::Combiner::kSum,
                             {ir::load(a->output(), {i.var, k.var}) * ir::load(b->output(), {k.var, j.var})});
  const ir::Axis x{ir::Var("x"), 16}, y{ir::Var("y"), 12};
  const auto d = ir::compute("d", {x, y}, {}, ir::Combiner::kNone,
                             {ir::load(c->output(), {x.var, y.var}) + ir::float_imm(ir::DType::kF32, 1)});
  return {{{a, b, c, d}, {d->output()}}, {{"c", c->output()}, {"d", d->output()}}};
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (text.starts_with('{')) {
    (void)record::read_tir_module(text);
    return 0;
  }
  const auto record = record::parse_metaschedule_record(text);
  if (!record.ok()) return 0;
  static const record::TirModule module = product();
  static const sched::Schedule fresh = sched::Schedule::create(module.workload);
  const auto program = record::replay(fresh, module.blocks, *record);
  if (!program.ok()) return 0;
  const auto again = sched::replay(module.workload, program->trace);
  if (!again.ok() || test::print_schedule(*again) != test::print_schedule(program->schedule)) std::abort();
  return 0;
}
