// The JSON form of a ModelDescription.
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/hash.h"
#include "base/json_text.h"
#include "runtime/model_format.h"

namespace tensorsmith::runtime {
namespace {

using Json = nlohmann::ordered_json;

Error corrupt_manifest(std::string place, std::string reason) {
  return Error{ErrorCode::kCorrupt, std::move(place), std::move(reason)};
}

// Reads the members of one JSON object. The first problem is remembered, and members read after it
// get default values.
class ObjectReader {
 public:
  ObjectReader(const Json& json, std::string place, Status& status)
      : json_(json), place_(std::move(place)), status_(status) {
    if (!json_.is_object()) fail("", "must be an object");
  }

  bool has(const char* key) const { return json_.is_object() && json_.contains(key); }
  std::string text(const char* key) {
    const Json* member = find(key);
    if (!member) return {};
    if (member->is_string()) return member->get<std::string>();
    fail(key, "must be a string");
    return {};
  }
  int64_t integer(const char* key) {
    const Json* member = find(key);
    if (!member) return 0;
    return to_integer(*member, path(key));
  }
  double number(const char* key) {
    const Json* member = find(key);
    if (!member) return 0;
    if (member->is_number()) return member->get<double>();
    fail(key, "must be a number");
    return 0;
  }
  std::vector<int64_t> integers(const char* key) {
    std::vector<int64_t> values;
    each(key, [&](const Json& element, const std::string& place) {
      values.push_back(to_integer(element, place));
    });
    return values;
  }
  // Calls fn(element, place) for each element, as long as no problem was found.
  template <class Fn>
  void each(const char* key, const Fn& fn) {
    const Json* member = find(key);
    if (!member) return;
    if (!member->is_array()) {
      fail(key, "must be an array");
      return;
    }
    size_t i = 0;
    for (const Json& element : *member) {
      if (!status_.ok()) return;
      fn(element, path(key) + "[" + std::to_string(i++) + "]");
    }
  }
  void fail(const std::string& key, std::string reason) {
    if (status_.ok()) status_ = corrupt_manifest(key.empty() ? place_ : path(key), std::move(reason));
  }
  std::string path(const std::string& key) const { return place_.empty() ? key : place_ + "." + key; }

 private:
  const Json* find(const char* key) {
    if (!status_.ok()) return nullptr;
    const auto it = json_.find(key);
    if (it != json_.end()) return &*it;
    fail(key, "is missing");
    return nullptr;
  }
  int64_t to_integer(const Json& value, const std::string& place) {
    if (value.is_number_unsigned() && value.get<uint64_t>() <= INT64_MAX) return value.get<uint64_t>();
    if (value.is_number_integer() && !value.is_number_unsigned()) return value.get<int64_t>();
    if (status_.ok()) status_ = corrupt_manifest(place, "must be an integer of 64 bits");
    return 0;
  }

