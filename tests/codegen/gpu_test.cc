// Schedules for GPUs compute the workload, compiled as OpenCL C and run by the OpenCL device of
// this machine.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>

#include "codegen/gpu/emitter.h"
#include "codegen/gpu_runner.h"
#include "codegen/opencl/codegen.h"
#include "codegen/runner.h"
#include "ir/scalar.h"
#include "ir/text.h"
#include "lower/lower.h"
#include "runtime/device/test_device.h"
#include "sched/step.h"
#include "support/small_workloads.h"

namespace tensorsmith::gpu_test {
namespace {

using namespace sched;  // NOLINT(google-build-using-namespace): steps
using lower::Tensor;

// Applies steps, given the names of stages and the positions of leaves.
class Scheduler {
 public:
  explicit Scheduler(const ir::Workload& workload) : builder_(workload) {}

  int stage(const std::string& name) const {
    const auto found = builder_.schedule().stage_named(name);
    EXPECT_TRUE(found) << name;
    return found ? static_cast<int>(found->place()) : 0;
  }
  void apply(const Step& step) {
    const Status status = builder_.apply(step);
    ASSERT_TRUE(status.ok()) << status.error().message();
  }
  int leaves(const std::string& name) const {
    return static_cast<int>(
        builder_.schedule().stages[StageId(static_cast<size_t>(stage(name)))].leaves.size());
  }
  const Schedule& schedule() const { return builder_.schedule(); }

 private:
  ScheduleBuilder builder_;
};

// Makes all threads of the block load the stage together, `vector` elements at a time.
void fetch_together(Scheduler& s, const std::string& name, int64_t threads, int64_t vector) {
  const int stage = s.stage(name);
  std::vector<int> all;
  for (int i = 0; i < s.leaves(name); ++i) all.push_back(i);
  s.apply(Fuse{stage, all});
  s.apply(Split{stage, 0, {threads, vector}, true, TailPolicy::kPredicate});
  s.apply(Annotate{stage, 1, Annotation::kThreadX});
  s.apply(Annotate{stage, 2, Annotation::kVectorize});
}

struct Tile {
  int64_t vthread = 1, thread = 1, inner = 1;
};

// C[i, j] = sum_k A[i, k] * B[k, j] with Ansor's structure SSSRRSRS, and A and B in shared memory.
void tile_matmul(Scheduler& s, const Tile& rows, const Tile& columns, int64_t chunk, int64_t vector) {
  s.apply(CacheWrite{s.stage("C"), ir::MemoryScope::kLocal});
  const int c = s.stage("C");
  s.apply(Split{c, 0, {rows.vthread, rows.thread, rows.inner}, true, TailPolicy::kPredicate});
  s.apply(Split{c, 4, {columns.vthread, columns.thread, columns.inner}, true, TailPolicy::kPredicate});
  s.apply(Reorder{c, {0, 4, 1, 5, 2, 6, 3, 7}});
  s.apply(Fuse{c, {0, 1}});
  s.apply(Fuse{c, {1, 2}});
  s.apply(Fuse{c, {2, 3}});
  s.apply(Annotate{c, 0, Annotation::kBlockX});
  s.apply(Annotate{c, 1, Annotation::kVThread});
  s.apply(Annotate{c, 2, Annotation::kThreadX});
  const int local = s.stage("C.local");
  s.apply(ComputeAt{local, s.stage("C"), 2});
  s.apply(Split{local, 2, {chunk}, true, TailPolicy::kPredicate});
  s.apply(Reorder{local, {2, 3, 0, 1}});
  for (const std::string input : {"A", "B"}) {
    s.apply(CacheRead{s.stage(input), ir::MemoryScope::kShared, {s.stage("C.local")}});
    s.apply(ComputeAt{s.stage(input + ".shared"), s.stage("C.local"), 0});
    fetch_together(s, input + ".shared", rows.thread * columns.thread, vector);
  }
}

std::vector<Tensor> random_inputs(const ir::Workload& workload, uint64_t seed) {
  Rng rng(seed);
  std::vector<Tensor> inputs;
  for (const ir::Buffer& b : workload.inputs())
    inputs.push_back(lower::random_tensor(b->dtype, b->shape, rng, 4));
  return inputs;
}

// Also checks by the interpreter, which runs the threads serially.
void check(runtime::Gpu& gpu, const ir::Workload& workload, const Schedule& schedule) {
  const std::vector<Tensor> inputs = random_inputs(workload, 7);
  const auto expected = lower::evaluate(workload, inputs).value();
  const auto lowered = lower::lower(schedule);
  ASSERT_TRUE(lowered.ok()) << lowered.error().message();
  ASSERT_TRUE(lowered->prepared.empty());
  const auto serial = lower::run(lowered->program, inputs);
  ASSERT_TRUE(serial.ok()) << serial.error().message();
  const auto outputs = test::compile_and_run(gpu, lowered->program, test::gpu_for(gpu), inputs);
  ASSERT_TRUE(outputs.ok()) << outputs.error().message();
  ASSERT_EQ(outputs->size(), expected.size());
  for (size_t o = 0; o < expected.size(); ++o) {
    EXPECT_EQ(test::compare((*serial)[o], expected[o], 1e-4, 1e-4), "");
    const std::string difference = test::compare((*outputs)[o], expected[o], 1e-4, 1e-4);
    const auto source = codegen::emit_gpu(lowered->program, test::gpu_for(gpu), {}, codegen::opencl_c());
    EXPECT_EQ(difference, "") << source->text;
  }
}

TEST(Gpu, TilesOfSharedMemory) {
  TS_OPENCL_OR_SKIP(gpu);
  const auto workload = test::small::matmul(64, 64, 32);
  Scheduler s(workload);
  tile_matmul(s, {2, 4, 2}, {1, 8, 4}, 8, 4);
  check(*gpu, workload, s.schedule());
}

TEST(Gpu, TilesThatDoNotDivide) {
  TS_OPENCL_OR_SKIP(gpu);
  for (const auto& [m, n, k] : {std::tuple{65, 70, 33}, {7, 100, 12}, {33, 5, 50}, {1, 3, 1}}) {
    SCOPED_TRACE(std::to_string(m) + "x" + std::to_string(n) + "x" + std::to_string(k));
    const auto workload = test::small::matmul(m, n, k);
    Scheduler s(workload);
    tile_matmul(s, {2, 4, 1}, {1, 8, 1}, 5, 2);
    check(*gpu, workload, s.schedule());
    Scheduler t(workload);
    tile_matmul(t, {1, 8, 3}, {2, 2, 4}, 4, 4);
    check(*gpu, workload, t.schedule());
  }
}

size_t count(const std::string& text, const std::string& what) {
  size_t n = 0;
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + 1)) ++n;
  return n;
}

