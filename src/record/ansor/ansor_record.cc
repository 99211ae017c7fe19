#include "record/ansor/ansor_record.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <numeric>
#include <optional>

namespace tensorsmith::record {

namespace {

using namespace sched;  // NOLINT: uses the steps' unqualified names

constexpr double kFailedSeconds = 1e9;  // TVM writes 1e10
constexpr int kMaxNesting = 64;

// Walks JSON text without building a document. After an error all methods return at once; the first
// error is kept.
class Cursor {
 public:
  explicit Cursor(std::string_view text)
      : begin_(text.data()), at_(text.data()), end_(text.data() + text.size()) {}

  bool failed() const { return error_.has_value(); }
  const char* place() {
    skip_space();
    return at_;
  }
  Error take_error() { return *std::move(error_); }
  void fail(std::string reason, ErrorCode code = ErrorCode::kCorrupt) {
    if (!error_) error_ = Error{code, "column " + std::to_string(at_ - begin_ + 1), std::move(reason)};
    at_ = end_;
  }

  void expect(char c) {
    if (!accept(c)) fail(std::string("expected '") + c + "'" + (at_ == end_ ? ", the line ends early" : ""));
  }
  bool accept(char c) {
    skip_space();
    if (at_ == end_ || *at_ != c) return false;
    ++at_;
    return true;
  }
  // Advances to the next element of a list or object; false at its end. `first` must start as true.
  bool element(char close, bool& first) {
    if (failed() || accept(close)) return false;
    if (!first) expect(',');
    first = false;
    return !failed();
  }

  int64_t integer() {
    skip_space();
    int64_t value = 0;
    const auto [end, code] = std::from_chars(at_, end_, value);
    if (code != std::errc() || (end != end_ && (*end == '.' || *end == 'e' || *end == 'E'))) {
      fail("expected an integer");
      return 0;
    }
    at_ = end;
    return value;
  }
  int small() {
    const int64_t value = integer();
    if (value < -1 || value > 1'000'000) fail("number out of range");
    return static_cast<int>(value);
  }
  double number() {
    skip_space();
    double value = 0;
    const bool starts = at_ != end_ && (*at_ == '-' || (*at_ >= '0' && *at_ <= '9'));
    const auto [end, code] = std::from_chars(at_, end_, value);
    if (!starts || code != std::errc() || !std::isfinite(value)) {
      fail("expected a number");
      return 0;
    }
    at_ = end;
    return value;
  }
  void integers(std::vector<int64_t>& out) {
    out.clear();
    expect('[');
    for (bool first = true; element(']', first);) out.push_back(integer());
  }
  void smalls(std::vector<int>& out) {
    out.clear();
    expect('[');
    for (bool first = true; element(']', first);) out.push_back(small());
  }

  // Reads a short string without escapes, a word of the format.
  std::string_view word() {
    expect('"');
    const char* start = at_;
    while (at_ != end_ && *at_ != '"' && *at_ != '\\') ++at_;
    const std::string_view out(start, at_ - start);
    expect('"');
    return failed() ? std::string_view() : out;
  }
  void string(std::string& out) {
    out.clear();
    expect('"');
    while (!failed()) {
      const char* start = at_;
      while (at_ != end_ && *at_ != '"' && *at_ != '\\' && static_cast<unsigned char>(*at_) >= 0x20) ++at_;
      out.append(start, at_);
      if (at_ == end_ || static_cast<unsigned char>(*at_) < 0x20) return fail("a string is not closed");
      if (*at_++ == '"') return;
      if (at_ == end_) return fail("a string is not closed");
      const char c = *at_++;
      static constexpr std::string_view kFrom = "\"\\/bfnrt", kTo = "\"\\/\b\f\n\r\t";
      const size_t i = kFrom.find(c);
      if (i == std::string_view::npos) return fail("an escape sequence in a string is not supported");
      out += kTo[i];
    }
  }

  void skip_value(int nesting = 0) {
    skip_space();
    if (failed()) return;
    if (at_ == end_) return fail("the line ends early");
    if (nesting > kMaxNesting) return fail("lists nest too deeply");
    const char c = *at_;
    if (c == '"') {
      string(scratch_);
    } else if (accept('[')) {
      for (bool first = true; element(']', first);) skip_value(nesting + 1);
    } else if (accept('{')) {
      for (bool first = true; element('}', first);) {
        string(scratch_);
        expect(':');
        skip_value(nesting + 1);
      }
    } else if (c == '-' || (c >= '0' && c <= '9')) {
      number();
    } else {
      for (std::string_view literal : {"true", "false", "null"}) {
        if (std::string_view(at_, static_cast<size_t>(end_ - at_)).substr(0, literal.size()) != literal)
          continue;
        at_ += literal.size();
        return;
      }
      fail("expected a value");
    }
  }
  // Skips the remaining elements of a list.
  void skip_rest(char close) {
    for (bool first = false; element(close, first);) skip_value();
  }
  void end() {
    skip_space();
    if (!failed() && at_ != end_) fail("text after the record");
  }

