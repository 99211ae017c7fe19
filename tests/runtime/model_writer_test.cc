#include "runtime/model_writer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include <fstream>

#include "runtime/model.h"
#include "tiny_model.h"

namespace tensorsmith::runtime::model_writer_test {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

size_t entries(const fs::path& directory) {
  return static_cast<size_t>(std::distance(fs::directory_iterator(directory), fs::directory_iterator()));
}

TEST(ModelWriter, LaysWeightsOutAligned) {
  ScratchDirectory scratch;
  TinyModel tiny;
  ASSERT_TRUE(tiny.write(scratch / "a/b/m/").ok());  // parents are created; a final slash is allowed
  EXPECT_EQ(entries(scratch.path() / "a/b"), 1u);
  EXPECT_EQ(fs::file_size(scratch / "a/b/m/weights.bin"), 576u);
  auto model = Model::load(scratch / "a/b/m", {.threads = 1});
  ASSERT_TRUE(model.ok()) << model.error().message();
  const auto& d = (*model)->description();
  ASSERT_EQ(d.weights.size(), 2u);
  EXPECT_EQ(d.weights[1].offset, 512);
  EXPECT_EQ(d.weights[1].bytes, 64);
  // Other users can read the directory, as the umask allows.
  struct stat info{};
  ASSERT_EQ(::stat((scratch / "a/b/m").c_str(), &info), 0);
  const mode_t mask = ::umask(0);
  ::umask(mask);
  EXPECT_EQ(info.st_mode & 0777, 0777 & ~mask);
}

TEST(ModelWriter, ReplacesAModelAndAnEmptyDirectoryOnly) {
  ScratchDirectory scratch;
  TinyModel tiny;
  fs::create_directory(scratch / "m");
  ASSERT_TRUE(tiny.write(scratch / "m").ok());
  auto d = tiny.description();
  d.name = "second";
  ASSERT_TRUE(write_model(scratch / "m", d, std::string(TINY_KERNELS), tiny.weights()).ok());
  EXPECT_EQ(Model::load(scratch / "m").value()->description().name, "second");
  EXPECT_EQ(entries(scratch.path()), 1u);

  fs::create_directory_symlink(scratch / "m", scratch / "link");
  ASSERT_TRUE(tiny.write(scratch / "link").ok());
  EXPECT_TRUE(fs::is_symlink(scratch / "link"));
  EXPECT_EQ(Model::load(scratch / "m").value()->description().name, "tiny");

  fs::create_directory(scratch / "precious");
  std::ofstream(scratch / "precious/thesis.txt") << "text";
  auto status = tiny.write(scratch / "precious");
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, ErrorCode::kInvalidArgument);
  EXPECT_THAT(status.error().message(), HasSubstr("exists and is not a compiled model"));
  EXPECT_TRUE(fs::exists(scratch / "precious/thesis.txt"));
  EXPECT_FALSE(tiny.write(scratch / "precious/thesis.txt").ok());
  // A file with the name of a manifest does not make the directory a model.
  std::ofstream(scratch / "precious/manifest.json") << R"({"manifest_version": 3})";
  EXPECT_FALSE(tiny.write(scratch / "precious").ok());
  EXPECT_TRUE(fs::exists(scratch / "precious/thesis.txt"));
  // A directory that holds other files besides a model is not replaced.
  std::ofstream(scratch / "m/notes.txt") << "text";
  EXPECT_THAT(tiny.write(scratch / "m").error().message(), HasSubstr("holds 'notes.txt'"));
  EXPECT_THAT(check_replaceable(scratch / "m").error().message(), HasSubstr("holds 'notes.txt'"));
  EXPECT_TRUE(check_replaceable(scratch / "new/place").ok());
  fs::remove(scratch / "m/notes.txt");
  EXPECT_TRUE(check_replaceable(scratch / "m").ok());
  EXPECT_FALSE(tiny.write("").ok());
  EXPECT_FALSE(tiny.write("..").ok());
}

