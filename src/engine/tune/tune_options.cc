#include "engine/tune/tune_options.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <type_traits>

#include "base/result.h"
#include "learn/latency/kinds.h"
#include "learn/search_model.h"

namespace tensorsmith::engine {
namespace {

using Json = nlohmann::json;
using enum TuneOptionKind;
using enum TuneOptionGroup;

// Returns a pointer to the member that the expression names.
#define TS_OPTION(member) [](TuneModelOptions& o) -> TuneOptionValue { return &o.member; }

std::vector<TuneOption> make_tune_options() {
  return {
      {"seconds", "--seconds", kSeconds, kBasic, TS_OPTION(search.seconds), 0, kMostSeconds, "", "seconds",
       "Time until the compiled model is written: 60, 60s, 10m, 1h (0 = no limit)"},
      {"trials", "--trials", kLimit, kBasic, TS_OPTION(search.trials), 0, kMostTrials, "", "trials",
       "Number of schedules to measure (0 = no limit)"},
      {"until_gain", "--until-gain", kGain, kBasic, TS_OPTION(search.until_gain), 0, 1, "", "until gain",
       "Stop when searching for as long again as so far is expected to make the model faster by less than "
       "this share, 1% or 0.01 (0 = never)"},
      {"objective", "--objective", kText, kSearch, TS_OPTION(schedules.objective), 0, 0, "FORMULA",
       "objective",
       "The cost that the schedule of each task minimizes: latency (seconds), memory (bytes of temporary "
       "tensors), energy (joules of a run, if the processor's counters can be read), or a formula of them, "
       "for example 'latency * (1 + memory / 1e6)'"},
      {"seed", "--seed", kCount, kSearch, TS_OPTION(search.seed), 0,
       static_cast<double>(std::numeric_limits<uint64_t>::max()), "", "seed", "Seed of the random numbers"},
      {"cost_model", "--cost-model", kText, kSearch, TS_OPTION(cost_model.model), 0, 0, "MODEL", "cost model",
       "Cost model that predicts which schedules are fast, so that only these are measured: a file made by "
       "`train`, command:PROGRAM for a program of yours, or " +
           learn::search_models_without_file(learn::product_kinds()) +
           ". It learns from the measurements of this run; shipped: the model for CPUs that comes with "
           "Tensorsmith, and xgboost for GPUs; xgboost starts untrained, none leaves the choice to the "
           "estimate of the design space"},
      {"frozen", "--frozen", kFlag, kSearch, TS_OPTION(cost_model.frozen), 0, 0, "", "",
       "Do not let the cost model learn from the measurements of this run"},
      {"sources", "--from", kFiles, kSearch, TS_OPTION(sources), 0, 0, "FILE", "",
       "Database, or file of `db export`, with records of other models or machines to start from, "
       "besides those of --db (repeatable; default: the records that come with Tensorsmith)"},
      {"warm_start", "--no-warm-start", kFlag, kSearch, TS_OPTION(warm_start), 0, 0, "", "",
       "Start without the schedules of other models, other machines and earlier runs"},
      {"language_model", "--lm", kFile, kSearch, TS_OPTION(language_model), 0, 0, "FILE", "language model",
       "Language model that writes schedules for the strategy evolutionary; shipped: the one that comes "
       "with Tensorsmith"},
      {"epsilon", "--epsilon", kShare, kSearch, TS_OPTION(search.epsilon), 0, 1, "",
       "share of random candidates",
       "Share of each batch of measurements that is chosen at random instead of by the cost model"},
      {"batch", "--batch", kCount, kSearch, TS_OPTION(search.batch), 1, 1024, "", "measurements per round",
       "Number of schedules to measure in each round"},
      {"winograd", "--no-winograd", kFlag, kAdvanced, TS_OPTION(schedules.winograd), 0, 0, "", "",
       "Compute 3x3 convolutions without Winograd's algorithm, which is faster but rounds more"},
      {"flush_cache", "--flush-cache", kFlag, kAdvanced, TS_OPTION(search.flush_cache), 0, 0, "", "",
       "Empty the processor's caches before each measured run, so that all data comes from memory"},
      {"end_to_end", "--skip-end-to-end", kFlag, kAdvanced, TS_OPTION(end_to_end), 0, 0, "", "",
       "Choose schedules by the times of single tasks, without running the whole model"},
      {"fleet", "--fleet", kFlag, kAdvanced, TS_OPTION(where.fleet), 0, 0, "", "",
       "Let workers on other machines of this kind do the measuring (see `tensorsmith worker`); they get "
       "their work from the record database"},
  };
}

#undef TS_OPTION

// Calls `function` with the option's value in `options`.
template <typename Function>
auto visit_value(const TuneOption& option, const TuneModelOptions& options, Function&& function) {
  return std::visit([&](const auto* value) { return function(*value); },
                    option.value(const_cast<TuneModelOptions&>(options)));
}

// Returns whether the value sets no limit (for an option that limits the run) or is empty.
template <typename T>
bool limits_nothing(const TuneOption& option, const T& value) {
  if constexpr (std::is_arithmetic_v<T>) {
    const bool limit = option.kind == kSeconds || option.kind == kLimit || option.kind == kGain;
    return limit && (value == 0 || (option.kind != kGain && value >= option.most));
  } else {
    return value.empty();
  }
}

// Returns the name of a type in a JSON schema.
template <typename T>
constexpr const char* type_name() {
  if constexpr (std::is_same_v<T, bool>)
    return "boolean";
  else if constexpr (std::is_integral_v<T>)
    return "integer";
  else if constexpr (std::is_floating_point_v<T>)
    return "number";
  else if constexpr (std::is_same_v<T, std::string>)
    return "string";
  else
    return "array";
}

template <typename T>
bool has_type(const Json& json) {
  if constexpr (std::is_same_v<T, bool>)
    return json.is_boolean();
  else if constexpr (std::is_integral_v<T>)
    return json.is_number_integer();
  else if constexpr (std::is_floating_point_v<T>)
    return json.is_number();
  else if constexpr (std::is_same_v<T, std::string>)
    return json.is_string();
  else
    return json.is_array() &&
           std::all_of(json.begin(), json.end(), [](const Json& j) { return j.is_string(); });
}

// Whether T is a number with limits; a bool is not.
template <typename T>
constexpr bool kIsNumber = std::is_arithmetic_v<T> && !std::is_same_v<T, bool>;

}  // namespace

Json TuneOption::default_value() const {
  return visit_value(*this, TuneModelOptions(), [](const auto& value) { return Json(value); });
}

const std::vector<TuneOption>& tune_options() {
  static const std::vector<TuneOption> kOptions = make_tune_options();
  return kOptions;
}

const TuneOption& tune_option(std::string_view name) {
  const auto& options = tune_options();
  const auto at = std::find_if(options.begin(), options.end(), [&](const auto& o) { return o.name == name; });
  TS_CHECK(at != options.end(), "no setting '" + std::string(name) + "'");
  return *at;
}

Status set_tune_options(const Json& values, TuneModelOptions& options) {
  for (const auto& [name, json] : values.items()) {
    const auto invalid = [&](const std::string& reason) {
      return Error{ErrorCode::kInvalidArgument, name, reason};
    };
    const auto& known = tune_options();
    const auto option =
        std::find_if(known.begin(), known.end(), [&](const auto& o) { return o.name == name; });
    if (option == known.end()) return invalid("is not a setting of a search");
    const Status status = std::visit(
        [&]<typename T>(T* value) -> Status {
          if (!has_type<T>(json)) return invalid(json.dump() + " is not a value of type " + type_name<T>());
          if constexpr (kIsNumber<T>) {
            const auto number = json.get<double>();
            if (!(number >= option->least && number <= option->most))
              return invalid(
                  fmt::format("{} is not a number from {} to {}", json.dump(), option->least, option->most));
          }
          *value = json.get<T>();
          return {};
        },
        option->value(options));
    TS_RETURN_IF_ERROR(status);
  }
  return {};
}

Json tune_options_schema() {
  Json properties = Json::object();
  for (const TuneOption& option : tune_options()) {
    Json& property = properties[std::string(option.name)];
    visit_value(option, TuneModelOptions(), [&]<typename T>(const T& value) {
      property = {{"type", type_name<T>()}, {"default", value}, {"description", option.help}};
      if constexpr (kIsNumber<T>) {
        property["minimum"] = option.least;
        property["maximum"] = option.most;
      }
      if constexpr (std::is_same_v<T, std::vector<std::string>>) property["items"] = {{"type", "string"}};
    });
  }
  return {{"type", "object"}, {"additionalProperties", false}, {"properties", properties}};
}

std::vector<std::pair<std::string, std::string>> reported_tune_options(const TuneModelOptions& options) {
  std::vector<std::pair<std::string, std::string>> out;
  for (const TuneOption& option : tune_options()) {
    if (option.report_label.empty()) continue;
    visit_value(option, options, [&]<typename T>(const T& value) {
      if constexpr (!std::is_same_v<T, std::vector<std::string>>)
        if (!limits_nothing(option, value)) out.emplace_back(option.report_label, fmt::format("{}", value));
    });
  }
  return out;
}

}  // namespace tensorsmith::engine
