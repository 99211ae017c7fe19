// Options that take numbers. All of them are added here, so that they reject the same inputs: text
// that is not entirely a number, values out of the range of the option or of its type, NaN and
// infinity.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <vector>

namespace tensorsmith::tools {

// More than any realistic number of measurements, records or tasks, yet sums of such numbers do not
// overflow.
inline constexpr int64_t kMaxCount = 1'000'000'000;
// 30 years.
inline constexpr double kMaxSeconds = 1e9;

// An integer from low to high in decimal digits; rejects "0x10", "1e3" and "+5".
CLI::Option* add_whole(CLI::App& command, const std::string& name, int64_t& value, int64_t low, int64_t high,
                       const std::string& help);
CLI::Option* add_whole(CLI::App& command, const std::string& name, int& value, int low, int high,
                       const std::string& help);
// Several integers separated by commas: "1,4,10".
CLI::Option* add_whole_list(CLI::App& command, const std::string& name, std::vector<int64_t>& values,
                            int64_t low, int64_t high, const std::string& help);
// Any 64-bit unsigned integer.
CLI::Option* add_seed(CLI::App& command, uint64_t& value, const std::string& help);
// --max-turns of commands that run models.
void add_max_turns(CLI::App& command, int64_t& value);
// A finite number from low to high.
CLI::Option* add_real(CLI::App& command, const std::string& name, double& value, double low, double high,
                      const std::string& help);
// A duration from low to high: a number of seconds, or a number with its unit, "90s", "10m",
// "1.5h".
CLI::Option* add_seconds(CLI::App& command, const std::string& name, double& value, double low, double high,
                         const std::string& help);
// A share from 0 to 1, as a number or a percentage: "0.01", "1%".
CLI::Option* add_share(CLI::App& command, const std::string& name, double& value, const std::string& help);

}  // namespace tensorsmith::tools
