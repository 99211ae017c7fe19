// Reads the lines of a file, plain or compressed with zstd (recognized by its content).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "base/result.h"

namespace tensorsmith::record {

// Reads lines of at most max_bytes bytes; longer ones are skipped and reported without being held
// in memory. Uses memory for one line and a fixed buffer, however large the file is.
class LineReader {
 public:
  static Result<std::unique_ptr<LineReader>> open(const std::string& path, size_t max_bytes);
  ~LineReader();
  LineReader(const LineReader&) = delete;
  LineReader& operator=(const LineReader&) = delete;

  struct Line {
    int64_t number = 0;  // from 1
    std::string text;    // without the newline
    bool too_long = false;
  };
  // Returns nullopt at the end of the file. Errors (place: the file): kIo; kCorrupt if compressed
  // data are damaged or end early, after the lines before the damage; kResourceExhausted if the
  // file unpacks to more than 200 times its size.
  Result<std::optional<Line>> next();
  // As above, but reuses the memory of `line`; false at the end.
  Result<bool> next(Line& line);

 private:
  class Source;
  class PlainSource;
  class ZstdSource;
  LineReader(std::unique_ptr<Source> source, size_t max_bytes);
  std::unique_ptr<Source> source_;
  size_t max_bytes_;
  int64_t number_ = 0;
  std::string_view rest_;  // input that is not yet part of a line
};

}  // namespace tensorsmith::record
