#include "codegen/gpu/quad_store.h"

#include <vector>

#include "codegen/gpu/emitter.h"
#include "codegen/gpu/vector_access.h"
#include "ir/analysis.h"
#include "ir/simplify.h"
#include "sched/tensor_cores.h"

namespace tensorsmith::codegen {

using ir::Expr;

namespace {

constexpr int64_t kWarpLanes = 32;

// Returns whether the store has the form of a quad store in which the four steps of a quad are
// `apart` steps from each other.
bool fits(const ir::Store& store, const ir::Var& step, int64_t steps, const ir::Var& lane,
          const ir::Var& thread, ir::VarBounds bounds, int64_t apart) {
  const ir::Var group("group"), quad("quad");
  bounds[group.get()] = {0, steps / (sched::kMmaPlaces * apart) - 1};
  bounds[quad.get()] = {0, kWarpLanes / sched::kMmaPlaces - 1};
  const auto at = [&](int64_t rest, int64_t which, int64_t own) {
    std::vector<Expr> indices;
    for (const Expr& i : store.indices)
      indices.push_back(
          ir::substitute(i, {{step.get(), Expr(group) * (sched::kMmaPlaces * apart) + (which * apart + rest)},
                             {thread.get(), Expr(quad) * sched::kMmaPlaces + own},
                             {lane.get(), Expr(0)}}));
    return flat_index(store.buffer, indices, bounds);
  };
  for (int64_t rest = 0; rest < apart; ++rest) {
    const Expr first = at(rest, 0, 0);
    const auto begins = ir::as_int(ir::simplify(ir::floormod(first, Expr(sched::kMmaColumns)), bounds));
    if (!begins || *begins != 0) return false;
    for (int64_t which = 0; which < sched::kMmaPlaces; ++which) {
      for (int64_t own = 0; own < sched::kMmaPlaces; ++own) {
        const auto distance = ir::as_int(ir::simplify(at(rest, which, own) - first, bounds));
        if (!distance || *distance != sched::kMmaColumns * which + sched::kMmaPairs * own) return false;
      }
    }
  }
  return true;
}

}  // namespace

std::optional<int64_t> find_quad_store(const ir::Store& store, const ir::Var& step, int64_t steps,
                                       const ir::Var& lane, const ir::Var& thread,
                                       const ir::VarBounds& bounds) {
  if (sched::kMmaColumns * ir::bytes_of(store.buffer->dtype) != kMaxVectorBytes) return std::nullopt;
  for (const Expr& i : store.indices)
    if (!ir::loads_of(i).empty()) return std::nullopt;
  for (const int64_t apart : {1, 2, 4})
    if (steps % (sched::kMmaPlaces * apart) == 0 && fits(store, step, steps, lane, thread, bounds, apart))
      return apart;
  return std::nullopt;
}

bool GpuKernelEmitter::emit_quad_store(const ir::For& loop, int64_t steps) {
  const auto* vector = ir::as<ir::For>(loop.body);
  const ir::Var& thread = kernel_.index[kThreadX];
  if (!dialect_.tensor_cores || !lanes_agree_ || kernel_.extents[kThreadX] != kWarpLanes) return false;
  if (vector == nullptr || vector->kind != ir::ForKind::kVectorized) return false;
  const auto* store = ir::as<ir::Store>(vector->body);
  const auto pair = ir::as_int(vector->extent);
  if (store == nullptr || !pair || *pair != sched::kMmaPairs || !in_memory(store->buffer) || in_pipeline_)
    return false;
  if (kernel_.memory_of(store->buffer.get()) == GpuMemory::kShared) return false;
  ir::Store plain = *store;  // without the variables of unrolled loops
  for (Expr& i : plain.indices) i = ir::substitute(i, env_.constants);
  plain.value = ir::substitute(plain.value, env_.constants);
  const auto quads = find_quad_store(plain, loop.var, steps, vector->var, thread, env_.bounds);
  if (!quads) return false;
  meet_before(loop.body);
  meet_before(vector->body);
  const int64_t apart = *quads, groups = steps / (sched::kMmaPlaces * apart);
  const ir::Var group(loop.var.name() + "_quads");
  const std::string name = env_.names.make(group.name()), words = env_.names.make("w");
  env_.vars[group.get()] = name;
  env_.bounds[group.get()] = {0, groups - 1};
  out_->line(std::string(dialect_.unroll));
  out_->open("for (int " + name + " = 0; " + name + " < " + std::to_string(groups) + "; ++" + name + ")");
  for (int64_t rest = 0; rest < apart; ++rest) {
    const auto step = [&](const Expr& which) {
      return Expr(group) * (sched::kMmaPlaces * apart) + which * apart + rest;
    };
    out_->open("");
    out_->line("unsigned " + words + "[" + std::to_string(sched::kMmaPlaces) + "] " +
               std::string(dialect_.c.aligned) + ";");
    for (int64_t which = 0; which < sched::kMmaPlaces; ++which) {
      out_->open("");
      const ir::Buffer result = lane_array("r", store->buffer->dtype, sched::kMmaPairs);
      kept_.push_back(ir::substitute(plain.value, {{loop.var.get(), step(Expr(which))}}));
      emit_lane_values(kept_.back(), vector->var, sched::kMmaPairs, result);
      copy(store->buffer, sched::kMmaPairs, words + " + " + std::to_string(which),
           env_.buffers.at(result.get()));
      out_->close();
    }
    const std::string own = env_.vars.at(thread.get());
    out_->line("ts_transpose_quad(" + words + ", " + own + ");");
    ScalarWriter writer(env_, *out_);
    std::vector<Expr> first;
    for (const Expr& i : plain.indices)
      first.push_back(writer.announce(ir::substitute(
          i, {{loop.var.get(), step(ir::floormod(Expr(thread), Expr(sched::kMmaPlaces)))},
              {thread.get(), ir::floordiv(Expr(thread), Expr(sched::kMmaPlaces)) * sched::kMmaPlaces},
              {vector->var.get(), Expr(0)}})));
    copy(store->buffer, sched::kMmaColumns, "&" + place(writer, store->buffer, first), words);
    out_->close();
  }
  out_->close();
  env_.bounds.erase(group.get());
  env_.vars.erase(group.get());
  return true;
}

}  // namespace tensorsmith::codegen
