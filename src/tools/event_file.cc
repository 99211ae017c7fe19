#include "tools/event_file.h"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <filesystem>

namespace tensorsmith::tools {

static_assert(std::endian::native == std::endian::little, "the format's numbers are little-endian");

namespace {

namespace fs = std::filesystem;

// CRC-32C (Castagnoli), reflected.
constexpr uint32_t kPolynomial = 0x82f63b78;

constexpr std::array<uint32_t, 256> make_table() {
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t value = i;
    for (int bit = 0; bit < 8; ++bit) value = (value >> 1) ^ ((value & 1) != 0 ? kPolynomial : 0);
    table[i] = value;
  }
  return table;
}

// TFRecord masks the checksum, so that checksums of data that contain checksums are not weaker.
uint32_t masked_crc(std::string_view bytes) {
  static constexpr std::array<uint32_t, 256> kTable = make_table();
  uint32_t crc = ~uint32_t{0};
  for (const char c : bytes) crc = (crc >> 8) ^ kTable[(crc ^ static_cast<uint8_t>(c)) & 0xff];
  crc = ~crc;
  return ((crc >> 15) | (crc << 17)) + 0xa282ead8;
}

template <typename T>
std::string raw(T value) {
  std::string bytes(sizeof value, '\0');
  std::memcpy(bytes.data(), &value, sizeof value);
  return bytes;
}

// Protobuf's wire format.
enum WireType : uint8_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

std::string varint(uint64_t value) {
  std::string bytes;
  for (; value >= 0x80; value >>= 7) bytes += static_cast<char>(value | 0x80);
  return bytes += static_cast<char>(value);
}
std::string key(int field, WireType type) { return varint(static_cast<uint64_t>(field) << 3 | type); }
std::string bytes_field(int field, std::string_view value) {
  return key(field, kBytes) + varint(value.size()) + std::string(value);
}

// Field numbers of Event, Summary and Summary.Value.
constexpr int kWallTime = 1, kStep = 2, kFileVersion = 3, kSummary = 5;
constexpr int kValue = 1, kTag = 1, kSimpleValue = 2;

}  // namespace

Status make_event_folder(const std::string& folder) {
  std::error_code error;
  fs::create_directory(folder, error);
  if (!fs::is_directory(folder, error))
    return Error{ErrorCode::kInvalidArgument, folder,
                 "is not a folder and cannot be created; name a folder for event files"};
  return {};
}

Result<std::unique_ptr<EventFile>> EventFile::create(const std::string& folder, const Clock& clock) {
  TS_RETURN_IF_ERROR(make_event_folder(folder));
  const int64_t now = clock.unix_milliseconds();
  const std::string name = fmt::format("events.out.tfevents.{}.tensorsmith.{}", now, ::getpid());
  TS_ASSIGN_OR_RETURN(auto file, runtime::FileWriter::create((fs::path(folder) / name).string()));
  std::unique_ptr<EventFile> events(new EventFile(std::move(file), clock));
  events->write_event(bytes_field(kFileVersion, "brain.Event:2"));
  TS_RETURN_IF_ERROR(std::move(events->status_));
  return events;
}

void EventFile::write_event(const std::string& fields) {
  if (!status_.ok()) return;
  const std::string event = key(kWallTime, kFixed64) + raw(clock_.unix_milliseconds() / 1e3) + fields;
  const std::string length = raw<uint64_t>(event.size());
  const std::string record = length + raw(masked_crc(length)) + event + raw(masked_crc(event));
  status_ = file_.write(record.data(), record.size());
}

void EventFile::scalar(const std::string& tag, int64_t step, double value) {
  if (!std::isfinite(value)) return;
  const std::string point =
      bytes_field(kTag, tag) + key(kSimpleValue, kFixed32) + raw(static_cast<float>(value));
  write_event(key(kStep, kVarint) + varint(step) + bytes_field(kSummary, bytes_field(kValue, point)));
}

Status EventFile::finish() {
  const Status closed = file_.close();
  return status_.ok() ? closed : status_;
}

void TuneCurves::progress(const search::TuneProgress& p) {
  constexpr double kMilliseconds = 1e3;
  file_.scalar("model/untuned_ms", p.trials, kMilliseconds * p.model_default_seconds());
  file_.scalar("model/best_ms", p.trials, kMilliseconds * p.model_best_seconds());
  file_.scalar("search/failures", p.trials, p.failures);
  file_.scalar("search/seconds", p.trials, p.elapsed_seconds);
  if (p.current_task < p.tasks.size()) {
    const search::TaskProgress& task = p.tasks[p.current_task];
    file_.scalar("task/" + task.name + "_ms", p.trials, kMilliseconds * task.best_seconds);
  }
  next_.progress(p);
}

}  // namespace tensorsmith::tools
