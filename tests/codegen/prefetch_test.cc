// Which operands are fetched ahead, seen in the emitted code; that nothing else changes is what all other tests see.
#include <gtest/gtest.h>

#include <regex>
#include <string>

#include "codegen/llvm/codegen.h"
#include "ir/text.h"

namespace tensorsmith {
namespace {

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
