// Log of measured searches, one JSON line each, so that a killed comparison can resume.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "lab/compare_searches.h"

namespace tensorsmith::tools {

// Converts numbers to JSON; infinity becomes null.
nlohmann::ordered_json numbers_to_json(const std::vector<double>& values);

// A line is flushed when its search is done; an unfinished last line of a killed run is dropped. A
// search is identified by all its parameters; of several lines for one search the last one counts.
class RunLog {
 public:
  // An empty path keeps nothing. `options` and `from` must outlive the log. Errors: kIo, kMismatch
  // for another kind of file.
  static Result<RunLog> open(const std::string& path, const lab::CompareOptions& options,
                             const std::vector<std::string>& from);

  bool find(lab::SearchRun& run) const;
  Status keep(const lab::SearchRun& run) const;

 private:
  using Json = nlohmann::ordered_json;

  RunLog(std::string path, const lab::CompareOptions& options, const std::vector<std::string>& from)
      : path_(std::move(path)), options_(&options), from_(&from) {}
  Json key_of(const lab::SearchRun& run) const;

  std::string path_;
  const lab::CompareOptions* options_;
  const std::vector<std::string>* from_;
  std::map<std::string, Json> lines_;
};

}  // namespace tensorsmith::tools
