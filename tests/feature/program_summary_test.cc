// Summaries of programs, checked against counts by hand.
#include <gmock/gmock.h>

#include <cmath>
#include <set>

#include "feature/summary_parts.h"
#include "ir/text.h"

namespace tensorsmith::feature::program_summary_test {
namespace {

WorkloadAccess access_of(const std::string& text, double flops = 65536) {
  const auto workload = ir::parse_workload(text);
  EXPECT_TRUE(workload.ok()) << workload.error().message();
  return analyze_accesses(*workload, flops);
}

constexpr const char* kMatmul = R"(workload {
  input A: f32[64, 16]
  input B: f32[16, 32]
  C: f32[x: 64, y: 32] = sum{k: 16} A[x, k] * B[k, y]
  output C
}
)";
constexpr const char* kConv = R"(workload {
  input X: f32[2, 8, 18, 18]
  input W: f32[4, 8, 3, 3]
  C: f32[n: 2, f: 4, y: 8, x: 8] = sum{c: 8, r: 3, s: 3} X[n, c, y * 2 + r, x * 2 + s] * W[f, c, r, s]
  output C
}
)";

// Makes rows of leaf counts with some columns set; values are given without the logarithm.
LeafFeatures leaves_of(std::vector<std::vector<std::pair<const char*, double>>> rows) {
  LeafFeatures out;
  out.vectors.rows = static_cast<int>(rows.size());
  out.vectors.values.assign(rows.size() * kPerStoreWidth, 0.0F);
  for (size_t r = 0; r < rows.size(); ++r) {
    for (const auto& [column, value] : rows[r])
      out.vectors.values[r * kPerStoreWidth + per_store_schema().find(column).value()] =
          static_cast<float>(std::log2(value + 1));
    out.row_numbers.push_back(static_cast<int>(r));
    out.positions.push_back(static_cast<int>(r));
  }
  return out;
}

double column(const ProgramSummary& summary, const std::string& name) {
  if (const auto c = summary_schema(summary.kind).columns.find(name))
    return static_cast<double>(summary.columns[*c]);
  ADD_FAILURE() << "no column " << name;
  return 0;
}
double resource(const ProgramSummary& summary, const std::string& name) {
  if (const auto c = summary_schema(summary.kind).resources.find(name)) return summary.resources[*c];
  ADD_FAILURE() << "no resource " << name;
  return 0;
}
void expect_log(const ProgramSummary& summary, const std::string& name, double value) {
  EXPECT_NEAR(std::exp2(column(summary, name)) / value, 1, 1e-5) << name;
}

// x in 4 blocks x 2 virtual threads x 4 threads x 1 x 2, y in 4 x 1 x 8 x 1 x 1, k in 2 tiles of 4 x 2.
sched::Trace gpu_trace() {
  sched::Trace trace;
  trace.steps = {sched::Split{2, 0, {2, 4, 1, 2}},
                 sched::Split{2, 5, {1, 8, 1, 1}},
                 sched::Split{2, 10, {4, 2}},
                 sched::Annotate{5, 0, sched::Annotation::kBlockX},
                 sched::Annotate{5, 1, sched::Annotation::kThreadX},
                 sched::Split{3, 0, {1}},  // the load of B
                 sched::Split{1, 0, {4}},  // the load of A, in vectors of 4
                 sched::Unroll{4, 16}};
  return trace;
}

