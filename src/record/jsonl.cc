#include "record/jsonl.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cmath>
#include <cstring>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "record/line_reader.h"

namespace tensorsmith::record {

namespace {

using Json = nlohmann::json;
constexpr int kJsonVersion = 2;  // version 1 had a text "origin" instead of the candidate
constexpr int kProfileLineVersion = 3;
// A file with this many leading lines of other content is not ours.
constexpr int64_t kMaxForeignLines = 100'000;

std::string dump(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

Error corrupt(std::string reason) { return Error{ErrorCode::kCorrupt, "", std::move(reason)}; }

// Typed access to the fields of an object; keeps the first error.
class Fields {
 public:
  explicit Fields(const Json& json) : json_(json) {}

  std::string text(const char* name) {
    const Json* value = find(name);
    if (value == nullptr) return {};
    if (!value->is_string()) return fail(name, "is not a string"), std::string();
    return value->get<std::string>();
  }
  bool boolean(const char* name) {
    const Json* value = find(name);
    if (value == nullptr) return false;
    if (!value->is_boolean()) return fail(name, "is not a boolean"), false;
    return value->get<bool>();
  }
  int64_t integer(const char* name, int64_t min, int64_t max) {
    const Json* value = find(name);
    if (value == nullptr) return min;
    if (!is_int64(*value)) return fail(name, "is not an integer"), min;
    const auto number = value->get<int64_t>();
    if (number < min || number > max) return fail(name, "is out of range"), min;
    return number;
  }
  std::vector<int64_t> integers(const char* name) {
    std::vector<int64_t> out;
    const Json* value = find(name);
    if (value == nullptr) return out;
    if (!value->is_array()) return fail(name, "is not an array"), out;
    for (const Json& item : *value) {
      if (!is_int64(item)) return fail(name, "contains a value that is not an integer"), out;
      out.push_back(item.get<int64_t>());
    }
    return out;
  }
  double number(const char* name) {
    const Json* value = find(name);
    if (value == nullptr) return 0;
    if (!value->is_number()) return fail(name, "is not a number"), 0;
    return value->get<double>();
  }
  std::vector<double> numbers(const char* name) {
    std::vector<double> out;
    const Json* value = find(name);
    if (value == nullptr) return out;
    if (!value->is_array()) return fail(name, "is not an array"), out;
    for (const Json& item : *value) {
      if (!item.is_number()) return fail(name, "contains a value that is not a number"), out;
      out.push_back(item.get<double>());
    }
    return out;
  }
  void fail(const char* name, const std::string& what) {
    if (problem_.empty()) problem_ = std::string("field \"") + name + "\" " + what;
  }
  const std::string& problem() const { return problem_; }

 private:
  static bool is_int64(const Json& value) {
    return value.is_number_integer() &&
           (!value.is_number_unsigned() ||
            value.get<uint64_t>() <= static_cast<uint64_t>(std::numeric_limits<int64_t>::max()));
  }
  const Json* find(const char* name) {
    const auto it = json_.find(name);
    if (it == json_.end()) return fail(name, "is missing"), nullptr;
    return &*it;
  }
  const Json& json_;
  std::string problem_;
};

Result<TaskInfo> parse_task(const Json& json) {
  Fields fields(json);
  TaskInfo task;
  task.key = fields.text("key");
  task.text = fields.text("text");
  task.name = fields.text("name");
  task.flops = fields.number("flops");
  if (task.key.empty()) fields.fail("key", "is empty");
  if (!fields.problem().empty()) return corrupt(fields.problem());
  return task;
}

Result<DeviceInfo> parse_device_line(const Json& json) {
  Fields fields(json);
  DeviceInfo info;
  info.key = fields.text("key");
  if (info.key.empty()) fields.fail("key", "is empty");
  const auto attributes = json.find("attributes");
  if (attributes == json.end()) fields.fail("attributes", "is missing");
  if (!fields.problem().empty()) return corrupt(fields.problem());
  auto device = target::parse_device(dump(*attributes), "field \"attributes\"");
  if (!device.ok()) return corrupt(device.error().message());
  info.device = std::move(device).value();
  return info;
}

CandidateOrigin parse_candidate(const Json& json, Fields& fields) {
  CandidateOrigin candidate;
  const auto found = json.find("candidate");
  if (found == json.end()) return fields.fail("candidate", "is missing"), candidate;
  if (!found->is_object()) return fields.fail("candidate", "is not an object"), candidate;
  Fields inner(*found);
  const auto reason = parse_reason(inner.text("reason"));
  if (!reason) inner.fail("reason", "is not a known reason");
  candidate.reason = reason.value_or(Reason::kUnstated);
  candidate.strategy = inner.text("strategy");
  candidate.note = inner.text("note");
  if (found->contains("sketch") || found->contains("decisions")) {
    candidate.point.emplace();
    candidate.point->sketch = inner.integer("sketch", 0, std::numeric_limits<int>::max());
    candidate.point->decisions = inner.integers("decisions");
  }
  if (!inner.problem().empty()) fields.fail("candidate", "is wrong: " + inner.problem());
  return candidate;
}

Result<Record> parse_record(const Json& json, int64_t version) {
  constexpr int kMaxInt = std::numeric_limits<int>::max();
  Fields fields(json);
  Record record;
  record.task_key = fields.text("task");
  record.device_key = fields.text("device");
  record.settings.threads = fields.integer("threads", 1, kMaxInt);
  record.settings.flush_cache = fields.boolean("flush_cache");
  record.trace = fields.text("trace");
  const auto outcome = parse_outcome(fields.text("outcome"));
  if (!outcome) fields.fail("outcome", "is not a known outcome");
  record.result.outcome = outcome.value_or(Outcome::kOk);
  record.result.reason = fields.text("reason");
  record.result.seconds = fields.numbers("seconds");
  record.result.runs_per_repeat = fields.integer("runs_per_repeat", 0, kMaxInt);
  record.result.stopped_early = fields.boolean("stopped_early");
  record.result.build_seconds = fields.number("build_seconds");
  record.result.measure_seconds = fields.number("measure_seconds");
  // Earlier versions do not write it, and later ones only if it is known.
  if (json.contains("disturbance")) record.result.disturbance = fields.number("disturbance");
  record.unix_ms =
      fields.integer("unix_ms", std::numeric_limits<int64_t>::min() + 1, std::numeric_limits<int64_t>::max());
  record.code_version = fields.integer("code_version", 0, kMaxInt);
  record.candidate = version == 1 ? parse_origin(fields.text("origin")) : parse_candidate(json, fields);
  const std::string key = fields.text("key");
  if (!fields.problem().empty()) return corrupt(fields.problem());
  if (key != record.key()) return corrupt("field \"key\" is not the content key of the other fields");
  if (auto status = check_record(record); !status.ok()) return corrupt(status.error().reason);
  return record;
}

Result<Profile> parse_profile(const Json& json) {
  Fields fields(json);
  Profile profile;
  profile.record_key = fields.text("record");
  profile.profiler = fields.text("profiler");
  const auto counters = json.find("counters");
  if (counters == json.end()) fields.fail("counters", "is missing");
  if (!fields.problem().empty()) return corrupt(fields.problem());
  TS_ASSIGN_OR_RETURN(profile.counters, decode_counters(dump(*counters)));
  if (auto status = check_profile(profile); !status.ok()) return corrupt(status.error().reason);
  return profile;
}

Json candidate_json(const CandidateOrigin& candidate) {
  Json json{
      {"reason", to_string(candidate.reason)}, {"strategy", candidate.strategy}, {"note", candidate.note}};
  if (candidate.point) {
    json["sketch"] = candidate.point->sketch;
    json["decisions"] = candidate.point->decisions;
  }
  return json;
}

}  // namespace

Status check_record(const Record& record) {
  const auto bad = [](const char* reason) { return Error{ErrorCode::kInvalidArgument, "", reason}; };
  if (record.task_key.empty()) return bad("record without a task key");
  if (record.device_key.empty()) return bad("record without a device key");
  if (record.settings.threads < 1) return bad("record with less than one thread");
  if (record.result.ok() && record.result.seconds.empty()) return bad("successful record without seconds");
  for (double seconds : record.result.seconds) {
    if (!(std::isfinite(seconds) && seconds > 0))
      return bad("record with seconds that are not finite and positive");
  }
  if (!std::isfinite(record.result.build_seconds) || !std::isfinite(record.result.measure_seconds))
    return bad("record with build or measure seconds that are not finite");
  if (const auto& share = record.result.disturbance; share && !(*share >= 0 && *share <= 1))
    return bad("record with a disturbance that is not between 0 and 1");
  return {};
}

std::string to_json_line(const TaskInfo& task) {
  return dump(Json{{"type", "task"},
                   {"v", kJsonVersion},
                   {"key", task.key},
                   {"name", task.name},
                   {"flops", task.flops},
                   {"text", task.text}});
}

std::string to_json_line(const DeviceInfo& device) {
  return dump(Json{{"type", "device"},
                   {"v", kJsonVersion},
                   {"key", device.key},
                   {"attributes", parse_json<Json>(target::to_json(device.device))}});
}

std::string to_json_line(const Record& record) {
  const MeasureResult& result = record.result;
  Json json{{"type", "record"},
            {"v", kJsonVersion},
            {"key", record.key()},
            {"task", record.task_key},
            {"device", record.device_key},
            {"threads", record.settings.threads},
            {"flush_cache", record.settings.flush_cache},
            {"trace", record.trace},
            {"outcome", to_string(result.outcome)},
            {"reason", result.reason},
            {"seconds", result.seconds},
            {"runs_per_repeat", result.runs_per_repeat},
            {"stopped_early", result.stopped_early},
            {"build_seconds", result.build_seconds},
            {"measure_seconds", result.measure_seconds},
            {"unix_ms", record.unix_ms},
            {"code_version", record.code_version},
            {"candidate", candidate_json(record.candidate)}};
  if (result.disturbance) json["disturbance"] = *result.disturbance;
  return dump(json);
}

std::string to_json_line(const Profile& profile) {
  return dump(Json{{"type", "profile"},
                   {"v", kProfileLineVersion},
                   {"record", profile.record_key},
                   {"profiler", profile.profiler},
                   {"counters", profile.counters}});
}

Result<JsonLine> parse_json_line(std::string_view line) {
  const Json json = parse_json<Json>(line);
  if (json.is_discarded()) return corrupt("not valid JSON");
  if (!json.is_object()) return corrupt("not a JSON object");
  Fields fields(json);
  const std::string type = fields.text("type");
  const int64_t version = fields.integer("v", 0, std::numeric_limits<int64_t>::max());
  if (!fields.problem().empty()) return corrupt(fields.problem());
  const int newest = type == "profile" ? kProfileLineVersion : kJsonVersion;
  if (version < 1 || version > newest)
    return corrupt("line format version " + std::to_string(version) +
                   ", but this program reads versions up to " + std::to_string(newest));
  if (type == "task") {
    TS_ASSIGN_OR_RETURN(TaskInfo task, parse_task(json));
    return JsonLine(std::move(task));
  }
  if (type == "record") {
    TS_ASSIGN_OR_RETURN(Record record, parse_record(json, version));
    return JsonLine(std::move(record));
  }
  if (type == "device") {
    TS_ASSIGN_OR_RETURN(DeviceInfo device, parse_device_line(json));
    return JsonLine(std::move(device));
  }
  if (type == "profile") {
    TS_ASSIGN_OR_RETURN(Profile profile, parse_profile(json));
    return JsonLine(std::move(profile));
  }
  return corrupt("field \"type\" is not one of \"task\", \"device\", \"record\" or \"profile\"");
}

Status check_jsonl_file(const std::string& path) {
  TS_ASSIGN_OR_RETURN(auto reader, LineReader::open(path, Database::kMaxJsonLine));
  bool blank = true;
  LineReader::Line line;
  for (int64_t foreign = 0; foreign < kMaxForeignLines;) {
    TS_ASSIGN_OR_RETURN(const bool more, reader->next(line));
    if (!more) break;
    if (!line.too_long && line.text.find_first_not_of(" \t\r") == std::string::npos) continue;
    if (!line.too_long && parse_json_line(line.text).ok()) return {};
    blank = false;
    ++foreign;
  }
  if (blank) return {};  // for example the export of an empty database
  return Error{ErrorCode::kCorrupt, path,
               "no line is a Tensorsmith record; name a file that `db export` wrote"};
}

// --- AtomicFileWriter

Result<FileBeside> create_file_beside(const std::string& path) {
  struct stat info = {};
  if (stat(path.c_str(), &info) == 0 && !S_ISREG(info.st_mode))
    return Error{ErrorCode::kInvalidArgument, path, "is not a regular file; give another name"};
  std::error_code error;
  const auto target = std::filesystem::canonical(path, error);
  FileBeside out;
  out.path = !error && std::filesystem::is_symlink(path, error) ? target.string() : path;
  for (int attempt = 0; attempt < 100; ++attempt) {
    out.temporary = out.path + "." + std::to_string(getpid()) + "." + std::to_string(attempt) + ".tmp";
    out.descriptor = ::open(out.temporary.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (out.descriptor >= 0) return out;
    if (errno != EEXIST) break;
  }
  const int code = errno;
  return Error{code == ENOENT ? ErrorCode::kNotFound : ErrorCode::kIo, path,
               std::string("cannot be created: ") + std::strerror(code)};
}

Result<std::unique_ptr<AtomicFileWriter>> AtomicFileWriter::open(const std::string& path) {
  TS_ASSIGN_OR_RETURN(FileBeside beside, create_file_beside(path));
  std::FILE* file = fdopen(beside.descriptor, "wb");
  if (file == nullptr) {
    const int code = errno;
    ::close(beside.descriptor);
    unlink(beside.temporary.c_str());
    return Error{ErrorCode::kIo, path, std::string("cannot be created: ") + std::strerror(code)};
  }
  return std::unique_ptr<AtomicFileWriter>(
      new AtomicFileWriter(std::move(beside.path), std::move(beside.temporary), file));
}

AtomicFileWriter::~AtomicFileWriter() {
  if (file_ != nullptr) std::fclose(file_);
  if (!temporary_.empty()) unlink(temporary_.c_str());
}

Error AtomicFileWriter::io_error(const char* action) const {
  const int code = errno;
  std::string reason = std::string(action) + " failed: " + std::strerror(code);
  if (code == ENOSPC) reason += "; free some space and run the command again";
  return Error{ErrorCode::kIo, path_, reason + "; the file is as it was before"};
}

Status AtomicFileWriter::write(std::string_view bytes) {
  if (std::fwrite(bytes.data(), 1, bytes.size(), file_) != bytes.size()) return io_error("writing");
  return {};
}

Status AtomicFileWriter::write_line(std::string_view line) {
  TS_RETURN_IF_ERROR(write(line));
  return write("\n");
}

Status AtomicFileWriter::commit() {
  if (std::fflush(file_) != 0 || fsync(fileno(file_)) != 0) return io_error("writing");
  std::FILE* file = file_;
  file_ = nullptr;
  if (std::fclose(file) != 0) return io_error("writing");
  if (std::rename(temporary_.c_str(), path_.c_str()) != 0) return io_error("renaming");
  temporary_.clear();
  return {};
}

}  // namespace tensorsmith::record
