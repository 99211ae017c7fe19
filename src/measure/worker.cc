#include "measure/worker.h"

#include <sched.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <exception>
#include <map>
#include <optional>

#include "base/floor_div.h"
#include "base/processors.h"
#include "codegen/backend.h"
#include "ir/text.h"
#include "lower/lower.h"
#include "measure/confinement.h"
#include "measure/device_worker.h"
#include "measure/energy.h"
#include "measure/guarded_memory.h"
#include "measure/measurer.h"
#include "measure/protocol.h"
#include "measure/sandbox.h"
#include "measure/task_memory.h"
#include "measure/wire.h"
#include "runtime/kernel_pool.h"

namespace tensorsmith::measure {
namespace {

using record::MeasureResult;
using record::Outcome;

// A constant in a kernel's layout, made once and kept as long as the task.
struct Prepared {
  std::string transform;  // printed; empty: none
  std::optional<sched::Layout> layout;
  GuardedBuffer buffer;
  uint64_t last_use = 0;
};

struct Task {
  TaskSpec spec;
  std::unique_ptr<TaskMemory> memory;
  std::vector<GuardedBuffer> inputs;
  std::vector<GuardedBuffer> outputs;
  std::multimap<size_t, Prepared> prepared;  // by input
};

// Limit on prepared constants; beyond it the least recently used ones are dropped.
constexpr int64_t kMaxPreparedBytes = int64_t{256} << 20;

// Moves the pool's threads to distinct processors, and to distinct cores as long as there are
// enough. Threads that are woken while builds still hold the processors can share one for
// milliseconds, longer than a whole timing. Afterwards the threads may move freely again.
class ThreadPlacement {
 public:
  static void spread(runtime::KernelPool& pool, const Processors& machine) {
    if (pool.num_threads() < 2 || pool.num_threads() > static_cast<int>(machine.allowed.size())) return;
    ThreadPlacement placement(pool.num_threads(), machine);
    pool.parallel_for(
        placement.threads_,
        [](void* self, int64_t, int64_t, int32_t thread) {
          static_cast<ThreadPlacement*>(self)->place(thread);
        },
        &placement);
  }

 private:
  ThreadPlacement(int threads, const Processors& machine)
      : threads_(threads), allowed_(machine.allowed.back()) {
    allowed_.assign(machine.allowed);
    const std::vector<int> order = spread_over_cores(machine);
    for (int thread = 0; thread < threads; ++thread) {
      const int processor = order[thread];
      places_.emplace_back(processor);
      places_.back().assign({processor});
    }
  }

  // Allocates nothing: memory is limited here, and the first allocation of a thread takes an arena.
  void place(int32_t thread) {
    const ProcessorMask& own = places_[thread];
    const bool moved = ::sched_setaffinity(0, own.bytes(), own.data()) == 0;
    // All threads must be on their processors at the same time: one that finishes early would run
    // another's chunk too.
    arrived_.fetch_add(1);
    const double start = raw_seconds();
    while (arrived_.load() < threads_ && raw_seconds() - start < kPatienceSeconds) {
    }
    if (moved) ::sched_setaffinity(0, allowed_.bytes(), allowed_.data());
  }

  static constexpr double kPatienceSeconds = 0.005;
  const int threads_;
  std::vector<ProcessorMask> places_;  // by thread
  ProcessorMask allowed_;
  std::atomic<int> arrived_{0};
};

class Worker {
 public:
  Worker(int socket, int statm, const KernelLoader& loader)
      : socket_(socket), statm_(statm), loader_(loader) {}

  int serve() {
    if (!send_message(socket_, MessageType::kReady, {}, -1, 0).ok()) return 1;
    for (;;) {
      auto message = receive_message(socket_, 0);
      // kIo: the parent has gone.
      if (!message.ok()) return message.error().code == ErrorCode::kIo ? 0 : 1;
      MeasureResult result;
      MessageType answer = MessageType::kResult;
      switch (message->type) {
        case MessageType::kTask: {
          answer = MessageType::kTaskReady;
          auto status = set_task(*message);
          if (!status.ok()) {
            result = failure(Outcome::kMemoryLimit, status.error().message());
          } else {
            result.reason = not_confined_;
          }
          break;
        }
        case MessageType::kRun:
          result = run(message->payload);
          break;
        case MessageType::kReady:
        case MessageType::kTaskReady:
        case MessageType::kResult:
          return 1;
      }
      if (!send_message(socket_, answer, encode(result), -1, 0).ok()) return 1;
    }
  }

