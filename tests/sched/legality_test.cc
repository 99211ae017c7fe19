// Errors of each primitive: code, place and reason.
#include <gtest/gtest.h>

#include "sched/step.h"
#include "support/print_schedule.h"
#include "support/small_workloads.h"

namespace tensorsmith::sched::legality_test {
namespace {

constexpr ErrorCode kIllegal = ErrorCode::kIllegal;
constexpr ErrorCode kInvalid = ErrorCode::kInvalidArgument;
constexpr ErrorCode kUnsupported = ErrorCode::kUnsupported;
constexpr TailPolicy kPredicate = TailPolicy::kPredicate;
constexpr auto kLocal = ir::MemoryScope::kLocal;

// Expects that all steps but the last apply, and that the last is refused with this message.
void refuse(const ir::Workload& workload, const std::vector<Step>& steps, ErrorCode code,
            const std::string& message) {
  ScheduleBuilder builder(workload);
  for (size_t i = 0; i < steps.size(); ++i) {
    const Status status = builder.apply(steps[i]);
    if (i + 1 < steps.size()) {
      ASSERT_TRUE(status.ok()) << status.error().message();
      continue;
    }
    ASSERT_FALSE(status.ok()) << print(steps[i]) << " was accepted\n"
                              << test::print_schedule(builder.schedule());
    EXPECT_EQ(status.error().code, code) << status.error().message();
    EXPECT_EQ(status.error().message(), message);
  }
}

// Stages: A 0, B 1 (constant), C 2 (sum over k), bias 3, D 4, R 5 (output); axes i, j of 8.
ir::Workload chain() { return test::small::matmul(8, 8, 8, true); }
// Stages: X 0, W 1, B 2, pad 3, conv 4, biased 5, relu 6.
ir::Workload conv() { return test::small::conv2d(3, 8, 4, 3, 1, 1); }

TEST(Legality, StagesAndLoopsMustExist) {
  refuse(chain(), {Split{6, 0, {2}, true, kPredicate}}, kInvalid,
         "step 0 (split): stage 6 does not exist, there are 6");
  refuse(chain(), {Fuse{-1, {0}}}, kInvalid, "step 0 (fuse): stage -1 does not exist, there are 6");
  refuse(chain(), {Unroll{0, 16}}, kIllegal,
         "step 0 (unroll) stage 'A': stage 'A' is a placeholder, it has no loops");
  refuse(chain(), {ComputeInline{4}, Unroll{4, 16}}, kIllegal,
         "step 1 (unroll) stage 'D': stage 'D' is inlined, it has no loops");
  refuse(chain(), {Annotate{2, 3, Annotation::kUnroll}}, kInvalid,
         "step 0 (annotate) stage 'C': iterator 3 does not exist, stage 'C' has 3");
}

TEST(Legality, Split) {
  refuse(chain(), {Split{2, 0, {}, true, kPredicate}}, kInvalid,
         "step 0 (split) stage 'C': a split needs at least one length");
  refuse(chain(), {Split{2, 0, {2, 0}, true, kPredicate}}, kInvalid,
         "step 0 (split) stage 'C': split length 0 is not positive");
  refuse(chain(), {Split{2, 0, {-4}, true, kPredicate}}, kInvalid,
         "step 0 (split) stage 'C': split length -4 is not positive");
  refuse(chain(), {Split{2, 0, {int64_t{1} << 30, int64_t{1} << 30}, true, kPredicate}}, kInvalid,
         "step 0 (split) stage 'C': the split's lengths exceed 2^40 together");
  refuse(chain(), {Split{2, 0, std::vector<int64_t>(16, 1), true, kPredicate}}, kInvalid,
         "step 0 (split) stage 'C': a split has at most 15 lengths");
  refuse(chain(), {Annotate{2, 0, Annotation::kParallel}, Split{2, 0, {2}, true, kPredicate}}, kIllegal,
         "step 1 (split) stage 'C': loop 'i' is annotated parallel; split it before annotate");
}

TEST(Legality, FollowSplits) {
  const Split source{2, 0, {2, 4}, true, kPredicate};
  refuse(chain(), {FollowSplit{2, 0, 0, 1}}, kInvalid,
         "step 0 (follow_split) stage 'C': source step 0 is not an earlier step");
  refuse(chain(), {Unroll{2, 16}, FollowSplit{2, 0, 0, 1}}, kInvalid,
         "step 1 (follow_split) stage 'C': source step 0 is not a split");
  refuse(chain(), {source, FollowSplit{5, 0, 0, 3}}, kInvalid,
         "step 1 (follow_split) stage 'R': n_split 3 is not between 1 and the 2 lengths of source step 0");
  refuse(chain(), {source, FollowFusedSplit{5, 0, {}, 0, true}}, kInvalid,
         "step 1 (follow_fused_split) stage 'R': follow_fused_split needs a source step");
  refuse(chain(), {source, FollowFusedSplit{5, 0, {0}, 2, true}}, kInvalid,
         "step 1 (follow_fused_split) stage 'R': level 2 is not one of the 2 lengths of source step 0");
}

TEST(Legality, Fuse) {
  refuse(chain(), {Fuse{2, {0, 2}}}, kIllegal,
         "step 0 (fuse) stage 'C': the iterators to fuse are not consecutive; reorder them first");
  refuse(chain(), {Fuse{2, {1, 0}}}, kIllegal,
         "step 0 (fuse) stage 'C': the iterators to fuse are not consecutive; reorder them first");
  refuse(chain(), {Fuse{2, {1, 2}}}, kIllegal,
         "step 0 (fuse) stage 'C': loops 'j' and 'k' cannot be fused: one is spatial, one reduces");
  refuse(chain(), {Annotate{2, 1, Annotation::kUnroll}, Fuse{2, {0, 1}}}, kIllegal,
         "step 1 (fuse) stage 'C': loop 'j' is annotated unroll; fuse loops before they are annotated");
  refuse(chain(), {ComputeInline{4}, ComputeAt{2, 5, 0}, Fuse{5, {0, 1}}}, kIllegal,
         "step 2 (fuse) stage 'R': stage 'C' is attached to loop 'i', in the middle of the fused loops");
  refuse(
      chain(), {DecomposeReduction{2, 1}, Fuse{2, {0, 1}}}, kIllegal,
      "step 1 (fuse) stage 'C': the reduction's init is before loop 'j', in the middle of the fused loops");
}

TEST(Legality, Reorder) {
  refuse(chain(), {Reorder{2, {0, 1}}}, kInvalid,
         "step 0 (reorder) stage 'C': the order names 2 loops, but the stage has 3");
  refuse(chain(), {Reorder{2, {0, 1, 1}}}, kInvalid,
         "step 0 (reorder) stage 'C': the order is not a permutation of the 3 loops");
  refuse(chain(), {Reorder{2, {0, 1, 3}}}, kInvalid,
         "step 0 (reorder) stage 'C': the order is not a permutation of the 3 loops");
  refuse(chain(), {Reorder{2, {0, 2, 1}}, Annotate{2, 2, Annotation::kVectorize}, Reorder{2, {0, 2, 1}}},
         kIllegal,
         "step 2 (reorder) stage 'C': loop 'k' of stage 'C' is inside vectorized loop 'j'; only unrolled "
         "loops may be "
         "inside one");
  refuse(chain(), {DecomposeReduction{2, 1}, Reorder{2, {0, 2, 1}}}, kIllegal,
         "step 1 (reorder) stage 'C': the init of stage 'C' at loop 'j' would be inside a reduce loop");
  // C is attached at R's i, and D, which reads C, at R's j inside of it; with the loops swapped, D
  // would be outside of i.
  refuse(chain(), {ComputeAt{4, 5, 1}, ComputeAt{2, 5, 0}, Reorder{5, {1, 0}}}, kIllegal,
         "step 2 (reorder) stage 'R': stage 'D' reads stage 'C' outside loop 'i' of stage 'R' that it is "
         "attached to");
}

TEST(Legality, Annotate) {
  refuse(chain(), {Annotate{2, 2, Annotation::kVectorize}}, kIllegal,
         "step 0 (annotate) stage 'C': loop 'k' of stage 'C' is a reduce loop, it cannot be vectorized");
  refuse(chain(), {Annotate{2, 2, Annotation::kParallel}}, kIllegal,
         "step 0 (annotate) stage 'C': loop 'k' of stage 'C' is a reduce loop, it cannot be parallel");
  refuse(chain(), {Annotate{2, 2, Annotation::kBlockX}}, kIllegal,
         "step 0 (annotate) stage 'C': loop 'k' of stage 'C' is a reduce loop, it cannot be bound to "
         "blockIdx.x");
  refuse(
      chain(), {Annotate{2, 2, Annotation::kVThread}}, kIllegal,
      "step 0 (annotate) stage 'C': loop 'k' of stage 'C' is a reduce loop, it cannot be bound to vthread");
  refuse(chain(), {Annotate{2, 1, Annotation::kVectorize}}, kIllegal,
         "step 0 (annotate) stage 'C': loop 'k' of stage 'C' is inside vectorized loop 'j'; only unrolled "
         "loops may be "
         "inside one");
  refuse(chain(), {Annotate{5, 1, Annotation::kVectorize}, Annotate{5, 0, Annotation::kVectorize}}, kIllegal,
         "step 1 (annotate) stage 'R': loop 'j' of stage 'R' is inside vectorized loop 'i'; only unrolled "
         "loops may be "
         "inside one");
  refuse(chain(), {Annotate{5, 0, Annotation::kParallel}, Annotate{5, 1, Annotation::kParallel}}, kIllegal,
         "step 1 (annotate) stage 'R': stage 'R' has two parallel loops, 'i' and 'j'; fuse them instead");
  refuse(chain(), {Annotate{5, 0, Annotation::kThreadX}, Annotate{5, 1, Annotation::kThreadX}}, kIllegal,
         "step 1 (annotate) stage 'R': two loops of stage 'R' are bound to threadIdx.x; fuse them instead");
  refuse(chain(), {Annotate{5, 0, Annotation::kThreadX}, Annotate{5, 1, Annotation::kParallel}}, kIllegal,
         "step 1 (annotate) stage 'R': stage 'R' has both a parallel loop and loops bound to GPU axes");
  refuse(
      chain(),
      {ComputeInline{4}, ComputeAt{2, 5, 0}, Annotate{2, 0, Annotation::kParallel},
       Annotate{5, 0, Annotation::kParallel}},
      kIllegal,
      "step 3 (annotate) stage 'R': the parallel loop of stage 'C' is inside the parallel loop of stage 'R'");
  refuse(chain(), {ComputeInline{4}, ComputeAt{2, 5, 1}, Annotate{5, 1, Annotation::kVectorize}}, kIllegal,
         "step 2 (annotate) stage 'R': stage 'C' is attached inside a vectorized loop of stage 'R'");
  refuse(chain(), {ComputeInline{4}, ComputeAt{2, 5, 1}, Annotate{2, 0, Annotation::kBlockY}}, kIllegal,
         "step 2 (annotate) stage 'C': stage 'C' is attached, but a loop of it is bound to blockIdx.y; bind "
         "blocks in "
         "root stages");
  refuse(chain(), {Annotate{2, 0, static_cast<Annotation>(11)}}, kInvalid,
         "step 0 (annotate) stage 'C': unknown annotation");
  refuse(chain(), {Unroll{2, -1}}, kInvalid, "step 0 (unroll) stage 'C': auto_max_step is negative");
}

// Cross-thread reductions are legal.
TEST(Legality, ReduceLoopsMayBeThreads) {
  ScheduleBuilder builder(chain());
  EXPECT_TRUE(builder.apply(Annotate{2, 2, Annotation::kThreadX}).ok());
}

TEST(Legality, ComputeAt) {
  refuse(chain(), {ComputeAt{2, 2, 0}}, kIllegal,
         "step 0 (compute_at) stage 'C': stage 'C' does not read stage 'C'");
  refuse(chain(), {ComputeAt{4, 2, 0}}, kIllegal,
         "step 0 (compute_at) stage 'D': stage 'C' does not read stage 'D'");
  refuse(chain(), {ComputeAt{2, 3, 0}}, kIllegal,
         "step 0 (compute_at) stage 'C': stage 'bias' is a placeholder, it has no loops");
  refuse(chain(), {ComputeAt{2, 5, 0}}, kIllegal,
         "step 0 (compute_at) stage 'C': stage 'D' reads stage 'C' outside loop 'i' of stage 'R' that it is "
         "attached "
         "to");
  refuse(chain(), {ComputeAt{2, 4, 2}}, kInvalid,
         "step 0 (compute_at) stage 'C': iterator 2 does not exist, stage 'D' has 2");
  refuse(test::small::softmax(4, 4), {ComputeAt{2, 3, 0}}, kIllegal,
         "step 0 (compute_at) stage 'exp': stage 'norm' reads stage 'exp' outside loop 'i' of stage 'sum' "
         "that it is "
         "attached to");
  refuse(test::small::arg_max(4, 4), {ComputeAt{1, 2, 0}}, kIllegal,
         "step 0 (compute_at) stage 'best': stage 'best' is an output of the workload and must be computed "
         "at root; "
         "cache_write it, and attach the copy");
  refuse(chain(), {PackLayout{2, {{0, 1, 8}, {1, 1, 8}}}, ComputeAt{2, 4, 0}}, kIllegal,
         "step 1 (compute_at) stage 'C': stage 'C' has a packed layout and must be computed at root");
  refuse(chain(), {Annotate{4, 1, Annotation::kVectorize}, ComputeAt{2, 4, 1}}, kIllegal,
         "step 1 (compute_at) stage 'C': stage 'C' is attached inside a vectorized loop of stage 'D'");
  refuse(chain(),
         {Annotate{4, 0, Annotation::kParallel}, Annotate{2, 0, Annotation::kParallel}, ComputeAt{2, 4, 0}},
         kIllegal,
         "step 2 (compute_at) stage 'C': the parallel loop of stage 'C' is inside the parallel loop of stage "
         "'D'");
  // Nested parallelism is detected through two levels.
  refuse(chain(),
         {Annotate{5, 0, Annotation::kParallel}, Annotate{2, 0, Annotation::kParallel}, ComputeAt{4, 5, 0},
          ComputeAt{2, 4, 0}},
         kIllegal,
         "step 3 (compute_at) stage 'C': the parallel loop of stage 'C' is inside the parallel loop of stage "
         "'R'");
}

TEST(Legality, ComputeRoot) {
  // C and D are attached to the same loop of R, which is legal; but D, which reads C, must not be
  // taken out of that loop.
  refuse(chain(), {ComputeAt{4, 5, 0}, ComputeAt{2, 5, 0}, ComputeRoot{4}}, kIllegal,
         "step 2 (compute_root) stage 'D': stage 'D' reads stage 'C' outside loop 'i' of stage 'R' that it "
         "is attached "
         "to");
}

TEST(Legality, ReverseComputeAt) {
  refuse(chain(), {ReverseComputeAt{5, 2, 0}}, kIllegal,
         "step 0 (reverse_compute_at) stage 'R': stage 'R' is not the only reader of stage 'C'");
  refuse(chain(), {ReverseComputeAt{4, 2, 2}}, kIllegal,
         "step 0 (reverse_compute_at) stage 'D': loop 'k' of stage 'C' is a reduce loop");
  refuse(chain(), {ComputeAt{2, 4, 0}, ReverseComputeAt{4, 2, 0}}, kIllegal,
         "step 1 (reverse_compute_at) stage 'D': stage 'C' is attached to a loop already");
  refuse(chain(), {Split{4, 0, {2}, true, kPredicate}, ReverseComputeAt{4, 2, 0}}, kIllegal,
         "step 1 (reverse_compute_at) stage 'D': the loops of stage 'D' were changed before; this step must "
         "come first");
  refuse(chain(), {PackLayout{2, {{0, 1, 8}, {1, 1, 8}}}, ReverseComputeAt{4, 2, 0}}, kIllegal,
         "step 1 (reverse_compute_at) stage 'D': stage 'C' has a packed layout and must be computed at root");
  refuse(conv(), {ReverseComputeAt{4, 3, 0}}, kIllegal,
         "step 0 (reverse_compute_at) stage 'conv': stage 'conv' is a reduction; only elementwise stages can "
         "follow");
  refuse(test::small::reshape_chain(4, 4), {ReverseComputeAt{2, 1, 0}}, kIllegal,
         "step 0 (reverse_compute_at) stage 'flat': stage 'flat' does not read stage 'B' element by element: "
         "its rank "
         "differs");
  refuse(test::small::concat_stencil(4, 5), {ReverseComputeAt{4, 2, 0}}, kIllegal,
         "step 0 (reverse_compute_at) stage 'C': stage 'C' does not read stage 'A2' element by element: its "
         "shape "
         "differs");
  refuse(test::small::concat_stencil(4, 5), {ReverseComputeAt{5, 4, 0}}, kIllegal,
         "step 0 (reverse_compute_at) stage 'D': stage 'D' does not read stage 'C' element by element: index "
         "0 is not "
         "its axis 'j'");
  refuse(conv(), {ComputeAt{3, 4, 0}, ReverseComputeAt{5, 4, 1}}, kIllegal,
         "step 1 (reverse_compute_at) stage 'biased': stage 'pad' is attached to loop 'n' of stage 'conv', "
         "which would "
         "move");
}

TEST(Legality, ComputeInline) {
  refuse(chain(), {ComputeInline{2}}, kIllegal,
         "step 0 (compute_inline) stage 'C': stage 'C' is a reduction, it cannot be inlined");
  refuse(chain(), {ComputeInline{5}}, kIllegal,
         "step 0 (compute_inline) stage 'R': stage 'R' is an output of the workload, it cannot be inlined");
  refuse(chain(), {ComputeInline{4}, ComputeInline{4}}, kIllegal,
         "step 1 (compute_inline) stage 'D': stage 'D' is inlined, it has no loops");
  refuse(chain(), {ComputeAt{2, 4, 0}, ComputeInline{4}}, kIllegal,
         "step 1 (compute_inline) stage 'D': stage 'C' is attached to a loop of stage 'D'; attach it after "
         "this step");
  refuse(chain(), {PackLayout{4, {{0, 1, 8}, {1, 1, 8}}}, ComputeInline{4}}, kIllegal,
         "step 1 (compute_inline) stage 'D': stage 'D' has a packed layout, it cannot be inlined");
}

// x -> x * x twenty times: inlined without a limit, this has 2^20 reads.
TEST(Legality, InliningDoesNotExplode) {
  ir::Workload w;
  w.operations.push_back(ir::placeholder("x0", ir::DType::kF32, {4}));
  for (int i = 1; i <= 20; ++i) {
    const ir::Axis axis{ir::Var("i"), 4};
    const ir::Expr x = ir::load(w.operations.back()->output(), {axis.var});
    w.operations.push_back(ir::compute("x" + std::to_string(i), {axis}, {}, ir::Combiner::kNone, {x * x}));
  }
  w.outputs = {w.operations.back()->output()};
  ScheduleBuilder builder(w);
  int refused = 0;
  for (int i = 1; i < 20; ++i) {
    const Status status = builder.apply(ComputeInline{i});
    if (status.ok()) continue;
    ++refused;
    EXPECT_EQ(status.error().code, kIllegal);
    EXPECT_NE(status.error().reason.find("too large; compute it instead"), std::string::npos);
  }
  EXPECT_GT(refused, 0);
  EXPECT_LT(refused, 10);
}

TEST(Legality, CacheRead) {
  refuse(chain(), {CacheRead{9, kLocal, {2}}}, kInvalid,
         "step 0 (cache_read): stage 9 does not exist, there are 6");
  refuse(chain(), {CacheRead{0, kLocal, {}}}, kInvalid,
         "step 0 (cache_read) stage 'A': cache_read needs at least one reader");
  refuse(chain(), {CacheRead{0, kLocal, {5}}}, kIllegal,
         "step 0 (cache_read) stage 'A': stage 'R' does not read stage 'A'");
  refuse(chain(), {CacheRead{2, kLocal, {1}}}, kInvalid,
         "step 0 (cache_read) stage 'C': reader 1 is not a stage after stage 'C'");
  refuse(chain(), {CacheRead{0, kLocal, {2, 2}}}, kInvalid,
         "step 0 (cache_read) stage 'A': reader 2 is named twice");
  refuse(chain(), {ComputeInline{4}, CacheRead{4, kLocal, {5}}}, kIllegal,
         "step 1 (cache_read) stage 'D': stage 'D' is inlined, so there is nothing to cache");
  refuse(chain(), {ComputeAt{2, 4, 0}, CacheRead{2, kLocal, {4}}}, kIllegal,
         "step 1 (cache_read) stage 'C': stage 'C' is attached to a loop; its copy would be outside. Cache "
         "it before "
         "compute_at");
}

TEST(Legality, CacheWrite) {
  refuse(chain(), {CacheWrite{0, kLocal}}, kIllegal,
         "step 0 (cache_write) stage 'A': stage 'A' is a placeholder, it has no loops");
  refuse(chain(), {Split{2, 0, {2}, true, kPredicate}, CacheWrite{2, kLocal}}, kIllegal,
         "step 1 (cache_write) stage 'C': the loops of stage 'C' were changed before; this step must come "
         "first");
  refuse(
      chain(), {ComputeAt{2, 4, 0}, CacheWrite{2, kLocal}}, kIllegal,
      "step 1 (cache_write) stage 'C': stage 'C' is attached to a loop; apply cache_write before compute_at");
  refuse(chain(), {ComputeAt{2, 4, 0}, CacheWrite{4, kLocal}}, kIllegal,
         "step 1 (cache_write) stage 'D': stage 'C' is attached to a loop of stage 'D'; attach it after this "
         "step");
  refuse(test::small::arg_max(4, 4), {CacheWrite{1, kLocal}}, kUnsupported,
         "step 0 (cache_write) stage 'best': stage 'best' has two outputs, it cannot be cached");
}

TEST(Legality, Rfactor) {
  refuse(chain(), {Rfactor{5, 0, 0}}, kIllegal, "step 0 (rfactor) stage 'R': stage 'R' is not a reduction");
  refuse(chain(), {Rfactor{2, 0, 0}}, kIllegal, "step 0 (rfactor) stage 'C': loop 'i' is not a reduce loop");
  refuse(chain(), {Rfactor{2, 2, 3}}, kInvalid,
         "step 0 (rfactor) stage 'C': factor_axis 3 is not between 0 and 2");
  refuse(chain(), {ComputeAt{2, 4, 0}, Rfactor{2, 2, 0}}, kIllegal,
         "step 1 (rfactor) stage 'C': stage 'C' is attached to a loop; apply rfactor before compute_at");
  refuse(chain(), {Annotate{2, 2, Annotation::kUnroll}, Rfactor{2, 2, 0}}, kIllegal,
         "step 1 (rfactor) stage 'C': loop 'k' is annotated; apply rfactor before annotate");
  refuse(chain(), {DecomposeReduction{2, 0}, Rfactor{2, 2, 0}}, kIllegal,
         "step 1 (rfactor) stage 'C': the init of stage 'C' is placed; apply rfactor before "
         "the init is placed");
  refuse(
      chain(), {StorageAlign{2, 0, 8, 0}, Rfactor{2, 2, 0}}, kIllegal,
      "step 1 (rfactor) stage 'C': the storage of stage 'C' is aligned; apply rfactor before storage_align");
  refuse(chain(), {Split{2, 0, {4}, true, kPredicate}, Rfactor{2, 3, 0}}, kIllegal,
         "step 1 (rfactor) stage 'C': the spatial loops of stage 'C' were changed before; rfactor must come "
         "first");
}

TEST(Legality, DecomposeReduction) {
  refuse(chain(), {DecomposeReduction{5, 0}}, kIllegal,
         "step 0 (decompose_reduction) stage 'R': stage 'R' is not a reduction, it has no init");
  refuse(chain(), {Reorder{2, {2, 0, 1}}, DecomposeReduction{2, 1}}, kIllegal,
         "step 1 (decompose_reduction) stage 'C': the init of stage 'C' at loop 'i' would be inside a reduce "
         "loop");
}

TEST(Legality, Winograd) {
  const std::string is_no =
      " is not a convolution C[n, k, h, w] = sum_{c, r, s} X[n, c, h + r, w + s] * W[k, c, r, s] of f32 with "
      "3 "
      "x 3 "
      "kernels";
  refuse(conv(), {Winograd{4, 3}}, kInvalid, "step 0 (winograd) stage 'conv': m is 3; it must be 2 or 4");
  refuse(conv(), {Winograd{5, 2}}, kIllegal, "step 0 (winograd) stage 'biased': stage 'biased'" + is_no);
  refuse(test::small::conv2d(3, 8, 4, 3, 2, 1), {Winograd{4, 2}}, kIllegal,
         "step 0 (winograd) stage 'conv': stage 'conv'" + is_no);
  refuse(test::small::conv2d(3, 8, 4, 2, 1, 1), {Winograd{4, 2}}, kIllegal,
         "step 0 (winograd) stage 'conv': stage 'conv'" + is_no);
  refuse(conv(), {Split{4, 0, {2}, true, kPredicate}, Winograd{4, 2}}, kIllegal,
         "step 1 (winograd) stage 'conv': the loops of stage 'conv' were changed before; this step must come "
         "first");
  refuse(conv(), {PackLayout{1, {{0, 1, 4}, {1, 1, 3}, {2, 1, 3}, {3, 1, 3}}}, Winograd{4, 2}}, kIllegal,
         "step 1 (winograd) stage 'conv': the weights 'W' have a packed layout; apply winograd before "
         "pack_layout");
  refuse(conv(), {Winograd{4, 2}, Winograd{9, 2}}, kIllegal,
         "step 1 (winograd) stage 'conv': stage 'conv'" + is_no);
}

TEST(Legality, Dot) {
  const ir::Workload w = test::small::int8_matmul(4, 8, 10);
  refuse(w, {Dot{2, 0}}, kIllegal, "step 0 (dot) stage 'C': loop 'i' is not a reduce loop");
  refuse(w, {Dot16{2, 0}}, kIllegal, "step 0 (dot16) stage 'C': loop 'i' is not a reduce loop");
  refuse(test::small::bf16_matmul(4, 8, 9, true), {Dot16{2, 2}}, kIllegal,
         "step 0 (dot16) stage 'C': stage 'C' is not a sum of products of two 8-bit integers minus their "
         "zero points");
  refuse(w, {Dot{3, 0}}, kIllegal, "step 0 (dot) stage 'R': loop 'i' is not a reduce loop");
  refuse(w, {Dot{0, 0}}, kIllegal, "step 0 (dot) stage 'A': stage 'A' is a placeholder, it has no loops");
  refuse(test::small::matmul(4, 8, 10), {Dot{2, 2}}, kIllegal,
         "step 0 (dot) stage 'C': stage 'C' is not a sum of products of two bf16 elements or of two "
         "8-bit integers minus their zero points");
  refuse(w, {Split{2, 0, {2}, true, kPredicate}, Dot{2, 3}}, kIllegal,
         "step 1 (dot) stage 'C': the loops of stage 'C' were changed before; this step must come first");
  Rng rng(1);
  const ir::Workload conv = test::small::quantized_conv2d(4, 6, 4, 3, 1, 0, rng);
  const int stage = static_cast<int>(Schedule::create(conv).stage_named("conv")->place());
  refuse(conv, {Dot{stage, 5}}, kIllegal,
         "step 0 (dot) stage 'conv': loop 'rh' is not the index of one whole dimension of 'pad'");
}

TEST(Legality, StorageAlign) {
  refuse(chain(), {StorageAlign{2, 0, 0, 0}}, kInvalid,
         "step 0 (storage_align) stage 'C': factor is not between 1 and 2^30");
  refuse(chain(), {StorageAlign{2, 0, 8, -1}}, kInvalid,
         "step 0 (storage_align) stage 'C': offset is not between 0 and 2^30");
  refuse(chain(), {StorageAlign{2, 1, 8, 0}}, kIllegal,
         "step 0 (storage_align) stage 'C': axis 'j' is the innermost, its stride is 1");
  refuse(chain(), {StorageAlign{2, 2, 8, 0}}, kIllegal,
         "step 0 (storage_align) stage 'C': loop 'k' is not a whole spatial axis; align it before splitting");
  refuse(
      chain(), {Split{2, 0, {2}, true, kPredicate}, StorageAlign{2, 0, 8, 0}}, kIllegal,
      "step 1 (storage_align) stage 'C': loop 'i.0' is not a whole spatial axis; align it before splitting");
  refuse(chain(), {StorageAlign{5, 0, 8, 0}}, kIllegal,
         "step 0 (storage_align) stage 'R': stage 'R' is an output of the workload, its strides are given");
  refuse(chain(), {PackLayout{2, {{0, 1, 8}, {1, 1, 8}}}, StorageAlign{2, 0, 8, 0}}, kIllegal,
         "step 1 (storage_align) stage 'C': stage 'C' has a packed layout");
}

TEST(Legality, PackLayout) {
  const Layout plain = {{0, 1, 8}, {1, 1, 8}};
  refuse(chain(), {PackLayout{7, plain}}, kInvalid,
         "step 0 (pack_layout): stage 7 does not exist, there are 6");
  refuse(chain(), {PackLayout{0, plain}}, kIllegal,
         "step 0 (pack_layout) stage 'A': stage 'A' is an input that is not constant, its layout is given");
  refuse(chain(), {PackLayout{5, plain}}, kIllegal,
         "step 0 (pack_layout) stage 'R': stage 'R' is an output of the workload, its layout is given");
  refuse(
      chain(), {ComputeAt{2, 4, 0}, PackLayout{2, plain}}, kIllegal,
      "step 1 (pack_layout) stage 'C': stage 'C' is attached to a loop; only stages at root have a layout");
  refuse(chain(), {StorageAlign{2, 0, 8, 0}, PackLayout{2, plain}}, kIllegal,
         "step 1 (pack_layout) stage 'C': stage 'C' has aligned strides, so it cannot also be packed");
  refuse(chain(), {PackLayout{1, {{0, 1, 8}, {2, 1, 8}}}}, kInvalid,
         "step 0 (pack_layout) stage 'B': the layout names dimension 2, but the tensor has 2");
  refuse(chain(), {PackLayout{1, {{0, 1, 8}, {1, 0, 8}}}}, kInvalid,
         "step 0 (pack_layout) stage 'B': divisors and extents of a layout must be positive");
  refuse(chain(), {PackLayout{1, {{0, 1, 8}, {1, 1, int64_t{1} << 41}}}}, kInvalid,
         "step 0 (pack_layout) stage 'B': the layout has more than 2^40 elements");
  refuse(chain(), {PackLayout{1, {{0, 1, 8}}}}, kIllegal,
         "step 0 (pack_layout) stage 'B': the layout covers 1 of the 8 indices of dimension 1");
  refuse(chain(), {PackLayout{1, {{0, 1, 8}, {1, 4, 2}, {1, 1, 3}}}}, kIllegal,
         "step 0 (pack_layout) stage 'B': the layout's digits of dimension 1 do not fit together: divisor 4 "
         "where 3 is "
         "needed");
}

}  // namespace
}  // namespace tensorsmith::sched::legality_test
