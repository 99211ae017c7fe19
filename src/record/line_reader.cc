#include "record/line_reader.h"

#include <zstd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <vector>

#include "base/input_file.h"

namespace tensorsmith::record {

namespace {

constexpr size_t kChunk = size_t{1} << 16;
// Records compress to between a fifth and a hundredth of their size, but zstd can reach 1 : 20,000
// and more. Up to kFreeBytes are read whatever the ratio is.
constexpr int64_t kMaxRatio = 200;
constexpr int64_t kFreeBytes = int64_t{64} << 20;
// Limits a frame's window memory to 128 MiB, as the zstd program does.
constexpr int kMaxWindowLog = 27;
constexpr unsigned char kZstdMagic[4] = {0x28, 0xb5, 0x2f, 0xfd};

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, CloseFile>;

}  // namespace

class LineReader::Source {
 public:
  virtual ~Source() = default;
  // Returns the next bytes, valid until the next call; empty at the end.
  virtual Result<std::string_view> read() = 0;
};

class LineReader::PlainSource : public Source {
 public:
  PlainSource(std::string path, File file)
      : path_(std::move(path)), file_(std::move(file)), buffer_(kChunk) {}
  Result<std::string_view> read() override {
    const size_t count = std::fread(buffer_.data(), 1, buffer_.size(), file_.get());
    if (count == 0 && std::ferror(file_.get()) != 0)
      return Error{ErrorCode::kIo, path_, std::string("reading failed: ") + std::strerror(errno)};
    bytes_ += count;
    return std::string_view(buffer_.data(), count);
  }
  int64_t bytes() const { return bytes_; }  // read so far

 private:
  std::string path_;
  File file_;
  std::vector<char> buffer_;
  int64_t bytes_ = 0;
};

class LineReader::ZstdSource : public Source {
 public:
  ZstdSource(std::string path, File file)
      : path_(path),
        compressed_(std::move(path), std::move(file)),
        buffer_(ZSTD_DStreamOutSize()),
        stream_(ZSTD_createDStream()) {
    TS_CHECK(stream_ != nullptr, "no memory for a zstd stream");
    ZSTD_DCtx_setParameter(stream_, ZSTD_d_windowLogMax, kMaxWindowLog);
  }
  ~ZstdSource() override { ZSTD_freeDStream(stream_); }
  ZstdSource(const ZstdSource&) = delete;
  ZstdSource& operator=(const ZstdSource&) = delete;

  Result<std::string_view> read() override {
    while (true) {
      if (in_.pos == in_.size && !full_) {
        TS_ASSIGN_OR_RETURN(const std::string_view more, compressed_.read());
        if (more.empty()) {
          if (!between_frames_) return Error{ErrorCode::kCorrupt, path_, "the compressed file ends early"};
          return std::string_view();
        }
        in_ = {more.data(), more.size(), 0};
      }
      ZSTD_outBuffer out = {buffer_.data(), buffer_.size(), 0};
      const size_t left = ZSTD_decompressStream(stream_, &out, &in_);
      if (ZSTD_isError(left) != 0)
        return Error{ErrorCode::kCorrupt, path_,
                     std::string("the compressed data is damaged: ") + ZSTD_getErrorName(left)};
      between_frames_ = left == 0;
      full_ = out.pos == out.size;  // the decompressor may hold more output
      unpacked_ += out.pos;
      if (unpacked_ > std::max(kFreeBytes, compressed_.bytes() * kMaxRatio))
        return Error{ErrorCode::kResourceExhausted, path_,
                     "unpacks to more than " + std::to_string(kMaxRatio) +
                         " times its size, so it is not a file of records"};
      if (out.pos > 0) return std::string_view(buffer_.data(), out.pos);
    }
  }

 private:
  std::string path_;
  PlainSource compressed_;
  std::vector<char> buffer_;
  ZSTD_DStream* stream_;
  ZSTD_inBuffer in_ = {nullptr, 0, 0};
  bool between_frames_ = true, full_ = false;
  int64_t unpacked_ = 0;
};

LineReader::LineReader(std::unique_ptr<Source> source, size_t max_bytes)
    : source_(std::move(source)), max_bytes_(max_bytes) {}

LineReader::~LineReader() = default;

Result<std::unique_ptr<LineReader>> LineReader::open(const std::string& path, size_t max_bytes) {
  TS_ASSIGN_OR_RETURN(FileDescriptor input, open_input(path));
  File file(fdopen(input.get(), "rb"));
  if (file == nullptr)
    return Error{ErrorCode::kIo, path, std::string("cannot be read: ") + std::strerror(errno)};
  (void)input.release();
  unsigned char magic[4] = {};
  const bool zstd = std::fread(magic, 1, 4, file.get()) == 4 && std::memcmp(magic, kZstdMagic, 4) == 0;
  std::rewind(file.get());
  std::unique_ptr<Source> source;
  if (zstd) {
    source = std::make_unique<ZstdSource>(path, std::move(file));
  } else {
    source = std::make_unique<PlainSource>(path, std::move(file));
  }
  return std::unique_ptr<LineReader>(new LineReader(std::move(source), max_bytes));
}

Result<bool> LineReader::next(Line& line) {
  line.number = ++number_;
  line.text.clear();
  line.too_long = false;
  bool any = false;
  while (true) {
    if (rest_.empty()) {
      TS_ASSIGN_OR_RETURN(rest_, source_->read());
      if (rest_.empty()) return any;
    }
    any = true;
    const size_t end = rest_.find('\n');
    const std::string_view part = rest_.substr(0, end);
    rest_.remove_prefix(end == std::string_view::npos ? rest_.size() : end + 1);
    if (!line.too_long) {
      if (line.text.size() + part.size() > max_bytes_) {
        line.too_long = true;
        line.text.clear();
        line.text.shrink_to_fit();
      } else {
        line.text.append(part);
      }
    }
    if (end != std::string_view::npos) return true;
  }
}

Result<std::optional<LineReader::Line>> LineReader::next() {
  Line line;
  TS_ASSIGN_OR_RETURN(const bool more, next(line));
  if (!more) return std::optional<Line>();
  return std::optional<Line>(std::move(line));
}

}  // namespace tensorsmith::record