 private:
  Status set_task(const Message& message);
  // Makes the pool and everything else that must exist before the first candidate.
  Status become_confined(const TaskSpec& first);
  MeasureResult run(const std::vector<char>& payload);
  Result<const std::byte*> prepared_input(const lower::PreparedConstant& wanted);
  std::optional<MeasureResult> check_fences();
  std::optional<MeasureResult> check_outputs();
  void flush_caches(int64_t bytes);

  int socket_;
  int statm_;
  const KernelLoader& loader_;
  const Processors machine_ = processors();  // read before the confinement, which forbids opening files
  std::string not_confined_;                 // text of confine()
  std::optional<Task> task_;
  std::unique_ptr<runtime::KernelPool> pool_;
  std::optional<EnergyMeter> energy_;
  GuardedBuffer shared_workspace_;
  GuardedBuffer thread_workspace_;
  std::vector<char> flush_buffer_;
  uint64_t uses_ = 0;
};

Status Worker::become_confined(const TaskSpec& first) {
  const int threads = first.threads;
  if (!pool_) {
    // Reading the memory in use, and the energy counters only for those who ask for energy, since they tell
    // something of other programs.
    std::vector<int> readable;
    if (statm_ >= 0) readable.push_back(statm_);
    if (first.measure_energy) {
      TS_ASSIGN_OR_RETURN(energy_, EnergyMeter::open());
      for (const int file : energy_->descriptors()) readable.push_back(file);
    }
    not_confined_ =
        confine(socket_, readable, [&] { pool_ = std::make_unique<runtime::KernelPool>(threads, machine_); });
  }
  if (pool_->num_threads() == threads) return {};
  return Error{ErrorCode::kResourceExhausted, "",
               "the worker could only start " + std::to_string(pool_->num_threads()) + " of " +
                   std::to_string(threads) + " threads (see the limit of processes, ulimit -u)"};
}

Status Worker::set_task(const Message& message) {
  auto spec = decode_task(message.payload);
  auto memory = std::make_unique<TaskMemory>(spec.ok() ? spec->memory_bytes : 0);
  task_.reset();
  Status mapped = spec.ok() ? memory->map(message.fd) : Status(spec.error());
  if (message.fd >= 0) ::close(message.fd);
  TS_RETURN_IF_ERROR(std::move(mapped));
  TS_RETURN_IF_ERROR(become_confined(*spec));
  Task task;
  task.spec = std::move(spec).value();
  task.memory = std::move(memory);
  for (const auto& tensor : task.spec.inputs) {
    TS_ASSIGN_OR_RETURN(GuardedBuffer buffer, GuardedBuffer::allocate(tensor.bytes()));
    if (tensor.bytes() > 0) std::memcpy(buffer.data(), task.memory->at(tensor.offset), tensor.bytes());
    TS_RETURN_IF_ERROR(buffer.make_read_only());
    task.inputs.push_back(std::move(buffer));
  }
  for (const auto& tensor : task.spec.outputs) {
    TS_ASSIGN_OR_RETURN(GuardedBuffer buffer, GuardedBuffer::allocate(tensor.bytes()));
    task.outputs.push_back(std::move(buffer));
  }
  task_ = std::move(task);
  return {};
}

// Weights are prepared once and kept as long as the task, as a compiled model does ahead of time. A
// transform is computed once for all layouts of its result.
Result<const std::byte*> Worker::prepared_input(const lower::PreparedConstant& wanted) {
  if (wanted.input >= task_->inputs.size())
    return Error{ErrorCode::kInvalidArgument, "", "a prepared input does not exist"};
  const std::string transform = wanted.transform ? ir::print(*wanted.transform) : "";
  auto& all = task_->prepared;
  int64_t bytes = 0;
  for (auto& [input, prepared] : all) {
    bytes += prepared.buffer.size();
    if (input != wanted.input || prepared.layout != wanted.layout || prepared.transform != transform)
      continue;
    prepared.last_use = ++uses_;
    return static_cast<const std::byte*>(prepared.buffer.data());
  }
  lower::PreparedConstant last = wanted;  // the remaining preparation
  lower::Tensor source;
  if (wanted.transform && wanted.layout) {
    TS_ASSIGN_OR_RETURN(const std::byte* transformed,
                        prepared_input({wanted.input, wanted.transform, std::nullopt}));
    const ir::Buffer& made = wanted.transform->outputs.front();
    source = {made->dtype, made->shape, {}};
    source.data.assign(transformed, transformed + ir::bytes_of(made->dtype, made->num_elements()));
    last.transform = nullptr;
    bytes = 0;
    for (const auto& [input, prepared] : all) bytes += prepared.buffer.size();
  } else {
    const TensorSpec& spec = task_->spec.inputs[wanted.input];
    const std::byte* data = task_->inputs[wanted.input].data();
    source = {spec.dtype, spec.shape, std::vector<std::byte>(data, data + spec.bytes())};
  }
  TS_ASSIGN_OR_RETURN(const lower::Tensor made, lower::prepare(last, source));
  const auto size = std::ssize(made.data);
  while (!all.empty() && bytes + size > kMaxPreparedBytes) {
    const auto oldest = std::min_element(all.begin(), all.end(), [](const auto& a, const auto& b) {
      return a.second.last_use < b.second.last_use;
    });
    bytes -= oldest->second.buffer.size();
    all.erase(oldest);
  }
  TS_ASSIGN_OR_RETURN(GuardedBuffer buffer, GuardedBuffer::allocate(size));
  if (size > 0) std::memcpy(buffer.data(), made.data.data(), made.data.size());
  TS_RETURN_IF_ERROR(buffer.make_read_only());
  const std::byte* result = buffer.data();
  all.emplace(wanted.input, Prepared{transform, wanted.layout, std::move(buffer), ++uses_});
  return result;
}

std::optional<MeasureResult> Worker::check_fences() {
  for (size_t i = 0; i < task_->outputs.size(); ++i) {
    if (!task_->outputs[i].canaries_intact())
      return failure(Outcome::kWrongOutput, "writes outside of output " + std::to_string(i));
  }
  if (!shared_workspace_.canaries_intact() || !thread_workspace_.canaries_intact())
    return failure(Outcome::kWrongOutput, "writes outside of its workspace");
  return std::nullopt;
}

std::optional<MeasureResult> Worker::check_outputs() {
  if (auto fences = check_fences()) return fences;
  for (size_t i = 0; i < task_->outputs.size(); ++i) {
    const TensorSpec& tensor = task_->spec.outputs[i];
    const auto mismatch = compare(tensor.dtype, tensor.elements(), task_->outputs[i].data(),
                                  task_->memory->at(tensor.offset), tensor.tolerance);
    if (mismatch) {
      return failure(Outcome::kWrongOutput,
                     "output " + std::to_string(i) + ": " + describe(*mismatch, tensor.elements()));
    }
  }
  return std::nullopt;
}

void Worker::flush_caches(int64_t bytes) {
  if (flush_buffer_.size() != static_cast<size_t>(bytes)) flush_buffer_.assign(bytes, 0);
  // Writing also evicts the lines from the other cores' caches.
  volatile char* data = flush_buffer_.data();
  for (int64_t i = 0; i < bytes; i += 64) data[i] = data[i] + 1;
}

MeasureResult Worker::run(const std::vector<char>& payload) {
  if (!task_) return failure(Outcome::kWorkerLost, "a run without a task");
  auto decoded = decode_run(payload);
  if (!decoded.ok()) return failure(Outcome::kWorkerLost, decoded.error().message());
  const RunRequest& request = *decoded;
  const double start = raw_seconds();

  limit_memory(task_->spec.memory_limit_bytes);
  auto loaded = loader_(request.object, request.symbol);
  if (!loaded.ok()) return failure(Outcome::kBuildError, "cannot be loaded: " + loaded.error().message());

  std::vector<void*> buffers;
  for (auto& input : task_->inputs) buffers.push_back(input.data());
  for (const auto& constant : request.prepared) {
    auto data = prepared_input(constant);
    if (!data.ok()) return failure(Outcome::kMemoryLimit, data.error().message());
    buffers[constant.input] = const_cast<std::byte*>(*data);
  }
  for (auto& output : task_->outputs) buffers.push_back(output.data());

  const int64_t stride = round_up(request.thread_workspace_bytes, 4096);
  if (stride > (int64_t{1} << 40) / pool_->num_threads())
    return failure(Outcome::kMemoryLimit, "its workspace is too large");
  for (auto [workspace, bytes] : {std::pair{&shared_workspace_, request.shared_workspace_bytes},
                                  std::pair{&thread_workspace_, stride * pool_->num_threads()}}) {
    if (workspace->data() && workspace->size() == bytes) continue;
    *workspace = GuardedBuffer();
    auto allocated = GuardedBuffer::allocate(bytes);
    if (!allocated.ok())
      return failure(Outcome::kMemoryLimit, "its workspace: " + allocated.error().message());
    *workspace = std::move(allocated).value();
  }
  // NaN as a float, so that reads of unwritten memory show in the output.
  shared_workspace_.reset(0xFF);
  thread_workspace_.reset(0xFF);

  TensorsmithKernelContext context{};
  context.parallel_for = &runtime::KernelPool::parallel_for_abi;
  context.pool = pool_.get();
  context.num_threads = pool_->num_threads();
  context.shared_workspace = shared_workspace_.data();
  context.thread_workspace = thread_workspace_.data();
  context.thread_workspace_stride = stride;

  for (size_t i = 0; i < task_->outputs.size(); ++i) {
    task_->outputs[i].reset(0xFF);
    if (!request.make_reference) {
      poison(task_->memory->at(task_->spec.outputs[i].offset), task_->outputs[i].size(),
             task_->outputs[i].data());
    }
  }
  const double before = raw_seconds();
  loaded->function(&context, buffers.data());
  const double first_run = raw_seconds() - before;

  MeasureResult result;
  if (request.make_reference) {
    if (auto wrong = check_fences()) return *wrong;
    if (auto status = task_->memory->make_writable(true); !status.ok())
      return failure(Outcome::kWorkerLost, status.error().message());
    for (size_t i = 0; i < task_->outputs.size(); ++i) {
      task_->memory->write(task_->spec.outputs[i].offset, task_->outputs[i].data(), task_->outputs[i].size());
    }
    if (auto status = task_->memory->make_writable(false); !status.ok())
      return failure(Outcome::kWorkerLost, status.error().message());
    result.seconds = {first_run};
    result.runs_per_repeat = 1;
    result.measure_seconds = raw_seconds() - start;
    return result;
  }
  if (auto wrong = check_outputs()) return *wrong;

  TimingHooks hooks;
  hooks.run = [&] { loaded->function(&context, buffers.data()); };
  hooks.flush = [&] { flush_caches(request.flush_bytes); };
  hooks.now = raw_seconds;
  hooks.preemptions = preemptions;
  if (pool_->num_threads() == 1) hooks.on_core = thread_seconds;  // its only thread is this one
  if (energy_) hooks.joules = [&] { return energy_->joules(); };
  ThreadPlacement::spread(*pool_, machine_);
  Timing timing = measure_time(request.timing, hooks, first_run);
  // A race between threads, or a dependence on the previous contents of the outputs, shows only in
  // later runs.
  if (auto wrong = check_outputs()) {
    wrong->reason = "correct in the first run, wrong after " +
                    std::to_string(timing.seconds.size() * timing.runs_per_repeat) +
                    " runs: " + wrong->reason;
    return *wrong;
  }
  result.seconds = std::move(timing.seconds);
  result.runs_per_repeat = timing.runs_per_repeat;
  result.stopped_early = timing.stopped_early;
  if (timing.joules > 0) result.joules = timing.joules;
  result.measure_seconds = raw_seconds() - start;
  return result;
}

}  // namespace

int serve_worker(int socket, const KernelLoader& loader) {
  int type = 0;
  socklen_t size = sizeof type;
  if (::getsockopt(socket, SOL_SOCKET, SO_TYPE, &type, &size) != 0) return 2;  // started manually
  const int statm = enter_sandbox();
  try {
    return Worker(socket, statm, loader).serve();
  } catch (const std::bad_alloc&) {
    return kExitMemoryLimit;
  }
}

std::vector<std::string> this_program_as_worker() { return as_worker("/proc/self/exe"); }

std::vector<std::string> as_worker(const std::string& program) { return {program, kWorkerArgument}; }

bool is_worker(int argc, char** argv) { return argc > 1 && std::string_view(argv[1]) == kWorkerArgument; }

int worker_main(int argc, char** argv) {
  if (const std::optional<int> code = serve_device(kWorkerSocket, argc, argv)) return *code;
  const auto backend = codegen::find_backend(argc > 1 ? argv[argc - 1] : "");
  if (!backend.ok()) return 2;  // started manually
  return serve_worker(
      kWorkerSocket,
      [&](const std::vector<char>& object, const std::string& symbol) -> Result<LoadedFunction> {
        TS_ASSIGN_OR_RETURN(std::shared_ptr<codegen::LoadedKernel> kernel, (*backend)->load(object, symbol));
        const TensorsmithKernel function = kernel->function();
        return LoadedFunction{std::move(kernel), function};
      });
}

}  // namespace tensorsmith::measure
