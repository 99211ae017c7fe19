// Traces in few bytes. They are stored in data sets, so the bytes of each step never change.
#include "record/trace_code.h"

#include <gtest/gtest.h>

#include <variant>

namespace tensorsmith::record::trace_code_test {
namespace {

struct Golden {
  const char* text;
  const char* bytes;  // of a trace of this step alone, hexadecimal
};

// All steps in the order of their codes. A new step adds a line at the end.
const Golden kSteps[] = {
    {"split stage=2 iter=5 lengths=[8,16] inner=false tail=peel", "0200040a0410200002"},
    {"follow_split stage=1 iter=2 source=3 n_split=4", "020202040608"},
    {"follow_fused_split stage=1 iter=2 sources=[3,4] level=5 factor=false", "020402040406080a00"},
    {"fuse stage=1 iters=[2,3]", "020602040406"},
    {"reorder stage=1 order=[3,2,1,0]", "0208020806040200"},
    {"annotate stage=1 iter=2 as=parallel", "020a020406"},
    {"unroll stage=1 max_step=512", "020c028008"},
    {"compute_at stage=1 target=2 iter=3", "020e020406"},
    {"reverse_compute_at stage=1 producer=2 iter=3", "0210020406"},
    {"compute_inline stage=1", "021202"},
    {"compute_root stage=2", "021404"},
    {"cache_read stage=1 scope=shared readers=[2,3]", "02160202040406"},
    {"cache_write stage=1 scope=local", "02180204"},
    {"rfactor stage=1 iter=2 axis=3", "021a020406"},
    {"decompose_reduction stage=1 iter=2", "021c0204"},
    {"storage_align stage=1 iter=2 factor=32 offset=-8", "021e0204400f"},
    {"pack_layout stage=1 layout=[0/16%4,1/1%300]", "022002040020080202d804"},
    {"winograd stage=1 m=6", "0222020c"},
    {"dot stage=1 iter=2", "02240204"},
    {"dot16 stage=1 iter=2", "02260204"},
};

std::string hexadecimal(const std::string& bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string out;
  for (const char c : bytes) {
    const auto byte = static_cast<unsigned char>(c);
    out += kDigits[byte >> 4];
    out += kDigits[byte & 15];
  }
  return out;
}

TEST(TraceCode, StepsKeepTheirTextAndBytes) {
  ASSERT_EQ(std::size(kSteps), std::variant_size_v<sched::Step>);
  for (size_t i = 0; i < std::size(kSteps); ++i) {
    const auto trace = sched::parse_trace(kSteps[i].text);
    ASSERT_TRUE(trace.ok()) << trace.error().message();
    ASSERT_EQ(trace->steps.size(), 1U);
    EXPECT_EQ(trace->steps[0].index(), i);
    EXPECT_EQ(sched::print(trace->steps[0]), kSteps[i].text);
    std::string bytes;
    encode_trace(*trace, bytes);
    EXPECT_EQ(hexadecimal(bytes), kSteps[i].bytes) << kSteps[i].text;
    const auto decoded = decode_trace(bytes);
    ASSERT_TRUE(decoded.ok()) << kSteps[i].text;
    EXPECT_EQ(*decoded, *trace);
  }
}

}  // namespace
}  // namespace tensorsmith::record::trace_code_test
