// Writes a record in TVM's format.
#include <array>
#include <charconv>

#include "record/ansor/ansor_record.h"

namespace tensorsmith::record {

namespace {

using namespace sched;  // NOLINT: uses the steps' unqualified names

class StepWriter {
 public:
  explicit StepWriter(std::string& out) : out_(out) {}

  void write(const Step& step, int64_t split_extent) {
    out_ += '[';
    extent_ = split_extent;
    std::visit(*this, step);
    out_ += ']';
  }

  void operator()(const Split& s) {
    begin("SP", s.stage, s.iterator);
    number(extent_);
    list(s.lengths);
    number(s.inner_to_outer ? 1 : 0);
  }
  void operator()(const FollowSplit& s) {
    begin("FSP", s.stage, s.iterator);
    number(s.source_step);
    number(s.n_split);
  }
  void operator()(const FollowFusedSplit& s) {
    begin("FFSP", s.stage, s.iterator);
    list(s.source_steps);
    number(s.level);
    number(s.factor ? 1 : 0);
  }
  void operator()(const Fuse& s) {
    begin("FU", s.stage);
    list(s.iterators);
  }
  void operator()(const Reorder& s) {
    begin("RE", s.stage);
    list(s.order);
  }
  void operator()(const Annotate& s) {
    begin("AN", s.stage, s.iterator);
    number(static_cast<int64_t>(s.annotation));
  }
  void operator()(const Unroll& s) {
    begin("PR", s.stage);
    number(0);  // the outermost loop
    word("auto_unroll_max_step$" + std::to_string(s.auto_max_step));
  }
  void operator()(const ComputeAt& s) {
    begin("CA", s.stage, s.target_stage);
    number(s.target_iterator);
  }
  void operator()(const ComputeInline& s) { begin("CI", s.stage); }
  void operator()(const ComputeRoot& s) { begin("CR", s.stage); }
  void operator()(const CacheRead& s) {
    begin("CHR", s.stage);
    word(ir::to_string(s.scope));
    list(s.readers);
  }
  void operator()(const CacheWrite& s) {
    begin("CHW", s.stage);
    word(ir::to_string(s.scope));
  }
  void operator()(const Rfactor& s) {
    begin("RF", s.stage, s.iterator);
    number(s.factor_axis);
  }
  void operator()(const StorageAlign& s) {
    begin("SA", s.stage, s.iterator);
    number(s.factor);
    number(s.offset);
  }
  // Steps that Ansor lacks.
  template <class Other>
  void operator()(const Other&) {
    TS_CHECK(false, "records of Ansor cannot contain such a step");
  }

 private:
  template <class... Numbers>
  void begin(std::string_view kind, Numbers... numbers) {
    out_ += '"';
    out_ += kind;
    out_ += '"';
    (number(numbers), ...);
  }
  void number(int64_t value) { out_ += "," + std::to_string(value); }
  void word(std::string_view text) {
    out_ += ",\"";
    out_ += text;
    out_ += '"';
  }
  template <class T>
  void list(const std::vector<T>& values) {
    out_ += ",[";
    for (size_t i = 0; i < values.size(); ++i) out_ += (i == 0 ? "" : ",") + std::to_string(values[i]);
    out_ += ']';
  }
  std::string& out_;
  int64_t extent_ = 0;
};

}  // namespace

std::string to_ansor_line(const AnsorRecord& record) {
  std::string out = "{\"i\":[" + record.task + ",[[],[";
  StepWriter writer(out);
  for (size_t i = 0; i < record.trace.steps.size(); ++i) {
    if (i > 0) out += ',';
    writer.write(record.trace.steps[i], record.split_extents[i]);
  }
  out += "]]],\"r\":[[";
  for (size_t i = 0; i < record.seconds.size(); ++i) {
    if (i > 0) out += ',';
    std::array<char, 32> text;
    out.append(text.data(), std::to_chars(text.data(), text.data() + text.size(), record.seconds[i]).ptr);
  }
  out += "]," + std::to_string(record.error_no) + ",0," + std::to_string(record.unix_seconds) +
         "],\"v\":\"v0.6\"}";
  return out;
}

}  // namespace tensorsmith::record
