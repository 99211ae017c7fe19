#include "learn/custom/command_model.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <nlohmann/json.hpp>
#include <type_traits>
#include <utility>

#include "base/json_text.h"
#include "feature/per_store.h"
#include "learn/custom/model_process.h"

namespace tensorsmith::learn {

namespace {

using Json = nlohmann::json;

constexpr double kDefaultTimeout = 60, kMostTimeout = 86'400;
constexpr size_t kShownAnswer = 120;

Error not_as_expected(const std::string& line, const std::string& problem) {
  std::string shown = line.substr(0, kShownAnswer);
  for (char& c : shown)
    if (static_cast<unsigned char>(c) < 0x20) c = ' ';
  return {
      ErrorCode::kCorrupt, "",
      problem + ": " + (shown.empty() ? "an empty line" : shown) + (line.size() > kShownAnswer ? "..." : "")};
}

void append_number(double value, std::string& out) {
  if (!std::isfinite(value)) {
    out += "null";
    return;
  }
  std::array<char, 32> text{};
  // Most numbers come from 32 bits, whose shortest text is shorter.
  const auto narrow = static_cast<float>(value);
  const auto end = static_cast<double>(narrow) == value
                       ? std::to_chars(text.data(), text.data() + text.size(), narrow)
                       : std::to_chars(text.data(), text.data() + text.size(), value);
  out.append(text.data(), end.ptr);
}

template <class T>
void append_numbers(std::span<const T> values, std::string& out) {
  out += '[';
  for (size_t i = 0; i < values.size(); ++i) {
    if (i > 0) out += ',';
    if constexpr (std::is_integral_v<T>) {
      out += std::to_string(values[i]);
    } else {
      append_number(static_cast<double>(values[i]), out);
    }
  }
  out += ']';
}

// Appends ["a","b"].
void append_texts(std::span<const std::string> texts, std::string& out) {
  out += Json(std::vector<std::string>(texts.begin(), texts.end()))
             .dump(-1, ' ', false, Json::error_handler_t::replace);
}

// Appends a list of rows.
void append_matrix(std::span<const float> values, size_t width, std::string& out) {
  out += '[';
  for (size_t begin = 0; begin < values.size(); begin += width) {
    if (begin > 0) out += ',';
    append_numbers(values.subspan(begin, width), out);
  }
  out += ']';
}

template <class T>
std::string_view raw_bytes(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

// The line of a batch, with the arrays that follow it.
struct BatchMessage {
  std::string line;
  std::vector<std::string_view> arrays;
};

class BatchWriter {
 public:
  BatchWriter(const CustomInputs& inputs, bool binary) : inputs_(inputs), binary_(binary) {}

  // kind: "predict" or "update". The result refers to the batch.
  BatchMessage write(int64_t id, const char* kind, const CustomBatch& batch) const {
    BatchMessage out;
    std::string& line = out.line;
    line = "{\"id\":" + std::to_string(id) + ",\"" + kind + "\":" + std::to_string(batch.size);
    if (binary_) {
      write_arrays(batch, out);
    } else {
      write_numbers(batch, line);
    }
    if (inputs_.decisions) {
      line += ",\"decisions\":[";
      for (size_t i = 0; i < batch.decisions.size(); ++i) {
        if (i > 0) line += ',';
        append_numbers(std::span<const int64_t>(batch.decisions[i]), line);
      }
      line += ']';
    }
    if (inputs_.traces) append_texts(batch.traces, line += ",\"traces\":");
    if (inputs_.programs) append_texts(batch.programs, line += ",\"programs\":");
    line += "}\n";
    return out;
  }

 private:
  void write_numbers(const CustomBatch& batch, std::string& line) const {
    append_numbers(std::span<const int32_t>(batch.tasks), line += ",\"tasks\":");
    if (inputs_.features)
      append_matrix(batch.features, std::max<size_t>(batch.features.size() / batch.size, 1),
                    line += ",\"features\":");
    if (inputs_.stores) {
      line += ",\"stores\":[";
      std::span<const float> rest(batch.stores);
      for (size_t i = 0; i < batch.store_counts.size(); ++i) {
        if (i > 0) line += ',';
        const size_t values = static_cast<size_t>(batch.store_counts[i]) * feature::kPerStoreWidth;
        append_matrix(rest.first(values), feature::kPerStoreWidth, line);
        rest = rest.subspan(values);
      }
      line += ']';
    }
    if (!batch.seconds.empty())
      append_numbers(std::span<const float>(batch.seconds), line += ",\"seconds\":");
  }

  void write_arrays(const CustomBatch& batch, BatchMessage& out) const {
    const auto add = [&](const char* name, const auto& values, size_t width) {
      out.line += (out.arrays.empty() ? ",\"arrays\":{\"" : ",\"") + std::string(name) + "\":[" +
                  std::to_string(values.size() / width) +
                  (width > 1 ? "," + std::to_string(width) : std::string()) + "]";
      out.arrays.push_back(raw_bytes(values));
    };
    add("tasks", batch.tasks, 1);
    if (inputs_.features)
      add("features", batch.features, std::max<size_t>(batch.features.size() / batch.size, 1));
    if (inputs_.stores) {
      add("store_counts", batch.store_counts, 1);
      add("stores", batch.stores, feature::kPerStoreWidth);
    }
    if (!batch.seconds.empty()) add("seconds", batch.seconds, 1);
    out.line += '}';
  }

  CustomInputs inputs_;
  bool binary_;
};

// The answer to the first message.
struct CommandTraits : CustomTraits {
  bool binary = false;
  double timeout_s = kDefaultTimeout;
};

Result<CommandTraits> parse_traits(const std::string& line, const Json& answer) {
  CommandTraits traits;
  const auto wrong = [&](const std::string& problem) { return not_as_expected(line, problem); };
  std::vector<std::string> inputs;
  for (const auto& [name, value] : answer.items()) {
    if (name == "inputs") {
      if (!value.is_array()) return wrong("\"inputs\" of the first answer is not a list");
      for (const Json& input : value) {
        if (!input.is_string()) return wrong("\"inputs\" of the first answer has an element that is no text");
        inputs.push_back(input.get<std::string>());
      }
    } else if (name == "update") {
      if (!value.is_boolean()) return wrong("\"update\" of the first answer is neither true nor false");
      traits.learns = value.get<bool>();
    } else if (name == "format") {
      if (value != "json" && value != "binary")
        return wrong("\"format\" of the first answer is neither \"json\" nor \"binary\"");
      traits.binary = value == "binary";
    } else if (name == "sigma" || name == "timeout") {
      const double number = value.is_number() ? value.get<double>() : -1;
      const bool is_sigma = name == "sigma";
      if (!(number >= 0 && number <= kMostTimeout) || (!is_sigma && number == 0))
        return wrong("\"" + name + "\" of the first answer is no number that is possible");
      (is_sigma ? traits.sigma : traits.timeout_s) = number;
    } else if (name != "protocol") {
      return wrong("the first answer has the unknown field \"" + name + "\"");
    }
  }
  if (answer.contains("protocol") && answer["protocol"] != kCommandProtocol)
    return Error{ErrorCode::kMismatch, "",
                 "the program speaks protocol " + answer["protocol"].dump() + ", not " +
                     std::to_string(kCommandProtocol)};
  TS_ASSIGN_OR_RETURN(traits.inputs, parse_custom_inputs(inputs));
  return traits;
}

class CommandModel final : public CustomScorer {
 public:
  CommandModel(ModelProcess process, CommandTraits traits)
      : process_(std::move(process)), traits_(traits), writer_(traits_.inputs, traits_.binary) {}

  const CustomTraits& traits() const override { return traits_; }

  Result<std::vector<double>> predict(CustomBatch batch, std::span<const CustomTask> tasks) override {
    std::string line;
    TS_ASSIGN_OR_RETURN(const Json answer, ask("predict", batch, tasks, line));
    const auto scores = answer.find("scores");
    if (scores == answer.end()) return not_as_expected(line, "the answer has no \"scores\"");
    if (traits_.binary) {
      if (!scores->is_number_unsigned())
        return not_as_expected(line, "\"scores\" is not the number of scores");
      if (*scores != batch.size)
        return Error{
            ErrorCode::kMismatch, "",
            "returned " + scores->dump() + " scores for " + std::to_string(batch.size) + " programs"};
      std::vector<float> values(batch.size);
      TS_RETURN_IF_ERROR(
          process_.read_bytes(values.data(), values.size() * sizeof(float), traits_.timeout_s));
      return std::vector<double>(values.begin(), values.end());
    }
    if (!scores->is_array()) return not_as_expected(line, "\"scores\" is not a list of numbers");
    std::vector<double> out;
    out.reserve(scores->size());
    for (const Json& score : *scores) {
      if (!score.is_number() && !score.is_null())
        return not_as_expected(line, "a score is no number: " + score.dump().substr(0, kShownAnswer));
      out.push_back(score.is_null() ? -std::numeric_limits<double>::infinity() : score.get<double>());
    }
    return out;
  }

  Status update(CustomBatch batch, std::span<const CustomTask> tasks) override {
    std::string line;
    const auto answer = ask("update", batch, tasks, line);
    if (!answer.ok()) return answer.error();
    return {};
  }

  // Reads a line with an object, without an error of the program.
  static Result<Json> read_answer(ModelProcess& process, double timeout_s, std::string& line) {
    TS_ASSIGN_OR_RETURN(line, process.read_line(timeout_s));
    Json answer = parse_json<Json>(line);
    // Python writes NaN as a number, which JSON does not have.
    if (!answer.is_object() && line.find("NaN") != std::string::npos)
      return not_as_expected(line, "the answer has NaN, which is not JSON");
    if (!answer.is_object()) return not_as_expected(line, "the answer is not a JSON object");
    if (const auto error = answer.find("error"); error != answer.end())
      return Error{ErrorCode::kInvalidArgument, "",
                   error->is_string() ? error->get<std::string>() : error->dump()};
    return answer;
  }

 private:
  // Sends new tasks and the batch, and returns the answer and its line.
  Result<Json> ask(const char* kind, const CustomBatch& batch, std::span<const CustomTask> tasks,
                   std::string& line) {
    std::string news;
    for (; told_ < tasks.size(); ++told_) {
      const CustomTask& task = tasks[told_];
      news += Json{{"task", told_},
                   {"name", task.name},
                   {"key", task.key},
                   {"flops", task.flops},
                   {"workload", task.workload}}
                  .dump(-1, ' ', false, Json::error_handler_t::replace) +
              "\n";
    }
    const BatchMessage message = writer_.write(++id_, kind, batch);
    std::vector<std::string_view> parts = {news, message.line};
    parts.insert(parts.end(), message.arrays.begin(), message.arrays.end());
    TS_RETURN_IF_ERROR(process_.send(parts, traits_.timeout_s));
    TS_ASSIGN_OR_RETURN(Json answer, read_answer(process_, traits_.timeout_s, line));
    if (const auto id = answer.find("id"); id != answer.end() && *id != id_)
      return not_as_expected(line, "the answer is to another message than " + std::to_string(id_));
    return answer;
  }

  ModelProcess process_;
  CommandTraits traits_;
  BatchWriter writer_;
  int64_t id_ = 0;
  size_t told_ = 0;  // number of tasks that the program knows
};

std::vector<std::string> names_of_inputs() {
  std::vector<std::string> names;
  for (const CustomInput& input : custom_inputs()) names.emplace_back(input.name);
  return names;
}

}  // namespace

Result<std::unique_ptr<CustomScorer>> make_command_model(std::string_view command,
                                                         const CustomSession& session,
                                                         const CommandModelOptions& options) {
  TS_ASSIGN_OR_RETURN(const auto words, split_command(command));
  TS_ASSIGN_OR_RETURN(ModelProcess process, ModelProcess::start(words));
  const Json first = {{"protocol", kCommandProtocol},
                      {"device", parse_json<Json>(target::to_json(session.device))},
                      {"inputs", names_of_inputs()},
                      {"feature_names", session.feature_names},
                      {"store_names", feature::per_store_schema().names()}};
  const std::string text = first.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  const std::string_view part = text;
  TS_RETURN_IF_ERROR(process.send(std::span(&part, 1), options.start_timeout_s));
  std::string line;
  TS_ASSIGN_OR_RETURN(const Json answer, CommandModel::read_answer(process, options.start_timeout_s, line));
  TS_ASSIGN_OR_RETURN(const CommandTraits traits, parse_traits(line, answer));
  return std::unique_ptr<CustomScorer>(std::make_unique<CommandModel>(std::move(process), traits));
}

}  // namespace tensorsmith::learn