  const Json& json_;
  std::string place_;
  Status& status_;
};

std::string_view to_string(BufferKind kind) {
  switch (kind) {
    case BufferKind::kInput:
      return "input";
    case BufferKind::kOutput:
      return "output";
    case BufferKind::kArena:
      return "arena";
    case BufferKind::kWeight:
      return "weight";
  }
  return "?";
}

// Valid descriptions contain no NaN or infinities, which JSON cannot represent.
double finite(double value) { return std::isfinite(value) ? value : 0; }

Json print_tensors(const std::vector<TensorInfo>& tensors) {
  Json list = Json::array();
  for (const auto& tensor : tensors) {
    list.push_back({{"name", tensor.name}, {"dtype", to_string(tensor.dtype)}, {"shape", tensor.shape}});
    if (tensor.quantization_step > 0) list.back()["quantization_step"] = finite(tensor.quantization_step);
  }
  return list;
}

std::vector<TensorInfo> read_tensors(ObjectReader& reader, const char* key, Status& status) {
  std::vector<TensorInfo> tensors;
  reader.each(key, [&](const Json& element, const std::string& place) {
    ObjectReader tensor(element, place, status);
    TensorInfo info;
    info.name = tensor.text("name");
    const std::string dtype = tensor.text("dtype");
    info.shape = tensor.integers("shape");
    if (tensor.has("quantization_step")) info.quantization_step = tensor.number("quantization_step");
    if (info.quantization_step < 0) tensor.fail("quantization_step", "is negative");
    if (!status.ok()) return;
    const auto parsed = parse_dtype(dtype);
    if (!parsed) {
      tensor.fail("dtype", "unknown element type '" + dtype.substr(0, 32) + "'");
      return;
    }
    info.dtype = *parsed;
    tensors.push_back(std::move(info));
  });
  return tensors;
}

BufferRef read_buffer(const Json& element, const std::string& place, Status& status) {
  ObjectReader reader(element, place, status);
  BufferRef buffer;
  const std::string kind = reader.text("kind");
  for (const BufferKind known :
       {BufferKind::kInput, BufferKind::kOutput, BufferKind::kArena, BufferKind::kWeight}) {
    if (to_string(known) == kind) {
      buffer.kind = known;
      buffer.index = reader.integer(known == BufferKind::kArena ? "offset" : "index");
      if (reader.has("begin")) buffer.begin = reader.integer("begin");
      buffer.bytes = reader.integer("bytes");
      return buffer;
    }
  }
  reader.fail("kind", "unknown kind of buffer '" + kind.substr(0, 32) + "'");
  return buffer;
}

Json print_map(const TensorMap& map) {
  return {{"element_bytes", map.element_bytes},
          {"extents", map.extents},
          {"strides", map.strides},
          {"box", map.box},
          {"swizzle_bytes", map.swizzle_bytes}};
}

TensorMap read_map(const Json& element, const std::string& place, Status& status) {
  ObjectReader reader(element, place, status);
  TensorMap map;
  map.element_bytes = reader.integer("element_bytes");
  map.extents = reader.integers("extents");
  map.strides = reader.integers("strides");
  map.box = reader.integers("box");
  map.swizzle_bytes = reader.integer("swizzle_bytes");
  return map;
}

Json print_launches(const std::vector<Launch>& launches) {
  Json list = Json::array();
  for (const Launch& launch : launches) {
    Json arguments = Json::array();
    for (const LaunchArgument& argument : launch.arguments) {
      if (argument.buffer >= 0) {
        arguments.push_back({{"buffer", argument.buffer}});
      } else {
        arguments.push_back({{"workspace", argument.workspace_offset}});
      }
      if (argument.map) arguments.back()["map"] = print_map(*argument.map);
    }
    list.push_back({{"symbol", launch.symbol},
                    {"grid", launch.grid},
                    {"block", launch.block},
                    {"shared_bytes", launch.shared_bytes},
                    {"arguments", std::move(arguments)}});
  }
  return list;
}

Launch read_launch(const Json& element, const std::string& place, Status& status) {
  ObjectReader reader(element, place, status);
  Launch launch;
  launch.symbol = reader.text("symbol");
  launch.shared_bytes = reader.integer("shared_bytes");
  for (const auto& [key, list] : {std::pair{"grid", &launch.grid}, {"block", &launch.block}}) {
    const std::vector<int64_t> values = reader.integers(key);
    if (values.size() == list->size()) {
      std::copy(values.begin(), values.end(), list->begin());
    } else {
      reader.fail(key, "must be three integers");
    }
  }
  reader.each("arguments", [&](const Json& argument, const std::string& argument_place) {
    ObjectReader one(argument, argument_place, status);
    LaunchArgument read;
    if (one.has("workspace")) {
      read.workspace_offset = one.integer("workspace");
    } else {
      read.buffer = one.integer("buffer");
      if (read.buffer < 0) one.fail("buffer", "is negative");
    }
    if (one.has("map")) read.map = read_map(argument["map"], argument_place + ".map", status);
    launch.arguments.push_back(read);
  });
  return launch;
}

Json print_buffer(const BufferRef& buffer) {
  Json json = {{"kind", to_string(buffer.kind)},
               {buffer.kind == BufferKind::kArena ? "offset" : "index", buffer.index},
               {"bytes", buffer.bytes}};
  if (buffer.begin != 0) json["begin"] = buffer.begin;
  return json;
}

Json print_region(const RegionInfo& region) {
  Json json = {{"begin", region.begin}, {"end", region.end}, {"turns", region.turns}};
  if (region.count) json["count"] = print_buffer(*region.count);
  if (region.condition) {
    json["condition"] = print_buffer(*region.condition);
    json["until"] = static_cast<int64_t>(region.until);
  }
  Json steps = Json::array();
  for (const RegionStep& step : region.steps) steps.push_back({step.call, step.buffer, step.bytes});
  json["steps"] = std::move(steps);
  return json;
}

RegionInfo read_region(const Json& element, const std::string& place, Status& status) {
  ObjectReader reader(element, place, status);
  RegionInfo region;
  region.begin = reader.integer("begin");
  region.end = reader.integer("end");
  region.turns = reader.integer("turns");
  if (reader.has("count")) region.count = read_buffer(element["count"], place + ".count", status);
  if (reader.has("condition")) {
    region.condition = read_buffer(element["condition"], place + ".condition", status);
    const int64_t until = reader.integer("until");
    if (until != 0 && until != 1) reader.fail("until", "must be 0 or 1");
    region.until = until == 1;
  }
  reader.each("steps", [&](const Json& step, const std::string& step_place) {
    const bool integers = step.is_array() && step.size() == 3 &&
                          std::ranges::all_of(step, [](const Json& x) { return x.is_number_integer(); });
    if (integers) {
      region.steps.push_back({step[0].get<int64_t>(), step[1].get<int64_t>(), step[2].get<int64_t>()});
    } else {
      status = corrupt_manifest(step_place, "must be three integers");
    }
  });
  return region;
}

CallInfo read_call(const Json& element, const std::string& place, Status& status) {
  ObjectReader reader(element, place, status);
  CallInfo call;
  call.symbol = reader.text("symbol");
  call.task = reader.text("task");
  call.shared_workspace_bytes = reader.integer("shared_workspace_bytes");
  call.thread_workspace_bytes = reader.integer("thread_workspace_bytes");
  call.flops = reader.number("flops");
  call.predicted_seconds = reader.number("predicted_seconds");
  call.measured_seconds = reader.number("measured_seconds");
  call.outputs = reader.integer("outputs");
  if (reader.has("routine")) {
    ObjectReader routine(element["routine"], place + ".routine", status);
    call.routine = RoutineCall{routine.text("name"), routine.integers("parameters")};
  }
  if (reader.has("launches")) {
    call.module_begin = reader.integer("module_begin");
    call.module_bytes = reader.integer("module_bytes");
    reader.each("launches", [&](const Json& launch, const std::string& launch_place) {
      call.launches.push_back(read_launch(launch, launch_place, status));
    });
  }
  reader.each("buffers", [&](const Json& buffer, const std::string& buffer_place) {
    call.buffers.push_back(read_buffer(buffer, buffer_place, status));
  });
  return call;
}

Json print_times(const TuningTimes& times) {
  return {{"untuned_seconds", finite(times.untuned_seconds)},
          {"tuned_seconds", finite(times.tuned_seconds)},
          {"spread", finite(times.spread)}};
}

std::optional<TuningTimes> read_times(ObjectReader& manifest, const Json& json, const char* key,
                                      Status& status) {
  if (!manifest.has(key)) return std::nullopt;
  ObjectReader reader(json[key], key, status);
  TuningTimes times;
  times.untuned_seconds = reader.number("untuned_seconds");
  times.tuned_seconds = reader.number("tuned_seconds");
  times.spread = reader.number("spread");
  if (!(times.untuned_seconds > 0)) reader.fail("untuned_seconds", "must be above 0");
  if (!(times.tuned_seconds > 0)) reader.fail("tuned_seconds", "must be above 0");
  if (!(times.spread >= 0)) reader.fail("spread", "is negative");
  return times;
}

std::string dump(const Json& json, int indent) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

// Hash of everything except the hash itself.
std::string hash_of(Json json) {
  json.erase("hash");
  return content_key(dump(json, -1));
}

std::string seal(Json json) {
  json.erase("hash");
  json["hash"] = hash_of(json);
  return dump(json, 1) + "\n";
}

// Returns whether the text has the form of content_key()'s results.
bool is_hash(const std::string& text) {
  return text.size() == 32 && text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

}  // namespace

std::string print_manifest(const ModelDescription& d) {
  Json json;
  json["format"] = "tensorsmith-model";
  json["format_version"] = kModelFormatVersion;
  json["tool_version"] = d.tool_version;
  json["name"] = d.name;
  json["device"] = d.device;
  json["arch"] = d.arch;
  json["cpu_features"] = d.cpu_features;
  json["threads"] = d.threads;
  json["inputs"] = print_tensors(d.inputs);
  json["outputs"] = print_tensors(d.outputs);
  json["arena_bytes"] = d.arena_bytes;
  if (d.end_to_end) json["end_to_end"] = print_times(*d.end_to_end);
  if (d.estimate) json["estimate"] = print_times(*d.estimate);
  json["kernels_hash"] = d.kernels_hash;
  json["weights_hash"] = d.weights_hash;
  json["weights_bytes"] = d.weights_bytes;
  Json weights = Json::array();
  for (const auto& weight : d.weights)
    weights.push_back({{"name", weight.name}, {"offset", weight.offset}, {"bytes", weight.bytes}});
  json["weights"] = std::move(weights);
  Json calls = Json::array();
  for (const auto& call : d.calls) {
    Json buffers = Json::array();
    for (const auto& buffer : call.buffers) buffers.push_back(print_buffer(buffer));
    calls.push_back({{"symbol", call.symbol},
                     {"task", call.task},
                     {"flops", finite(call.flops)},
                     {"predicted_seconds", finite(call.predicted_seconds)},
                     {"measured_seconds", finite(call.measured_seconds)},
                     {"shared_workspace_bytes", call.shared_workspace_bytes},
                     {"thread_workspace_bytes", call.thread_workspace_bytes},
                     {"outputs", call.outputs},
                     {"buffers", std::move(buffers)}});
    if (call.routine)
      calls.back()["routine"] = {{"name", call.routine->name}, {"parameters", call.routine->parameters}};
    if (!call.launches.empty()) {
      calls.back()["module_begin"] = call.module_begin;
      calls.back()["module_bytes"] = call.module_bytes;
      calls.back()["launches"] = print_launches(call.launches);
    }
  }
  json["calls"] = std::move(calls);
  Json regions = Json::array();
  for (const RegionInfo& region : d.regions) regions.push_back(print_region(region));
  json["regions"] = std::move(regions);
  // The text is hashed as it will be read: in names that are not UTF-8, bytes become replacement
  // characters.
  return seal(parse_json<Json>(dump(json, -1)));
}

Result<std::string> seal_manifest(std::string_view text) {
  Json json = parse_json<Json>(text);
  if (!json.is_object()) return corrupt_manifest("", "not a JSON object");
  return seal(std::move(json));
}

Result<ModelDescription> parse_manifest(std::string_view text) {
  const Json json = parse_json<Json>(text);
  if (json.is_discarded()) return corrupt_manifest("", "not valid JSON (damaged or cut off)");
  Status status;
  ObjectReader reader(json, "", status);
  const std::string format = reader.text("format");
  const int64_t version = reader.integer("format_version");
  if (!status.ok() || format != "tensorsmith-model")
    return corrupt_manifest("", "not the manifest of a compiled Tensorsmith model");
  if (version != kModelFormatVersion) {
    return Error{ErrorCode::kMismatch, "format_version",
                 "the model has format " + std::to_string(version) + ", but this runtime reads format " +
                     std::to_string(kModelFormatVersion) + "; compile the model again"};
  }
  const std::string hash = reader.text("hash");
  TS_RETURN_IF_ERROR(std::move(status));
  status = {};
  if (hash != hash_of(json))
    return corrupt_manifest(
        "", "its contents do not have the hash that it names (damaged or edited); compile the model again");
  ModelDescription d;
  d.tool_version = reader.text("tool_version");
  d.name = reader.text("name");
  d.device = reader.text("device");
  d.arch = reader.text("arch");
  reader.each("cpu_features", [&](const Json& element, const std::string& place) {
    if (element.is_string()) {
      d.cpu_features.push_back(element.get<std::string>());
    } else {
      status = corrupt_manifest(place, "must be a string");
    }
  });
  const int64_t threads = reader.integer("threads");
  if (threads < 0 || threads > INT32_MAX) reader.fail("threads", "out of range");
  d.threads = threads;
  d.inputs = read_tensors(reader, "inputs", status);
  d.outputs = read_tensors(reader, "outputs", status);
  d.arena_bytes = reader.integer("arena_bytes");
  d.end_to_end = read_times(reader, json, "end_to_end", status);
  d.estimate = read_times(reader, json, "estimate", status);
  d.kernels_hash = reader.text("kernels_hash");
  d.weights_hash = reader.text("weights_hash");
  d.weights_bytes = reader.integer("weights_bytes");
  reader.each("weights", [&](const Json& element, const std::string& place) {
    ObjectReader weight(element, place, status);
    d.weights.push_back({weight.text("name"), weight.integer("offset"), weight.integer("bytes")});
  });
  reader.each("calls", [&](const Json& element, const std::string& place) {
    d.calls.push_back(read_call(element, place, status));
  });
  reader.each("regions", [&](const Json& element, const std::string& place) {
    d.regions.push_back(read_region(element, place, status));
  });
  TS_RETURN_IF_ERROR(std::move(status));
  for (const auto& [place, file_hash] :
       {std::pair{"kernels_hash", &d.kernels_hash}, {"weights_hash", &d.weights_hash}}) {
    if (!is_hash(*file_hash)) return corrupt_manifest(place, "is not a hash");
  }
  TS_RETURN_IF_ERROR(validate(d));
  return d;
}

}  // namespace tensorsmith::runtime
