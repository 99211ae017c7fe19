#include "tools/output_files.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "base/input_file.h"
#include "base/json_text.h"
#include "base/scratch_directory.h"
#include "engine/model/compile_model.h"
#include "graph/files.h"
#include "learn/dataset/store.h"
#include "learn/latency/model_file.h"
#include "learn/lm/corpus.h"
#include "learn/lm/language_model.h"
#include "record/jsonl.h"
#include "record/line_reader.h"
#include "record/metaschedule/instruction.h"
#include "tools/npy.h"
#include "tools/report_page.h"
#include "tools/svg.h"

namespace tensorsmith::tools {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

// Resolves links and ".." as far as the path exists. Never throws: a path that cannot be examined
// is compared by name.
fs::path resolved(const std::string& path) {
  std::error_code error;
  fs::path out = fs::absolute(path, error);
  if (error) out = path;
  const fs::path canonical = fs::weakly_canonical(out, error);
  out = (error ? out : canonical).lexically_normal();
  return out.has_filename() ? out : out.parent_path();  // "a/b/"
}

bool same_place(const std::string& a, const std::string& b) {
  struct stat of_a{}, of_b{};
  if (::stat(a.c_str(), &of_a) == 0 && ::stat(b.c_str(), &of_b) == 0)
    return of_a.st_dev == of_b.st_dev && of_a.st_ino == of_b.st_ino;
  return resolved(a) == resolved(b);
}

bool is_inside(const std::string& path, const std::string& folder) {
  const fs::path inner = resolved(path), outer = resolved(folder);
  const auto [at_outer, at_inner] = std::mismatch(outer.begin(), outer.end(), inner.begin(), inner.end());
  return at_outer == outer.end() && at_inner != inner.end();
}

bool is_folder(const std::string& path) {
  std::error_code error;
  return fs::is_directory(path, error);
}

// Removes trailing slashes: "store/" still names the file "store".
std::string without_slashes(std::string path) {
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  return path;
}

// Suffixes of the files that SQLite keeps beside a database.
constexpr std::array<const char*, 3> kCompanions = {"-journal", "-wal", "-shm"};

// Returns the first or last bytes, as many as there are; empty if the file does not exist.
std::string part_of(const std::string& path, size_t bytes, bool end) {
  const auto file = open_input(path);
  if (!file.ok()) return {};
  const auto size = input_bytes(*file, path);
  if (!size.ok()) return {};
  std::string out(std::min(bytes, static_cast<size_t>(*size)), '\0');
  const auto count = std::ssize(out);
  return read_exactly(*file, path, end ? *size - count : 0, out.data(), count).ok() ? out : std::string();
}
std::string begin_of(const std::string& path, size_t bytes) { return part_of(path, bytes, false); }
std::string end_of(const std::string& path, size_t bytes) { return part_of(path, bytes, true); }

// Returns the first line as a JSON object; null if there is none.
Json first_line(const std::string& path) {
  auto reader = record::LineReader::open(path, record::Database::kMaxJsonLine);
  if (!reader.ok()) return nullptr;
  const auto line = (*reader)->next();
  if (!line.ok() || !*line || (*line)->too_long) return nullptr;
  Json json = parse_json<Json>((*line)->text);
  return json.is_object() ? json : Json(nullptr);
}

bool has(const Json& json, std::initializer_list<const char*> names) {
  return json.is_object() &&
         std::all_of(names.begin(), names.end(), [&](const char* name) { return json.contains(name); });
}

bool is_type(const Json& json, std::initializer_list<const char*> types) {
  if (!has(json, {"type", "v"})) return false;
  return std::any_of(types.begin(), types.end(), [&](const char* type) { return json["type"] == type; });
}

// True also for another version of the format. Damaged files and all others are not recognized as
// ours and so not replaced.
template <auto Read>
bool is_file_of(const std::string& path) {
  const auto file = Read(path);
  return file.ok() || file.error().code == ErrorCode::kMismatch;
}

struct KindTraits {
  const char* name;
  bool (*is_ours)(const std::string& path);  // null: not recognized here
};

KindTraits traits(OutputKind kind) {
  switch (kind) {
    case OutputKind::kModelDirectory:
      return {"compiled model", nullptr};
    case OutputKind::kStore:
      return {"store", learn::is_store_file};
    case OutputKind::kDatabase:
      return {"record database", nullptr};
    case OutputKind::kRecordLines:
      return {"file of `db export`", [](const std::string& path) {
                return is_type(first_line(path), {"task", "device", "record"});
              }};
    case OutputKind::kStoreLines:
      return {"file of `dataset export`", [](const std::string& path) {
                return has(first_line(path), {"workload", "device", "error_no", "seconds"});
              }};
    case OutputKind::kFeatureLines:
      return {"file of `dataset features`",
              [](const std::string& path) { return begin_of(path, 13) == "{\"features\":["; }};
    case OutputKind::kAnsorLines:
      return {"file of `lm generate --records` or `db export --format tvm`",
              [](const std::string& path) { return begin_of(path, 6) == "{\"i\":["; }};
    case OutputKind::kTvmRecords:
      return {"file of `db export --format metaschedule`", [](const std::string& path) {
                return record::looks_like_metaschedule_record(begin_of(path, 64));
              }};
    case OutputKind::kTvmModules:
      return {"file of workloads of `db export --format metaschedule`", [](const std::string& path) {
                return record::looks_like_metaschedule_workload(begin_of(path, 64));
              }};
    case OutputKind::kProgramLines:
      return {"file of `lm generate`",
              [](const std::string& path) { return is_type(first_line(path), {"programs"}); }};
    case OutputKind::kWorkloads:
      return {"file of `db export --workloads`", [](const std::string& path) {
                const Json json = first_line(path);
                return json.is_object() && !json.empty() && has(json.front(), {"compute_dag", "flops"});
              }};
    case OutputKind::kSplit:
      return {"split", [](const std::string& path) { return is_type(first_line(path), {"split"}); }};
    case OutputKind::kLatencyModel:
      return {"cost model", is_file_of<learn::read_model_file>};
    case OutputKind::kCorpus:
      return {"corpus", is_file_of<learn::lm::read_corpus>};
    case OutputKind::kLanguageModel:
      return {"language model", is_file_of<learn::lm::read_language_model>};
    case OutputKind::kCheckpoint:
      return {"checkpoint", nullptr};
    case OutputKind::kTrialLog:
      return {"log of trials", nullptr};
    case OutputKind::kPredictions:
      return {"file of predictions", [](const std::string& path) {
                return has(first_line(path), {"workload", "measured", "predicted"});
              }};
    case OutputKind::kPlot:
      return {"plot of Tensorsmith", [](const std::string& path) {
                const std::string begin = begin_of(path, 1024);
                return begin.starts_with("<svg ") && begin.find(kPlotMark) != std::string::npos;
              }};
    case OutputKind::kTrace:
      return {"trace of `bench --trace`", [](const std::string& path) {
                constexpr std::string_view kBegin = R"({"displayTimeUnit":"ms","otherData":{"device":)";
                return begin_of(path, kBegin.size()) == kBegin;
              }};
    case OutputKind::kOnnxModel:
      // The first two fields of a ModelProto: the one-byte IR version, then the producer.
      return {"network of `zoo export`", [](const std::string& path) {
                const std::string begin = begin_of(path, 15);
                return begin.size() == 15 && begin[0] == '\x08' && begin.substr(2) == "\x12\x0btensorsmith";
              }};
    case OutputKind::kTensor:
      return {"tensor of `run --output`", [](const std::string& path) {
                const std::string mark = graph::kTensorMark;
                return has_npy_mark(begin_of(path, kMaxMarkedHeader)) || end_of(path, mark.size()) == mark;
              }};
    case OutputKind::kReport:
      return {"report page", [](const std::string& path) {
                const std::string begin = begin_of(path, 1024);
                return begin.starts_with("<!doctype html>") && begin.find(kReportMark) != std::string::npos;
              }};
  }
  return {"", nullptr};
}

Error refused(const OutputPath& output, std::string reason) {
  return {ErrorCode::kInvalidArgument, output.path, std::move(reason)};
}

Status check_file(const OutputPath& output, bool force) {
  if (output.path.back() == '/')
    return refused(output, fmt::format("is the name of a folder; give {} the name of a file", output.option));
  TS_RETURN_IF_ERROR(check_parent(output));
  std::error_code error;
  const fs::file_status there = fs::status(output.path, error);
  if (!fs::exists(there)) {
    if (fs::is_symlink(fs::symlink_status(output.path, error)))
      return refused(output, "is a symbolic link to a file that does not exist; remove it or give " +
                                 output.option + " another name");
    return {};
  }
  if (!fs::is_regular_file(there))
    return refused(output, fmt::format("is not a regular file; give {} another name", output.option));
  const KindTraits kind = traits(output.kind);
  if (force || kind.is_ours == nullptr || fs::file_size(output.path, error) == 0) return {};
  if (kind.is_ours(output.path)) return {};
  return refused(output,
                 fmt::format("exists and is not a {}; give {} another name, or add --force to replace it",
                             kind.name, output.option));
}

}  // namespace

