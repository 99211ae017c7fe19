// Facts about a record's program besides its trace: its position in the task's design space, the
// strategy that proposed it, and why it was measured.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace tensorsmith::record {

enum class Reason : uint8_t {
  kUnstated,     // records of other programs, and of databases from before reasons were stored
  kDefault,      // the untuned schedule
  kFallback,     // plain loops, where the untuned schedule cannot be built or run
  kPredicted,    // among the fastest by the scores
  kNeighbour,    // one decision away from one of the fastest programs measured
  kUncertain,    // the best of a structure without measured programs
  kRandom,       // a random point of the design space
  kTransferred,  // a fast program of another task of its kernel class, rescaled
  kEnumerated,   // the next one in an enumeration of a small space
  kSeeded,       // a fast program of the same task on another device, or from a file
  kWritten,      // written by a language model
};
std::string_view to_string(Reason reason);  // "default", "random", ...: stored, so never renamed
std::optional<Reason> parse_reason(std::string_view name);

// A point of a task's design space: the number of a sketch, and one number per decision. It denotes
// the same program only as long as the space is built in the same way, so users must compare the
// traces.
struct DesignPoint {
  int sketch = 0;
  std::vector<int64_t> decisions;
  friend bool operator==(const DesignPoint&, const DesignPoint&) = default;
};

struct CandidateOrigin {
  Reason reason = Reason::kUnstated;
  std::string strategy;              // name; empty: no strategy proposed it
  std::optional<DesignPoint> point;  // nullopt: not known
  std::string note;  // text of an earlier version or another program that has none of these fields
  friend bool operator==(const CandidateOrigin&, const CandidateOrigin&) = default;
};

// Prints "1,16,0,7"; empty for no decisions. The inverse rejects everything else.
std::string print_decisions(const std::vector<int64_t>& decisions);
std::optional<std::vector<int64_t>> parse_decisions(std::string_view text);

// Parses the text that databases of schema 1 and JSON lines of version 1 have instead: "default",
// "search:SKETCH/D,D,D", or anything else. A text that is not exactly one of the first two becomes
// the note.
CandidateOrigin parse_origin(std::string_view text);

}  // namespace tensorsmith::record