 private:
  void skip_space() {
    while (at_ != end_ && (*at_ == ' ' || *at_ == '\t' || *at_ == '\r' || *at_ == '\n')) ++at_;
  }

  const char* begin_;
  const char* at_;
  const char* end_;
  std::string scratch_;
  std::optional<Error> error_;
};

class RecordParser {
 public:
  RecordParser(std::string_view line, AnsorRecord& out) : json_(line), out_(out) {}

  Status run() {
    bool input = false, result = false;
    json_.expect('{');
    for (bool first = true; json_.element('}', first);) {
      const std::string_view key = json_.word();
      json_.expect(':');
      if (key == "i") {
        input = true;
        read_input();
      } else if (key == "r") {
        result = true;
        read_result();
      } else {
        json_.skip_value();
      }
    }
    json_.end();
    if (!json_.failed() && (!input || !result))
      json_.fail("\"i\" or \"r\" is missing, so this is not a record of Ansor");
    if (json_.failed()) return json_.take_error();
    return {};
  }

 private:
  void comma() { json_.expect(','); }
  int next() {
    comma();
    return json_.small();
  }

  void read_input() {
    json_.expect('[');
    const char* const start = json_.place();
    json_.expect('[');
    json_.string(out_.workload_key);
    comma();
    json_.string(out_.target);
    out_.cacheline_bytes = 64;
    if (json_.accept(',')) {  // older records have no hardware parameters
      json_.integers(hardware_);
      if (hardware_.size() > 2 && hardware_[2] > 0) out_.cacheline_bytes = hardware_[2];
      json_.skip_rest(']');
    } else {
      json_.expect(']');
    }
    if (!json_.failed()) out_.task.assign(start, json_.place());
    comma();
    json_.expect('[');
    json_.skip_value();  // the stages, which records leave empty
    comma();
    json_.expect('[');
    out_.trace.steps.clear();
    out_.split_extents.clear();
    for (bool first = true; json_.element(']', first);) {
      out_.split_extents.push_back(0);
      read_step();
      if (json_.failed()) return;
    }
    json_.skip_rest(']');
    json_.skip_rest(']');
  }

  void read_result() {
    json_.expect('[');
    json_.expect('[');
    out_.seconds.clear();
    for (bool first = true; json_.element(']', first);) out_.seconds.push_back(json_.number());
    comma();
    out_.error_no = json_.small();
    out_.unix_seconds = 0;
    if (json_.accept(',')) {
      json_.number();  // time spent measuring
      if (json_.accept(',')) out_.unix_seconds = static_cast<int64_t>(json_.number());
      json_.skip_rest(']');
    } else {
      json_.expect(']');
    }
    if (json_.failed()) return;
    if (out_.seconds.empty()) json_.fail("the record has no costs");
    for (double seconds : out_.seconds) {
      if (!(seconds > 0) && out_.error_no == 0 && !out_.unmeasured()) json_.fail("a cost is not positive");
    }
  }

  std::optional<ir::MemoryScope> scope() {
    comma();
    const std::string_view name = json_.word();
    if (name == "local") return ir::MemoryScope::kLocal;
    if (name == "shared") return ir::MemoryScope::kShared;
    if (name == "global") return ir::MemoryScope::kGlobal;
    json_.fail("memory scope '" + std::string(name) + "' is not supported", ErrorCode::kUnsupported);
    return std::nullopt;
  }