TEST(ProgramSummary, TiledGpuByHand) {
  const target::Device v100 = target::find_device("v100").value();
  const WorkloadAccess access = access_of(kMatmul);
  const auto s = summarize_program(access, leaves_of({{{"outer_prod", 100}}}), gpu_trace(), v100);
  ASSERT_EQ(s.kind, ProgramKind::kGpuTiled);
  expect_log(s, "accumulators", 4);
  expect_log(s, "threads", 32);
  expect_log(s, "vthreads", 2);
  expect_log(s, "blocks", 16);
  expect_log(s, "reduce_steps", 2);
  expect_log(s, "reduce_tile", 8);
  expect_log(s, "shared_a", 16 * 8);
  expect_log(s, "shared_b", 8 * 8);
  expect_log(s, "shared_bytes", 4 * 192);
  // A's lanes load 4 elements each from rows of 8: two lanes per row and sector.
  expect_log(s, "sectors_a", 16.0 / 32);
  expect_log(s, "lines_a", 8.0 / 32);    // rows are 16 elements apart: two per line
  expect_log(s, "sectors_b", 4.0 / 32);  // contiguous rows of 8, 32 apart
  expect_log(s, "run_a", 4 * 8);
  expect_log(s, "fill_a", 4);
  expect_log(s, "fill_use_a", 1);
  // Four values of A, 16 words apart: two in each of two banks. Eight contiguous values of B.
  expect_log(s, "bank_rounds_a", 2);
  expect_log(s, "bank_rounds_b", 1);
  expect_log(s, "store_sectors_lane", 4.0 / 32);
  // 16 blocks for 80 multiprocessors: each has at most one.
  expect_log(s, "resident_blocks", 1);
  expect_log(s, "rounds", 1);
  expect_log(s, "tail", 80.0 / 16);
  expect_log(s, "occupancy", 32.0 / 2048);
  // Loads per multiply-add of a thread's 2 x 1 tile: 2 of A and 1 of B for 2.
  expect_log(s, "reads_per_fma", 1.5);
  // Copies: 2 virtual threads x 2 rows x 2 of the reduction = 8; another factor of 4 would give 32
  // > 16.
  expect_log(s, "unrolled", 8);
  expect_log(s, "rest_reduce", 4);
  expect_log(s, "rest_spatial", 1);
  // The only warp of a multiprocessor has a scheduler, with 16 of the 64 lanes, to itself: 2 steps
  // of 4 x 8 multiply-adds in 2 cycles each. It loads 1.5 words of shared memory per multiply-add.
  constexpr double kCycle = 1 / 1.53e9;
  EXPECT_NEAR(resource(s, "multiply_adds"), 2 * 32 * 2 * kCycle, 1e-14);
  EXPECT_NEAR(resource(s, "shared_reads"), 2 * 32 * 1.5 * kCycle, 1e-14);
  EXPECT_NEAR(resource(s, "shared_conflicts"), 2 * 32 * 1.0 * kCycle, 1e-14);  // A's second round
  // Per step and lane: 4 words of A in one load, and 2 of B in two loads.
  EXPECT_NEAR(resource(s, "fetch_words"), 2 * 6 * kCycle, 1e-14);
  EXPECT_NEAR(resource(s, "fetch_instructions"), 2 * 3 * kCycle, 1e-14);
  EXPECT_NEAR(resource(s, "fetch_latencies"), 2 * 3 * 440 * kCycle, 1e-12);
  EXPECT_NEAR(resource(s, "dispatch"), 16 * 3 * kCycle, 1e-14);
  EXPECT_NEAR(resource(s, "dram_once"), 4.0 * (64 * 16 + 16 * 32 + 64 * 32) / 900e9, 1e-14);
}

// If there are more blocks than fit, they run in rounds. The busiest multiprocessor determines the
// time, and its warps share four schedulers.
TEST(ProgramSummary, RoundsOfBlocks) {
  const target::Device v100 = target::find_device("v100").value();
  const target::GpuMachine gpu(v100);
  const auto warps = [](const Rounds& r) {
    return r.sum([&](double blocks) { return r.scheduler_warps(blocks); });
  };
  const Rounds few(28, 8, 3, gpu);  // one block of 3 warps, each with its own scheduler
  EXPECT_EQ(few.of_core, 1);
  EXPECT_EQ(few.resident, 1);
  EXPECT_EQ(few.count, 1);
  EXPECT_DOUBLE_EQ(few.tail, 80.0 / 28);
  EXPECT_EQ(warps(few), 1);
  const Rounds many(80 * 18 + 1, 8, 3, gpu);  // 19 blocks: 8, 8 and 3
  EXPECT_EQ(many.of_core, 19);
  EXPECT_EQ(many.resident, 8);
  EXPECT_EQ(many.count, 3);
  EXPECT_EQ(warps(many), 6 + 6 + 3);
}

// A compiler for NVIDIA knows the block's threads; one for AMD must allow the largest block: 65536
// registers shared by 32 or 1024 threads. Values that do not fit the registers are spilled to
// memory.
TEST(ProgramSummary, RegistersOfAThread) {
  const WorkloadAccess access = access_of(kMatmul);
  const target::Device v100 = target::find_device("v100").value(), mi50 = target::find_device("mi50").value();
  const auto on = [&](const target::Device& device, int64_t threads, int64_t rows) {
    sched::Trace trace = gpu_trace();
    trace.steps[0] = sched::Split{2, 0, {1, 1, 1, rows}};
    trace.steps[1] = sched::Split{2, 5, {1, threads, 1, 1}};
    return summarize_program(access, leaves_of({{}}), trace, device);
  };
  expect_log(on(v100, 32, 64), "register_limit", 255);
  expect_log(on(v100, 448, 64), "register_limit", 144);  // 146.3, in steps of 8
  expect_log(on(mi50, 32, 64), "register_limit", 64);
  expect_log(on(mi50, 32, 64), "accumulator_pressure", 1);
  EXPECT_EQ(resource(on(v100, 32, 64), "spill_issue"), 0);
  EXPECT_GT(resource(on(mi50, 32, 64), "spill_issue"), 0);
  EXPECT_EQ(resource(on(mi50, 32, 32), "spill_issue"), 0);
}

