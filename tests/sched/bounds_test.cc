#include <gtest/gtest.h>

#include <map>

#include "ir/scalar.h"
#include "sched/relations.h"
#include "support/print_schedule.h"
#include "support/random_trace.h"
#include "support/random_workload.h"
#include "support/small_workloads.h"

namespace tensorsmith::sched::bounds_test {
namespace {

ir::Workload draw_workload(uint64_t seed, Rng& rng) {
  return seed % 2 == 0 ? test::small::random(rng) : test::random_workload(seed);
}

using Values = std::map<const ir::VarNode*, int64_t>;

// Evaluates an integer expression; an integer load gives a random value. Collects the reads that
// are evaluated.
class Evaluator {
 public:
  Evaluator(const Values& values, Rng& rng) : values_(values), rng_(rng) {}

  struct Read {
    const ir::BufferNode* buffer;
    std::vector<int64_t> indices;
  };
  std::vector<Read> reads;

  ir::Scalar eval(const ir::Expr& e) {
    return ir::visit(
        ir::overloaded{
            [&](const ir::IntImm& n) { return ir::scalar_int(e.dtype(), n.value); },
            [&](const ir::FloatImm& n) { return ir::scalar_float(e.dtype(), n.value); },
            [&](const ir::VarRef& n) {
              const auto it = values_.find(n.var.get());
              EXPECT_NE(it, values_.end()) << "variable " << n.var.name() << " is not of an enclosing loop";
              return ir::scalar_int(e.dtype(), it == values_.end() ? 0 : it->second);
            },
            [&](const ir::Unary& n) { return ir::eval_unary(n.op, eval(n.a)); },
            [&](const ir::Binary& n) {
              const ir::Scalar a = eval(n.a);
              return ir::eval_binary(n.op, a, eval(n.b));
            },
            [&](const ir::Select& n) { return eval(n.condition).i != 0 ? eval(n.a) : eval(n.b); },
            [&](const ir::Cast& n) { return ir::eval_cast(e.dtype(), eval(n.a)); },
            [&](const ir::Call& n) {
              std::vector<ir::Scalar> args;
              args.reserve(n.args.size());
              for (const ir::Expr& arg : n.args) args.push_back(eval(arg));
              return ir::eval_call(n.intrinsic, args[0], args.size() > 1 ? args[1] : ir::Scalar{});
            },
            [&](const ir::Load& n) {
              Read read{n.buffer.get(), {}};
              for (const ir::Expr& index : n.indices) read.indices.push_back(eval(index).i);
              reads.push_back(read);
              return ir::is_float(e.dtype()) ? ir::scalar_float(e.dtype(), 1)
                                             : ir::scalar_int(e.dtype(), rng_.uniform_int(-50, 50));
            },
        },
        e);
  }

