#include "measure/device_worker.h"

#include <sys/socket.h>
#include <unistd.h>

#include <new>
#include <string_view>

#include "measure/device_run.h"
#include "measure/device_task.h"
#include "measure/sandbox.h"
#include "measure/task_memory.h"
#include "measure/wire.h"
#include "runtime/device/canary.h"

namespace tensorsmith::measure {
namespace {

using record::MeasureResult;
using record::Outcome;

constexpr std::string_view kDeviceArgument = "__device";
// The total size of a task's sets in multiples of the device's cache, so that a set has left the
// cache when it is used again.
constexpr int64_t kRotatedCaches = 2;

class DeviceWorker {
 public:
  DeviceWorker(int socket, runtime::Gpu& gpu) : socket_(socket), gpu_(gpu) {}
  int serve();

 private:
  Status set_task(const Message& message);
  MeasureResult run(const std::vector<char>& payload);
  MeasureResult make_reference(const RunRequest& request);

  int socket_;
  runtime::Gpu& gpu_;
  bool works_ = false;  // the canary has run successfully
  std::unique_ptr<TaskMemory> memory_;
  std::unique_ptr<DeviceTask> task_;
  std::unique_ptr<DeviceConstants> constants_;
};

int DeviceWorker::serve() {
  if (!send_message(socket_, MessageType::kReady, {}, -1, 0).ok()) return 1;
  for (;;) {
    auto message = receive_message(socket_, 0);
    // kIo: the parent has gone.
    if (!message.ok()) return message.error().code == ErrorCode::kIo ? 0 : 1;
    MeasureResult result;
    if (message->type == MessageType::kTask) {
      const Status status = set_task(*message);
      if (!status.ok()) result = failure(Outcome::kMemoryLimit, status.error().message());
    } else if (message->type == MessageType::kRun) {
      result = run(message->payload);
    } else {
      return 1;
    }
    const auto answer = message->type == MessageType::kTask ? MessageType::kTaskReady : MessageType::kResult;
    if (!send_message(socket_, answer, encode(result), -1, 0).ok()) return 1;
  }
}

Status DeviceWorker::set_task(const Message& message) {
  auto spec = decode_task(message.payload);
  auto memory = std::make_unique<TaskMemory>(spec.ok() ? spec->memory_bytes : 0);
  Status mapped = spec.ok() ? memory->map(message.fd) : Status(spec.error());
  if (message.fd >= 0) ::close(message.fd);
  TS_RETURN_IF_ERROR(std::move(mapped));
  // An earlier candidate may have broken the device, for which later ones must not be blamed.
  if (!works_) TS_RETURN_IF_ERROR(runtime::run_canary(gpu_));
  works_ = true;
  constants_.reset();
  task_.reset();
  memory_ = std::move(memory);
  TS_ASSIGN_OR_RETURN(task_, DeviceTask::create(gpu_, std::move(spec).value(), memory_->at(0),
                                                kRotatedCaches * gpu_.properties().l2_bytes));
  constants_ = std::make_unique<DeviceConstants>(gpu_, *task_);
  return {};
}

MeasureResult DeviceWorker::run(const std::vector<char>& payload) {
  if (!task_) return failure(Outcome::kWorkerLost, "a run without a task");
  auto request = decode_run(payload);
  if (!request.ok()) return failure(Outcome::kWorkerLost, request.error().message());
  limit_written_memory(task_->spec().memory_limit_bytes);
  if (request->make_reference) return make_reference(*request);
  return run_on_device(gpu_, *task_, *constants_, *request);
}

MeasureResult DeviceWorker::make_reference(const RunRequest& request) {
  MeasureResult result = run_reference_on_device(gpu_, *task_, *constants_, request);
  if (!result.ok()) return result;
  const auto keep = [&]() -> Status {
    TS_RETURN_IF_ERROR(memory_->make_writable(true));
    std::vector<std::byte> output;
    for (size_t i = 0; i < task_->spec().outputs.size(); ++i) {
      const TensorSpec& tensor = task_->spec().outputs[i];
      output.resize(tensor.bytes());
      if (!output.empty()) TS_RETURN_IF_ERROR(task_->copy_output(i, output.data()));
      memory_->write(tensor.offset, output.data(), tensor.bytes());
    }
    return memory_->make_writable(false);
  };
  const Status kept = keep();
  return kept.ok() ? result : failure(Outcome::kWorkerLost, kept.error().message());
}

int print_and_fail(const std::string& text) {
  [[maybe_unused]] const ssize_t written = ::write(STDERR_FILENO, text.data(), text.size());
  return 1;
}

}  // namespace

std::vector<std::string> device_arguments(const DeviceArguments& device) {
  return {std::string(kDeviceArgument), runtime::to_string(device.place), device.driver};
}

std::optional<int> serve_device(int socket, int argc, char** argv) {
  if (argc < 4 || argv[argc - 3] != kDeviceArgument) return std::nullopt;
  int type = 0;
  socklen_t size = sizeof type;
  if (::getsockopt(socket, SOL_SOCKET, SO_TYPE, &type, &size) != 0) return 2;  // started manually
  const auto place = runtime::require_gpu_place(argv[argc - 2]);
  if (!place.ok()) return print_and_fail(place.error().message());
  enter_sandbox(/*for_driver=*/true);
  try {
    const auto gpu = runtime::open_gpu(*place, argv[argc - 1]);
    if (!gpu.ok()) return print_and_fail(gpu.error().message());
    const int code = DeviceWorker(socket, **gpu).serve();
    // The driver is not shut down: after a failed kernel this may hang.
    ::_exit(code);
  } catch (const std::bad_alloc&) {
    return kExitMemoryLimit;
  }
}

}  // namespace tensorsmith::measure