  void read_step() {
    json_.expect('[');
    const std::string_view kind = json_.word();
    const int stage = next();
    std::vector<Step>& steps = out_.trace.steps;
    if (kind == "SP") {
      Split step;
      step.stage = stage;
      step.iterator = next();
      comma();
      out_.split_extents.back() = json_.integer();
      comma();
      json_.integers(step.lengths);
      step.inner_to_outer = next() != 0;
      steps.emplace_back(std::move(step));
    } else if (kind == "FSP") {
      const int iterator = next(), source = next();
      steps.emplace_back(FollowSplit{stage, iterator, source, next()});
    } else if (kind == "FFSP") {
      FollowFusedSplit step;
      step.stage = stage;
      step.iterator = next();
      comma();
      json_.smalls(step.source_steps);
      step.level = next();
      step.factor = next() != 0;
      steps.emplace_back(std::move(step));
    } else if (kind == "RE" || kind == "FU") {
      comma();
      std::vector<int> iterators;
      json_.smalls(iterators);
      if (kind == "RE") {
        steps.emplace_back(Reorder{stage, std::move(iterators)});
      } else {
        steps.emplace_back(Fuse{stage, std::move(iterators)});
      }
    } else if (kind == "AN") {
      const int iterator = next(), annotation = next();
      // Ansor's annotation numbers equal ours, except its last one, tensorize.
      if (annotation < 0 || annotation > static_cast<int>(Annotation::kThreadZ))
        return json_.fail("annotation " + std::to_string(annotation) + " is not supported",
                          ErrorCode::kUnsupported);
      steps.emplace_back(Annotate{stage, iterator, static_cast<Annotation>(annotation)});
    } else if (kind == "PR") {
      next();  // the loop; the pragma applies to the stage
      comma();
      read_pragma(stage);
    } else if (kind == "CA") {
      const int target = next();
      steps.emplace_back(ComputeAt{stage, target, next()});
    } else if (kind == "CI") {
      steps.emplace_back(ComputeInline{stage});
    } else if (kind == "CR") {
      steps.emplace_back(ComputeRoot{stage});
    } else if (kind == "CHR") {
      CacheRead step;
      step.stage = stage;
      step.scope = scope().value_or(ir::MemoryScope::kLocal);
      comma();
      json_.smalls(step.readers);
      steps.emplace_back(std::move(step));
    } else if (kind == "CHW") {
      steps.emplace_back(CacheWrite{stage, scope().value_or(ir::MemoryScope::kLocal)});
    } else if (kind == "RF") {
      const int iterator = next();
      steps.emplace_back(Rfactor{stage, iterator, next()});
    } else if (kind == "SA") {
      StorageAlign step;
      step.stage = stage;
      step.iterator = next();
      step.factor = next();
      step.offset = next();
      steps.emplace_back(step);
    } else {
      return json_.fail("step '" + std::string(kind) + "' is not known", ErrorCode::kUnsupported);
    }
    json_.expect(']');
  }

  void read_pragma(int stage) {
    static constexpr std::string_view kPrefix = "auto_unroll_max_step$";
    const std::string_view pragma = json_.word();
    int64_t limit = 0;
    if (pragma.substr(0, kPrefix.size()) == kPrefix) {
      const std::string_view digits = pragma.substr(kPrefix.size());
      const auto [end, code] = std::from_chars(digits.data(), digits.data() + digits.size(), limit);
      if (code == std::errc() && end == digits.data() + digits.size() && limit >= 0) {
        out_.trace.steps.emplace_back(Unroll{stage, limit});
        return;
      }
    }
    json_.fail("pragma '" + std::string(pragma) + "' is not supported", ErrorCode::kUnsupported);
  }

