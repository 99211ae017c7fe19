// Log of measured searches, one JSON line each, so that a killed comparison can resume.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "lab/compare_searches.h"
#include "tools/options.h"

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

// The tasks that a command searches by measuring, and what it knows of other tasks.
struct SearchedTasks {
  int heaviest = 0;                         // of each network; 0: all tasks
  std::vector<std::string> networks, from;  // `from`: databases
  std::string log;                          // of the finished searches; empty: none
  DeviceOptions device;
};

// Measures the searches that the log does not have. `leave_out`: the records of the searched tasks themselves
// are not used, because they would give the answers away. `decoding` may be null. Errors: those of
// lab::measure_searches and RunLog::open.
Result<std::vector<lab::SearchRun>> measure_searches(const SearchedTasks& tasks,
                                                     const lab::CompareOptions& options, bool leave_out,
                                                     engine::DecodingReport* decoding, LogSink& log,
                                                     const lab::CompareProgressFn& progress);

}  // namespace tensorsmith::tools
