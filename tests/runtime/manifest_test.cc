#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>

#include "base/hash.h"
#include "tiny_model.h"

namespace tensorsmith::runtime::manifest_test {
namespace {

using ::testing::HasSubstr;

ModelDescription complete() {
  ModelDescription d = TinyModel().description();
  d.cpu_features = {"sse2", "avx2"};
  d.outputs[0].quantization_step = 0.1;
  d.calls[0].buffers[0] = {BufferKind::kInput, 0, 64, 64};
  d.weights = {{"w", 0, 512}, {"b", 512, 64}};
  d.weights_bytes = 576;
  d.weights_hash = content_key("w");
  d.kernels_hash = content_key("k");
  d.name = "name with \"quotes\", \n and \xc3\xa4";
  d.end_to_end = TuningTimes{3e-3, 2e-3, 0.25};
  d.estimate = TuningTimes{3.5e-3, 1.5e-3, 0};
  return d;
}

TEST(Manifest, PrintedTextParsesToTheSameDescription) {
  const std::string text = print_manifest(complete());
  auto parsed = parse_manifest(text);
  ASSERT_TRUE(parsed.ok()) << parsed.error().message();
  EXPECT_EQ(print_manifest(*parsed), text);
  EXPECT_EQ(parsed->name, complete().name);
  EXPECT_EQ(parsed->cpu_features, complete().cpu_features);
  EXPECT_EQ(parsed->inputs[0].shape, complete().inputs[0].shape);
  EXPECT_EQ(parsed->outputs[0].quantization_step, 0.1);
  EXPECT_EQ(parsed->outputs[1].dtype, DType::kI32);
  EXPECT_EQ(parsed->outputs[1].quantization_step, 0);
  ASSERT_EQ(parsed->calls.size(), 2u);
  EXPECT_EQ(parsed->calls[0].symbol, "matmul");
  EXPECT_EQ(parsed->calls[0].measured_seconds, 2e-6);
  EXPECT_EQ(parsed->calls[0].buffers[0].begin, 64);
  EXPECT_EQ(parsed->calls[1].buffers[2].begin, 0);
  EXPECT_EQ(parsed->calls[1].thread_workspace_bytes, 64);
  ASSERT_EQ(parsed->calls[1].buffers.size(), 4u);
  EXPECT_EQ(parsed->calls[1].buffers[0].kind, BufferKind::kArena);
  EXPECT_EQ(parsed->calls[1].buffers[0].index, 64);
  EXPECT_EQ(parsed->calls[1].buffers[3].kind, BufferKind::kOutput);
}

TEST(Manifest, KeepsWhatTuningGained) {
  const auto parsed = parse_manifest(print_manifest(complete()));
  ASSERT_TRUE(parsed.ok()) << parsed.error().message();
  ASSERT_TRUE(parsed->end_to_end && parsed->estimate);
  EXPECT_EQ(parsed->end_to_end->untuned_seconds, 3e-3);
  EXPECT_EQ(parsed->end_to_end->tuned_seconds, 2e-3);
  EXPECT_EQ(parsed->end_to_end->spread, 0.25);
  EXPECT_EQ(parsed->estimate->untuned_seconds, 3.5e-3);
  // A manifest without tuning results has neither field and can be read.
  ModelDescription before = complete();
  before.end_to_end.reset();
  before.estimate.reset();
  const std::string text = print_manifest(before);
  EXPECT_EQ(text.find("end_to_end"), std::string::npos);
  EXPECT_EQ(text.find("estimate"), std::string::npos);
  const auto old = parse_manifest(text);
  ASSERT_TRUE(old.ok()) << old.error().message();
  EXPECT_FALSE(old->end_to_end || old->estimate);
}

TEST(Manifest, EveryBadValueIsFound) {
  using D = ModelDescription;
  const struct {
    std::function<void(D&)> damage;
    const char* message;
  } cases[] = {
      {[](D& d) { d.inputs[0].shape = {-1}; }, "inputs[0]: negative dimension -1"},
      {[](D& d) { d.inputs[0].shape = {int64_t{1} << 40, int64_t{1} << 40}; },
       "inputs[0]: tensor is too large"},
      {[](D& d) { d.inputs[0].shape = {0, INT64_MAX}; }, "inputs[0]: tensor is too large"},
      {[](D& d) { d.outputs[1].name = "y"; }, "outputs[1]: 'y' appears twice"},
      {[](D& d) { d.outputs[1].name = ""; }, "outputs[1]: a tensor needs a name"},
      {[](D& d) { d.arena_bytes = -1; }, "arena_bytes: size of -1 bytes"},
      {[](D& d) { d.arena_bytes = 100; }, "calls[0].buffers[2]: needs 256 bytes, but only 36 are available"},
      {[](D& d) { d.threads = -2; }, "threads: out of range"},
      {[](D& d) { d.end_to_end->untuned_seconds = 0; }, "end_to_end.untuned_seconds: must be above 0"},
      {[](D& d) { d.estimate->tuned_seconds = -1; }, "estimate.tuned_seconds: must be above 0"},
      {[](D& d) { d.end_to_end->spread = -1; }, "end_to_end.spread: is negative"},
      {[](D& d) { d.weights[1].offset = 520; }, "weights[1]: reaches outside"},
      {[](D& d) { d.weights[1].offset = INT64_MAX; }, "weights[1]: reaches outside"},
      {[](D& d) { d.weights[1].offset = 8; }, "weights[1]: offset 8 is not a multiple of 64"},
      {[](D& d) { d.weights_bytes = 575; }, "weights[1]: reaches outside"},
      {[](D& d) { d.calls[0].symbol = ""; }, "calls[0]: a call needs either a symbol or a routine"},
      {[](D& d) { d.calls[0].shared_workspace_bytes = -5; }, "calls[0].shared_workspace_bytes: size of -5"},
      {[](D& d) { d.calls[0].thread_workspace_bytes = INT64_MAX; },
       "calls[0].thread_workspace_bytes: size of"},
      {[](D& d) { d.calls[1].buffers[1].index = 2; }, "calls[1].buffers[1]: weight 2 does not exist"},
      {[](D& d) { d.calls[1].buffers[1].index = -1; }, "calls[1].buffers[1]: weight -1 does not exist"},
      {[](D& d) { d.calls[1].buffers[2].index = 7; }, "calls[1].buffers[2]: output 7 does not exist"},
      {[](D& d) { d.calls[0].buffers[0].index = 1; }, "calls[0].buffers[0]: input 1 does not exist"},
      {[](D& d) { d.calls[0].buffers[0] = {BufferKind::kInput, 0, 129}; },
       "calls[0].buffers[0]: needs 129 bytes, but only 128"},
      {[](D& d) { d.calls[0].buffers[2].index = 65; }, "calls[0].buffers[2]: arena offset 65 is not"},
      {[](D& d) { d.calls[0].buffers[2].index = -64; }, "calls[0].buffers[2]: arena offset -64 is out"},
      {[](D& d) { d.calls[0].buffers[0].bytes = 128; }, "calls[0].buffers[0]: needs 128 bytes, but only 64"},
      {[](D& d) { d.calls[0].buffers[0] = {BufferKind::kInput, 0, 4, 4}; },
       "calls[0].buffers[0]: cannot begin at byte 4"},
      {[](D& d) { d.calls[0].buffers[0].begin = -64; }, "calls[0].buffers[0]: cannot begin at byte -64"},
      {[](D& d) { d.calls[0].buffers[0].begin = 192; }, "calls[0].buffers[0]: cannot begin at byte 192"},
      {[](D& d) { d.calls[0].buffers[2].begin = 64; }, "calls[0].buffers[2]: cannot begin at byte 64"},
      {[](D& d) { d.calls[0].outputs = 4; },
       "calls[0].outputs: is negative or more than its number of buffers"},
      {[](D& d) { d.calls[0].outputs = -1; },
       "calls[0].outputs: is negative or more than its number of buffers"},
      {[](D& d) { d.calls[0].outputs = 2; }, "calls[0].buffers[1]: is written, but is neither"},
      {[](D& d) { d.calls[0].buffers[2] = {BufferKind::kInput, 0, 128}; },
       "calls[0].buffers[2]: is written, but is neither"},
      {[](D& d) { d.calls[1].buffers[2] = {BufferKind::kArena, 0, 128}; },
       "overlaps another buffer of the call"},
      {[](D& d) { d.calls[1].buffers[3] = {BufferKind::kOutput, 0, 4}; },
       "overlaps another buffer of the call"},
  };
  ASSERT_TRUE(validate(complete()).ok());
  for (const auto& c : cases) {
    ModelDescription d = complete();
    c.damage(d);
    auto parsed = parse_manifest(print_manifest(d));
    ASSERT_FALSE(parsed.ok()) << c.message;
    EXPECT_EQ(parsed.error().code, ErrorCode::kCorrupt);
    EXPECT_THAT(parsed.error().message(), HasSubstr(c.message));
  }
}

// The second call becomes a routine: the largest 16 of 64 numbers, with their indices.
ModelDescription with_routine() {
  ModelDescription d = complete();
  CallInfo& call = d.calls[1];
  call.symbol.clear();
  call.routine = RoutineCall{"top_k", {static_cast<int64_t>(DType::kF32), 1, 64, 1, 16, 1, 3}};
  call.outputs = 2;
  call.buffers = {
      {BufferKind::kArena, 0, 256}, {BufferKind::kArena, 256, 64}, {BufferKind::kArena, 320, 128}};
  d.arena_bytes = 448;
  call.thread_workspace_bytes = demands_of(*call.routine)->thread_bytes;
  return d;
}

TEST(Manifest, RoutinesAreReadAsTheyWereWritten) {
  const ModelDescription d = with_routine();
  const auto parsed = parse_manifest(print_manifest(d));
  ASSERT_TRUE(parsed.ok()) << parsed.error().message();
  EXPECT_EQ(parsed->calls[1].routine, d.calls[1].routine);
  EXPECT_FALSE(parsed->calls[0].routine);
}

TEST(Manifest, RoutinesThatDoNotGetWhatTheyDemandAreRefused) {
  using D = ModelDescription;
  const std::pair<std::function<void(D&)>, std::string> cases[] = {
      {[](D& d) { d.calls[1].symbol = "kernel"; }, "a call needs either a symbol or a routine"},
      {[](D& d) { d.calls[1].routine->name = "no_such"; },
       "routine 'no_such' does not exist in this version"},
      {[](D& d) { d.calls[1].routine->parameters[2] = -1; }, "routine 'top_k' a parameter is out of range"},
      {[](D& d) { d.calls[1].routine->parameters[2] = 65; }, "does not give its routine the buffers"},
      {[](D& d) { d.calls[1].routine->parameters.pop_back(); }, "routine 'top_k' a parameter is missing"},
      {[](D& d) { d.calls[1].thread_workspace_bytes = 8; }, "does not give its routine the buffers"},
      {[](D& d) { d.calls[1].outputs = 1; }, "does not give its routine the buffers"},
  };
  for (const auto& [damage, message] : cases) {
    ModelDescription d = with_routine();
    damage(d);
    const auto parsed = parse_manifest(print_manifest(d));
    ASSERT_FALSE(parsed.ok()) << message;
    EXPECT_EQ(parsed.error().code, ErrorCode::kCorrupt);
    EXPECT_THAT(parsed.error().message(), HasSubstr(message));
  }
}

// A model for a GPU: its first call is two launches, and the second one reads what the first left
// in the workspace.
ModelDescription on_gpu() {
  ModelDescription d = complete();
  d.arch = "opencl";
  d.cpu_features.clear();
  d.calls[0].shared_workspace_bytes = 1024;
  d.calls[0].module_begin = 64;
  d.calls[0].module_bytes = 4096;
  d.calls[0].launches = {{"matmul_0", {8, 2, 1}, {32, 4, 1}, 0, {{0, 0}, {1, 0}, {-1, 512}}},
                         {"matmul_1", {1, 1, 1}, {64, 1, 1}, 49152, {{-1, 512}, {2, 0}}}};
  d.calls[0].launches[0].arguments[1].map = TensorMap{.element_bytes = 2,
                                                      .extents = {128, 48, 3},
                                                      .strides = {256, 12288},
                                                      .box = {32, 16, 1},
                                                      .swizzle_bytes = 64};
  return d;
}

TEST(Manifest, LaunchesParseToTheSame) {
  const std::string text = print_manifest(on_gpu());
  const auto parsed = parse_manifest(text);
  ASSERT_TRUE(parsed.ok()) << parsed.error().message();
  EXPECT_EQ(print_manifest(*parsed), text);
  EXPECT_EQ(parsed->calls[0].launches, on_gpu().calls[0].launches);
  EXPECT_EQ(parsed->calls[0].module_begin, 64);
  EXPECT_EQ(parsed->calls[0].module_bytes, 4096);
  EXPECT_TRUE(parsed->calls[1].launches.empty());
  EXPECT_EQ(kernels_file(*parsed), "kernels.gpu");
  EXPECT_EQ(kernels_file(complete()), "kernels.so");
}

TEST(Manifest, EveryBadLaunchIsFound) {
  using D = ModelDescription;
  const struct {
    std::function<void(D&)> damage;
    const char* message;
  } cases[] = {
      {[](D& d) { d.arch = "x86-64"; }, "calls[0].launches: must be empty for a CPU kernel"},
      {[](D& d) { d.calls[0].launches[0].grid[1] = 0; },
       "calls[0].launches[0]: a grid or block is out of range"},
      {[](D& d) { d.calls[0].launches[1].block[0] = int64_t{1} << 40; },
       "calls[0].launches[1]: a grid or block is out of range"},
      {[](D& d) { d.calls[0].launches[1].shared_bytes = -1; },
       "calls[0].launches[1].shared_bytes: size of -1"},
      {[](D& d) { d.calls[0].launches[0].arguments[0].buffer = 3; },
       "calls[0].launches[0].arguments: one refers to a buffer or workspace that does not exist"},
      {[](D& d) { d.calls[0].launches[0].arguments[2].workspace_offset = 1025; },
       "calls[0].launches[0].arguments: one refers to a buffer or workspace that does not exist"},
      {[](D& d) { d.calls[0].launches[0].arguments[1].map->box[1] = 257; },
       "calls[0].launches[0].arguments: a box must have 1 to 256 elements per dimension"},
      {[](D& d) { d.calls[0].launches[0].arguments[1].map->strides[0] = 264; },
       "calls[0].launches[0].arguments: strides of a tensor map must be multiples of 16 bytes"},
      {[](D& d) { d.calls[0].launches[0].arguments[1].map->strides.pop_back(); },
       "calls[0].launches[0].arguments: the lists of a tensor map do not have one entry per dimension"},
      {[](D& d) { d.calls[0].module_begin = -1; }, "calls[0].module_begin: is out of range"},
      {[](D& d) { d.calls[0].module_bytes = INT64_MAX; }, "calls[0].module_begin: is out of range"},
  };
  ASSERT_TRUE(validate(on_gpu()).ok());
  for (const auto& c : cases) {
    ModelDescription d = on_gpu();
    c.damage(d);
    const auto parsed = parse_manifest(print_manifest(d));
    ASSERT_FALSE(parsed.ok()) << c.message;
    EXPECT_THAT(parsed.error().message(), HasSubstr(c.message));
  }
}

TEST(Manifest, WrongJsonTypesNameThePlace) {
  const std::string good = print_manifest(complete());
  const struct {
    const char *from, *to, *message;
  } cases[] = {
      {"\"arena_bytes\": 320", "\"arena_bytes\": \"320\"", "arena_bytes: must be an integer"},
      {"\"arena_bytes\": 320", "\"arena_bytes\": 18446744073709551615", "arena_bytes: must be an integer"},
      {"\"arena_bytes\": 320", "\"arena_bytes\": 1.5", "arena_bytes: must be an integer"},
      {"\"arena_bytes\": 320,", "", "arena_bytes: is missing"},
      {"\"dtype\": \"f32\"", "\"dtype\": \"f33\"", "inputs[0].dtype: unknown element type 'f33'"},
      {"\"kind\": \"weight\"", "\"kind\": \"gold\"",
       "calls[0].buffers[1].kind: unknown kind of buffer 'gold'"},
      {"\"symbol\": \"matmul\"", "\"symbol\": null", "calls[0].symbol: must be a string"},
      {"\"flops\": 1024.0", "\"flops\": []", "calls[0].flops: must be a number"},
      {"\"quantization_step\": 0.1", "\"quantization_step\": -0.1",
       "outputs[0].quantization_step: is negative"},
      {"\"quantization_step\": 0.1", "\"quantization_step\": null",
       "outputs[0].quantization_step: must be a number"},
      {"\"threads\": 2", "\"threads\": 4294967298", "threads: out of range"},
      {"\"spread\": 0.25", "\"spread\": \"much\"", "end_to_end.spread: must be a number"},
  };
  for (const auto& c : cases) {
    std::string text = good;
    const size_t at = text.find(c.from);
    ASSERT_NE(at, std::string::npos) << c.from;
    text.replace(at, std::string(c.from).size(), c.to);
    EXPECT_THAT(parse_manifest(text).error().message(), HasSubstr("hash"));
    auto parsed = parse_manifest(*seal_manifest(text));
    ASSERT_FALSE(parsed.ok()) << c.message;
    EXPECT_EQ(parsed.error().code, ErrorCode::kCorrupt);
    EXPECT_THAT(parsed.error().message(), HasSubstr(c.message));
  }
  EXPECT_FALSE(parse_manifest("[]").ok());
  EXPECT_FALSE(parse_manifest("\xff").ok());
  EXPECT_FALSE(parse_manifest(std::string(1 << 20, '[')).ok());
}

// The hash detects a changed manifest; a manifest is refused if it lacks its own hash or that of
// the kernels or weights.
TEST(Manifest, HashesArePresentAndRight) {
  const std::string good = print_manifest(complete());
  EXPECT_EQ(*seal_manifest(good), good);
  const auto without = [&](const std::string& member, bool seal) {
    std::string text = good;
    const size_t at = text.find("\"" + member + "\": \"");
    EXPECT_NE(at, std::string::npos) << member;
    text.erase(text.find('"', text.find(':', at)) + 1, 32);
    auto parsed = parse_manifest(seal ? *seal_manifest(text) : text);
    EXPECT_FALSE(parsed.ok()) << member;
    return parsed.ok() ? std::string() : parsed.error().message();
  };
  EXPECT_THAT(without("hash", false), HasSubstr("do not have the hash"));
  EXPECT_THAT(without("kernels_hash", true), HasSubstr("kernels_hash: is not a hash"));
  EXPECT_THAT(without("weights_hash", true), HasSubstr("weights_hash: is not a hash"));
  std::string text = good;
  const size_t hash = text.rfind(",\n \"hash\"");
  ASSERT_NE(hash, std::string::npos);
  text.replace(hash, std::string::npos, "\n}\n");
  EXPECT_THAT(parse_manifest(text).error().message(), HasSubstr("hash: is missing"));
}

// The parser would accept this text; printing it, to compute its hash, would recurse a million
// times.
TEST(Manifest, DeepNestingIsRefused) {
  std::string text = print_manifest(complete());
  text.insert(1, "\"deep\": " + std::string(1'000'000, '[') + std::string(1'000'000, ']') + ",");
  EXPECT_THAT(parse_manifest(text).error().message(), HasSubstr("not valid JSON"));
  EXPECT_FALSE(seal_manifest(text).ok());
}

// Any damage gives an error or a valid description.
TEST(Manifest, RandomDamageNeverCrashes) {
  const uint64_t seed = 99;
  SCOPED_TRACE(seed);
  Rng rng(seed);
  const std::string good = print_manifest(complete());
  int accepted = 0;
  for (int round = 0; round < 5000; ++round) {
    std::string text = good;
    for (uint64_t i = 0, n = 1 + rng.below(3); i < n; ++i) {
      if (text.empty()) break;
      const size_t at = rng.below(text.size());
      switch (rng.below(4)) {
        case 0:
          text[at] = static_cast<char>(rng.below(256));
          break;
        case 1:
          text.erase(at, rng.below(20));
          break;
        case 2:
          text.insert(at, std::string(rng.below(4), static_cast<char>('0' + rng.below(10))));
          break;
        default:
          text.resize(at + 1);
          break;
      }
    }
    // Without a new hash, only changes of white space are accepted.
    if (auto plain = parse_manifest(text); plain.ok()) {
      EXPECT_EQ(print_manifest(*plain), good);
    }
    const auto sealed = seal_manifest(text);
    if (!sealed.ok()) continue;
    auto parsed = parse_manifest(*sealed);
    if (parsed.ok()) {
      ++accepted;
      EXPECT_TRUE(validate(*parsed).ok());
    } else {
      EXPECT_FALSE(parsed.error().reason.empty());
    }
  }
  EXPECT_GT(accepted, 10);    // digits and text of harmless fields
  EXPECT_LT(accepted, 4000);  // all other damage is detected
}

}  // namespace
}  // namespace tensorsmith::runtime::manifest_test
