// The invocation of Nsight Compute, which a script replaces, and the launcher that it would start,
// on OpenCL.
#include "lab/nsight_compute.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "cli_support.h"
#include "runtime/device/test_device.h"

namespace tensorsmith::lab::nsight_compute_test {
namespace {

using tensorsmith::testing::CliResult;
using tensorsmith::testing::run_cli;
using tensorsmith::testing::TemporaryDirectory;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::Pair;

const std::string kFirst(32, 'a'), kSecond(32, 'b');

class NsightCompute : public ::testing::Test {
 protected:
  // Makes a program from shell text; $csv is the file that counters are written to, $keys the list
  // of records.
  std::string program(const std::string& text) {
    const std::string file = folder_.file("ncu");
    std::ofstream(file) << "#!/bin/sh\n"
                           "printf '%s\\n' \"$@\" > " +
                               folder_.file("arguments") +
                               "\n"
                               "while [ $# -gt 1 ]; do [ \"$1\" = --log-file ] && csv=$2; shift; done\n"
                               "keys=$1\n" +
                               text;
    std::filesystem::permissions(file, std::filesystem::perms::owner_all);
    return file;
  }
  Result<NsightComputeRun> run(const std::string& ncu) {
    target::Device device;
    device.name = "cuda:0";
    return run_nsight_compute(ncu, folder_.file("records.db"), device, {kFirst, kSecond});
  }

  TemporaryDirectory folder_;
};

TEST_F(NsightCompute, CountersAreOfTheRecordsThatKernelsName) {
  const std::string ncu = program(
      "echo '==PROF== Connected' > $csv\n"
      "echo '\"ID\",\"Kernel Name\",\"gpu__time_duration.sum\",\"smsp__inst_executed.sum\"' >> $csv\n"
      "echo '\"\",\"\",\"usecond\",\"inst\"' >> $csv\n"
      "id=0\n"
      "for key in $(cat $keys); do\n"
      "  for part in 0 1; do echo \"\\\"$id\\\",\\\"record_${key}_$part\\\",\\\"3\\\",\\\"100\\\"\" >> $csv; "
      "done\n"
      "done\n"
      "echo 'not launched: some record: why'\n");
  const auto result = run(ncu);
  ASSERT_TRUE(result.ok()) << result.error().message();
  ASSERT_EQ(result->counters.size(), 2u);
  // Two launches belong to one program.
  EXPECT_EQ(result->counters.at(kFirst).at("smsp__inst_executed.sum"), 200);
  EXPECT_NEAR(result->counters.at(kSecond).at("gpu__time_duration.sum"), 6e-6, 1e-12);
  EXPECT_THAT(result->problems, ElementsAre("some record: why"));
  std::ifstream arguments(folder_.file("arguments"));
  const std::string text(std::istreambuf_iterator<char>(arguments), {});
  // It must not change the clocks or profile other kernels.
  EXPECT_THAT(text, HasSubstr("--clock-control\nnone\n"));
  EXPECT_THAT(text, HasSubstr("--kernel-name\nregex:^record_\n"));
}

TEST_F(NsightCompute, SaysWhyItCountedNothing) {
  const auto forbidden = run(program("echo '==ERROR== ERR_NVGPUCTRPERM - no permission' > $csv; exit 1\n"));
  ASSERT_FALSE(forbidden.ok());
  EXPECT_EQ(forbidden.error().code, ErrorCode::kUnsupported);
  EXPECT_THAT(forbidden.error().message(), HasSubstr("ERR_NVGPUCTRPERM"));
  const auto silent = run(program("echo 'out of order' >&2; exit 3\n"));
  ASSERT_FALSE(silent.ok());
  EXPECT_THAT(silent.error().message(), HasSubstr("out of order"));
  const auto missing = run(folder_.file("no_such_ncu"));
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().code, ErrorCode::kIo);
}

// The launcher launches each record's program under the record's name; here on OpenCL, where
// programs are compiled when they are loaded.
TEST_F(NsightCompute, TheLauncherRunsRecordedPrograms) {
  TS_OPENCL_OR_SKIP(gpu);
  const std::string database = folder_.file("gpu.db"), list = folder_.file("keys");
  const CliResult collected = run_cli({"dataset", "collect", "--networks", "bert_tiny", "--per-task", "1",
                                       "--device", "opencl", "--records", "4", "-o", database, "--quiet"});
  ASSERT_EQ(collected.exit_code, 0) << collected.err;
  const auto records = record::Database::open_read_only(database);
  ASSERT_TRUE(records.ok());
  std::ofstream keys(list);
  ASSERT_TRUE((*records)
                  ->for_each([&](const record::Record& record) -> Status {
                    if (record.result.ok()) keys << record.key() << "\n";
                    return {};
                  })
                  .ok());
  keys.close();
  const CliResult launched = run_cli({"__launch", database, "opencl:0", list});
  EXPECT_EQ(launched.exit_code, 0) << launched.err;
  EXPECT_EQ(launched.err, "");
  const CliResult elsewhere = run_cli({"__launch", database, "epyc-7763", list});
  EXPECT_EQ(elsewhere.exit_code, 1);
  EXPECT_THAT(elsewhere.err, HasSubstr("is not a GPU of this machine"));
}

}  // namespace
}  // namespace tensorsmith::lab::nsight_compute_test
