#include "runtime/model.h"

#include <dlfcn.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <mutex>

#include "base/hash.h"
#include "base/input_file.h"
#include "base/processors.h"
#include "runtime/device/gpu_model.h"
#include "runtime/file_io.h"
#include "runtime/kernel_abi.h"
#include "runtime/kernel_pool.h"
#include "runtime/routine.h"

namespace tensorsmith::runtime {
namespace {

namespace fs = std::filesystem;

constexpr int kMaxThreads = 4096;

int64_t aligned(int64_t bytes) {
  return (bytes + kBufferAlignment - 1) / kBufferAlignment * kBufferAlignment;
}

bool is_aligned(const void* pointer) { return reinterpret_cast<uintptr_t>(pointer) % kBufferAlignment == 0; }

Error in_file(const fs::path& file, Error error) {
  error.place = error.place.empty() ? file.string() : file.string() + ": " + error.place;
  return error;
}

class SharedLibrary {
 public:
  SharedLibrary() = default;
  explicit SharedLibrary(void* handle) : handle_(handle) {}
  SharedLibrary(SharedLibrary&& other) noexcept : handle_(std::exchange(other.handle_, nullptr)) {}
  SharedLibrary& operator=(SharedLibrary&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~SharedLibrary() {
    if (handle_) ::dlclose(handle_);
  }
  void* symbol(const std::string& name) const { return ::dlsym(handle_, name.c_str()); }

 private:
  void* handle_ = nullptr;
};

// Returns a name of the file that no library was loaded under. The dynamic loader returns an
// already loaded library for a name that it knows, and would miss that a model's files were
// replaced while the old ones are loaded. "./" and ".//" in the path encode the digits of a
// counter.
std::string name_for_loader(const fs::path& file) {
  static std::atomic<uint64_t> count{0};
  // A path without a slash would be looked up in the library search path.
  const fs::path whole = fs::absolute(file);
  std::string name = whole.parent_path().string() + "/";
  for (uint64_t rest = ++count; rest > 0; rest /= 2) name += rest % 2 == 0 ? "./" : ".//";
  return name + whole.filename().string();
}

Result<SharedLibrary> load_kernels(const fs::path& file, const std::string& hash) {
  {
    // A damaged library may crash the dynamic loader, so its hash is checked before it is loaded.
    TS_ASSIGN_OR_RETURN(const std::string bytes, read_input(file.string(), kMaxKernelBytes));
    if (content_key(bytes) != hash)
      return Error{ErrorCode::kCorrupt, file.string(), "does not match the manifest"};
  }
  const std::string path = name_for_loader(file);
  void* handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle) {
    const char* why = ::dlerror();
    return Error{ErrorCode::kCorrupt, file.string(),
                 std::string("cannot be loaded: ") + (why ? why : "unknown reason")};
  }
  return SharedLibrary(handle);
}

Status check_options(const LoadOptions& options) {
  if (options.threads >= 0 && options.threads <= kMaxThreads) return {};
  return Error{ErrorCode::kInvalidArgument, "threads",
               std::to_string(options.threads) + " is not between 0 and " + std::to_string(kMaxThreads)};
}

// Checks that the model was compiled for the requested device.
Status check_place(const ModelDescription& description, const LoadOptions& options) {
  if (!options.gpu) return {};
  const std::string asked = to_string(*options.gpu);
  const GpuPlatform* platform = platform_of(description.arch);
  if (platform == nullptr)
    return Error{
        ErrorCode::kUnsupported, "device '" + asked + "'",
        "the model was compiled for CPUs; leave the device out, or compile the model with --device " + asked};
  if (options.gpu->platform == platform) return {};
  const std::string own(platform->name);
  return Error{ErrorCode::kUnsupported, "device '" + asked + "'",
               "the model was compiled for " + own + "; name " + own +
                   "[:N], or compile the model with --device " + asked};
}

// An entry of the argument table that run() fills in.
struct Patch {
  size_t argument = 0;
  size_t tensor = 0;
  bool output = false;
  int64_t begin = 0;
};

// A region at run time. Positions are those in the argument table.
struct Loop {
  size_t begin = 0, end = 0;  // calls
  size_t next = 0;            // the first loop that does not begin in this one
  int64_t turns = 0;          // 0: without a limit
  std::optional<size_t> count, condition;
  bool until = false;
  std::vector<std::pair<size_t, int64_t>> steps;  // argument, bytes
};

// A call: a kernel, or a routine with its parameters.
struct Kernel {
  TensorsmithKernel function = nullptr;
  size_t first_argument = 0;
  const Routine* routine = nullptr;
  std::span<const int64_t> parameters = {};  // of the description
};

}  // namespace

namespace {

// The call must outlive the kernel.
Kernel kernel_of(const CallInfo& call, TensorsmithKernel function) {
  Kernel kernel;
  kernel.function = function;
  if (!call.routine) return kernel;
  kernel.routine = find_routine(call.routine->name);
  TS_CHECK(kernel.routine != nullptr, "the routine is validated with the description");
  kernel.parameters = call.routine->parameters;
  return kernel;
}

}  // namespace

struct Model::Impl {
  ModelDescription description;
  LoadOptions options;
  Mapping weights;  // of a model in files
  std::vector<const std::byte*> weight_addresses;
  Mapping memory;  // arena, workspaces and staging buffers
  SharedLibrary library;
  std::unique_ptr<KernelPool> pool;
  TensorsmithKernelContext context{};
  std::vector<Kernel> kernels;   // by call
  std::vector<Loop> loops;       // by region
  std::vector<void*> arguments;  // of all calls
  std::vector<Patch> patches;
  std::vector<void*> staging_inputs;  // aligned copies, used if the caller's pointers are not aligned
  std::vector<void*> staging_outputs;
  std::vector<void*> bound_inputs;  // pointers that the kernels receive in this run
  std::vector<void*> bound_outputs;
  std::vector<CallTime> times;
  std::unique_ptr<GpuModel> gpu;  // for a model for a GPU, which it runs as a whole
  double device_seconds = 0;
  mutable std::mutex mutex;

