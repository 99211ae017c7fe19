#include "lab/nsight_compute.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <string_view>

#include "base/input_file.h"
#include "base/scratch_directory.h"
#include "codegen/build.h"
#include "engine/device/gpu_device.h"
#include "ir/text.h"
#include "measure/task_data.h"
#include "record/ncu_csv.h"
#include "runtime/device/gpu.h"

namespace tensorsmith::lab {
namespace {

// First argument of a process that is started to launch kernels.
constexpr const char* kLauncherArgument = "__launch";
// Prefix of the kernels' names; the record's key follows.
constexpr const char* kSymbolPrefix = "record_";
constexpr int64_t kMostCsvBytes = int64_t{1} << 30;
constexpr uint64_t kInputSeed = 1;

std::string symbol_of(const std::string& record_key) { return kSymbolPrefix + record_key; }

// Returns the first error in ncu's output, else its last line.
std::string reason_in(const std::string& file) {
  std::ifstream text(file);
  std::string last;
  for (std::string line; std::getline(text, line);) {
    if (line.find("==ERROR==") != std::string::npos) return line;
    if (!line.empty()) last = line;
  }
  return last.empty() ? "no reason given" : last;
}

Status run_command(std::vector<std::string> words, const std::string& printed) {
  std::vector<char*> argv;
  for (std::string& word : words) argv.push_back(word.data());
  argv.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  ::posix_spawn_file_actions_init(&actions);
  ::posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  ::posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, printed.c_str(), O_WRONLY | O_CREAT | O_TRUNC,
                                     0600);
  ::posix_spawn_file_actions_adddup2(&actions, STDOUT_FILENO, STDERR_FILENO);
  pid_t child = -1;
  const int failed = ::posix_spawnp(&child, argv[0], &actions, nullptr, argv.data(), environ);
  ::posix_spawn_file_actions_destroy(&actions);
  if (failed != 0)
    return Error{ErrorCode::kIo, words[0], std::string("cannot be started (") + std::strerror(failed) + ")"};
  int status = 0;
  while (::waitpid(child, &status, 0) < 0) {
    if (errno != EINTR) return Error{ErrorCode::kIo, words[0], std::strerror(errno)};
  }
  // A launcher that failed has reported the reason for each program; the successful launches count.
  return {};
}

std::vector<std::string> lines_after(const std::string& file, std::string_view prefix) {
  std::ifstream text(file);
  std::vector<std::string> found;
  for (std::string line; std::getline(text, line);)
    if (line.starts_with(prefix)) found.push_back(line.substr(prefix.size()));
  return found;
}

constexpr std::string_view kProblem = "not launched: ";

// Buffers of a program on the device.
class ProgramData {
 public:
  ProgramData(runtime::Gpu& gpu) : gpu_(gpu) {}
  Status add(int64_t bytes, const void* from) {
    TS_ASSIGN_OR_RETURN(auto piece, gpu_.allocate(std::max<int64_t>(bytes, 1)));
    if (from != nullptr && bytes > 0) {
      TS_RETURN_IF_ERROR(gpu_.copy_in({piece.get(), 0, bytes}, from));
    } else {
      TS_RETURN_IF_ERROR(gpu_.fill(piece->all(), 0));
    }
    spans_.push_back({piece.get(), 0, bytes});
    memory_.push_back(std::move(piece));
    return {};
  }
  std::span<const runtime::GpuSpan> spans() const { return spans_; }

 private:
  runtime::Gpu& gpu_;
  std::vector<std::unique_ptr<runtime::GpuMemory>> memory_;
  std::vector<runtime::GpuSpan> spans_;
};

Status launch(runtime::Gpu& gpu, const target::Device& device, const ir::Workload& workload,
              const record::Record& record) {
  TS_ASSIGN_OR_RETURN(const sched::Trace trace, sched::parse_trace(record.trace));
  codegen::CodegenOptions options;
  options.symbol = symbol_of(record.key());
  TS_ASSIGN_OR_RETURN(const codegen::Backend* backend, codegen::backend_for(device));
  TS_ASSIGN_OR_RETURN(const codegen::BuiltKernel built,
                      codegen::build(workload, trace, device, *backend, options));
  TS_ASSIGN_OR_RETURN(const auto module, gpu.load(built.kernel.object));
  std::vector<lower::Tensor> inputs =
      measure::random_inputs(workload, kInputSeed, measure::InputValues::kNormal);
  for (const lower::PreparedConstant& constant : built.lowered.prepared) {
    TS_ASSIGN_OR_RETURN(inputs[constant.input], lower::prepare(constant, inputs[constant.input]));
  }
  ProgramData data(gpu);
  for (const lower::Tensor& input : inputs)
    TS_RETURN_IF_ERROR(data.add(input.data.size(), input.data.data()));
  for (const ir::Buffer& output : workload.outputs)
    TS_RETURN_IF_ERROR(data.add(ir::bytes_of(output->dtype, output->num_elements()), nullptr));
  ProgramData workspace(gpu);
  TS_RETURN_IF_ERROR(workspace.add(
      gpu.workspace_bytes(built.kernel.launches, built.kernel.shared_workspace_bytes), nullptr));
  TS_ASSIGN_OR_RETURN(const auto sequence, gpu.make_sequence());
  TS_RETURN_IF_ERROR(sequence->add(*module, built.kernel.launches, data.spans(), workspace.spans()[0]));
  TS_RETURN_IF_ERROR(sequence->run());
  return gpu.synchronize();
}

Status launch_records(const std::string& path, const std::string& device_name,
                      const std::set<std::string>& keys) {
  TS_ASSIGN_OR_RETURN(const target::Device device, engine::find_device(device_name));
  const auto place = engine::gpu_place(device);
  if (!place) return Error{ErrorCode::kUnsupported, device_name, "is not a GPU of this machine"};
  TS_ASSIGN_OR_RETURN(const auto gpu, runtime::open_gpu(*place));
  TS_ASSIGN_OR_RETURN(const auto database, record::Database::open_read_only(path));
  std::map<std::string, ir::Workload> workloads;
  TS_ASSIGN_OR_RETURN(const auto tasks, database->tasks());
  std::vector<record::Record> records;
  TS_RETURN_IF_ERROR(database->for_each([&](const record::Record& record) -> Status {
    if (keys.contains(record.key())) records.push_back(record);
    return {};
  }));
  for (const record::TaskInfo& task : tasks) {
    const auto own = [&](const record::Record& r) { return r.task_key == task.key; };
    if (std::none_of(records.begin(), records.end(), own)) continue;
    TS_ASSIGN_OR_RETURN(workloads[task.key], ir::parse_workload(task.text));
  }
  for (const record::Record& record : records) {
    const Status launched = launch(*gpu, device, workloads.at(record.task_key), record);
    if (launched.ok()) continue;
    const std::string line = std::string(kProblem) + record.key() + ": " + launched.error().message() + "\n";
    [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, line.data(), line.size());
    if (gpu->lost()) return launched.error();
  }
  return {};
}

}  // namespace