// Unchanged weights, often hundreds of megabytes, are not written again; only the contents of the
// file count.
TEST(ModelWriter, KeepsTheFileOfWeightsThatDidNotChange) {
  ScratchDirectory scratch;
  TinyModel tiny;
  const std::string file = scratch / "m/weights.bin";
  const auto inode = [&] {
    struct stat info{};
    EXPECT_EQ(::stat(file.c_str(), &info), 0);
    EXPECT_EQ(info.st_nlink, 1u);
    return info.st_ino;
  };
  const auto write = [&] {
    auto d = tiny.description();
    d.name += "+";
    ASSERT_TRUE(write_model(scratch / "m", d, std::string(TINY_KERNELS), tiny.weights()).ok());
    const auto model = Model::load(scratch / "m", {.threads = 1, .verify_weights = true});
    ASSERT_TRUE(model.ok()) << model.error().message();
    EXPECT_EQ((*model)->description().name, d.name);
  };
  ASSERT_TRUE(tiny.write(scratch / "m").ok());
  // The file is held open, so that no new file gets its inode number.
  const std::ifstream first(file);
  const ino_t before = inode();
  write();
  EXPECT_EQ(inode(), before);

  tiny.w[3] += 1;
  write();
  const std::ifstream second(file);
  const ino_t changed = inode();
  EXPECT_NE(changed, before);

  fs::resize_file(file, 575);  // truncated
  write();
  const std::ifstream third(file);
  const ino_t whole = inode();
  EXPECT_NE(whole, changed);

  std::fstream(file, std::ios::in | std::ios::out | std::ios::binary).write("damaged", 7);
  write();
  EXPECT_NE(inode(), whole);
}

// A limit on file sizes simulates a full disk: writing fails in the middle.
TEST(ModelWriter, FullDiskLeavesNothingAndKeepsTheOldModel) {
  ScratchDirectory scratch;
  TinyModel tiny;
  ASSERT_TRUE(tiny.write(scratch / "m").ok());
  for (const rlim_t limit : {100, 600, 4000}) {  // within weights.bin, and within kernels.so
    const pid_t child = ::fork();
    if (child == 0) {
      ::signal(SIGXFSZ, SIG_IGN);
      const rlimit value{limit, limit};
      ::setrlimit(RLIMIT_FSIZE, &value);
      auto d = tiny.description();
      d.name = "second";
      tiny.w[0] += 1;  // changed weights, since unchanged ones are not written again
      const auto status = write_model(scratch / "m", d, std::string(TINY_KERNELS), tiny.weights());
      const bool expected = !status.ok() && status.error().code == ErrorCode::kIo &&
                            status.error().message().find("cannot write") != std::string::npos;
      ::_exit(expected ? 0 : 1);
    }
    int state = 0;
    ASSERT_EQ(::waitpid(child, &state, 0), child);
    EXPECT_TRUE(WIFEXITED(state) && WEXITSTATUS(state) == 0) << limit;
    EXPECT_EQ(entries(scratch.path()), 1u) << limit;
    auto model = Model::load(scratch / "m", {.threads = 1});
    ASSERT_TRUE(model.ok()) << model.error().message();
    EXPECT_EQ((*model)->description().name, "tiny");
  }
}

TEST(ModelWriter, RefusesWhatTheLoaderWouldRefuse) {
  ScratchDirectory scratch;
  TinyModel tiny;
  auto d = tiny.description();
  d.calls[0].buffers[2].bytes = 257;
  auto status = write_model(scratch / "m", d, std::string(TINY_KERNELS), tiny.weights());
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().message(), "calls[0].buffers[2]: needs 257 bytes, but only 256 are available");
  // The manifest would be longer than the loader reads.
  auto weights = tiny.weights();
  weights.resize(17'000, {std::string(4'000, 'w'), {}});
  status = write_model(scratch / "m", tiny.description(), std::string(TINY_KERNELS), weights);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, ErrorCode::kResourceExhausted);
  EXPECT_EQ(entries(scratch.path()), 0u);
}

}  // namespace
}  // namespace tensorsmith::runtime::model_writer_test
