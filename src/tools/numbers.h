// Options that take numbers. Every one of them is added here, so that all refuse the same: what is no number
// to its end, what is out of the option's range or of its type's, NaN and infinity.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <vector>

namespace tensorsmith::tools {

// More measurements, records or tasks than anybody makes, and still no sum of them overflows.
inline constexpr int64_t kMaxCount = 1'000'000'000;
// 30 years.
inline constexpr double kMaxSeconds = 1e9;

// A whole number from low to high in decimal digits; "0x10", "1e3" and "+5" are none.
CLI::Option* add_whole(CLI::App& command, const std::string& name, int64_t& value, int64_t low, int64_t high,
                       const std::string& help);
CLI::Option* add_whole(CLI::App& command, const std::string& name, int& value, int low, int high,
                       const std::string& help);
// Several, with commas between them: "1,4,10".
CLI::Option* add_whole_list(CLI::App& command, const std::string& name, std::vector<int64_t>& values,
                            int64_t low, int64_t high, const std::string& help);
// Any of 64 bits.
CLI::Option* add_seed(CLI::App& command, uint64_t& value, const std::string& help);
// A finite number from low to high.
CLI::Option* add_real(CLI::App& command, const std::string& name, double& value, double low, double high,
                      const std::string& help);
// A length of time in seconds from low to high: a number of seconds, or a number with its unit, "90s", "10m", "1.5h".
CLI::Option* add_seconds(CLI::App& command, const std::string& name, double& value, double low, double high,
                         const std::string& help);
// A share from 0 to 1, as a number or in percent: "0.01", "1%".
CLI::Option* add_share(CLI::App& command, const std::string& name, double& value, const std::string& help);

}  // namespace tensorsmith::tools