// Neighbouring windows overlap: the tile of the input is (8 - 1) * 2 + 3 wide.
TEST(ProgramSummary, WindowsOverlap) {
  const WorkloadAccess access = access_of(kConv);
  EXPECT_EQ(access.structure, WorkloadStructure::kContraction);
  ASSERT_TRUE(access.has_product());
  EXPECT_TRUE(access.reads[0].windowed());
  EXPECT_FALSE(access.reads[1].windowed());
  sched::Trace trace;
  trace.steps = {sched::Split{3, 0, {1, 1, 1, 1}},  sched::Split{3, 5, {1, 4, 1, 1}},
                 sched::Split{3, 10, {1, 8, 1, 1}}, sched::Split{3, 15, {1, 8, 1, 1}},
                 sched::Split{3, 20, {1, 4}},       sched::Split{3, 23, {3, 1}},
                 sched::Split{3, 26, {1, 3}}};
  const auto s = summarize_program(access, leaves_of({{}}), trace, target::find_device("mi50").value());
  ASSERT_EQ(s.kind, ProgramKind::kGpuTiled);
  expect_log(s, "shared_a", 4 * 17 * 17);
  expect_log(s, "shared_b", 4 * 4 * 3 * 3);
  expect_log(s, "blocks", 2);
  expect_log(s, "reduce_steps", 2);
}

// A summary contains nothing about tensor cores, so products that they may compute have a separate
// structure on devices with tensor cores.
TEST(ProgramSummary, WhatTensorCoresMayComputeIsAStructureOfItsOwn) {
  const WorkloadAccess access = access_of(R"(workload {
  input A: f16[4096, 4096]
  input B: f16[4096, 4096]
  C: f32[x: 4096, y: 4096] = sum{k: 4096} f32(A[x, k]) * f32(B[k, y])
  output C
}
)",
                                          2.0 * 4096 * 4096 * 4096);
  const auto on = [&](const char* device) {
    return summarize_program(access, leaves_of({{}}), {}, target::find_device(device).value());
  };
  const auto h100 = on("h100"), k80 = on("k80"), cpu = on("xeon-8358");
  EXPECT_EQ(h100.structure, WorkloadStructure::kMma);
  EXPECT_EQ(k80.structure, access.structure);
  EXPECT_EQ(cpu.structure, access.structure);
  // 137 GFLOP at 16 times the 67 TFLOP/s of the lanes: 128 us; cuBLAS takes 184.
  EXPECT_NEAR(h100.roofline_seconds, 128e-6, 2e-6);
  EXPECT_EQ(summarize_program(access_of(kMatmul), leaves_of({{}}), {}, target::find_device("h100").value())
                .structure,
            WorkloadStructure::kContraction);
}

TEST(ProgramSummary, StructuresByWhatIsComputed) {
  EXPECT_EQ(access_of(kMatmul).structure, WorkloadStructure::kContraction);
  EXPECT_EQ(access_of(R"(workload {
  input X: f32[2, 8, 18, 18]
  input W: f32[8, 3, 3]
  C: f32[n: 2, c: 8, y: 16, x: 16] = sum{r: 3, s: 3} X[n, c, y + r, x + s] * W[c, r, s]
  output C
}
)")
                .structure,
            WorkloadStructure::kWindow);
  EXPECT_EQ(access_of(R"(workload {
  input X: f32[2, 18]
  C: f32[n: 2, x: 16] = max{s: 3} X[n, x + s]
  output C
}
)")
                .structure,
            WorkloadStructure::kPooling);
  EXPECT_EQ(access_of(R"(workload {
  input X: f32[2, 18]
  C: f32[n: 2] = sum{s: 18} X[n, s]
  output C
}
)")
                .structure,
            WorkloadStructure::kReduction);
  const WorkloadAccess relu = access_of(R"(workload {
  input X: f32[2, 18]
  C: f32[n: 2, x: 18] = max(X[n, x], 0.0)
  output C
}
)");
  EXPECT_EQ(relu.structure, WorkloadStructure::kElementwise);
  EXPECT_EQ(relu.input_bytes, 144);
  EXPECT_EQ(relu.output_bytes, 144);
}

