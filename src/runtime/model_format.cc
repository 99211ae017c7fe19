#include "runtime/model_format.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "runtime/device/gpu_platform.h"
#include "runtime/kernel_abi.h"

namespace tensorsmith::runtime {
namespace {

// Larger than any memory, but small enough that aligned sums of several sizes do not overflow.
constexpr int64_t kMaxBytes = int64_t{1} << 46;
constexpr int kMaxStoredThreads = 1 << 16;
constexpr size_t kMostNestedRegions = 64;  // the importer allows fewer

Error corrupt(std::string place, std::string reason) {
  return Error{ErrorCode::kCorrupt, std::move(place), std::move(reason)};
}

std::string item(std::string_view list, size_t i) {
  return std::string(list) + "[" + std::to_string(i) + "]";
}

Status check_size(const std::string& place, int64_t bytes) {
  if (bytes < 0 || bytes > kMaxBytes)
    return corrupt(place, "size of " + std::to_string(bytes) + " bytes is out of range");
  return {};
}

// The C interface returns text as C strings.
Status check_text(const std::string& place, const std::string& text) {
  if (text.size() > 4096) return corrupt(place, "text longer than 4096 characters");
  if (text.find('\0') != std::string::npos) return corrupt(place, "zero character in text");
  return {};
}

Status check_tensors(std::string_view list, const std::vector<TensorInfo>& tensors) {
  std::set<std::string_view> names;
  for (size_t i = 0; i < tensors.size(); ++i) {
    const TensorInfo& tensor = tensors[i];
    const std::string place = item(list, i);
    TS_RETURN_IF_ERROR(check_text(place, tensor.name));
    if (tensor.name.empty()) return corrupt(place, "a tensor needs a name");
    if (!names.insert(tensor.name).second) return corrupt(place, "'" + tensor.name + "' appears twice");
    if (tensor.shape.size() > 64) return corrupt(place, "more than 64 dimensions");
    int64_t bytes = bytes_of(tensor.dtype);
    for (const int64_t extent : tensor.shape) {
      if (extent < 0) return corrupt(place, "negative dimension " + std::to_string(extent));
      if (extent > 0 && bytes > kMaxBytes / extent) return corrupt(place, "tensor is too large");
      if (extent > 0) bytes *= extent;  // bounded for empty tensors too, so that bytes() never overflows
    }
  }
  return {};
}

// `alignment`: of its first byte.
Status check_buffer(const std::string& place, const BufferRef& buffer, const ModelDescription& d,
                    int64_t alignment) {
  TS_RETURN_IF_ERROR(check_size(place, buffer.bytes));
  const auto in_list = [&](std::string_view what, size_t count) -> Status {
    if (buffer.index >= 0 && static_cast<uint64_t>(buffer.index) < count) return {};
    return corrupt(place, std::string(what) + " " + std::to_string(buffer.index) +
                              " does not exist (there are " + std::to_string(count) + ")");
  };
  int64_t available = 0;
  switch (buffer.kind) {
    case BufferKind::kInput:
      TS_RETURN_IF_ERROR(in_list("input", d.inputs.size()));
      available = d.inputs[buffer.index].bytes();
      break;
    case BufferKind::kOutput:
      TS_RETURN_IF_ERROR(in_list("output", d.outputs.size()));
      available = d.outputs[buffer.index].bytes();
      break;
    case BufferKind::kWeight:
      TS_RETURN_IF_ERROR(in_list("weight", d.weights.size()));
      available = d.weights[buffer.index].bytes;
      break;
    case BufferKind::kArena:
      if (buffer.index < 0 || buffer.index > d.arena_bytes)
        return corrupt(place, "arena offset " + std::to_string(buffer.index) + " is out of range");
      if (buffer.index % alignment != 0)
        return corrupt(place, "arena offset " + std::to_string(buffer.index) + " is not a multiple of " +
                                  std::to_string(alignment));
      available = d.arena_bytes - buffer.index;
      break;
  }
  const int64_t most = buffer.kind == BufferKind::kArena ? 0 : available;
  if (buffer.begin % alignment != 0 || buffer.begin < 0 || buffer.begin > most)
    return corrupt(place, "cannot begin at byte " + std::to_string(buffer.begin));
  available -= buffer.begin;
  if (buffer.bytes > available) {
    return corrupt(place, "needs " + std::to_string(buffer.bytes) + " bytes, but only " +
                              std::to_string(available) + " are available");
  }
  return {};
}

// A kernel's outputs must not overlap its other buffers: it was compiled for disjoint buffers.
Status check_overlap(const std::string& place, const CallInfo& call) {
  struct Piece {
    BufferKind kind;
    int64_t begin, end;  // arena: bytes; others: the whole tensor
    bool written;
    size_t buffer;
  };
  std::vector<Piece> pieces;
  const size_t first_output = call.buffers.size() - call.outputs;
  for (size_t b = 0; b < call.buffers.size(); ++b) {
    const BufferRef& buffer = call.buffers[b];
    const bool arena = buffer.kind == BufferKind::kArena, written = b >= first_output;
    if (written && !arena && buffer.kind != BufferKind::kOutput)
      return corrupt(place + "." + item("buffers", b),
                     "is written, but is neither an output nor in the arena");
    if (buffer.bytes > 0)
      pieces.push_back({buffer.kind, buffer.index, buffer.index + (arena ? buffer.bytes : 1), written, b});
  }
  std::sort(pieces.begin(), pieces.end(), [](const Piece& a, const Piece& b) {
    return std::tie(a.kind, a.begin) < std::tie(b.kind, b.begin);
  });
  // Ends of all preceding pieces, and of those that are written.
  int64_t end = 0, written_end = 0;
  for (size_t i = 0; i < pieces.size(); ++i) {
    const Piece& piece = pieces[i];
    if (i == 0 || pieces[i - 1].kind != piece.kind) end = written_end = INT64_MIN;
    if (piece.begin < written_end || (piece.written && piece.begin < end))
      return corrupt(place + "." + item("buffers", piece.buffer),
                     "overlaps another buffer of the call, and one of them is written");
    end = std::max(end, piece.end);
    if (piece.written) written_end = std::max(written_end, piece.end);
  }
  return {};
}

// Copies may begin anywhere.
int64_t alignment_of(const CallInfo& call) {
  return call.routine && call.routine->name == kCopy.name ? 1 : kBufferAlignment;
}

// A buffer as it is after its region's turns.
Status check_moved(const std::string& place, BufferRef buffer, int64_t bytes, const ModelDescription& d,
                   int64_t alignment) {
  (buffer.kind == BufferKind::kArena ? buffer.index : buffer.begin) += bytes;
  return check_buffer(place, buffer, d, alignment);
}

// Least and greatest distance by which the regions around a call move a buffer of it.
struct Reach {
  int64_t least = 0, most = 0;
};
using Reaches = std::map<std::pair<int64_t, int64_t>, Reach>;  // by call and buffer

Status check_region(const std::string& place, const RegionInfo& region, const ModelDescription& d,
                    Reaches& reaches) {
  if (region.begin < 0 || region.end > std::ssize(d.calls) || region.begin >= region.end)
    return corrupt(place, "its calls do not exist");
  if (platform_of(d.arch) != nullptr) return corrupt(place, "a region cannot run on a GPU");
  if (region.turns < 0 || region.turns > kMaxBytes) return corrupt(place + ".turns", "is out of range");
  for (const auto& [key, buffer, bytes] : {std::tuple{".count", &region.count, sizeof(int64_t)},
                                           {".condition", &region.condition, sizeof(bool)}}) {
    if (!*buffer) continue;
    TS_RETURN_IF_ERROR(check_buffer(place + key, **buffer, d, kBufferAlignment));
    if (std::cmp_less((*buffer)->bytes, bytes)) return corrupt(place + key, "has too few bytes");
  }
  for (size_t s = 0; s < region.steps.size(); ++s) {
    const RegionStep& step = region.steps[s];
    const std::string here = place + "." + item("steps", s);
    if (step.call < region.begin || step.call >= region.end || step.buffer < 0 ||
        step.buffer >= std::ssize(d.calls[step.call].buffers))
      return corrupt(here, "its buffer does not exist in the region");
    if (const int64_t alignment = alignment_of(d.calls[step.call]); step.bytes % alignment != 0)
      return corrupt(here, "is not a multiple of " + std::to_string(alignment));
    const int64_t moves = region.turns - 1;  // -1: without a limit
    if (moves < 0 || (moves > 0 && (step.bytes > kMaxBytes / moves || step.bytes < -kMaxBytes / moves)))
      return corrupt(here, "moves too far");
    Reach& reach = reaches[{step.call, step.buffer}];
    (step.bytes < 0 ? reach.least : reach.most) += moves * step.bytes;
    if (reach.least < -kMaxBytes || reach.most > kMaxBytes) return corrupt(here, "moves too far");
  }
  return {};
}

Status check_regions(const ModelDescription& d) {
  Reaches reaches;
  std::vector<int64_t> ends;  // of the regions around the present one
  for (size_t r = 0; r < d.regions.size(); ++r) {
    const RegionInfo& region = d.regions[r];
    const std::string place = item("regions", r);
    TS_RETURN_IF_ERROR(check_region(place, region, d, reaches));
    if (r > 0 && region.begin < d.regions[r - 1].begin) return corrupt(place, "is not in order");
    while (!ends.empty() && ends.back() <= region.begin) ends.pop_back();
    if (!ends.empty() && region.end > ends.back()) return corrupt(place, "overlaps another region");
    if (ends.size() >= kMostNestedRegions) return corrupt(place, "is nested too deeply");
    ends.push_back(region.end);
  }
  for (const auto& [at, reach] : reaches) {
    const CallInfo& call = d.calls[at.first];
    const std::string place = item("calls", at.first) + "." + item("buffers", at.second);
    const int64_t alignment = alignment_of(call);
    TS_RETURN_IF_ERROR(check_moved(place, call.buffers[at.second], reach.least, d, alignment));
    TS_RETURN_IF_ERROR(check_moved(place, call.buffers[at.second], reach.most, d, alignment));
  }
  // A call that has moving buffers must not write where another buffer of it may be in any turn.
  for (size_t c = 0; c < d.calls.size(); ++c) {
    const auto first = reaches.lower_bound({c, 0});
    if (first == reaches.end() || std::cmp_not_equal(first->first.first, c)) continue;
    CallInfo swept = d.calls[c];
    for (size_t b = 0; b < swept.buffers.size(); ++b) {
      const auto reach = reaches.find({c, b});
      BufferRef& buffer = swept.buffers[b];
      if (reach == reaches.end() || buffer.kind != BufferKind::kArena) continue;
      buffer.index += reach->second.least;
      buffer.bytes += reach->second.most - reach->second.least;
    }
    TS_RETURN_IF_ERROR(check_overlap(item("calls", c), swept));
  }
  return {};
}

// Checks that a routine exists and gets what it demands.
Status check_routine(const std::string& place, const CallInfo& call, bool gpu) {
  if (gpu) return corrupt(place, "a routine cannot run on a GPU");
  const auto demands = demands_of(*call.routine);
  if (!demands.ok()) return corrupt(place, demands.error().place + " " + demands.error().reason);
  bool fits = call.buffers.size() == demands->buffer_bytes.size() &&
              std::cmp_equal(call.outputs, demands->outputs) &&
              call.shared_workspace_bytes >= demands->shared_bytes &&
              call.thread_workspace_bytes >= demands->thread_bytes;
  for (size_t b = 0; fits && b < call.buffers.size(); ++b)
    fits = call.buffers[b].bytes >= demands->buffer_bytes[b];
  return fits ? Status() : Status(corrupt(place, "does not give its routine the buffers that it demands"));
}

Status check_launches(const std::string& place, const CallInfo& call, bool gpu) {
  if (!gpu) {
    if (call.launches.empty()) return {};
    return corrupt(place + ".launches", "must be empty for a CPU kernel");
  }
  if (call.module_begin < 0 || call.module_bytes < 0 || call.module_begin > kMaxKernelBytes ||
      call.module_bytes > kMaxKernelBytes)
    return corrupt(place + ".module_begin", "is out of range");
  for (size_t l = 0; l < call.launches.size(); ++l) {
    const Launch& launch = call.launches[l];
    const std::string here = place + "." + item("launches", l);
    TS_RETURN_IF_ERROR(check_text(here, launch.symbol));
    for (size_t d = 0; d < 3; ++d) {
      constexpr int64_t kMost = INT32_MAX;
      if (launch.grid[d] < 1 || launch.grid[d] > kMost || launch.block[d] < 1 || launch.block[d] > kMost)
        return corrupt(here, "a grid or block is out of range");
    }
    TS_RETURN_IF_ERROR(check_size(here + ".shared_bytes", launch.shared_bytes));
    for (const LaunchArgument& argument : launch.arguments) {
      const bool of_call = argument.buffer >= 0;
      const bool there = of_call ? std::cmp_less(argument.buffer, call.buffers.size())
                                 : argument.workspace_offset >= 0 &&
                                       argument.workspace_offset <= call.shared_workspace_bytes;
      if (!there)
        return corrupt(here + ".arguments", "one refers to a buffer or workspace that does not exist");
      if (!argument.map) continue;
      if (const std::string broken = broken_rule(*argument.map); !broken.empty())
        return corrupt(here + ".arguments", broken);
    }
  }
  return {};
}

}  // namespace

int64_t TensorInfo::bytes() const {
  int64_t elements = 1;
  for (const int64_t extent : shape) elements *= extent;
  return bytes_of(dtype, elements);
}

std::string_view kernels_file(const ModelDescription& d) {
  return platform_of(d.arch) != nullptr ? "kernels.gpu" : "kernels.so";
}

void place_weights(ModelDescription& d, std::span<const WeightData> weights) {
  d.weights.clear();
  d.weights_bytes = 0;
  d.weights_hash.clear();
  for (const auto& weight : weights) {
    const auto bytes = std::ssize(weight.bytes);
    d.weights.push_back({weight.name, d.weights_bytes, bytes});
    d.weights_bytes = (d.weights_bytes + bytes + kBufferAlignment - 1) / kBufferAlignment * kBufferAlignment;
  }
}

Status validate(const ModelDescription& d) {
  TS_RETURN_IF_ERROR(check_text("name", d.name));
  TS_RETURN_IF_ERROR(check_text("tool_version", d.tool_version));
  TS_RETURN_IF_ERROR(check_text("device", d.device));
  TS_RETURN_IF_ERROR(check_text("arch", d.arch));
  for (size_t i = 0; i < d.cpu_features.size(); ++i)
    TS_RETURN_IF_ERROR(check_text(item("cpu_features", i), d.cpu_features[i]));
  TS_RETURN_IF_ERROR(check_text("weights_hash", d.weights_hash));
  TS_RETURN_IF_ERROR(check_text("kernels_hash", d.kernels_hash));
  if (d.threads < 0 || d.threads > kMaxStoredThreads) return corrupt("threads", "out of range");
  TS_RETURN_IF_ERROR(check_tensors("inputs", d.inputs));
  TS_RETURN_IF_ERROR(check_tensors("outputs", d.outputs));
  TS_RETURN_IF_ERROR(check_size("arena_bytes", d.arena_bytes));
  TS_RETURN_IF_ERROR(check_size("weights_bytes", d.weights_bytes));
  for (size_t i = 0; i < d.weights.size(); ++i) {
    const WeightInfo& weight = d.weights[i];
    const std::string place = item("weights", i);
    TS_RETURN_IF_ERROR(check_text(place, weight.name));
    TS_RETURN_IF_ERROR(check_size(place, weight.bytes));
    if (weight.offset < 0 || weight.offset > d.weights_bytes ||
        weight.bytes > d.weights_bytes - weight.offset)
      return corrupt(place, "reaches outside weights.bin");
    if (weight.offset % kBufferAlignment != 0)
      return corrupt(place, "offset " + std::to_string(weight.offset) + " is not a multiple of " +
                                std::to_string(kBufferAlignment));
  }
  for (size_t i = 0; i < d.calls.size(); ++i) {
    const CallInfo& call = d.calls[i];
    const std::string place = item("calls", i);
    TS_RETURN_IF_ERROR(check_text(place, call.symbol));
    TS_RETURN_IF_ERROR(check_text(place, call.task));
    if (call.symbol.empty() != call.routine.has_value())
      return corrupt(place, "a call needs either a symbol or a routine");
    TS_RETURN_IF_ERROR(check_size(place + ".shared_workspace_bytes", call.shared_workspace_bytes));
    TS_RETURN_IF_ERROR(check_size(place + ".thread_workspace_bytes", call.thread_workspace_bytes));
    for (size_t b = 0; b < call.buffers.size(); ++b)
      TS_RETURN_IF_ERROR(
          check_buffer(place + "." + item("buffers", b), call.buffers[b], d, alignment_of(call)));
    if (call.outputs < 0 || static_cast<uint64_t>(call.outputs) > call.buffers.size())
      return corrupt(place + ".outputs", "is negative or more than its number of buffers");
    TS_RETURN_IF_ERROR(check_overlap(place, call));
    if (call.routine) TS_RETURN_IF_ERROR(check_routine(place, call, platform_of(d.arch) != nullptr));
    TS_RETURN_IF_ERROR(check_launches(place, call, platform_of(d.arch) != nullptr));
  }
  return check_regions(d);
}

Status check_call(const CallInfo& call, const int64_t* demands) {
  const std::string place = "kernel '" + call.symbol + "'";
  if (demands[TENSORSMITH_INFO_ABI_VERSION] != TENSORSMITH_KERNEL_ABI_VERSION)
    return Error{ErrorCode::kMismatch, place,
                 "was made for version " + std::to_string(demands[TENSORSMITH_INFO_ABI_VERSION]) +
                     " of the kernel interface, but this runtime has version " +
                     std::to_string(TENSORSMITH_KERNEL_ABI_VERSION) + "; compile the model again"};
  const int64_t outputs = demands[TENSORSMITH_INFO_OUTPUTS], inputs = demands[TENSORSMITH_INFO_INPUTS];
  const auto has = std::ssize(call.buffers);
  if (has - call.outputs != inputs || call.outputs != outputs)
    return corrupt(place, "takes " + std::to_string(inputs) + " inputs and " + std::to_string(outputs) +
                              " outputs, but the manifest gives it " + std::to_string(has - call.outputs) +
                              " and " + std::to_string(call.outputs));
  for (int64_t b = 0; b < has; ++b) {
    const int64_t needed = demands[TENSORSMITH_INFO_BUFFER_BYTES + b];
    const int64_t given = call.buffers[b].bytes;
    if (given < needed)
      return corrupt(place, "needs " + std::to_string(needed) + " bytes as buffer " + std::to_string(b) +
                                ", but the manifest gives it " + std::to_string(given));
  }
  if (call.shared_workspace_bytes < demands[TENSORSMITH_INFO_SHARED_BYTES] ||
      call.thread_workspace_bytes < demands[TENSORSMITH_INFO_THREAD_BYTES])
    return corrupt(place, "needs more workspace than the manifest gives it");
  return {};
}

}  // namespace tensorsmith::runtime