  // Makes the model of a description whose weights are in memory, without its kernels.
  static Result<std::unique_ptr<Impl>> create(ModelDescription description,
                                              std::span<const WeightData> weights,
                                              const LoadOptions& options) {
    TS_RETURN_IF_ERROR(check_options(options));
    place_weights(description, weights);
    TS_RETURN_IF_ERROR(validate(description));
    TS_RETURN_IF_ERROR(check_place(description, options));
    auto impl = std::make_unique<Impl>();
    impl->options = options;
    impl->description = std::move(description);
    return impl;
  }
  Status place();  // sets up all memory that kernels receive
  Status place_memory();
  void place_arguments();
  void place_argument(const BufferRef& buffer);
  void place_loops();
  Status run_call(const Kernel& kernel);
  Status run_timed(size_t call);
  Status run_calls(size_t begin, size_t end, size_t loop);
  Status run_loop(const Loop& loop, size_t inner);
  Status load_modules(const fs::path& base);
  Status place_on_gpu(std::span<const char> modules);
  Status run_on_gpu(std::span<const void* const> inputs, std::span<void* const> outputs);
  void count(CallTime& time, double seconds);
};

Status Model::Impl::load_modules(const fs::path& base) {
  const fs::path file = base / kernels_file(description);
  TS_ASSIGN_OR_RETURN(const std::string modules, read_input(file.string(), kMaxKernelBytes));
  if (content_key(modules) != description.kernels_hash)
    return Error{ErrorCode::kCorrupt, file.string(), "does not match the manifest"};
  const Status placed = place_on_gpu(std::span<const char>(modules));
  return placed.ok() ? placed : Status(in_file(base, placed.error()));
}

Status Model::Impl::place_on_gpu(std::span<const char> modules) {
  TS_ASSIGN_OR_RETURN(auto device,
                      open_gpu(options.gpu.value_or(GpuPlace{platform_of(description.arch), 0})));
  TS_ASSIGN_OR_RETURN(gpu, GpuModel::create(std::move(device), description, modules, weight_addresses));
  if (options.profile) times.resize(description.calls.size());
  return {};
}

void Model::Impl::count(CallTime& time, double seconds) {
  time.min_seconds = time.runs == 0 ? seconds : std::min(time.min_seconds, seconds);
  time.total_seconds += seconds;
  ++time.runs;
}

Status Model::Impl::run_on_gpu(std::span<const void* const> inputs, std::span<void* const> outputs) {
  device_seconds = 0;
  if (!options.profile) return gpu->run(inputs, outputs, device_seconds);
  std::vector<double> seconds;
  TS_RETURN_IF_ERROR(gpu->run_timed(inputs, outputs, seconds));
  for (size_t i = 0; i < seconds.size(); ++i) {
    // The device's clock measures every call on its own.
    times[i].min_seconds_alone =
        times[i].runs == 0 ? seconds[i] : std::min(times[i].min_seconds_alone, seconds[i]);
    count(times[i], seconds[i]);
    device_seconds += seconds[i];
  }
  return {};
}

// One mapping: arena | shared workspace | thread workspaces | staging of inputs and outputs.
// Staging pages cost nothing until an unaligned pointer makes use of them.
Status Model::Impl::place_memory() {
  int64_t shared = 0, per_thread = 0;
  for (const auto& call : description.calls) {
    shared = std::max(shared, aligned(call.shared_workspace_bytes));
    per_thread = std::max(per_thread, aligned(call.thread_workspace_bytes));
  }
  // Thread workspaces are whole pages, so that no two share a cache line or its prefetched
  // neighbour.
  per_thread = per_thread > 0 ? (per_thread + 4095) / 4096 * 4096 : 0;
  const int64_t arena = aligned(description.arena_bytes);
  // At most 2^46 bytes each and 4096 threads: the sum cannot overflow before it is checked.
  constexpr int64_t kMaxMemory = int64_t{1} << 46;
  const Error too_large{ErrorCode::kResourceExhausted, "",
                        "the model needs more memory than can be addressed"};
  int64_t total = arena + shared + per_thread * pool->num_threads();
  for (const auto* tensors : {&description.inputs, &description.outputs}) {
    for (const auto& tensor : *tensors) {
      total += aligned(tensor.bytes());
      if (total > kMaxMemory) return too_large;
    }
  }
  if (total > kMaxMemory) return too_large;
  TS_ASSIGN_OR_RETURN(memory, Mapping::anonymous(total));
  std::byte* next = memory.data();
  const auto take = [&](int64_t bytes) {
    std::byte* region = next;
    next += bytes;
    return region;
  };
  take(arena);
  context.shared_workspace = take(shared);
  context.thread_workspace = take(per_thread * pool->num_threads());
  context.thread_workspace_stride = per_thread;
  for (const auto& tensor : description.inputs) staging_inputs.push_back(take(aligned(tensor.bytes())));
  for (const auto& tensor : description.outputs) staging_outputs.push_back(take(aligned(tensor.bytes())));
  bound_inputs.resize(description.inputs.size());
  bound_outputs.resize(description.outputs.size());
  return {};
}

void Model::Impl::place_argument(const BufferRef& buffer) {
  void* address = nullptr;
  switch (buffer.kind) {
    case BufferKind::kInput:
    case BufferKind::kOutput:
      patches.push_back({arguments.size(), static_cast<size_t>(buffer.index),
                         buffer.kind == BufferKind::kOutput, buffer.begin});
      break;
    case BufferKind::kArena:
      address = memory.data() + buffer.index;
      break;
    case BufferKind::kWeight:
      address = const_cast<std::byte*>(weight_addresses[buffer.index]) + buffer.begin;  // only read
      break;
  }
  arguments.push_back(address);
}

void Model::Impl::place_arguments() {
  for (const auto& call : description.calls) {
    kernels[&call - description.calls.data()].first_argument = arguments.size();
    for (const auto& buffer : call.buffers) place_argument(buffer);
  }
  place_loops();
}

void Model::Impl::place_loops() {
  const auto& regions = description.regions;
  for (size_t r = 0; r < regions.size(); ++r) {
    const RegionInfo& region = regions[r];
    Loop loop;
    loop.begin = region.begin;
    loop.end = region.end;
    for (loop.next = r + 1; loop.next < regions.size() && regions[loop.next].begin < region.end;) ++loop.next;
    loop.turns = region.turns;
    loop.until = region.until;
    const auto place = [&](const std::optional<BufferRef>& buffer) -> std::optional<size_t> {
      if (!buffer) return std::nullopt;
      place_argument(*buffer);
      return arguments.size() - 1;
    };
    loop.count = place(region.count);
    loop.condition = place(region.condition);
    for (const RegionStep& step : region.steps)
      loop.steps.emplace_back(kernels[step.call].first_argument + step.buffer, step.bytes);
    loops.push_back(std::move(loop));
  }
}

Status Model::Impl::place() {
  const Processors machine = processors();
  pool = std::make_unique<KernelPool>(options.threads > 0 ? options.threads : machine.usable, machine);
  TS_RETURN_IF_ERROR(place_memory());
  context.parallel_for = &KernelPool::parallel_for_abi;
  context.pool = pool.get();
  context.num_threads = pool->num_threads();
  place_arguments();
  if (options.profile) times.resize(description.calls.size());
  return {};
}

Status Model::Impl::run_call(const Kernel& kernel) {
  void* const* buffers = arguments.data() + kernel.first_argument;
  if (kernel.routine == nullptr) {
    kernel.function(&context, buffers);
    return {};
  }
  Status status = kernel.routine->run(context, kernel.parameters, buffers);
  if (status.ok()) return status;
  const CallInfo& call = description.calls[&kernel - kernels.data()];
  return Error{status.error().code, "'" + call.task + "'", status.error().reason};
}

Status Model::Impl::run_timed(size_t call) {
  const auto run = [&]() -> Result<double> {
    const auto start = std::chrono::steady_clock::now();
    TS_RETURN_IF_ERROR(run_call(kernels[call]));
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  };
  CallTime& time = times[call];
  TS_ASSIGN_OR_RETURN(const double seconds, run());
  // A kernel overwrites its outputs completely and never its inputs, so that it may run again.
  for (int repeat = 0; repeat < options.repeats_alone; ++repeat) {
    TS_ASSIGN_OR_RETURN(const double alone, run());
    const bool first = time.runs == 0 && repeat == 0;
    time.min_seconds_alone = first ? alone : std::min(time.min_seconds_alone, alone);
  }
  count(time, seconds);
  return {};
}

// Runs the calls [begin, end). `loop` is the first loop that begins in there, or a later one.
Status Model::Impl::run_calls(size_t begin, size_t end, size_t loop) {
  for (size_t call = begin; call < end;) {
    if (loop < loops.size() && loops[loop].begin == call) {
      const Loop& inner = loops[loop];
      TS_RETURN_IF_ERROR(run_loop(inner, loop + 1));
      call = inner.end;
      loop = inner.next;
      continue;
    }
    TS_RETURN_IF_ERROR(options.profile ? run_timed(call) : run_call(kernels[call]));
    ++call;
  }
  return {};
}

Status Model::Impl::run_loop(const Loop& loop, size_t inner) {
  int64_t most = loop.turns > 0 ? loop.turns : options.max_turns;
  bool limited = loop.turns == 0;
  if (loop.count) {
    int64_t given = 0;
    std::memcpy(&given, arguments[*loop.count], sizeof given);
    if (given <= most) limited = false;
    most = std::min(most, given);
  }
  int64_t done = 0;
  const auto move_by = [&](int64_t turns) {
    for (const auto& [argument, bytes] : loop.steps)
      arguments[argument] = static_cast<std::byte*>(arguments[argument]) + turns * bytes;
  };
  Status status;
  for (;; ++done) {
    // A caller's bool may be any byte.
    const bool ends = loop.condition && (*static_cast<const std::byte*>(arguments[*loop.condition]) !=
                                         std::byte{0}) == loop.until;
    if (ends || (done >= most && !limited)) break;
    if (done >= most) {
      status =
          Error{ErrorCode::kResourceExhausted, "the loop of '" + description.calls[loop.begin].task + "'",
                "has not ended after " + std::to_string(most) + " turns, the limit of --max-turns"};
    } else {
      status = run_calls(loop.begin, loop.end, inner);
    }
    if (!status.ok()) break;
    move_by(1);
  }
  move_by(-done);
  return status;
}

Model::Model(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Model::~Model() = default;

Result<std::unique_ptr<Model>> Model::load(const std::string& directory, const LoadOptions& options) {
  TS_RETURN_IF_ERROR(check_options(options));
  const fs::path base(directory);
  const fs::path manifest = base / "manifest.json";
  auto impl = std::make_unique<Impl>();
  impl->options = options;
  {
    auto text = read_input(manifest.string(), kMaxManifestBytes);
    if (!text.ok()) {
      if (text.error().code == ErrorCode::kNotFound)
        return Error{ErrorCode::kNotFound, directory, "is not a compiled model (it has no manifest.json)"};
      return text.error();
    }
    auto parsed = parse_manifest(*text);
    if (!parsed.ok()) return in_file(manifest, parsed.error());
    impl->description = std::move(parsed).value();
  }
  const ModelDescription& d = impl->description;
  const bool on_gpu = platform_of(d.arch) != nullptr;
  if (auto place = check_place(d, options); !place.ok()) return in_file(base, place.error());
  if (!on_gpu)
    if (auto cpu = check_cpu(d); !cpu.ok()) return in_file(base, cpu.error());

  const fs::path weights = base / "weights.bin";
  TS_ASSIGN_OR_RETURN(impl->weights, Mapping::file(weights.string(), d.weights_bytes));
  if (options.verify_weights) {
    const std::string_view bytes(reinterpret_cast<const char*>(impl->weights.data()), impl->weights.size());
    if (content_key(bytes) != d.weights_hash)
      return Error{ErrorCode::kCorrupt, weights.string(), "does not match the manifest"};
  }

  for (const WeightInfo& weight : d.weights)
    impl->weight_addresses.push_back(impl->weights.data() + weight.offset);
  if (on_gpu) {
    TS_RETURN_IF_ERROR(impl->load_modules(base));
    return std::unique_ptr<Model>(new Model(std::move(impl)));
  }

  const fs::path library = base / kernels_file(d);
  // Without kernels, the file is empty.
  if (std::ranges::any_of(d.calls, [](const CallInfo& call) { return !call.routine; })) {
    TS_ASSIGN_OR_RETURN(impl->library, load_kernels(library, d.kernels_hash));
  }
  for (const auto& call : d.calls) {
    if (call.routine) {
      impl->kernels.push_back(kernel_of(call, nullptr));
      continue;
    }
    void* symbol = impl->library.symbol(call.symbol);
    if (!symbol) return Error{ErrorCode::kCorrupt, library.string(), "has no kernel '" + call.symbol + "'"};
    const auto* demands =
        static_cast<const int64_t*>(impl->library.symbol(call.symbol + TENSORSMITH_INFO_SUFFIX));
    if (!demands)
      return Error{ErrorCode::kCorrupt, library.string(),
                   "does not say what its kernel '" + call.symbol + "' needs; compile the model again"};
    if (auto fits = check_call(call, demands); !fits.ok()) return in_file(base, fits.error());
    impl->kernels.push_back(kernel_of(call, reinterpret_cast<TensorsmithKernel>(symbol)));
  }

  if (auto placed = impl->place(); !placed.ok()) return in_file(base, placed.error());
  return std::unique_ptr<Model>(new Model(std::move(impl)));
}

Result<std::unique_ptr<Model>> Model::from_modules(ModelDescription description,
                                                   std::span<const char> modules,
                                                   std::span<const WeightData> weights,
                                                   const LoadOptions& options) {
  TS_ASSIGN_OR_RETURN(auto impl, Impl::create(std::move(description), weights, options));
  for (const WeightData& weight : weights) impl->weight_addresses.push_back(weight.bytes.data());
  TS_RETURN_IF_ERROR(impl->place_on_gpu(modules));
  return std::unique_ptr<Model>(new Model(std::move(impl)));
}

Result<std::unique_ptr<Model>> Model::from_memory(ModelDescription description,
                                                  std::span<const TensorsmithKernel> kernels,
                                                  std::span<const WeightData> weights,
                                                  const LoadOptions& options) {
  TS_ASSIGN_OR_RETURN(auto impl, Impl::create(std::move(description), weights, options));
  TS_RETURN_IF_ERROR(check_cpu(impl->description));
  if (kernels.size() != impl->description.calls.size())
    return Error{ErrorCode::kInvalidArgument, impl->description.name, "needs one kernel per call"};
  for (const WeightData& weight : weights) {
    if (!is_aligned(weight.bytes.data()))
      return Error{ErrorCode::kInvalidArgument, "weight '" + weight.name + "'", "is not aligned"};
    impl->weight_addresses.push_back(weight.bytes.data());
  }
  const auto& calls = impl->description.calls;
  for (size_t c = 0; c < kernels.size(); ++c) impl->kernels.push_back(kernel_of(calls[c], kernels[c]));
  TS_RETURN_IF_ERROR(impl->place());
  return std::unique_ptr<Model>(new Model(std::move(impl)));
}

const ModelDescription& Model::description() const { return impl_->description; }
std::span<const TensorInfo> Model::inputs() const { return impl_->description.inputs; }
std::span<const TensorInfo> Model::outputs() const { return impl_->description.outputs; }
double Model::device_seconds() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->device_seconds;
}
int Model::num_threads() const { return impl_->pool ? impl_->pool->num_threads() : 1; }

Status Model::run(std::span<const void* const> inputs, std::span<void* const> outputs) {
  Impl& m = *impl_;
  const auto& d = m.description;
  const auto wrong_count = [](const char* what, size_t got, size_t expected) {
    return Error{ErrorCode::kInvalidArgument, what,
                 "got " + std::to_string(got) + ", the model has " + std::to_string(expected)};
  };
  if (inputs.size() != d.inputs.size()) return wrong_count("inputs", inputs.size(), d.inputs.size());
  if (outputs.size() != d.outputs.size()) return wrong_count("outputs", outputs.size(), d.outputs.size());
  const auto missing = [](const TensorInfo& tensor, const void* pointer) {
    return !pointer && tensor.bytes() > 0;
  };
  std::lock_guard lock(m.mutex);
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (m.gpu && m.gpu->input_bound(i)) continue;
    if (missing(d.inputs[i], inputs[i]))
      return Error{ErrorCode::kInvalidArgument, "input '" + d.inputs[i].name + "'", "is a null pointer"};
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (m.gpu && m.gpu->output_bound(i)) continue;
    if (missing(d.outputs[i], outputs[i]))
      return Error{ErrorCode::kInvalidArgument, "output '" + d.outputs[i].name + "'", "is a null pointer"};
  }