Status check_apart(const OutputPath& output, const std::vector<InputPath>& inputs) {
  if (record::is_database_address(output.path)) return {};  // not a file
  const std::string path = without_slashes(output.path);
  for (const InputPath& input : inputs) {
    if (input.path.empty() || record::is_database_address(input.path)) continue;
    const std::string in = without_slashes(input.path);
    const auto what = [&] {
      return fmt::format("{}{}", input.option, in == path ? "" : " (" + input.path + ")");
    };
    if (same_place(path, in)) {
      return refused(
          output,
          fmt::format("is given as {} and as {}, so the input would be overwritten; give {} another name",
                      output.option, what(), output.option));
    }
    for (const char* companion : kCompanions) {
      if (same_place(path, in + companion))
        return refused(output, fmt::format("belongs to {}; give {} another name", what(), output.option));
    }
    if (is_folder(in) && is_inside(path, in)) {
      return refused(output, fmt::format("is inside {}; give {} a path outside it", what(), output.option));
    }
    if (output.kind == OutputKind::kModelDirectory && is_inside(in, path)) {
      return refused(
          output,
          fmt::format("contains {}, but a compiled model needs its own directory; give {} another one",
                      what(), output.option));
    }
  }
  return {};
}

Status check_parent(const OutputPath& output) {
  std::error_code error;
  fs::path folder = fs::path(without_slashes(output.path)).parent_path();
  if (folder.empty()) folder = ".";
  if (!fs::is_directory(folder, error)) {
    return Error{ErrorCode::kNotFound, output.path,
                 fmt::format("the folder '{}' does not exist; create it, or give {} another path",
                             folder.string(), output.option)};
  }
  if (const std::string why = why_not_writable(folder.string()); !why.empty()) {
    return Error{
        ErrorCode::kIo, output.path,
        fmt::format("the folder '{}' {}; give {} another path", folder.string(), why, output.option)};
  }
  return {};
}