  Cursor json_;
  AnsorRecord& out_;
  std::vector<int64_t> hardware_;
};

}  // namespace

bool AnsorRecord::failed() const {
  return error_no != 0 || seconds.empty() || mean_seconds() >= kFailedSeconds;
}

bool AnsorRecord::unmeasured() const {
  return error_no == 0 && std::all_of(seconds.begin(), seconds.end(), [](double s) { return s == 0; });
}

double AnsorRecord::mean_seconds() const {
  return std::accumulate(seconds.begin(), seconds.end(), 0.0) / seconds.size();
}

Status parse_ansor_record(std::string_view line, AnsorRecord& out) { return RecordParser(line, out).run(); }

namespace {

template <class... Steps>
bool is_one_of(const Step& step) {
  return (std::holds_alternative<Steps>(step) || ...);
}
bool is_step_of_ansor(const Step& step) {
  return is_one_of<Split, FollowSplit, FollowFusedSplit, Fuse, Reorder, Annotate, Unroll, ComputeAt,
                   ComputeInline, ComputeRoot, CacheRead, CacheWrite, Rfactor, StorageAlign>(step);
}

// Returns the extent of a root axis of a stage that is computed at root; 0 for other loops.
int64_t axis_extent(const Schedule& schedule, const Split& split) {
  if (split.stage < 0 || std::cmp_greater_equal(split.stage, schedule.stages.size()) || split.iterator < 0)
    return 0;
  const Stage& stage = schedule.stages.begin()[split.stage];
  if (stage.attach != AttachKind::kRoot || std::cmp_greater_equal(split.iterator, stage.leaves.size()))
    return 0;
  const size_t root = stage.leaves.begin()[split.iterator].place();
  const ir::Operation& op = *stage.op;
  if (root < op.spatial.size()) return op.spatial[root].extent;
  return root < stage.num_roots() ? op.reduce[root - op.spatial.size()].extent : 0;
}

std::string step_place(size_t split) { return "step " + std::to_string(split) + " (split)"; }

// Returns the error of a split by a factor that is larger than its loop's extent (0: unknown); empty if there
// is none. A factor need not divide the extent, nor need the product of factors fit it: TVM guards the tail.
// But each factor that TVM chooses is at most the extent, so a larger one is damaged or of another workload.
std::string excessive_factor(const Split& split, int64_t extent) {
  if (extent <= 0) return "";
  const auto most = std::max_element(split.lengths.begin(), split.lengths.end());
  if (most == split.lengths.end() || *most <= extent) return "";
  return "splits a loop of extent " + std::to_string(extent) + " by the factor " + std::to_string(*most) +
         ", which is larger than the loop; TVM makes no such split";
}

bool packs_constant(const Schedule& schedule, const PackLayout& step) {
  return step.stage >= 0 && std::cmp_less(step.stage, schedule.stages.size()) &&
         schedule.stages.begin()[step.stage].op->is_constant;
}

// Makes the number of an earlier step its place among those written. A number of no earlier step stays, and
// the check of the step refuses it.
void move_source(int& step, const std::vector<int>& places) {
  if (step >= 0 && std::cmp_less(step, places.size())) step = places[static_cast<size_t>(step)];
}

}  // namespace

Result<AnsorSteps> steps_for_ansor(Schedule fresh, const Trace& trace) {
  AnsorSteps out;
  ScheduleBuilder builder(std::move(fresh));
  std::vector<int> places;  // by step of `trace`: its place among those written
  for (size_t i = 0; i < trace.steps.size(); ++i) {
    places.push_back(static_cast<int>(out.trace.steps.size()));
    Step step = trace.steps[i];
    if (const auto* pack = std::get_if<PackLayout>(&step))
      if (packs_constant(builder.schedule(), *pack)) continue;
    if (!is_step_of_ansor(step))
      return Error{ErrorCode::kUnsupported, "step " + std::to_string(i),
                   "TVM's records have no step " + std::string(step_name(step)) +
                       (std::holds_alternative<PackLayout>(step) ? " for intermediate tensors" : "")};
    if (auto* follow = std::get_if<FollowSplit>(&step)) move_source(follow->source_step, places);
    if (auto* follow = std::get_if<FollowFusedSplit>(&step))
      for (int& source : follow->source_steps) move_source(source, places);
    const auto* split = std::get_if<Split>(&step);
    out.split_extents.push_back(split != nullptr ? axis_extent(builder.schedule(), *split) : 0);
    if (split != nullptr && !excessive_factor(*split, out.split_extents.back()).empty())
      return Error{ErrorCode::kUnsupported, step_place(i),
                   "TVM's records have no split by a factor that is larger than its loop"};
    TS_RETURN_IF_ERROR(builder.apply(step));
    out.trace.steps.push_back(std::move(step));
  }
  return out;
}

Result<Schedule> replay(Schedule fresh, const AnsorRecord& record) {
  const std::vector<Step>& steps = record.trace.steps;
  ScheduleBuilder builder(std::move(fresh));
  for (size_t i = 0; i < steps.size(); ++i) {
    if (const auto* split = std::get_if<Split>(&steps[i])) {
      const int64_t stated = record.split_extents[i], extent = axis_extent(builder.schedule(), *split);
      if (stated > 0 && extent != 0 && extent != stated)
        return Error{ErrorCode::kMismatch, step_place(i),
                     "splits a loop of extent " + std::to_string(stated) + ", but the compute DAG gives it " +
                         std::to_string(extent)};
      std::string problem = excessive_factor(*split, stated > 0 ? stated : extent);
      if (!problem.empty()) return Error{ErrorCode::kCorrupt, step_place(i), std::move(problem)};
    }
    TS_RETURN_IF_ERROR(builder.apply(steps[i]));
  }
  return std::move(builder).take();
}

}  // namespace tensorsmith::record