  if (m.gpu) return m.run_on_gpu(inputs, outputs);
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (is_aligned(inputs[i])) {
      m.bound_inputs[i] = const_cast<void*>(inputs[i]);  // kernels do not write their inputs
    } else {
      std::memcpy(m.staging_inputs[i], inputs[i], d.inputs[i].bytes());
      m.bound_inputs[i] = m.staging_inputs[i];
    }
  }
  for (size_t i = 0; i < outputs.size(); ++i)
    m.bound_outputs[i] = is_aligned(outputs[i]) ? outputs[i] : m.staging_outputs[i];
  for (const Patch& patch : m.patches)
    m.arguments[patch.argument] =
        static_cast<std::byte*>(patch.output ? m.bound_outputs[patch.tensor] : m.bound_inputs[patch.tensor]) +
        patch.begin;
  TS_RETURN_IF_ERROR(m.run_calls(0, m.kernels.size(), 0));
  for (size_t i = 0; i < outputs.size(); ++i) {
    if (m.bound_outputs[i] != outputs[i]) std::memcpy(outputs[i], m.bound_outputs[i], d.outputs[i].bytes());
  }
  return {};
}

namespace {

Status check_tensor(const char* kind, size_t index, std::span<const TensorInfo> tensors, bool on_gpu) {
  const std::string place = std::string(kind) + " " + std::to_string(index);
  if (!on_gpu)
    return Error{ErrorCode::kUnsupported, place,
                 "only models on GPUs can bind memory; on CPUs a model reads and writes the caller's memory "
                 "without a copy"};
  if (index < tensors.size()) return {};
  return Error{ErrorCode::kInvalidArgument, place, "the model has " + std::to_string(tensors.size())};
}

}  // namespace

Status Model::bind_input(size_t index, void* handle) {
  TS_RETURN_IF_ERROR(check_tensor("input", index, inputs(), impl_->gpu != nullptr));
  const std::lock_guard lock(impl_->mutex);
  return impl_->gpu->bind_input(index, handle);
}

Status Model::bind_output(size_t index, void* handle) {
  TS_RETURN_IF_ERROR(check_tensor("output", index, outputs(), impl_->gpu != nullptr));
  const std::lock_guard lock(impl_->mutex);
  return impl_->gpu->bind_output(index, handle);
}

void* Model::device_context() const { return impl_->gpu ? impl_->gpu->context() : nullptr; }

std::vector<CallTime> Model::profile() const {
  std::lock_guard lock(impl_->mutex);
  return impl_->times;
}

void Model::reset_profile() {
  std::lock_guard lock(impl_->mutex);
  std::fill(impl_->times.begin(), impl_->times.end(), CallTime{});
}

}  // namespace tensorsmith::runtime