Status check_outputs(const std::vector<OutputPath>& outputs, const std::vector<InputPath>& inputs,
                     bool force) {
  for (size_t i = 0; i < outputs.size(); ++i) {
    const OutputPath& output = outputs[i];
    if (output.path.empty())
      return Error{ErrorCode::kInvalidArgument, output.option,
                   "needs the name of the file or folder to write"};
    std::vector<InputPath> others = inputs;
    for (size_t o = 0; o < outputs.size(); ++o) {
      if (o != i) others.push_back({outputs[o].option, outputs[o].path});
    }
    TS_RETURN_IF_ERROR(check_apart(output, others));
    if (record::is_database_address(output.path)) {
      if (output.kind == OutputKind::kDatabase) continue;
      return Error{ErrorCode::kInvalidArgument, record::shown_database(output.path),
                   "is the address of a database; give " + output.option + " the name of a file"};
    }
    TS_RETURN_IF_ERROR(output.kind == OutputKind::kModelDirectory
                           ? engine::check_output_directory(output.path, output.makes_parent)
                           : check_file(output, force));
  }
  return {};
}

std::string folder_beside(const std::string& model, const std::string& suffix) {
  constexpr std::string_view kZoo = "zoo:";
  if (model.starts_with(kZoo)) {
    std::string name = model.substr(kZoo.size());
    std::replace(name.begin(), name.end(), ':', '-');
    return name + suffix;
  }
  const fs::path file = fs::path(model).lexically_normal();
  return (file.parent_path() / (file.stem().string() + suffix)).string();
}

std::string device_file(const std::string& device) {
  const std::string name = device.substr(0, device.find(':'));
  return name.find('/') != std::string::npos || name.ends_with(".json") ? name : std::string();
}

Status check_not_emptied(const OutputPath& output, bool force) {
  std::error_code error;
  const auto bytes = fs::file_size(output.path, error);
  if (force || error || bytes == 0) return {};
  return refused(
      output,
      fmt::format("was not replaced, because the new {} would be empty; add --force to replace it anyway",
                  traits(output.kind).name));
}

}  // namespace tensorsmith::tools
