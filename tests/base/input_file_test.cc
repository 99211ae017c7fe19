#include "base/input_file.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "base/json_text.h"

namespace tensorsmith::input_file_test {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;

class InputFile : public ::testing::Test {
 protected:
  InputFile() {
    std::string pattern = (fs::temp_directory_path() / "tensorsmith_input_XXXXXX").string();
    root_ = mkdtemp(pattern.data());
    fs::create_directories(root_ / "model/deep");
    write("model/data", "0123456789");
    write("secret", "secret");
  }
  ~InputFile() override { fs::remove_all(root_); }
  std::string at(const std::string& name) const { return (root_ / name).string(); }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(root_ / name, std::ios::binary) << text;
  }
  // Returns the content that a reader gets for a path below the model's folder.
  std::string below(const std::string& path, const std::string& also = "") const {
    const auto file = open_input_below(at("model"), path, also);
    if (!file.ok()) return std::string(to_string(file.error().code)) + " " + file.error().message();
    const auto text = read_input(*file, path, 100);
    return text.ok() ? *text : text.error().message();
  }
  fs::path root_;
};

TEST_F(InputFile, IsReadWhole) {
  EXPECT_EQ(*read_input(at("model/data"), 10), "0123456789");
  write("empty", "");
  EXPECT_EQ(*read_input(at("empty"), 0), "");
  fs::create_symlink(at("model/data"), at("link"));
  EXPECT_EQ(*read_input(at("link"), 10), "0123456789");
  char part[3];
  ASSERT_TRUE(read_exactly(*open_input(at("link")), "", 4, part, 3).ok());
  EXPECT_EQ(std::string(part, 3), "456");
  EXPECT_EQ(read_exactly(*open_input(at("link")), "link", 8, part, 3).error().code, ErrorCode::kCorrupt);
  // The file's reported size is not its length.
  EXPECT_THAT(*read_input("/proc/self/status", 1 << 20), HasSubstr("VmSize"));
}

TEST_F(InputFile, HasALimit) {
  const auto text = read_input(at("model/data"), 9);
  ASSERT_FALSE(text.ok());
  EXPECT_EQ(text.error().code, ErrorCode::kResourceExhausted);
  EXPECT_THAT(text.error().message(), HasSubstr("data: is longer than 9 bytes"));
  write("large", "");
  fs::resize_file(root_ / "large", uintmax_t{1} << 40);  // a sparse file of a terabyte
  EXPECT_THAT(read_input(at("large"), int64_t{1} << 30).error().message(), HasSubstr("is longer than 1 GiB"));
  EXPECT_THAT(read_input("/proc/self/status", 10).error().message(), HasSubstr("is longer than 10 bytes"));
}

// None of these is opened, and no call blocks.
TEST_F(InputFile, WhatIsNoFile) {
  ASSERT_EQ(mkfifo(at("fifo").c_str(), 0600), 0);
  const int server = socket(AF_UNIX, SOCK_STREAM, 0);
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  std::strncpy(address.sun_path, at("socket").c_str(), sizeof(address.sun_path) - 1);
  ASSERT_EQ(bind(server, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  for (const auto& [path, message] : {std::pair(at("fifo"), "is a FIFO or pipe, not a file"),
                                      {at("socket"), "is a socket, not a file"},
                                      {"/dev/zero", "is a device, not a file"},
                                      {at("model"), "is a folder, not a file"}}) {
    const auto file = read_input(path, 1 << 20);
    ASSERT_FALSE(file.ok()) << path;
    EXPECT_EQ(file.error().code, ErrorCode::kInvalidArgument);
    EXPECT_THAT(file.error().message(), HasSubstr(path + ": " + message));
  }
  ::close(server);
  EXPECT_EQ(open_input(at("none")).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(open_input(at("secret/none")).error().code, ErrorCode::kNotFound);
}

TEST_F(InputFile, BelowAFolder) {
  EXPECT_EQ(below("data"), "0123456789");
  EXPECT_EQ(below("./deep/../data"), "0123456789");
  fs::create_symlink("../data", root_ / "model/deep/up");  // stays inside
  EXPECT_EQ(below("deep/up"), "0123456789");
  fs::create_symlink(root_ / "model/data", root_ / "model/whole");
  EXPECT_EQ(below("whole"), "0123456789");

  fs::create_symlink("../secret", root_ / "model/out");
  fs::create_directory_symlink(root_, root_ / "model/above");
  fs::create_symlink("out", root_ / "model/twice");
  for (const char* path : {"../secret", "out", "above/secret", "twice", "deep/../../secret"}) {
    EXPECT_THAT(below(path), HasSubstr("outside the folder")) << path;
  }
  EXPECT_THAT(below(at("secret")), HasSubstr("outside the folder"));
  EXPECT_THAT(below("/proc/self/cwd"), HasSubstr("outside the folder"));
  EXPECT_THAT(below("none"), HasSubstr("no such file"));
  EXPECT_THAT(below("deep"), HasSubstr("is a folder"));
  ASSERT_EQ(mkfifo(at("model/fifo").c_str(), 0600), 0);
  EXPECT_THAT(below("fifo"), HasSubstr("is a FIFO"));
}

// A cache that names files by their hashes, with folders of symlinks to them.
TEST_F(InputFile, BelowAnotherFolder) {
  fs::create_directory(root_ / "blobs");
  write("blobs/4711", "weights");
  fs::create_symlink("../blobs/4711", root_ / "model/data_1");
  EXPECT_THAT(below("data_1"), HasSubstr("outside the folder"));
  EXPECT_EQ(below("data_1", at("blobs")), "weights");
  EXPECT_EQ(below("data", at("blobs")), "0123456789");
  fs::create_symlink("../secret", root_ / "model/out");
  EXPECT_THAT(below("out", at("blobs")), HasSubstr("outside the folder"));
}

TEST(JsonText, NestingIsCounted) {
  EXPECT_FALSE(nests_deeper("[[{\"a\": [1]}], []]", 4));
  EXPECT_TRUE(nests_deeper("[[{\"a\": [1]}], []]", 3));
  EXPECT_FALSE(nests_deeper("[\"[[[\\\"[[[\", \"\\\\\"]", 1));
  EXPECT_TRUE(nests_deeper("[\"\\\\\", [1]]", 1));
  EXPECT_TRUE(nests_deeper(std::string(10'000'000, '['), kMaxJsonNesting));
  EXPECT_FALSE(nests_deeper("", 0));
}

}  // namespace
}  // namespace tensorsmith::input_file_test
