// Prefetching of operands: the computed prefetches of each step, checked by running the loops; and
// the emitted code. All other tests check that prefetching changes nothing else.
#include <gtest/gtest.h>

#include <algorithm>
#include <regex>
#include <set>
#include <string>
#include <utility>

#include "base/rng.h"
#include "codegen/llvm/codegen.h"
#include "codegen/next_block.h"
#include "ir/text.h"

namespace tensorsmith::prefetch_test {
namespace {

using codegen::next_block;
using codegen::next_tile;
using codegen::NextBlock;
using codegen::ReadLoop;
using codegen::StepReads;

// Runs the loops and checks that each read was prefetched during the preceding block, and that
// nothing is fetched twice during a block. The first block of the loop over blocks is exempt.
void expect_in_time(const std::vector<ReadLoop>& loops, const StepReads& step, const NextBlock& next) {
  const auto depth = static_cast<size_t>(next.depth);
  ASSERT_EQ(next.offsets.size(), loops.size() - depth - 1);
  std::vector<int64_t> at(loops.size(), 0);
  std::set<int64_t> before, now;
  for (bool more = true; more;) {
    int64_t block_begin = 0, read = 0, fetch = next.block;
    for (size_t i = 0; i < loops.size(); ++i) {
      read += loops[i].coefficient * at[i];
      if (i <= depth) block_begin += loops[i].coefficient * at[i];
      if (i > depth) fetch += next.offsets[i - depth - 1] * at[i];
    }
    fetch += block_begin;
    for (int64_t piece = 0; piece < step.count; ++piece, read += step.stride) {
      ASSERT_LE(read + step.span, block_begin + next.block);  // a block is contiguous
      for (int64_t e = read; e < read + step.span && at[depth] > 0; ++e) ASSERT_TRUE(before.contains(e)) << e;
    }
    for (int64_t e = fetch; e < fetch + next.elements; ++e) ASSERT_TRUE(now.insert(e).second) << e;
    size_t i = loops.size();
    for (; i > 0 && ++at[i - 1] == loops[i - 1].extent; --i) at[i - 1] = 0;
    more = i > 0;
    if (i <= depth + 1) before = std::exchange(now, {});
  }
}

TEST(NextBlock, IsFetchedInTime) {
  constexpr uint64_t kSeed = 5;
  Rng rng(kSeed);
  SCOPED_TRACE("seed " + std::to_string(kSeed));
  int found = 0;
  for (int n = 0; n < 3000; ++n) {
    StepReads step{1 + static_cast<int64_t>(rng.below(5))};
    std::vector<ReadLoop> loops;  // the innermost one first
    int64_t block = step.span;
    const uint64_t within = rng.below(4), pieces = rng.below(4);
    for (uint64_t i = 0; i < within; ++i) {
      const int64_t extent = 1 + static_cast<int64_t>(rng.below(4));
      // One of the loops may be unrolled.
      if (i == pieces) {
        step.count = extent;
        step.stride = block;
      } else {
        loops.push_back({extent, block});
      }
      block *= extent;
    }
    for (size_t i = loops.size(); i > 1; --i) std::swap(loops[i - 1], loops[rng.below(i)]);
    int64_t uses = 1;
    for (uint64_t i = rng.below(3); i > 0; --i) {
      loops.push_back({1 + static_cast<int64_t>(rng.below(3)), 0});
      uses *= loops.back().extent;
    }
    block += static_cast<int64_t>(
        rng.below(static_cast<uint64_t>(block / 8 + 1)));  // an end that other loops read
    loops.push_back({2 + static_cast<int64_t>(rng.below(3)), block});
    std::reverse(loops.begin(), loops.end());
    const auto next = next_block(loops, step);
    if (uses > 1) {
      ASSERT_TRUE(next);
      EXPECT_EQ(next->block, block);
      EXPECT_EQ(next->depth, 0);
    } else if (step.count == 1) {
      ASSERT_FALSE(next);
    }
    if (!next) continue;
    ++found;
    ASSERT_NO_FATAL_FAILURE(expect_in_time(loops, step, *next));
  }
  EXPECT_GT(found, 500);
}

TEST(NextBlock, NothingForOtherLoops) {
  EXPECT_TRUE(next_block(std::vector<ReadLoop>{{4, 32}, {3, 0}, {8, 4}}, {4}));
  // Rows of a matrix, read along their length, four at a time; a distance of 24 would leave a gap.
  EXPECT_TRUE(next_block(std::vector<ReadLoop>{{4, 80}, {3, 0}, {20, 1}}, {1, 4, 20}));
  EXPECT_FALSE(next_block(std::vector<ReadLoop>{{4, 96}, {3, 0}, {20, 1}}, {1, 4, 24}));
  EXPECT_FALSE(next_block(std::vector<ReadLoop>{{4, 32}, {8, 4}}, {4}));           // used once
  EXPECT_FALSE(next_block(std::vector<ReadLoop>{{4, 64}, {3, 0}, {8, 4}}, {4}));   // blocks are not adjacent
  EXPECT_FALSE(next_block(std::vector<ReadLoop>{{4, 32}, {3, 0}, {8, 8}}, {4}));   // gaps in a block
  EXPECT_FALSE(next_block(std::vector<ReadLoop>{{4, 32}, {3, 0}, {8, -4}}, {4}));  // backwards
  EXPECT_FALSE(next_block(std::vector<ReadLoop>{{3, 0}, {8, 4}}, {4}));            // one block
  EXPECT_FALSE(next_block(std::vector<ReadLoop>{}, {4}));
}

// A step over distant channels; the next tile is some pixels further on.
TEST(NextTile, IsTheLoopAroundWithASmallerStep) {
  EXPECT_EQ(next_tile(std::vector<ReadLoop>{{4, 0}, {8, 14}, {64, 784}}, 512), 14);
  // The reduction has two loops; a loop that reuses the tile is between them and the loop over
  // tiles.
  EXPECT_EQ(next_tile(std::vector<ReadLoop>{{8, 14}, {3, 0}, {8, 6272}, {8, 784}}, 512), 14);
  EXPECT_EQ(next_tile(std::vector<ReadLoop>{{8, 14}, {64, 784}}, 1024), std::nullopt);  // within the range of
      // hardware prefetchers
  EXPECT_EQ(next_tile(std::vector<ReadLoop>{{4, 50176}, {64, 784}}, 512), std::nullopt);
  EXPECT_EQ(next_tile(std::vector<ReadLoop>{{1, 14}, {64, 784}}, 512), std::nullopt);  // one tile
  EXPECT_EQ(next_tile(std::vector<ReadLoop>{{64, 784}}, 512), std::nullopt);
  EXPECT_EQ(next_tile(std::vector<ReadLoop>{}, 512), std::nullopt);
}

target::Device device() {
  target::Device d;
  d.arch = "x86-64";
  d.processor = "haswell";
  d.features = {"+sse4.2", "+avx", "+avx2", "+fma"};
  d.cpu().vector_bytes = 32;
  d.l2_bytes = 256 << 10;
  return d;
}

// C[rows, 64 panels * 16] = A[rows, depth] * W, where the panels of 16 columns are adjacent in
// memory.
std::string product(int rows, int depth, const std::string& weight_type, const std::string& weight) {
  const std::string m = std::to_string(rows), k = std::to_string(depth);
  return "program kernel {\n  input A: f32[" + m + ", " + k + "]\n  input W: " + weight_type +
         "\n  output C: f32[" + m + ", 1024]\n  for p in 64 {\n    for i in " + m +
         " {\n      alloc acc: f32[16] {\n        vectorized j in 16 {\n          acc[j] = 0.0\n        }\n  "
         "      for k in " +
         k + " {\n          vectorized j in 16 {\n            acc[j] = acc[j] + A[i, k] * " + weight +
         "\n          }\n        }\n        vectorized j in 16 {\n          C[i, p * 16 + j] = acc[j]\n      "
         "  }\n      }\n    }\n  }\n}\n";
}

std::string packed(int rows, int depth) {
  return product(rows, depth, "f32[64, " + std::to_string(depth) + ", 16]", "W[p, k, j]");
}

size_t fetches(const std::string& text) {
  const auto program = ir::parse_program(text);
  EXPECT_TRUE(program.ok()) << program.error().message();
  if (!program.ok()) return 0;
  const auto code = codegen::emit_assembly(*program, device(), {});
  EXPECT_TRUE(code.ok()) << code.error().message();
  if (!code.ok()) return 0;
  const std::regex instruction("\tprefetch");
  return static_cast<size_t>(
      std::distance(std::sregex_iterator(code->begin(), code->end(), instruction), {}));
}

// Eight rows use a panel: each of their steps prefetches an eighth of a row of the next panel.
TEST(Prefetch, TheNextPanelWhileRowsUseThisOne) { EXPECT_EQ(fetches(packed(8, 256)), 1U); }

// Data that is used once is a stream, which hardware prefetchers follow.
TEST(Prefetch, OnlyWhatIsUsedAgain) {
  EXPECT_EQ(fetches(packed(2, 256)), 1U);
  EXPECT_EQ(fetches(packed(1, 256)), 0U);
}

TEST(Prefetch, NothingThatIsSmall) { EXPECT_EQ(fetches(packed(8, 8)), 0U); }  // 32 KiB

// Prefetching would evict data in use: a panel takes 144 of 256 KiB.
TEST(Prefetch, NothingThatL2DoesNotHoldTwice) { EXPECT_EQ(fetches(packed(8, 2304)), 0U); }

// Panels and rows as one parallel loop, whose part for a thread is in a separate function.
TEST(Prefetch, ThePanelsOfFusedLoops) {
  const std::string fused = R"(program kernel {
  input A: f32[8, 256]
  input W: f32[64, 256, 16]
  output C: f32[8, 1024]
  parallel t in 512 {
    alloc acc: f32[16] {
      vectorized j in 16 {
        acc[j] = 0.0
      }
      for k in 256 {
        vectorized j in 16 {
          acc[j] = acc[j] + A[t % 8, k] * W[t / 8, k, j]
        }
      }
      vectorized j in 16 {
        C[t % 8, t / 8 * 16 + j] = acc[j]
      }
    }
  }
}
)";
  EXPECT_EQ(fetches(fused), 1U);
}

