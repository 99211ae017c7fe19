// Every argument that names a file to read is given something else than a file: one error line at
// once, without waiting for the writer of a FIFO or reading a device endlessly.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <algorithm>
#include <fstream>

#include "cli_support.h"

namespace tensorsmith::readers_cli_test {
namespace {

using ::testing::AnyOf;
using ::testing::HasSubstr;
using testing::run_cli;
using testing::TemporaryDirectory;

class Readers : public ::testing::Test {
 protected:
  Readers() {
    EXPECT_EQ(mkfifo(folder_.file("fifo").c_str(), 0600), 0);
    EXPECT_EQ(mkfifo(folder_.file("fifo.json").c_str(), 0600), 0);
    std::filesystem::create_directory(folder_.file("folder"));
    std::filesystem::create_directory(folder_.file("fifos"));
    EXPECT_EQ(mkfifo(folder_.file("fifos/manifest.json").c_str(), 0600), 0);
    std::filesystem::create_directories(folder_.file("data/test_data_set_0"));
    EXPECT_EQ(mkfifo(folder_.file("data/test_data_set_0/input_0.pb").c_str(), 0600), 0);
    EXPECT_EQ(mkfifo(folder_.file("data/test_data_set_0/output_0.pb").c_str(), 0600), 0);
    const auto compiled =
        run_cli({"compile", "zoo:squeezenet1_1:size=32", "--untuned", "-o", folder_.file("compiled")});
    compiled_ = compiled.exit_code == 0;
    std::ofstream(folder_.file("workloads.json")) << "{}";
  }

  // A reader that waits would wait forever; ctest's time limit ends it.
  void expect_refused(std::vector<std::string> arguments) {
    SCOPED_TRACE(::testing::PrintToString(arguments));
    const auto result = run_cli(arguments, {.directory = folder_.path()});
    EXPECT_EQ(result.exit_code, 1);
    EXPECT_EQ(std::count(result.err.begin(), result.err.end(), '\n'), 1) << result.err;
    EXPECT_THAT(result.err, HasSubstr("tensorsmith: error: "));
    EXPECT_THAT(result.err, AnyOf(HasSubstr("FIFO"), HasSubstr("is a device"), HasSubstr("is a folder"),
                                  HasSubstr("not a regular file")));
  }

  TemporaryDirectory folder_;
  bool compiled_ = false;
};

TEST_F(Readers, RefuseWhatIsNoFile) {
  ASSERT_TRUE(compiled_);
  for (const std::string file : {"fifo", "/dev/zero", "folder"}) {
    for (const std::vector<std::string>& arguments : std::initializer_list<std::vector<std::string>>{
             {"tasks", file},
             {"compile", file, "--untuned", "-o", "out"},
             {"compile", "zoo:squeezenet1_1:size=32", "--db", file, "-o", "out"},
             {"predict", "zoo:squeezenet1_1:size=32", "--untuned", "--model", file},
             {"predict", "zoo:squeezenet1_1:size=32", "--model", "none", "--db", file},
             {"tune", "zoo:squeezenet1_1:size=32", "--seconds", "1", "-o", "out", "--from", file},
             {"tune", "zoo:squeezenet1_1:size=32", "--seconds", "1", "-o", "out", "--db", file},
             {"run", "compiled", "--input", "image=" + file},
             {"run", "compiled", "--reference", file},
             {"db", "info", file},
             {"db", "check", file},
             {"db", "import", "new.db", file},
             {"dataset", "stats", file},
             {"dataset", "split", file, "-o", "split"},
             {"dataset", "import", "--workloads", "workloads.json", "cpu=" + file, "-o", "store"},
             {"dataset", "import", "--workloads", file, "cpu=" + file, "-o", "store"},
             {"train", "--model", "roofline", "--store", file, "--split", file, "-o", "model"},
             {"eval", "--model", file, "--store", file, "--split", file}}) {
      expect_refused(arguments);
    }
  }
  expect_refused({"devices", "show", "./fifo.json"});
  expect_refused({"run", "fifos"});
  expect_refused({"bench", "fifos"});
  expect_refused({"run", "compiled", "--check", "data/test_data_set_0"});
}

}  // namespace
}  // namespace tensorsmith::readers_cli_test