 private:
  const Values& values_;
  Rng& rng_;
};

// Recomputes the values of a stage's root axes (relative to its region) from the leaves,
// independently of the library: digits are row-major, and a shifted last tile counts from its end.
// Returns false if a split enumerates beyond its parent.
bool root_values(const Stage& stage, const StageBounds& bounds, IdVector<IteratorId, int64_t> values,
                 std::vector<int64_t>* out) {
  const auto& extents = bounds.extents;
  for (auto it = stage.relations.rbegin(); it != stage.relations.rend(); ++it) {
    if (const auto* split = std::get_if<SplitRelation>(&*it)) {
      int64_t v = 0;
      for (const IteratorId child : split->children) v = v * extents[child] + values[child];
      const int64_t extent = extents[split->parent];
      if (shifts_last_tile(stage, *split, extents, bounds.root_may_leave)) {
        int64_t tile = 1;
        for (size_t k = 1; k < split->children.size(); ++k) tile *= extents[split->children[k]];
        if (v / tile == (extent - 1) / tile) v = extent - tile + v % tile;
      }
      if (v >= extent) return false;
      values[split->parent] = v;
    } else {
      const auto& fuse = std::get<FuseRelation>(*it);
      int64_t v = values[fuse.child];
      for (size_t k = fuse.parents.size(); k-- > 0;) {
        const int64_t extent = extents[fuse.parents[k]];
        values[fuse.parents[k]] = v % extent;
        v /= extent;
      }
    }
  }
  out->assign(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(stage.num_roots()));
  return true;
}

// Draws an iteration of the reader (and of all loops around it) and checks that each tensor it
// reads lies in the region that its attached producer computes there. Returns whether something was
// checked.
bool check_iteration(const Schedule& schedule, const Bounds& bounds, StageId reader, Rng& rng) {
  Values values;
  StageId at = reader;
  IdVector<IteratorId, int64_t> own;
  std::vector<std::pair<StageId, IteratorId>> around;  // the reader's loops and the loops around it
  IteratorId last;
  while (true) {
    const Stage& stage = schedule.stages[at];
    const size_t n = last.valid() ? *stage.leaf_position(last) + 1 : stage.leaves.size();
    for (size_t i = 0; i < n; ++i) {
      const IteratorId leaf = stage.leaves[i];
      const int64_t extent = bounds.stages[at].extents[leaf];
      const int64_t v = static_cast<int64_t>(rng.below(static_cast<uint64_t>(extent)));
      values[bounds.loop_vars[at][leaf].get()] = v;
      around.emplace_back(at, stage.leaves[i]);
      if (at == reader) {
        own.resize(stage.iterators.size());
        own[leaf] = v;
      }
    }
    if (stage.attach != AttachKind::kAt) break;
    last = stage.attach_iterator;
    at = stage.attach_stage;
  }
  const Stage& stage = schedule.stages[reader];
  own.resize(stage.iterators.size());
  std::vector<int64_t> roots;
  if (!root_values(stage, bounds.stages[reader], own, &roots)) return false;
  for (size_t a = 0; a < roots.size(); ++a) {
    const ir::Axis& axis =
        a < stage.op->spatial.size() ? stage.op->spatial[a] : stage.op->reduce[a - stage.op->spatial.size()];
    Evaluator min(values, rng);
    const int64_t v = min.eval(bounds.stages[reader].root_min[a]).i + roots[a];
    if (v < 0 || v >= axis.extent) {
      EXPECT_TRUE(bounds.stages[reader].root_may_leave[a] != 0)
          << "stage " << stage.op->name << " axis " << a;
      return false;
    }
    values[axis.var.get()] = v;
  }
  Evaluator evaluator(values, rng);
  for (const ir::Expr& body : stage.op->bodies) evaluator.eval(body);
  bool checked = false;
  for (const Evaluator::Read& read : evaluator.reads) {
    const StageId producer = schedule.producer_of(read.buffer);
    if (!producer.valid()) {
      ADD_FAILURE() << "read of an unknown buffer " << read.buffer->name;
      continue;
    }
    const Stage& source = schedule.stages[producer];
    EXPECT_NE(source.attach, AttachKind::kInlined);
    if (source.attach != AttachKind::kAt) continue;
    for (size_t d = 0; d < read.indices.size(); ++d) {
      Evaluator min(values, rng);
      const int64_t low = min.eval(bounds.stages[producer].root_min[d]).i;
      const int64_t extent = bounds.stages[producer].root_extent[d];
      EXPECT_GE(read.indices[d], low)
          << source.op->name << " dimension " << d << " read by " << stage.op->name;
      EXPECT_LT(read.indices[d], low + extent)
          << source.op->name << " dimension " << d << " read by " << stage.op->name;
      checked = true;
    }
  }
  return checked;
}

// Each iteration of each stage finds its reads in the region computed for it.
TEST(Bounds, RegionsHoldEveryRead) {
  int checked = 0;
  for (uint64_t seed = 0; seed < 3000; ++seed) {
    Rng rng(seed);
    const ir::Workload workload = draw_workload(seed, rng);
    test::RandomTraceOptions options;
    options.thread_axes = seed % 5 == 0;
    options.proposals = 30;
    const ScheduleBuilder builder = test::random_schedule(workload, rng, options);
    const Schedule& schedule = builder.schedule();
    SCOPED_TRACE("seed " + std::to_string(seed));
    const auto bounds = infer_bounds(schedule);
    ASSERT_TRUE(bounds.ok()) << bounds.error().message() << "\n" << print(builder.trace());
    for (const StageId s : schedule.stages.ids()) {
      if (schedule.stages[s].is_placeholder() || schedule.stages[s].attach == AttachKind::kInlined) continue;
      for (int i = 0; i < 10; ++i) checked += check_iteration(schedule, *bounds, s, rng) ? 1 : 0;
    }
    ASSERT_FALSE(HasFailure()) << print(builder.trace()) << test::print_schedule(schedule);
  }
  // The test is meaningful only if many traces attach stages.
  EXPECT_GT(checked, 3000);
}

Schedule apply(const ir::Workload& workload, const std::vector<Step>& steps) {
  ScheduleBuilder builder(workload);
  for (const Step& step : steps) {
    const Status status = builder.apply(step);
    EXPECT_TRUE(status.ok()) << status.error().message();
  }
  return builder.schedule();
}

StageBounds bounds_of(const Schedule& schedule, const std::string& name) {
  const auto bounds = infer_bounds(schedule);
  EXPECT_TRUE(bounds.ok());
  return bounds->stages[*schedule.stage_named(name)];
}

using Extents = std::vector<int64_t>;
Extents extents_of(const StageBounds& bounds) { return {bounds.extents.begin(), bounds.extents.end()}; }

TEST(Bounds, RootStagesAreComputedInFull) {
  const Schedule schedule =
      apply(test::small::matmul(6, 10, 4), {Split{2, 1, {3}, true, TailPolicy::kPredicate}});
  const StageBounds b = bounds_of(schedule, "C");
  EXPECT_EQ(b.root_extent, (Extents{6, 10, 4}));
  EXPECT_EQ(extents_of(b), (Extents{6, 10, 4, 4, 3}));
}

// Splits clamp to the remaining extent, as TVM's min(factor, extent).
TEST(Bounds, SplitLengthsAreClamped) {
  const auto extents = [](const Split& split) {
    const StageBounds b = bounds_of(apply(test::small::matmul(10, 1, 1), {split}), "C");
    return Extents(b.extents.begin() + 3, b.extents.end());
  };
  EXPECT_EQ(extents({2, 0, {4}, true, TailPolicy::kPredicate}), (Extents{3, 4}));
  EXPECT_EQ(extents({2, 0, {2, 20}, true, TailPolicy::kPredicate}), (Extents{1, 1, 10}));
  EXPECT_EQ(extents({2, 0, {3, 2}, true, TailPolicy::kPredicate}), (Extents{2, 3, 2}));
  EXPECT_EQ(extents({2, 0, {4}, false, TailPolicy::kPredicate}), (Extents{4, 3}));
  EXPECT_EQ(extents({2, 0, {2, 20}, false, TailPolicy::kPredicate}), (Extents{2, 5, 1}));
}

TEST(Bounds, ThreadBoundLoopsKeepTheirLength) {
  const Schedule schedule =
      apply(test::small::matmul(10, 1, 1),
            {Split{2, 0, {32}, true, TailPolicy::kPredicate}, Annotate{2, 1, Annotation::kThreadX}});
  EXPECT_EQ(extents_of(bounds_of(schedule, "C")), (Extents{10, 1, 1, 1, 32}));
}

// Thread counts beyond any device do not overflow.
TEST(Bounds, AbsurdThreadCounts) {
  constexpr int64_t kHuge = int64_t{1} << 40;
  const Schedule schedule =
      apply(test::small::matmul(10, 10, 1, true),
            {ComputeInline{4}, Split{5, 0, {kHuge}, true, TailPolicy::kPredicate},
             Split{5, 2, {kHuge}, true, TailPolicy::kPredicate}, Reorder{5, {0, 2, 1, 3}}, Fuse{5, {2, 3}},
             Annotate{5, 2, Annotation::kThreadX}, ComputeAt{2, 5, 2}});
  EXPECT_EQ(bounds_of(schedule, "R").extents.back(), int64_t{1} << 32);
}

TEST(Bounds, ConvolutionTileReadsItsHalo) {
  // relu is tiled 4 x 4 over y, x; conv and the padded input are computed in the tile.
  const ir::Workload workload = test::small::conv2d(3, 8, 4, 3, 1, 1);
  const Schedule schedule = apply(workload, {
                                                ComputeInline{5},
                                                Split{6, 2, {4}, true, TailPolicy::kPredicate},
                                                Split{6, 4, {4}, true, TailPolicy::kPredicate},
                                                Reorder{6, {0, 1, 2, 4, 3, 5}},
                                                ComputeAt{4, 6, 3},
                                                ComputeAt{3, 6, 3},
                                            });
  EXPECT_EQ(bounds_of(schedule, "conv").root_extent, (Extents{1, 1, 4, 4, 3, 3, 3}));
  EXPECT_EQ(bounds_of(schedule, "pad").root_extent, (Extents{1, 3, 6, 6}));
  EXPECT_EQ(bounds_of(schedule, "pad").root_may_leave, (std::vector<uint8_t>{0, 0, 0, 0}));
}

TEST(Bounds, StridedConvolutionTile) {
  const ir::Workload workload = test::small::conv2d(3, 9, 4, 3, 2, 0);
  const Schedule schedule =
      apply(workload, {Split{4, 2, {2}, true, TailPolicy::kPredicate}, ComputeAt{3, 4, 2}});
  EXPECT_EQ(bounds_of(schedule, "conv").extents[IteratorId(2)], 4);
  EXPECT_EQ(bounds_of(schedule, "pad").root_extent, (Extents{1, 3, 5, 9}));
}

// Tiles that do not divide the axis stick out at its end: the region keeps its constant size and
// may leave the axis.
TEST(Bounds, TailTilesMayLeaveTheAxis) {
  const Schedule schedule =
      apply(test::small::matmul(10, 4, 4, true),
            {ComputeInline{4}, Split{5, 0, {4}, true, TailPolicy::kPredicate}, ComputeAt{2, 5, 0}});
  const StageBounds b = bounds_of(schedule, "C");
  EXPECT_EQ(b.root_extent, (Extents{4, 4, 4}));
  EXPECT_EQ(b.root_may_leave, (std::vector<uint8_t>{1, 0, 0}));
}

// The outer loop is fused; its digits select the tile.
TEST(Bounds, AttachUnderAFusedLoop) {
  const Schedule schedule = apply(test::small::matmul(8, 12, 4, true),
                                  {ComputeInline{4}, Split{5, 0, {4}, true, TailPolicy::kPredicate},
                                   Split{5, 2, {3}, true, TailPolicy::kPredicate}, Reorder{5, {0, 2, 1, 3}},
                                   Fuse{5, {0, 1}}, ComputeAt{2, 5, 0}});
  const StageBounds b = bounds_of(schedule, "C");
  EXPECT_EQ(b.root_extent, (Extents{4, 3, 4}));
  EXPECT_EQ(b.root_may_leave, (std::vector<uint8_t>{0, 0, 0}));
}

// The consumer runs through a fused loop that is split: 16 flat elements are two whole rows of 8.
TEST(Bounds, SplitOfAFusedLoopIsWholeRows) {
  const Schedule schedule = apply(test::small::matmul(6, 8, 4, true),
                                  {ComputeInline{4}, Fuse{5, {0, 1}},
                                   Split{5, 0, {16}, true, TailPolicy::kPredicate}, ComputeAt{2, 5, 0}});
  EXPECT_EQ(bounds_of(schedule, "C").root_extent, (Extents{2, 8, 4}));
}

TEST(Bounds, ReshapedReadOfAlignedBlocks) {
  // flat, tiled by 8, reads one row of B per tile.
  const Schedule schedule = apply(test::small::reshape_chain(6, 8),
                                  {Split{2, 0, {8}, true, TailPolicy::kPredicate}, ComputeAt{1, 2, 0}});
  EXPECT_EQ(bounds_of(schedule, "B").root_extent, (Extents{1, 8}));
}

TEST(Bounds, DataDependentReadsNeedTheWholeDimension) {
  const Schedule schedule = apply(test::small::gather(7, 5, 3), {ComputeAt{2, 3, 1}});
  EXPECT_EQ(bounds_of(schedule, "scaled").root_extent, (Extents{7, 1}));
}

TEST(Bounds, ClampedStencilReads) {
  const Schedule schedule = apply(test::small::concat_stencil(16, 16),
                                  {Split{5, 0, {8}, true, TailPolicy::kPredicate}, ComputeAt{4, 5, 0}});
  EXPECT_EQ(bounds_of(schedule, "C").root_extent, (Extents{10}));
}

// A cache in shared memory serves all threads of the block, one in local memory only its own
// thread.
TEST(Bounds, SharedMemoryRangesOverThreads) {
  for (const auto scope : {ir::MemoryScope::kShared, ir::MemoryScope::kLocal}) {
    const Schedule schedule =
        apply(test::small::matmul(64, 64, 16), {
                                                   Split{2, 0, {8}, true, TailPolicy::kPredicate},
                                                   Annotate{2, 0, Annotation::kBlockX},
                                                   Annotate{2, 1, Annotation::kThreadX},
                                                   CacheRead{0, scope, {2}},
                                                   ComputeAt{1, 3, 1},
                                               });
    const bool shared = scope == ir::MemoryScope::kShared;
    EXPECT_EQ(bounds_of(schedule, shared ? "A.shared" : "A.local").root_extent,
              (Extents{shared ? 8 : 1, 16}));
  }
}

// A stage without a memory scope, like those that Ansor fuses with their readers, is local if each
// thread computes what it reads itself. It is shared if it is computed in the block or if its own
// loops divide the work among threads.
TEST(Bounds, MemoryFollowsFromTheLoopsAround) {
  using Steps = std::vector<Step>;
  const auto with = [&](int leaf, const Steps& more) {
    // C = A x B, R = max(C + bias, 0): 8 blocks of 8 threads, one row per thread.
    Steps steps = {ComputeInline{4}, Split{5, 0, {8}, true, TailPolicy::kPredicate},
                   Annotate{5, 0, Annotation::kBlockX}, Annotate{5, 1, Annotation::kThreadX}};
    steps.insert(steps.end(), more.begin(), more.end());
    steps.push_back(ComputeAt{2, 5, leaf});
    return (apply)(test::small::matmul(64, 64, 16, true),
                   steps);  // not std::apply, which argument-dependent lookup finds too
  };
  const auto expect = [&](const Schedule& schedule, ir::MemoryScope scope, const Extents& region) {
    EXPECT_EQ(memory_scope(schedule, StageId(2)), scope);
    EXPECT_EQ(bounds_of(schedule, "C").root_extent, region);
  };
  expect(with(1, {}), ir::MemoryScope::kLocal, {1, 64, 16});
  expect(with(0, {}), ir::MemoryScope::kShared, {8, 64, 16});
  expect(with(1, {Annotate{2, 1, Annotation::kThreadX}}), ir::MemoryScope::kShared, {8, 64, 16});
}

}  // namespace
}  // namespace tensorsmith::sched::bounds_test
