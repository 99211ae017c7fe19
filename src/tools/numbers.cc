#include "tools/numbers.h"

#include <fmt/format.h>

#include <charconv>
#include <cmath>
#include <limits>

#include "tools/option_groups.h"

namespace tensorsmith::tools {
namespace {

// Parses a number of this type; the whole text must be used.
template <class T>
bool parse_number(const std::string& text, T& value) {
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  return error == std::errc() && stop == end;
}

// CLI11's own conversions turn a number out of range into the nearest one, "-1" into 2^64 - 1 and
// "010" into 8. So we parse first and pass CLI11 our value in canonical form.
template <class T>
CLI::Validator number_between(T low, T high, const char* kind, const std::string& range) {
  return {[=](std::string& text) {
            T value = 0;
            if (!parse_number(text, value) || !(value >= low && value <= high))
              return fmt::format("'{}' is not {} {}", text, kind, range);
            text = fmt::format("{}", value);
            return std::string();
          },
          ""};
}

template <class T>
CLI::Option* add_number(CLI::App& command, const std::string& name, T& value, CLI::Validator validator,
                        const char* type, const std::string& help) {
  return command.add_option(name, value, help)
      ->transform(std::move(validator))
      ->type_name(type)
      ->capture_default_str();
}

template <class T>
CLI::Option* add_integer(CLI::App& command, const std::string& name, T& value, T low, T high,
                         const std::string& help) {
  return add_number(command, name, value,
                    number_between<T>(low, high, "a whole number", fmt::format("from {} to {}", low, high)),
                    "N", help);
}

}  // namespace

CLI::Option* add_whole(CLI::App& command, const std::string& name, int64_t& value, int64_t low, int64_t high,
                       const std::string& help) {
  return add_integer(command, name, value, low, high, help);
}

CLI::Option* add_whole(CLI::App& command, const std::string& name, int& value, int low, int high,
                       const std::string& help) {
  return add_integer(command, name, value, low, high, help);
}

CLI::Option* add_whole_list(CLI::App& command, const std::string& name, std::vector<int64_t>& values,
                            int64_t low, int64_t high, const std::string& help) {
  return command.add_option(name, values, help)
      ->delimiter(',')
      ->transform(
          number_between<int64_t>(low, high, "a whole number", fmt::format("from {} to {}", low, high)))
      ->type_name("N,N")
      ->allow_extra_args(false)
      ->capture_default_str();
}

void add_max_turns(CLI::App& command, int64_t& value) {
  add_whole(command, "--max-turns", value, 1, int64_t{1} << 40,
            "Most turns of a loop that only a condition ends; a run with more fails")
      ->group(kAdvancedGroup);
}

CLI::Option* add_seed(CLI::App& command, uint64_t& value, const std::string& help) {
  return add_integer(command, "--seed", value, uint64_t{0}, std::numeric_limits<uint64_t>::max(), help);
}

CLI::Option* add_real(CLI::App& command, const std::string& name, double& value, double low, double high,
                      const std::string& help) {
  return add_number(command, name, value,
                    number_between<double>(low, high, "a number", fmt::format("from {} to {}", low, high)),
                    "X", help);
}

CLI::Option* add_seconds(CLI::App& command, const std::string& name, double& value, double low, double high,
                         const std::string& help) {
  const CLI::Validator validator(
      [=](std::string& text) {
        const char unit = text.empty() ? '\0' : text.back();
        const double seconds = unit == 's' ? 1 : unit == 'm' ? 60 : unit == 'h' ? 3600 : 0;
        double count = 0;
        if (!parse_number(text.substr(0, text.size() - (seconds > 0 ? 1 : 0)), count) ||
            !std::isfinite(count))
          return fmt::format("'{}' is not a time; write seconds, or a number with a unit: 60, 60s, 10m, 1.5h",
                             text);
        const double all = count * (seconds > 0 ? seconds : 1);
        if (!(all >= low && all <= high))
          return fmt::format("'{}' is not a time from {} to {} seconds", text, low, high);
        text = fmt::format("{}", all);
        return std::string();
      },
      "");
  return add_number(command, name, value, validator, "TIME", help);
}

CLI::Option* add_share(CLI::App& command, const std::string& name, double& value, const std::string& help) {
  const CLI::Validator validator(
      [](std::string& text) {
        const bool percent = text.ends_with('%');
        double share = 0;
        if (!parse_number(percent ? text.substr(0, text.size() - 1) : text, share) ||
            !(share >= 0 && share <= (percent ? 100 : 1)))
          return fmt::format("'{}' is not a share from 0 to 1 or from 0% to 100%", text);
        text = fmt::format("{}", percent ? share / 100 : share);
        return std::string();
      },
      "");
  return add_number(command, name, value, validator, "SHARE", help);
}

}  // namespace tensorsmith::tools