// A 1x1 convolution of 64 channels.
TEST(Prefetch, TheNextTileOfPixelsWhoseChannelsLieFarApart) {
  const auto convolution = [](int pixels) {
    const std::string p = std::to_string(pixels);
    return "program kernel {\n  input A: f32[64, " + p + ", 16]\n  input W: f32[64]\n  output C: f32[" + p +
           ", 16]\n  for t in " + p +
           " {\n    alloc acc: f32[16] {\n      vectorized j in 16 {\n        acc[j] = 0.0\n      }\n"
           "      for c in 64 {\n        vectorized j in 16 {\n          acc[j] = acc[j] + A[c, t, j] * "
           "W[c]\n"
           "        }\n      }\n      vectorized j in 16 {\n        C[t, j] = acc[j]\n      }\n    }\n  "
           "}\n}\n";
  };
  EXPECT_EQ(fetches(convolution(49)), 1U);  // channels 3,136 bytes apart
  EXPECT_EQ(fetches(convolution(25)), 0U);  // 1,600 bytes
}

// The last panel is read by loops of 250 and of 6 steps: the longer ones prefetch all of the next
// panel.
TEST(Prefetch, PanelsWhoseEndHasLoopsOfItsOwn) {
  std::string text = packed(8, 256);
  const std::string loop = "for k in 256 {";
  const size_t at = text.find(loop), end = text.find("          }\n        }\n", at);
  ASSERT_NE(at, std::string::npos);
  ASSERT_NE(end, std::string::npos);
  std::string tail = text.substr(at, end - at) + "          }\n        }\n        ";
  text.replace(at, loop.size(), "for k in 250 {");
  tail.replace(0, loop.size(), "for k in 6 {");
  for (size_t k = tail.find(", k"); k != std::string::npos; k = tail.find(", k", k + 1))
    tail.replace(k, 3, ", k + 250");
  text.insert(text.find("          }\n        }\n", at) + 22, tail);
  EXPECT_EQ(fetches(text), 1U) << text;
}

// Rows of all columns are not contiguous panels, but distant tiles.
TEST(Prefetch, PanelsThatAreNotOnePieceAsTiles) {
  EXPECT_EQ(fetches(product(8, 256, "f32[256, 1024]", "W[k, p * 16 + j]")), 1U);
}

// Half of each row is skipped: the next data to be read is not the next in memory.
TEST(Prefetch, NoReadsWithGaps) { EXPECT_EQ(fetches(product(8, 256, "f32[64, 256, 32]", "W[p, k, j]")), 0U); }

}  // namespace
}  // namespace tensorsmith::prefetch_test