target::Device any_gpu() {
  target::Device device;
  device.name = "any";
  device.figures = target::GpuFigures{};
  return device;
}

Result<codegen::GpuSource> emit(const std::string& program) {
  const auto parsed = ir::parse_program(program);
  if (!parsed.ok()) return parsed.error();
  return codegen::emit_gpu(*parsed, any_gpu(), {}, codegen::opencl_c());
}

TEST(Gpu, ThreadsMeetTwiceInEachChunk) {
  const auto workload = test::small::matmul(64, 64, 32);
  Scheduler s(workload);
  tile_matmul(s, {2, 4, 2}, {1, 8, 4}, 8, 4);
  const auto source =
      codegen::emit_gpu(lower::lower(s.schedule())->program, any_gpu(), {}, codegen::opencl_c());
  ASSERT_TRUE(source.ok()) << source.error().message();
  // One barrier before the tiles are overwritten, and one before they are read.
  EXPECT_EQ(count(source->text, "barrier("), 2U) << source->text;
  ASSERT_EQ(source->launches.size(), 1U);
  EXPECT_EQ(source->launches[0].block[0], 32);
  EXPECT_EQ(source->launches[0].grid[0], 8);
}

TEST(Gpu, AThreadsOwnElementNeedsNoBarrier) {
  const auto source = emit(R"(program kernel {
  input A: f32[4, 32]
  output B: f32[4, 32]
  block_x i in 4 {
    alloc S: f32[32] shared {
      thread_x j in 32 {
        S[j] = A[i, j]
        S[j] = S[j] * 2.0
        B[i, j] = S[j]
      }
    }
  }
})");
  ASSERT_TRUE(source.ok()) << source.error().message();
  EXPECT_EQ(count(source->text, "barrier("), 0U) << source->text;
}

TEST(Gpu, AnotherThreadsElementNeedsOne) {
  const auto source = emit(R"(program kernel {
  input A: f32[4, 32]
  output B: f32[4, 32]
  block_x i in 4 {
    alloc S: f32[32] shared {
      thread_x j in 32 {
        S[j] = A[i, j]
      }
      thread_x k in 32 {
        B[i, k] = S[31 - k]
      }
    }
  }
})");
  ASSERT_TRUE(source.ok()) << source.error().message();
  EXPECT_EQ(count(source->text, "barrier("), 1U) << source->text;
}

TEST(Gpu, RefusesToMeetWhereNotAllThreadsCome) {
  const auto source = emit(R"(program kernel {
  input A: f32[32]
  output B: f32[32]
  thread_x j in 32 {
    if j < 7 {
      alloc S: f32[32] shared {
        thread_x k in 32 {
          S[k] = A[k]
        }
        B[j] = S[31 - j]
      }
    }
  }
})");
  ASSERT_FALSE(source.ok());
  EXPECT_EQ(source.error().code, ErrorCode::kUnsupported);
  EXPECT_NE(source.error().message().find("not the same for all threads"), std::string::npos)
      << source.error().message();
}

