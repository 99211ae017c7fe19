// Which operands are fetched ahead: what a step is to fetch, against loops that are run; and the emitted code. That nothing else
// changes is what all other tests see.
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

namespace tensorsmith {
namespace {

using codegen::next_block;
using codegen::NextBlock;
using codegen::ReadLoop;

// Runs the loops, of which the outermost one goes from block to block: what is read was fetched during the block before, and
// nothing is fetched twice during a block.
void expect_in_time(const std::vector<ReadLoop>& loops, int64_t span, const NextBlock& next) {
  std::vector<int64_t> at(loops.size(), 0);
  std::set<int64_t> before, now;
  for (bool more = true; more;) {
    const int64_t block_begin = loops[0].coefficient * at[0];
    int64_t read = block_begin, fetch = block_begin + next.block;
    for (size_t i = 1; i < loops.size(); ++i) {
      read += loops[i].coefficient * at[i];
      fetch += next.offsets[i - 1] * at[i];
    }
    ASSERT_LE(read + span, block_begin + next.block);  // a block is one piece
    for (int64_t e = read; e < read + span && at[0] > 0; ++e) ASSERT_TRUE(before.contains(e)) << e;
    for (int64_t e = fetch; e < fetch + next.elements; ++e) ASSERT_TRUE(now.insert(e).second) << e;
    size_t i = loops.size();
    for (; i > 0 && ++at[i - 1] == loops[i - 1].extent; --i) at[i - 1] = 0;
    more = i > 0;
    if (i == 1) before = std::exchange(now, {});
  }
}

TEST(NextBlock, IsFetchedInTime) {
  constexpr uint64_t kSeed = 5;
  Rng rng(kSeed);
  SCOPED_TRACE("seed " + std::to_string(kSeed));
  int found = 0;
  for (int n = 0; n < 3000; ++n) {
    const int64_t span = 1 + static_cast<int64_t>(rng.below(5));
    std::vector<ReadLoop> loops;  // the innermost one first
    int64_t block = span;
    for (uint64_t i = rng.below(3); i > 0; --i) {
      loops.push_back({1 + static_cast<int64_t>(rng.below(4)), block});
      block *= loops.back().extent;
    }
    int64_t uses = 1;
    for (uint64_t i = rng.below(3); i > 0; --i) {
      loops.push_back({1 + static_cast<int64_t>(rng.below(3)), 0});
      uses *= loops.back().extent;
    }
    loops.push_back({2 + static_cast<int64_t>(rng.below(3)), block});
    std::reverse(loops.begin(), loops.end());
    const auto next = next_block(loops, span);
    ASSERT_EQ(next.has_value(), uses > 1);
    if (!next) continue;
    ++found;
    EXPECT_EQ(next->block, block);
    EXPECT_EQ(next->depth, 0);
    ASSERT_EQ(next->offsets.size(), loops.size() - 1);
    ASSERT_NO_FATAL_FAILURE(expect_in_time(loops, span, *next));
  }
  EXPECT_GT(found, 500);
}

TEST(NextBlock, NothingForOtherLoops) {
  EXPECT_TRUE(next_block(std::vector<ReadLoop>{{4, 32}, {3, 0}, {8, 4}}, 4));
  EXPECT_FALSE(next_block(std::vector<ReadLoop>{{4, 32}, {8, 4}}, 4));           // used once
  EXPECT_FALSE(next_block(std::vector<ReadLoop>{{4, 64}, {3, 0}, {8, 4}}, 4));   // blocks lie apart
  EXPECT_FALSE(next_block(std::vector<ReadLoop>{{4, 32}, {3, 0}, {8, 8}}, 4));   // gaps in a block
  EXPECT_FALSE(next_block(std::vector<ReadLoop>{{4, 32}, {3, 0}, {8, -4}}, 4));  // backwards
  EXPECT_FALSE(next_block(std::vector<ReadLoop>{{3, 0}, {8, 4}}, 4));            // one block
  EXPECT_FALSE(next_block(std::vector<ReadLoop>{}, 4));
}

target::Device device() {
  target::Device d;
  d.arch = "x86-64";
  d.cpu = "haswell";
  d.features = {"+sse4.2", "+avx", "+avx2", "+fma"};
  d.vector_bytes = 32;
  d.l2_bytes = 256 << 10;
  return d;
}

// C[rows, 64 panels * 16] = A[rows, depth] * W, whose panels of 16 columns lie one after the other.
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

// Eight rows use a panel: each of their steps fetches an eighth of a row of the next one.
TEST(Prefetch, TheNextPanelWhileRowsUseThisOne) { EXPECT_EQ(fetches(packed(8, 256)), 1U); }

// One use is a stream, which prefetchers follow.
TEST(Prefetch, OnlyWhatIsUsedAgain) {
  EXPECT_EQ(fetches(packed(2, 256)), 1U);
  EXPECT_EQ(fetches(packed(1, 256)), 0U);
}

TEST(Prefetch, NothingThatIsSmall) { EXPECT_EQ(fetches(packed(8, 8)), 0U); }  // 32 KiB

// What is fetched would push out what is used: 144 KiB of 256 in a panel.
TEST(Prefetch, NothingThatL2DoesNotHoldTwice) { EXPECT_EQ(fetches(packed(8, 2304)), 0U); }

// Rows of all columns: a panel's rows lie apart.
TEST(Prefetch, NoPanelsThatAreNotOnePiece) {
  EXPECT_EQ(fetches(product(8, 256, "f32[256, 1024]", "W[k, p * 16 + j]")), 0U);
}

// Half of each row is left out: what comes next is not what lies next.
TEST(Prefetch, NoReadsWithGaps) { EXPECT_EQ(fetches(product(8, 256, "f32[64, 256, 32]", "W[p, k, j]")), 0U); }

}  // namespace
}  // namespace tensorsmith
