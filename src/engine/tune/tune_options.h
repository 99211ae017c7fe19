// The settings of a search that users choose, one row each. The command line, the Python package,
// reports and the schema of these settings use the rows. The strategy has no row, since the names of
// all strategies are known only to lab.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "engine/tune/tune_model.h"

namespace tensorsmith::engine {

// A limit of this size stands for no limit; sums of such numbers do not overflow.
inline constexpr int64_t kMostTrials = 1'000'000'000;
inline constexpr double kMostSeconds = 1e9;  // 30 years

using TuneOptionValue =
    std::variant<bool*, int*, int64_t*, uint64_t*, double*, std::string*, std::vector<std::string>*>;

// Kinds that have the same type differ in how people write the value.
enum class TuneOptionKind : uint8_t {
  kFlag,
  kCount,
  kLimit,    // a count; 0 and the largest value: no limit
  kSeconds,  // "90", "90s", "1.5h"; 0: no limit
  kShare,    // "0.01", "1%"
  kGain,     // a share; 0: no limit
  kText,
  kFile,
  kFiles,
};
enum class TuneOptionGroup : uint8_t { kBasic, kSearch, kAdvanced };

struct TuneOption {
  std::string_view name;  // in Python and JSON
  std::string_view flag;  // on the command line; if the setting is true by default, the flag turns it off
  TuneOptionKind kind;
  TuneOptionGroup group;
  TuneOptionValue (*value)(TuneModelOptions& options);
  double least, most;             // limits of a number
  std::string_view type;          // placeholder of the value in help texts, for example "FILE"
  std::string_view report_label;  // in reports; empty: not reported
  std::string help;

  // Returns the value of TuneModelOptions().
  nlohmann::json default_value() const;
};

// Returns all settings in the order of help texts.
const std::vector<TuneOption>& tune_options();
// Returns the row of a name, which must exist.
const TuneOption& tune_option(std::string_view name);

// Sets options from a JSON object, by name. kInvalidArgument for an unknown name, a value of another
// type and a number out of its limits.
Status set_tune_options(const nlohmann::json& values, TuneModelOptions& options);

// Returns the JSON schema of set_tune_options().
nlohmann::json tune_options_schema();

// Returns the settings for a report, without limits that are not set.
std::vector<std::pair<std::string, std::string>> reported_tune_options(const TuneModelOptions& options);

}  // namespace tensorsmith::engine