// i: 2 x 4 x 2 x 4 and j: 1 x 2 x 1 x 16 of a 64 x 32 output, k: 4 x 4; 16 chunks on the Xeon's 32 cores.
TEST(ProgramSummary, TiledCpuByHand) {
  const target::Device xeon = target::find_device("xeon-8358").value();
  const WorkloadAccess access = access_of(kMatmul);
  sched::Trace trace;
  trace.steps = {sched::Split{2, 0, {4, 2, 4}}, sched::Split{2, 4, {2, 1, 16}}, sched::Split{2, 8, {4}},
                 sched::Annotate{2, 9, sched::Annotation::kVectorize}, sched::Unroll{2, 64}};
  const LeafFeatures leaves = leaves_of({{{"float_addsub", 32768},
                                          {"float_mul", 32768},
                                          {"vec_num", 1},
                                          {"vec_len", 16},
                                          {"parallel_num", 1},
                                          {"parallel_prod", 16},
                                          {"outer_prod", 32768}}});
  const auto s = summarize_program(access, leaves, trace, xeon);
  ASSERT_EQ(s.kind, ProgramKind::kCpuTiled);
  expect_log(s, "chunks", 16);
  expect_log(s, "imbalance", 2);
  expect_log(s, "row", 16);
  expect_log(s, "rows", 4);
  expect_log(s, "accumulators", 4);
  expect_log(s, "loads_per_fma", 5.0 / 4);
  expect_log(s, "reduce_steps", 4);
  // A chunk is a middle tile (8 x 16) with all of k.
  expect_log(s, "chunk_output", 4 * 8 * 16);
  expect_log(s, "chunk_bytes", 4 * (8 * 16 + 16 * 16));
  // One round of chunks: the vector multiply-adds of each core, in seconds.
  EXPECT_NEAR(resource(s, "multiply_adds"), 32768.0 / 16 / 16 / 2.6e9, 1e-14);
  EXPECT_NEAR(resource(s, "floats"), 65536.0 / (2 * 2 * 16) / 2.6e9 / 16, 1e-13);
}

// If the tile sizes do not match axes of the workload, only the counts of the leaves are used.
TEST(ProgramSummary, OtherProgramsAreNotTiled) {
  const WorkloadAccess access = access_of(kMatmul);
  sched::Trace trace;
  trace.steps = {sched::Split{2, 0, {2, 4, 1, 2}}};
  const target::Device v100 = target::find_device("v100").value(),
                       xeon = target::find_device("xeon-8358").value();
  EXPECT_EQ(summarize_program(access, leaves_of({{}}), trace, v100).kind, ProgramKind::kGpuFlat);
  EXPECT_EQ(summarize_program(access, leaves_of({{}}), {}, xeon).kind, ProgramKind::kCpuOther);
  EXPECT_EQ(summarize_program({}, {}, {}, xeon).kind, ProgramKind::kCpuOther);
}

// Each name occurs once, there are as many names as values, and all values are finite, also if a
// device file gives few attributes.
TEST(ProgramSummary, NamesAndValuesBelongTogether) {
  target::Device bare;
  bare.figures = target::GpuFigures{};
  const target::Device bare_cpu;
  const WorkloadAccess access = access_of(kMatmul);
  sched::Trace cpu;
  cpu.steps = {sched::Split{2, 0, {4, 2, 4}}, sched::Split{2, 4, {2, 1, 16}}, sched::Split{2, 8, {4}}};
  WorkloadAccess own = access;
  own.workload = std::make_shared<const ir::Workload>(ir::parse_workload(kMatmul).value());
  std::set<ProgramKind> kinds;
  for (const auto& s :
       {summarize_program(access, leaves_of({{}}), gpu_trace(), bare),
        summarize_program(access, leaves_of({{}}), {}, bare),
        summarize_program(access, leaves_of({{}}), cpu, bare_cpu), summarize_program({}, {}, {}, bare_cpu),
        summarize_program(own, leaves_of({{}}), {}, bare_cpu)}) {
    kinds.insert(s.kind);
    const auto resources = summary_schema(s.kind).resources.names();
    const auto columns = summary_schema(s.kind).columns.names();
    EXPECT_EQ(s.resources.size(), resources.size());
    EXPECT_EQ(s.columns.size(), columns.size());
    std::set<std::string> names(resources.begin(), resources.end());
    EXPECT_EQ(names.size(), resources.size()) << to_string(s.kind);
    names = {columns.begin(), columns.end()};
    EXPECT_EQ(names.size(), columns.size()) << to_string(s.kind);
    for (const double seconds : s.resources) EXPECT_TRUE(std::isfinite(seconds) && seconds >= 0);
    for (const float value : s.columns) EXPECT_TRUE(std::isfinite(value));
    EXPECT_GT(s.roofline_seconds, 0);
  }
  EXPECT_EQ(kinds.size(), static_cast<size_t>(kProgramKinds));
}

}  // namespace
}  // namespace tensorsmith::feature::program_summary_test