Result<std::string> find_nsight_compute() {
  const char* path = std::getenv("PATH");
  std::string folders = (path != nullptr ? std::string(path) : std::string()) + ":/usr/local/cuda/bin";
  std::error_code ignored;
  for (size_t begin = 0; begin <= folders.size();) {
    const size_t end = std::min(folders.find(':', begin), folders.size());
    const std::filesystem::path file = std::filesystem::path(folders.substr(begin, end - begin)) / "ncu";
    if (end > begin && std::filesystem::exists(file, ignored)) return file.string();
    begin = end + 1;
  }
  return Error{ErrorCode::kNotFound, "ncu",
               "is not in PATH; install NVIDIA Nsight Compute, or run it on another machine and import its "
               "CSV output (`profile import`)"};
}

Result<NsightComputeRun> run_nsight_compute(const std::string& ncu, const std::string& database,
                                            const target::Device& device,
                                            const std::vector<std::string>& record_keys) {
  TS_ASSIGN_OR_RETURN(const auto scratch, ScratchDirectory::create("nsight_compute"));
  const std::string csv = scratch.file("counters.csv"), printed = scratch.file("printed"),
                    list = scratch.file("keys");
  std::ofstream(list) << [&] {
    std::string text;
    for (const std::string& key : record_keys) text += key + "\n";
    return text;
  }();
  std::error_code error;
  const std::string self = std::filesystem::read_symlink("/proc/self/exe", error).string();
  // Counts do not depend on the clock. Locking it requires privileges and slows other programs.
  TS_RETURN_IF_ERROR(run_command({ncu,
                                  "--csv",
                                  "--page",
                                  "raw",
                                  "--set",
                                  "full",
                                  "--clock-control",
                                  "none",
                                  "--target-processes",
                                  "all",
                                  "--kernel-name-base",
                                  "function",
                                  "--kernel-name",
                                  std::string("regex:^") + kSymbolPrefix,
                                  "--log-file",
                                  csv,
                                  self,
                                  kLauncherArgument,
                                  std::filesystem::absolute(database).string(),
                                  device.name,
                                  list},
                                 printed));
  NsightComputeRun run;
  run.problems = lines_after(printed, kProblem);
  const auto text = read_input(csv, kMostCsvBytes);
  if (!text.ok()) return Error{ErrorCode::kUnsupported, ncu, reason_in(printed)};
  const auto launches = record::parse_ncu_csv(*text);
  if (!launches.ok() || launches->empty()) {
    const std::string own = reason_in(csv);
    return Error{
        ErrorCode::kUnsupported, ncu,
        "counted nothing: " + (own.find("==ERROR==") != std::string::npos ? own : reason_in(printed))};
  }
  const std::set<std::string> keys(record_keys.begin(), record_keys.end());
  std::map<std::string, std::vector<record::NcuLaunch>> by_record;
  for (const record::NcuLaunch& launch : *launches)
    if (const std::string key = record::record_in(launch.kernel, keys); !key.empty())
      by_record[key].push_back(launch);
  for (const auto& [key, of_record] : by_record) run.counters[key] = record::merge_launches(of_record);
  return run;
}

bool is_launcher(int argc, char** argv) {
  return argc == 5 && std::string_view(argv[1]) == kLauncherArgument;
}

int launcher_main(int, char** argv) {
  std::set<std::string> keys;
  std::ifstream list(argv[4]);
  for (std::string key; std::getline(list, key);) keys.insert(key);
  const Status status = launch_records(argv[2], argv[3], keys);
  if (status.ok()) return 0;
  const std::string line = status.error().message() + "\n";
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, line.data(), line.size());
  return 1;
}

}  // namespace tensorsmith::lab
