// The data of a compiled model and its text form. A compiled model is a directory:
//
//   manifest.json  everything below (ModelDescription)
//   weights.bin    constants, each at a 64-byte aligned offset, in the layouts the kernels expect; mapped,
//                  not read
//   kernels.so     the kernels (runtime/kernel_abi.h), which need no other library
//   kernels.gpu    in place of kernels.so, for a GPU: modules of kernels (runtime/device/gpu.h), one after
//                  the other
//
// A manifest may be damaged. It contains hashes of itself, of weights.bin and of kernels.so.
// parse_manifest() checks everything that can be checked without the other files, and Model::load()
// checks the kernels' own demands. kernels.so is a program: whoever can write it can do everything
// that this process can.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/dtype.h"
#include "base/result.h"
#include "runtime/kernel_abi.h"
#include "runtime/launch.h"
#include "runtime/routine.h"

namespace tensorsmith::runtime {

// Incremented when a manifest written by one version cannot be run by the other.
inline constexpr int kModelFormatVersion = 6;
// Size limits for reading a compiled model's files.
inline constexpr int64_t kMaxManifestBytes = int64_t{64} << 20;
inline constexpr int64_t kMaxKernelBytes = int64_t{4} << 30;
// Alignment of every buffer a kernel gets.
inline constexpr int64_t kBufferAlignment = TENSORSMITH_BUFFER_ALIGNMENT;

struct TensorInfo {
  std::string name;
  DType dtype = DType::kF32;
  std::vector<int64_t> shape;  // elements, row-major; a scalar has an empty shape
  // For a quantized output, the distance that correct results may have, since the order of a sum
  // decides which way a value halfway between two steps is rounded. 0 for other outputs. Not used
  // at run time.
  double quantization_step = 0;

  // Product of the shape times the element size; parse_manifest() and validate() guarantee that it fits.
  int64_t bytes() const;
};

// A region of weights.bin.
struct WeightInfo {
  std::string name;  // for people
  int64_t offset = 0;
  int64_t bytes = 0;
};

enum class BufferKind : uint8_t { kInput, kOutput, kArena, kWeight };

// An argument of a kernel.
struct BufferRef {
  BufferKind kind = BufferKind::kArena;
  int64_t index =
      0;  // number of the input, output or weight; kArena: offset in bytes, a multiple of kBufferAlignment
  int64_t bytes = 0;  // number of bytes that the kernel may access
  int64_t begin = 0;  // all but kArena: offset of the first of these bytes, a multiple of kBufferAlignment
};

// One call of a kernel or a routine; calls run in order.
struct CallInfo {
  std::string symbol;                  // in kernels.so; empty for a routine
  std::vector<BufferRef> buffers;      // inputs, then outputs
  int64_t outputs = 0;                 // number of buffers that are written
  int64_t shared_workspace_bytes = 0;  // per call
  int64_t thread_workspace_bytes = 0;  // per thread
  // GPUs: the launches of the call, and its module, a range of bytes of kernels.gpu.
  std::vector<Launch> launches;
  int64_t module_begin = 0, module_bytes = 0;
  // For reports.
  std::string task;
  double flops = 0;
  double predicted_seconds = 0;             // 0 = not known
  double measured_seconds = 0;              // 0 = not known
  std::optional<RoutineCall> routine = {};  // what is called in place of a kernel; only on processors
};

// A buffer of a call in a region moves by this many bytes after each turn.
struct RegionStep {
  int64_t call = 0, buffer = 0;
  int64_t bytes = 0;  // a multiple of kBufferAlignment, except for a routine's copy; may be negative
};

// Calls that run repeatedly, or only under a condition. Two regions are disjoint, or one contains the other.
struct RegionInfo {
  int64_t begin = 0, end = 0;  // the calls [begin, end), at least one
  // Number of turns, unless `count` or `condition` end the region earlier. 0: there is no limit, and a region
  // that runs for longer than LoadOptions::max_turns fails.
  int64_t turns = 1;
  std::optional<BufferRef> count;      // one i64, read before the first turn: the number of turns
  std::optional<BufferRef> condition;  // one bool, read before each turn: there is none if it equals `until`
  bool until = false;
  // Before the first turn of each run of the region, the buffers are where their calls say.
  std::vector<RegionStep> steps;
};

// Seconds of a run before and after tuning, for reports.
struct TuningTimes {
  double untuned_seconds = 0, tuned_seconds = 0;
  double spread = 0;  // spread of the timed runs
};

struct ModelDescription {
  std::string name;
  std::string tool_version;
  std::string device;                     // for people: the device it was compiled for
  std::string arch;                       // "x86-64", "aarch64"; GPUs: GpuPlatform::archs
  std::vector<std::string> cpu_features;  // required; LLVM's names without the "+"
  int threads = 0;                        // number of threads it was tuned for, 0 = not tuned
  std::vector<TensorInfo> inputs;
  std::vector<TensorInfo> outputs;
  int64_t arena_bytes = 0;  // values that live between calls; placed by the compiler's memory plan
  std::vector<CallInfo> calls;
  std::vector<RegionInfo> regions;  // by their begin; of those with the same begin, the outer one first
  // Measured by the run that tuned the model (see engine/report/speedup.h for their meaning); nothing for
  // other models.
  std::optional<TuningTimes> end_to_end, estimate;
  // Filled in by write_model():
  std::vector<WeightInfo> weights;
  int64_t weights_bytes = 0;  // size of weights.bin
  std::string weights_hash;   // content_key() of weights.bin
  std::string kernels_hash;   // content_key() of kernels.so
};

struct WeightData {
  std::string name;
  std::span<const std::byte> bytes;  // in the layout that the kernels expect
};
// Returns the name of the file with the model's kernels: "kernels.so" or "kernels.gpu".
std::string_view kernels_file(const ModelDescription& description);
// Sets the description's weight table: the weights follow each other, each aligned.
void place_weights(ModelDescription& description, std::span<const WeightData> weights);

// Checks sizes, references, alignment, the uniqueness of tensor names, and that no call receives
// overlapping memory that it writes under one of the names. The error's place names the part
// ("calls[3].buffers[1]").
Status validate(const ModelDescription& description);

// JSON text; parse_manifest(print_manifest(d)) equals d for every valid d.
std::string print_manifest(const ModelDescription& description);
// Never crashes, whatever the text is (fuzzed). Errors: kCorrupt with the place, kMismatch for
// another format version.
Result<ModelDescription> parse_manifest(std::string_view text);
// Returns the manifest with its hash recomputed from the other members, for tests that modify
// manifests.
Result<std::string> seal_manifest(std::string_view text);

// Checks that the call gives its kernel what it demands: `demands` is SYMBOL_info of the library
// (kernel_abi.h). Errors: kCorrupt, or kMismatch for kernels of another version of the interface.
Status check_call(const CallInfo& call, const int64_t* demands);

// Fails with kUnsupported if this CPU (or this build of the runtime) lacks a feature that the model
// needs: "compiled for avx512f, this CPU lacks it".
Status check_cpu(const ModelDescription& description);
// Returns the architecture that this code is compiled for, as in ModelDescription::arch.
std::string_view host_arch();

}  // namespace tensorsmith::runtime
