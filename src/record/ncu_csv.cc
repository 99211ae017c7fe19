#include "record/ncu_csv.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <optional>
#include <utility>

namespace tensorsmith::record {
namespace {

constexpr std::string_view kKernelColumn = "Kernel Name", kIdColumn = "ID",
                           kDuration = "gpu__time_duration.sum";

Error corrupt_line(int64_t line, const std::string& reason) {
  return Error{ErrorCode::kCorrupt, "line " + std::to_string(line), reason};
}

// Reads the records of comma-separated text; quoted cells may contain commas, doubled quotes and
// newlines.
class CsvReader {
 public:
  explicit CsvReader(std::string_view text) : text_(text) {}
  int64_t line() const { return line_; }  // of the last record

  // False at the end.
  Result<bool> next(std::vector<std::string>& cells) {
    cells.clear();
    line_ = next_line_;
    if (at_ >= text_.size()) return false;
    for (;;) {
      TS_ASSIGN_OR_RETURN(std::string cell, read_cell());
      cells.push_back(std::move(cell));
      if (at_ < text_.size() && text_[at_] == ',') {
        ++at_;
        continue;
      }
      if (at_ < text_.size() && text_[at_] == '\r') ++at_;
      if (at_ >= text_.size()) return true;
      if (text_[at_] != '\n') return corrupt_line(line_, "text follows a quoted cell");
      ++at_;
      ++next_line_;
      return true;
    }
  }

 private:
  Result<std::string> read_cell() {
    if (at_ >= text_.size() || text_[at_] != '"') {
      const size_t end = std::min(text_.find_first_of(",\r\n", at_), text_.size());
      const size_t begin = std::exchange(at_, end);
      return std::string(text_.substr(begin, end - begin));
    }
    std::string out;
    for (++at_; at_ < text_.size(); ++at_) {
      if (text_[at_] == '\n') ++next_line_;
      if (text_[at_] == '"') {
        ++at_;
        if (at_ >= text_.size() || text_[at_] != '"') return out;
      }
      out += text_[at_];
    }
    return corrupt_line(line_, "a quoted cell does not end");
  }

  std::string_view text_;
  size_t at_ = 0;
  int64_t line_ = 1, next_line_ = 1;
};

// Parses "1,234.5", as ncu prints it in most locales.
std::optional<double> number(std::string text) {
  text.erase(std::remove(text.begin(), text.end(), ','), text.end());
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) return std::nullopt;
  return value;
}

// Returns a unit's factor to base units: "Kbyte/second" 1e3, "usecond" 1e-6, "Ginst" 1e9; 1 for
// other units.
double scale_of(std::string_view unit) {
  constexpr std::array<std::pair<char, double>, 7> kPrefixes = {
      {{'n', 1e-9}, {'u', 1e-6}, {'m', 1e-3}, {'K', 1e3}, {'M', 1e6}, {'G', 1e9}, {'T', 1e12}}};
  constexpr std::array<std::string_view, 9> kUnits = {"second",  "byte", "inst",  "sector", "cycle",
                                                      "request", "hz",   "block", "warp"};
  if (unit == "ns" || unit == "us" || unit == "ms")
    return unit[0] == 'n' ? 1e-9 : unit[0] == 'u' ? 1e-6 : 1e-3;
  for (const auto& [prefix, scale] : kPrefixes) {
    if (unit.empty() || unit[0] != prefix) continue;
    for (const std::string_view base : kUnits)
      if (unit.substr(1).starts_with(base)) return scale;
  }
  return 1;
}

std::optional<size_t> place_of(const std::vector<std::string>& cells, std::string_view name) {
  const auto at = std::find(cells.begin(), cells.end(), name);
  if (at == cells.end()) return std::nullopt;
  return at - cells.begin();
}

bool adds_up(const std::string& metric) { return metric.ends_with(".sum") || metric.starts_with("sass__"); }

}  // namespace

Result<std::vector<NcuLaunch>> parse_ncu_csv(std::string_view text) {
  CsvReader reader(text);
  std::vector<std::string> header, cells, units;
  size_t kernel = 0;  // column of the kernel's name, once there is a header
  std::vector<NcuLaunch> out;
  while (true) {
    TS_ASSIGN_OR_RETURN(const bool more, reader.next(cells));
    if (!more) break;
    if (cells.size() == 1) continue;  // "==PROF== Connected", or an empty line
    if (header.empty()) {
      const auto column = place_of(cells, kKernelColumn);
      if (!column || !place_of(cells, kIdColumn)) continue;
      if (place_of(cells, "Metric Name"))
        return corrupt_line(reader.line(),
                            "is in the format of the details page, with one line per metric; print it with "
                            "`ncu --csv --page raw`");
      header = cells;
      kernel = *column;
      continue;
    }
    if (cells.size() != header.size())
      return corrupt_line(reader.line(), "has " + std::to_string(cells.size()) +
                                             " cells, but the header has " + std::to_string(header.size()));
    // The first row has the units, and no kernel name.
    if (cells[kernel].empty()) {
      units = cells;
      continue;
    }
    NcuLaunch launch{cells[kernel], {}};
    for (size_t c = 0; c < cells.size(); ++c) {
      // Metrics are named "unit__name"; the other columns say where the kernel ran.
      if (header[c].find("__") == std::string::npos) continue;
      const auto value = number(cells[c]);
      if (value) launch.metrics[header[c]] = *value * (units.empty() ? 1 : scale_of(units[c]));
    }
    if (launch.metrics.empty())
      return corrupt_line(reader.line(), "kernel '" + launch.kernel + "' has no metric that is a number");
    out.push_back(std::move(launch));
  }
  if (header.empty())
    return Error{
        ErrorCode::kCorrupt, "",
        "has no header with \"ID\" and \"Kernel Name\"; name a file that `ncu --csv --page raw` printed"};
  return out;
}

std::map<std::string, double> merge_launches(const std::vector<NcuLaunch>& launches) {
  std::map<std::string, double> sums, weights;
  for (const NcuLaunch& launch : launches) {
    const auto duration = launch.metrics.find(std::string(kDuration));
    const double weight = duration != launch.metrics.end() && duration->second > 0 ? duration->second : 1;
    for (const auto& [name, value] : launch.metrics) {
      sums[name] += adds_up(name) ? value : weight * value;
      weights[name] += weight;
    }
  }
  for (auto& [name, value] : sums)
    if (!adds_up(name)) value /= weights[name];
  return sums;
}

std::string record_in(const std::string& kernel, const std::set<std::string>& record_keys) {
  constexpr size_t kKeyLength = 32;
  for (size_t at = 0; at + kKeyLength <= kernel.size(); ++at) {
    const auto found = record_keys.find(kernel.substr(at, kKeyLength));
    if (found != record_keys.end()) return *found;
  }
  return "";
}

}  // namespace tensorsmith::record
