#include "record/line_reader.h"

#include <gmock/gmock.h>
#include <sys/stat.h>
#include <zstd.h>

#include <filesystem>
#include <fstream>

#include "record/jsonl.h"
#include "record_testing.h"

namespace tensorsmith::record::line_reader_test {
namespace {

using ::testing::ElementsAre;
using testing::TempDir;

std::string compressed(const std::string& text) {
  std::string out(ZSTD_compressBound(text.size()), '\0');
  out.resize(ZSTD_compress(out.data(), out.size(), text.data(), text.size(), 3));
  return out;
}

struct Lines {
  std::vector<std::string> texts;
  Status end;
};

Lines read(const std::string& path, size_t max_bytes = 1000) {
  Lines out;
  auto reader = LineReader::open(path, max_bytes);
  EXPECT_TRUE(reader.ok());
  while (true) {
    auto line = (*reader)->next();
    if (!line.ok()) out.end = line.error();
    if (!line.ok() || !*line) return out;
    EXPECT_EQ((*line)->number, static_cast<int64_t>(out.texts.size()) + 1);
    out.texts.push_back((*line)->too_long ? "(too long)" : (*line)->text);
  }
}

class LineReaderTest : public ::testing::Test {
 protected:
  std::string write(const std::string& bytes) {
    const std::string path = folder_.file("lines");
    std::ofstream(path, std::ios::binary) << bytes;
    return path;
  }
  TempDir folder_;
};

TEST_F(LineReaderTest, PlainAndCompressedAreTheSame) {
  std::string text;
  for (int i = 0; i < 20000; ++i)
    text += "line " + std::to_string(i) + std::string(static_cast<size_t>(i % 50), 'x') + "\n";
  text += "\nlast, without a newline";
  const Lines plain = read(write(text));
  ASSERT_TRUE(plain.end.ok());
  ASSERT_EQ(plain.texts.size(), 20002u);
  EXPECT_EQ(plain.texts[20000], "");
  EXPECT_EQ(plain.texts.back(), "last, without a newline");
  const Lines unpacked = read(write(compressed(text)));
  EXPECT_TRUE(unpacked.end.ok());
  EXPECT_EQ(unpacked.texts, plain.texts);
  // Several frames one after the other, as `cat a.zst b.zst` makes them.
  const Lines frames = read(write(compressed(text.substr(0, 1000)) + compressed(text.substr(1000))));
  EXPECT_TRUE(frames.end.ok());
  EXPECT_EQ(frames.texts, plain.texts);
}

TEST_F(LineReaderTest, LongLinesAreSkipped) {
  const std::string text = "a\n" + std::string(300000, 'b') + "\nc\n";
  for (const std::string& bytes : {text, compressed(text)}) {
    const Lines lines = read(write(bytes));
    EXPECT_TRUE(lines.end.ok());
    EXPECT_THAT(lines.texts, ElementsAre("a", "(too long)", "c"));
  }
}

TEST_F(LineReaderTest, EmptyAndTinyFiles) {
  EXPECT_TRUE(read(write("")).texts.empty());
  EXPECT_THAT(read(write("\n")).texts, ElementsAre(""));
  EXPECT_THAT(read(write("a")).texts, ElementsAre("a"));
  EXPECT_TRUE(read(write(compressed(""))).texts.empty());
}

TEST_F(LineReaderTest, DamagedCompressionIsAnErrorAfterTheGoodLines) {
  std::string text;
  Rng rng(3);
  for (int i = 0; i < 100000; ++i) text += std::to_string(rng.next()) + "\n";
  const std::string whole = compressed(text);
  const Lines cut = read(write(whole.substr(0, whole.size() / 2)));
  ASSERT_FALSE(cut.end.ok());
  EXPECT_EQ(cut.end.error().code, ErrorCode::kCorrupt);
  EXPECT_GT(cut.texts.size(), 1000u);
  std::string broken = whole;
  for (size_t i = broken.size() / 2; i < broken.size() / 2 + 1000; ++i)
    broken[i] = static_cast<char>(~broken[i]);
  const Lines damaged = read(write(broken));
  ASSERT_FALSE(damaged.end.ok());
  EXPECT_EQ(damaged.end.error().code, ErrorCode::kCorrupt);
}

TEST_F(LineReaderTest, WhatCannotBeRead) {
  EXPECT_EQ(LineReader::open(folder_.file("none"), 100).error().code, ErrorCode::kNotFound);
  EXPECT_EQ(LineReader::open(folder_.file(""), 100).error().code, ErrorCode::kInvalidArgument);
  ASSERT_EQ(mkfifo(folder_.file("fifo").c_str(), 0600), 0);
  for (const std::string& path : {folder_.file("fifo"), std::string("/dev/zero")}) {
    EXPECT_EQ(LineReader::open(path, 100).error().code, ErrorCode::kInvalidArgument);
    EXPECT_EQ(check_jsonl_file(path).error().code, ErrorCode::kInvalidArgument);
  }
}

// A gigabyte of empty lines, compressed to about 30 kB: unpacked without a limit, a megabyte of
// such a file would take half a minute.
TEST_F(LineReaderTest, WhatUnpacksWithoutEndIsRefused) {
  const std::string block(size_t{64} << 20, '\n');
  std::string bytes;
  for (int i = 0; i < 16; ++i) bytes += compressed(block);
  ASSERT_LT(bytes.size(), 200000U);
  auto reader = LineReader::open(write(bytes), 1000);
  ASSERT_TRUE(reader.ok());
  LineReader::Line line;
  int64_t lines = 0;
  auto next = (*reader)->next(line);
  for (; next.ok() && *next; next = (*reader)->next(line)) ++lines;
  ASSERT_FALSE(next.ok());
  EXPECT_EQ(next.error().code, ErrorCode::kResourceExhausted);
  EXPECT_THAT(next.error().message(), ::testing::HasSubstr("unpacks to more than 200 times its size"));
  EXPECT_LE(lines, int64_t{200} << 20);
}

// Foreign lines are inspected one by one; the check ends after the first 100,000 lines.
TEST_F(LineReaderTest, ForeignFilesAreKnownByTheirBeginning) {
  std::string text;
  for (int i = 0; i < 100'000; ++i) text += "x\n";
  const std::string record = R"({"type":"task","v":1,"key":"k","name":"n","flops":1,"text":"t"})";
  EXPECT_TRUE(check_jsonl_file(write(text.substr(2) + record)).ok());
  EXPECT_THAT(check_jsonl_file(write(text + record)).error().message(), ::testing::HasSubstr("no line is a"));
}

// A frame that needs a window of 2 GiB in memory.
TEST_F(LineReaderTest, LargeWindowsAreRefused) {
  const std::string header("\x28\xb5\x2f\xfd\x00\xa8", 6);  // no size; window log 10 + 21
  auto reader = LineReader::open(write(header + std::string("\x01\x00\x00", 3)), 1000);
  ASSERT_TRUE(reader.ok());
  const auto line = (*reader)->next();
  ASSERT_FALSE(line.ok());
  EXPECT_EQ(line.error().code, ErrorCode::kCorrupt);
}

}  // namespace
}  // namespace tensorsmith::record::line_reader_test
