// Regions of calls: loops and branches, whose calls are copies, against what they should leave in the outputs.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <numeric>

#include "runtime/model.h"

namespace tensorsmith::runtime::region_test {
namespace {

using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

constexpr int64_t kSlice = 64;  // bytes of a slice of 16 numbers

CallInfo copy(const BufferRef& from, const BufferRef& to) {
  CallInfo call;
  call.routine = copy_call(to.bytes);
  call.task = "copy";
  call.buffers = {from, to};
  call.outputs = 1;
  return call;
}

// Copies x, which has 8 slices, to y slice by slice, the last one first. `more` is an input, too: the number of turns,
// or the condition for the next turn.
ModelDescription reversing() {
  ModelDescription d;
  d.name = "reversing";
  d.arch = std::string(host_arch());
  d.inputs = {{"x", DType::kF32, {8, 16}}, {"more", DType::kI64, {}}};
  d.outputs = {{"y", DType::kF32, {8, 16}}};
  d.arena_bytes = 128;
  d.calls = {copy({BufferKind::kInput, 0, kSlice}, {BufferKind::kArena, 0, kSlice}),
             copy({BufferKind::kArena, 0, kSlice}, {BufferKind::kOutput, 0, kSlice, 7 * kSlice})};
  RegionInfo region;
  region.end = 2;
  region.turns = 8;
  region.steps = {{0, 0, kSlice}, {1, 1, -kSlice}};
  d.regions = {region};
  return d;
}

struct Ran {
  Status status;
  std::vector<float> firsts;  // the first number of each slice of y
};

Ran run(const ModelDescription& d, int64_t more, LoadOptions options = {}) {
  std::vector<TensorsmithKernel> kernels(d.calls.size(), nullptr);
  auto model = Model::from_memory(d, kernels, {}, options);
  if (!model.ok()) return {model.error(), {}};
  // The model writes to aligned memory directly, so that elements which no turn writes keep their contents.
  alignas(kBufferAlignment) float x[8 * 16], y[8 * 16];
  std::iota(std::begin(x), std::end(x), 0.f);
  const void* inputs[] = {x, &more};
  void* outputs[] = {y};
  Status status;
  for (int twice = 0; twice < 2 && status.ok(); ++twice) {  // a second run begins where the first one did
    std::fill(std::begin(y), std::end(y), -1.f);
    status = (*model)->run(inputs, outputs);
  }
  Ran ran{status, {}};
  for (size_t s = 0; s < 8; ++s) ran.firsts.push_back(y[16 * s]);
  return ran;
}

TEST(Regions, BuffersMoveWithEachTurn) {
  const Ran ran = run(reversing(), 0);
  ASSERT_TRUE(ran.status.ok()) << ran.status.error().message();
  EXPECT_THAT(ran.firsts, ElementsAre(112, 96, 80, 64, 48, 32, 16, 0));
}

TEST(Regions, TheNumberOfTurnsMayBeData) {
  ModelDescription d = reversing();
  d.regions[0].count = BufferRef{BufferKind::kInput, 1, 8};
  EXPECT_THAT(run(d, 3).firsts, ElementsAre(-1, -1, -1, -1, -1, 32, 16, 0));
  EXPECT_THAT(run(d, 0).firsts, Each(-1));
  EXPECT_THAT(run(d, -5).firsts, Each(-1));
  EXPECT_THAT(run(d, 100).firsts, ElementsAre(112, 96, 80, 64, 48, 32, 16, 0));
}

TEST(Regions, AConditionEndsThem) {
  for (const bool until : {false, true}) {
    ModelDescription d = reversing();
    d.regions[0].condition = BufferRef{BufferKind::kInput, 1, 8};
    d.regions[0].until = until;
    EXPECT_EQ(run(d, 0).firsts[7], until ? 0 : -1);
    EXPECT_EQ(run(d, 1).firsts[7], until ? -1 : 0);
    EXPECT_EQ(run(d, 2).firsts[7], until ? -1 : 0);
  }
}

TEST(Regions, OneThatDoesNotEndFails) {
  ModelDescription d = reversing();
  d.regions[0].steps.clear();
  d.regions[0].turns = 0;
  d.regions[0].condition = BufferRef{BufferKind::kInput, 1, 8};
  LoadOptions options;
  options.max_turns = 1000;
  const Ran ran = run(d, 1, options);
  ASSERT_FALSE(ran.status.ok());
  EXPECT_EQ(ran.status.error().code, ErrorCode::kResourceExhausted);
  EXPECT_THAT(ran.status.error().message(), HasSubstr("has not ended after 1000 turns"));
  EXPECT_TRUE(run(d, 0, options).status.ok());
}

TEST(Regions, AreNested) {
  // The outer region's two turns copy four slices each.
  ModelDescription d = reversing();
  RegionInfo inner = d.regions[0];
  inner.turns = 4;
  RegionInfo outer;
  outer.end = 2;
  outer.turns = 2;
  outer.steps = {{0, 0, 4 * kSlice}, {1, 1, -4 * kSlice}};
  d.regions = {outer, inner};
  EXPECT_THAT(run(d, 0).firsts, ElementsAre(112, 96, 80, 64, 48, 32, 16, 0));
}

TEST(Regions, ABranchThatCannotRunFailsWhenItIsTaken) {
  ModelDescription d = reversing();
  CallInfo refusal;
  refusal.routine = refuse_call();
  refusal.task = "If: the reshape does not fit";
  d.calls.push_back(refusal);
  RegionInfo branch;
  branch.begin = 2;
  branch.end = 3;
  branch.condition = BufferRef{BufferKind::kInput, 1, 8};
  d.regions.push_back(branch);
  EXPECT_TRUE(run(d, 0).status.ok());
  const Ran ran = run(d, 1);
  ASSERT_FALSE(ran.status.ok());
  EXPECT_THAT(ran.status.error().message(), HasSubstr("the reshape does not fit"));
}

TEST(Regions, AreReadAsTheyWereWritten) {
  ModelDescription d = reversing();
  d.regions[0].count = BufferRef{BufferKind::kInput, 1, 8};
  d.regions[0].condition = BufferRef{BufferKind::kArena, 64, 1};
  d.regions[0].until = true;
  d.weights_hash = d.kernels_hash = std::string(32, 'a');
  const std::string text = print_manifest(d);
  const auto parsed = parse_manifest(text);
  ASSERT_TRUE(parsed.ok()) << parsed.error().message();
  EXPECT_EQ(print_manifest(*parsed), text);
  ASSERT_EQ(parsed->regions.size(), 1u);
  EXPECT_EQ(parsed->regions[0].steps[1].bytes, -kSlice);
  EXPECT_TRUE(parsed->regions[0].until && parsed->regions[0].count && parsed->regions[0].condition);
}

TEST(Regions, EveryBadValueIsFound) {
  using D = ModelDescription;
  const std::pair<std::function<void(D&)>, const char*> cases[] = {
      {[](D& d) { d.regions[0].end = 3; }, "regions[0]: its calls do not exist"},
      {[](D& d) { d.regions[0].end = 0; }, "regions[0]: its calls do not exist"},
      {[](D& d) { d.regions[0].begin = -1; }, "regions[0]: its calls do not exist"},
      {[](D& d) { d.regions[0].turns = -1; }, "regions[0].turns: is out of range"},
      {[](D& d) { d.regions[0].turns = 0; }, "regions[0].steps[0]: moves too far"},
      {[](D& d) { d.regions[0].turns = 9; }, "calls[0].buffers[0]: needs 64 bytes, but only 0"},
      {[](D& d) { d.regions[0].steps[0].bytes = INT64_MAX; }, "regions[0].steps[0]: moves too far"},
      {[](D& d) { d.regions[0].steps[0].bytes = INT64_MIN; }, "regions[0].steps[0]: moves too far"},
      {[](D& d) { d.regions[0].steps[0].bytes = -kSlice; }, "calls[0].buffers[0]: cannot begin at byte -448"},
      {[](D& d) { d.regions[0].steps[0].call = 2; }, "regions[0].steps[0]: its buffer does not exist"},
      {[](D& d) { d.regions[0].steps[0].buffer = 2; }, "regions[0].steps[0]: its buffer does not exist"},
      {[](D& d) { d.regions[0].count = BufferRef{BufferKind::kInput, 1, 4}; },
       "regions[0].count: has too few bytes"},
      {[](D& d) { d.regions[0].condition = BufferRef{BufferKind::kInput, 2, 1}; },
       "regions[0].condition: input 2 does not exist"},
      {[](D& d) {
         d.regions.push_back({0, 1, 1, {}, {}, false, {}});
         d.regions.push_back({0, 2, 1, {}, {}, false, {}});
       },
       "regions[2]: overlaps another region"},
      {[](D& d) { d.regions.insert(d.regions.begin(), {1, 2, 1, {}, {}, false, {}}); },
       "regions[1]: is not in order"},
      {[](D& d) {
         // The first call reads a slice of the arena and writes another one, which meet in the second turn.
         d.calls[0].buffers[0] = {BufferKind::kArena, 64, 64};
         d.regions[0].turns = 2;
         d.regions[0].steps = {{0, 0, -64}};
       },
       "overlaps another buffer of the call"},
  };
  for (const auto& [damage, message] : cases) {
    ModelDescription d = reversing();
    d.weights_hash = d.kernels_hash = std::string(32, 'a');
    damage(d);
    const auto parsed = parse_manifest(print_manifest(d));
    ASSERT_FALSE(parsed.ok()) << message;
    EXPECT_EQ(parsed.error().code, ErrorCode::kCorrupt);
    EXPECT_THAT(parsed.error().message(), HasSubstr(message));
  }
}

}  // namespace
}  // namespace tensorsmith::runtime::region_test