TEST(Gpu, RefusesToWriteWhatIsPrivateToOthers) {
  const auto source = emit(R"(program kernel {
  input A: f32[32]
  output B: f32[32]
  block_x b in 1 {
    alloc S: f32[32] local {
      thread_x k in 32 {
        S[k] = A[k]
      }
      thread_x j in 32 {
        B[j] = S[31 - j]
      }
    }
  }
})");
  ASSERT_FALSE(source.ok());
  EXPECT_NE(source.error().message().find("buffer S: is private"), std::string::npos)
      << source.error().message();
}

TEST(Gpu, RefusesWhatTheDeviceHasNot) {
  target::Device small = any_gpu();
  small.gpu().max_threads_per_block = 16;
  small.gpu().shared_memory_per_block = 64;
  const auto workload = test::small::matmul(64, 64, 32);
  Scheduler s(workload);
  tile_matmul(s, {2, 4, 2}, {1, 8, 4}, 8, 4);
  const auto program = lower::lower(s.schedule())->program;
  const auto threads = codegen::emit_gpu(program, small, {}, codegen::opencl_c());
  ASSERT_FALSE(threads.ok());
  EXPECT_EQ(threads.error().message(), "kernel: a block has 32 threads, but any allows 16");
  small.gpu().max_threads_per_block = 0;
  const auto shared = codegen::emit_gpu(program, small, {}, codegen::opencl_c());
  ASSERT_FALSE(shared.ok());
  EXPECT_NE(shared.error().message().find("bytes of shared memory, but any has 64"), std::string::npos)
      << shared.error().message();
}

// Statements outside the loops over an axis are executed once.
TEST(Gpu, OneThreadDoesWhatIsInNoLoopOverThreads) {
  TS_OPENCL_OR_SKIP(gpu);
  const auto parsed = ir::parse_program(R"(program kernel {
  input A: f32[3, 40]
  output B: f32[3]
  block_x i in 3 {
    alloc S: f32[40] shared {
      thread_x j in 40 {
        S[j] = A[i, j] * 2.0
      }
      B[i] = 0.0
      for k in 40 {
        B[i] = B[i] + S[k]
      }
    }
  }
})");
  ASSERT_TRUE(parsed.ok()) << parsed.error().message();
  Rng rng(3);
  const std::vector<Tensor> inputs = {lower::random_tensor(ir::DType::kF32, {3, 40}, rng)};
  const auto outputs = test::compile_and_run(*gpu, *parsed, test::gpu_for(*gpu), inputs);
  ASSERT_TRUE(outputs.ok()) << outputs.error().message();
  for (int64_t i = 0; i < 3; ++i) {
    double sum = 0;
    for (int64_t j = 0; j < 40; ++j) sum += 2 * inputs[0].at(i * 40 + j).f;
    EXPECT_NEAR((*outputs)[0].at(i).f, sum, 1e-4);
  }
}

// Tests all values: the rounded result is at most one unit away from the rounded result of libm.
TEST(Gpu, ErfOfF16IsOffByAUnitAtMost) {
  TS_OPENCL_OR_SKIP(gpu);
  const auto parsed = ir::parse_program(R"(program kernel {
  input A: f16[256, 256]
  output B: f16[256, 256]
  block_x i in 256 {
    thread_x j in 256 {
      B[i, j] = f16(erf(f32(A[i, j])))
    }
  }
})");
  ASSERT_TRUE(parsed.ok()) << parsed.error().message();
  constexpr int kValues = 1 << 16;
  Tensor all = Tensor::zeros(ir::DType::kF16, {256, 256});
  const auto bits_of = [](const Tensor& t, int i) {
    uint16_t bits = 0;
    std::memcpy(&bits, t.data.data() + 2 * static_cast<size_t>(i), 2);
    return bits;
  };
  for (int i = 0; i < kValues; ++i) {
    const auto bits = static_cast<uint16_t>(i);
    std::memcpy(all.data.data() + 2 * static_cast<size_t>(i), &bits, 2);
  }
  const auto outputs = test::compile_and_run(*gpu, *parsed, test::gpu_for(*gpu), std::span(&all, 1));
  ASSERT_TRUE(outputs.ok()) << outputs.error().message();
  int off = 0;
  for (int i = 0; i < kValues; ++i) {
    const float x = ir::f16_to_f32(bits_of(all, i));
    const uint16_t got = bits_of((*outputs)[0], i);
    if (std::isnan(x)) {
      EXPECT_TRUE(std::isnan(ir::f16_to_f32(got))) << i;
      continue;
    }
    const int distance = got - ir::f32_to_f16(static_cast<float>(std::erf(static_cast<double>(x))));
    EXPECT_LE(std::abs(distance), 1) << x;
    off += distance != 0 ? 1 : 0;
  }
  EXPECT_LT(off, kValues / 20);  // 2.3 %
}

}  // namespace
}  // namespace tensorsmith::gpu_test
