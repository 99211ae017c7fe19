#include "learn/lm/language_model.h"

#include <cmath>
#include <nlohmann/json.hpp>

#include "base/json_text.h"
#include "learn/tensor_file.h"

namespace tensorsmith::learn::lm {

namespace {

using Json = nlohmann::json;

constexpr const char* kModelFormat = "tensorsmith language model";
constexpr int kMostWidth = 4096, kMostLayers = 64;

Status check_model_format(const Metadata& metadata) {
  const auto format = metadata.find("format");
  if (format == metadata.end() || format->second != kModelFormat)
    return Error{ErrorCode::kCorrupt, "", "is not a language model; `lm pretrain` makes one"};
  const auto version = metadata.find("version");
  if (version == metadata.end() || version->second != std::to_string(kLanguageModelVersion))
    return Error{ErrorCode::kMismatch, "",
                 "has another version of the vocabulary or grammar; train the model again"};
  return {};
}

Result<LanguageModel> read_model_file(const TensorFile& file) {
  const Error damaged{ErrorCode::kCorrupt, "", "is damaged: its metadata do not describe a language model"};
  LanguageModel model;
  try {
    const Json sizes = Json::parse(file.metadata.at("sizes"));
    model.sizes = {sizes.at("width"), sizes.at("heads"), sizes.at("layers"), sizes.at("hidden")};
    const Json prompting = Json::parse(file.metadata.at("prompting"));
    model.prompting = {prompting.at("device"), prompting.at("most")};
    model.tasks = Json::parse(file.metadata.at("tasks"));
    model.devices = Json::parse(file.metadata.at("devices"));
    model.command = file.metadata.at("command");
    model.metrics = file.metadata.at("metrics");
    model.sentences = Json::parse(file.metadata.at("sentences"));
    model.seed = Json::parse(file.metadata.at("seed"));
  } catch (const std::exception&) {
    return damaged;
  }
  const LanguageModelSizes& s = model.sizes;
  if (s.width < 1 || s.width > kMostWidth || s.heads < 1 || s.width % s.heads != 0 || s.layers < 1 ||
      s.layers > kMostLayers || s.hidden < 1 || s.hidden > 4 * kMostWidth || model.prompting.most < 1)
    return damaged;
  for (const auto& [name, shape] : weight_shapes(s)) {
    TS_ASSIGN_OR_RETURN(auto values, file.values<float>(name, shape));
    for (const float value : values)
      if (!std::isfinite(value))
        return Error{ErrorCode::kCorrupt, "", "has a weight that is not finite: " + name};
    model.weights[name] = {shape, std::move(values)};
  }
  return model;
}

}  // namespace

int64_t LanguageModel::parameters() const {
  int64_t count = 0;
  for (const auto& [name, weight] : weights) count += std::ssize(weight.values);
  return count;
}

std::map<std::string, std::vector<int64_t>> weight_shapes(const LanguageModelSizes& sizes) {
  const int64_t width = sizes.width, hidden = sizes.hidden;
  std::map<std::string, std::vector<int64_t>> shapes{{"embedding", {kFeatures, width}},
                                                     {"norm.weight", {width}},
                                                     {"norm.bias", {width}},
                                                     {"output.weight", {kOutputs, width}},
                                                     {"output.bias", {kOutputs}}};
  for (int l = 0; l < sizes.layers; ++l) {
    const std::string layer = "layer." + std::to_string(l) + ".";
    const auto linear = [&](const char* name, int64_t outputs, int64_t inputs) {
      shapes[layer + name + ".weight"] = {outputs, inputs};
      shapes[layer + name + ".bias"] = {outputs};
    };
    for (const char* norm : {"norm1", "norm2"}) {
      shapes[layer + norm + ".weight"] = {width};
      shapes[layer + norm + ".bias"] = {width};
    }
    linear("qkv", 3 * width, width);
    linear("out", width, width);
    linear("up", hidden, width);
    linear("down", width, hidden);
  }
  return shapes;
}

Status write_language_model(const LanguageModel& model, const std::string& path) {
  TensorFile file;
  const LanguageModelSizes& s = model.sizes;
  file.metadata = {
      {"format", kModelFormat},
      {"version", std::to_string(kLanguageModelVersion)},
      {"sizes",
       Json{{"width", s.width}, {"heads", s.heads}, {"layers", s.layers}, {"hidden", s.hidden}}.dump()},
      {"prompting", Json{{"device", model.prompting.device}, {"most", model.prompting.most}}.dump()},
      {"tasks", Json(model.tasks).dump()},
      {"devices", Json(model.devices).dump(-1, ' ', false, Json::error_handler_t::replace)},
      {"command", model.command},
      {"metrics", model.metrics},
      {"sentences", std::to_string(model.sentences)},
      {"seed", std::to_string(model.seed)}};
  for (const auto& [name, weight] : model.weights) file.add<float>(name, weight.shape, weight.values);
  return write_tensor_file(file, path);
}

Result<LanguageModel> read_language_model(const std::string& path) {
  TS_ASSIGN_OR_RETURN(const TensorFile file, read_tensor_file(path, check_model_format));
  auto model = read_model_file(file);
  if (!model.ok()) return Error{model.error().code, path, model.error().reason};
  return model;
}

}  // namespace tensorsmith::learn::lm
