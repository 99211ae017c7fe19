// Traces as text: one step a line, "name key=value key=value". Keys come in the order that print() writes.
#include <charconv>
#include <optional>

#include "sched/step.h"

namespace tensorsmith::sched {

namespace {

constexpr std::string_view kNames[] = {
    "split",       "follow_split", "follow_fused_split",  "fuse",           "reorder",      "annotate",
    "unroll",      "compute_at",   "reverse_compute_at",  "compute_inline", "compute_root", "cache_read",
    "cache_write", "rfactor",      "decompose_reduction", "storage_align",  "pack_layout",  "winograd",
};
static_assert(std::size(kNames) == std::variant_size_v<Step>);

template <class T>
std::string list(const std::vector<T>& values) {
  std::string out = "[";
  for (size_t i = 0; i < values.size(); ++i) {
    if (i > 0) out += ',';
    out += std::to_string(values[i]);
  }
  return out + "]";
}

std::string key(std::string_view name, int64_t value) {
  return " " + std::string(name) + "=" + std::to_string(value);
}

std::string_view scope_name(ir::MemoryScope scope) { return ir::to_string(scope); }

// One line, cut from the left.
class LineParser {
 public:
  LineParser(std::string_view line, size_t number) : rest_(line), number_(number) {}

  Error error(const std::string& reason) const {
    return {ErrorCode::kCorrupt, "line " + std::to_string(number_), reason};
  }

  std::string_view word() {
    skip_spaces();
    size_t n = 0;
    while (n < rest_.size() && rest_[n] != ' ') ++n;
    const std::string_view w = rest_.substr(0, n);
    rest_.remove_prefix(n);
    return w;
  }

  // The text after "NAME=" up to the next space.
  Result<std::string_view> value(std::string_view name) {
    const std::string_view w = word();
    if (w.size() <= name.size() || w.substr(0, name.size()) != name || w[name.size()] != '=')
      return error("expected '" + std::string(name) + "=...'");
    return w.substr(name.size() + 1);
  }

  Result<int64_t> integer(std::string_view name) {
    TS_ASSIGN_OR_RETURN(const std::string_view text, value(name));
    int64_t out = 0;
    if (!parse_whole(text, &out)) return error("'" + std::string(name) + "' is no integer");
    return out;
  }

  Result<int> position(std::string_view name) {
    TS_ASSIGN_OR_RETURN(const int64_t v, integer(name));
    if (v < INT32_MIN || v > INT32_MAX) return error("'" + std::string(name) + "' is out of range");
    return static_cast<int>(v);
  }

  template <class T>
  Result<std::vector<T>> integers(std::string_view name) {
    TS_ASSIGN_OR_RETURN(std::string_view text, value(name));
    if (text.size() < 2 || text.front() != '[' || text.back() != ']')
      return error("'" + std::string(name) + "' is no list like [1,2]");
    text = text.substr(1, text.size() - 2);
    std::vector<T> out;
    while (!text.empty()) {
      const size_t comma = text.find(',');
      int64_t v = 0;
      if (!parse_whole(text.substr(0, comma), &v) || static_cast<int64_t>(static_cast<T>(v)) != v)
        return error("'" + std::string(name) + "' holds something that is no integer");
      out.push_back(static_cast<T>(v));
      if (comma == std::string_view::npos) break;
      text.remove_prefix(comma + 1);
      if (text.empty()) return error("'" + std::string(name) + "' ends with a comma");
    }
    return out;
  }

  // dim/divisor%extent, comma separated, in brackets.
  Result<Layout> layout(std::string_view name) {
    TS_ASSIGN_OR_RETURN(std::string_view text, value(name));
    const Error bad = error("'" + std::string(name) + "' is no list like [0/1%3,1/16%4]");
    if (text.size() < 2 || text.front() != '[' || text.back() != ']') return bad;
    text = text.substr(1, text.size() - 2);
    Layout out;
    while (!text.empty()) {
      const size_t comma = text.find(',');
      const std::string_view item = text.substr(0, comma);
      const size_t slash = item.find('/');
      const size_t percent = item.find('%');
      if (slash == std::string_view::npos || percent == std::string_view::npos || percent < slash) return bad;
      LayoutDim digit;
      int64_t dim = 0;
      if (!parse_whole(item.substr(0, slash), &dim) || dim < INT32_MIN || dim > INT32_MAX ||
          !parse_whole(item.substr(slash + 1, percent - slash - 1), &digit.divisor) ||
          !parse_whole(item.substr(percent + 1), &digit.extent))
        return bad;
      digit.dim = static_cast<int>(dim);
      out.push_back(digit);
      if (comma == std::string_view::npos) break;
      text.remove_prefix(comma + 1);
      if (text.empty()) return bad;
    }
    return out;
  }

  Result<bool> flag(std::string_view name) {
    TS_ASSIGN_OR_RETURN(const std::string_view text, value(name));
    if (text != "true" && text != "false")
      return error("'" + std::string(name) + "' is neither true nor false");
    return text == "true";
  }

  Result<TailPolicy> tail(std::string_view name) {
    TS_ASSIGN_OR_RETURN(const std::string_view text, value(name));
    if (text != "predicate" && text != "peel")
      return error("'" + std::string(name) + "' is neither predicate nor peel");
    return text == "peel" ? TailPolicy::kPeel : TailPolicy::kPredicate;
  }

  Result<ir::MemoryScope> scope(std::string_view name) {
    TS_ASSIGN_OR_RETURN(const std::string_view text, value(name));
    for (const auto s : {ir::MemoryScope::kGlobal, ir::MemoryScope::kShared, ir::MemoryScope::kLocal}) {
      if (text == scope_name(s)) return s;
    }
    return error("'" + std::string(name) + "' is none of global, shared, local");
  }

  Result<Annotation> annotation(std::string_view name) {
    TS_ASSIGN_OR_RETURN(const std::string_view text, value(name));
    for (int a = 0; a <= static_cast<int>(Annotation::kThreadZ); ++a) {
      if (text == to_string(static_cast<Annotation>(a))) return static_cast<Annotation>(a);
    }
    return error("unknown annotation '" + std::string(text.substr(0, 40)) + "'");
  }

  Status end() {
    skip_spaces();
    if (!rest_.empty()) return error("unexpected text after the step");
    return {};
  }

 private:
  static bool parse_whole(std::string_view text, int64_t* out) {
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), *out);
    return code == std::errc() && end == text.data() + text.size();
  }
  void skip_spaces() {
    while (!rest_.empty() && rest_.front() == ' ') rest_.remove_prefix(1);
  }

  std::string_view rest_;
  size_t number_;
};

Result<Step> parse_step(std::string_view name, LineParser& p) {
  if (name == "split") {
    Split s;
    TS_ASSIGN_OR_RETURN(s.stage, p.position("stage"));
    TS_ASSIGN_OR_RETURN(s.iterator, p.position("iter"));
    TS_ASSIGN_OR_RETURN(s.lengths, p.integers<int64_t>("lengths"));
    TS_ASSIGN_OR_RETURN(s.inner_to_outer, p.flag("inner"));
    TS_ASSIGN_OR_RETURN(s.tail, p.tail("tail"));
    return Step(s);
  }
  if (name == "follow_split") {
    FollowSplit s;
    TS_ASSIGN_OR_RETURN(s.stage, p.position("stage"));
    TS_ASSIGN_OR_RETURN(s.iterator, p.position("iter"));
    TS_ASSIGN_OR_RETURN(s.source_step, p.position("source"));
    TS_ASSIGN_OR_RETURN(s.n_split, p.position("n_split"));
    return Step(s);
  }
  if (name == "follow_fused_split") {
    FollowFusedSplit s;
    TS_ASSIGN_OR_RETURN(s.stage, p.position("stage"));
    TS_ASSIGN_OR_RETURN(s.iterator, p.position("iter"));
    TS_ASSIGN_OR_RETURN(s.source_steps, p.integers<int>("sources"));
    TS_ASSIGN_OR_RETURN(s.level, p.position("level"));
    TS_ASSIGN_OR_RETURN(s.factor, p.flag("factor"));
    return Step(s);
  }
  if (name == "fuse") {
    Fuse s;
    TS_ASSIGN_OR_RETURN(s.stage, p.position("stage"));
    TS_ASSIGN_OR_RETURN(s.iterators, p.integers<int>("iters"));
    return Step(s);
  }
  if (name == "reorder") {
    Reorder s;
    TS_ASSIGN_OR_RETURN(s.stage, p.position("stage"));
    TS_ASSIGN_OR_RETURN(s.order, p.integers<int>("order"));
    return Step(s);
  }
  if (name == "annotate") {
    Annotate s;
    TS_ASSIGN_OR_RETURN(s.stage, p.position("stage"));
    TS_ASSIGN_OR_RETURN(s.iterator, p.position("iter"));
    TS_ASSIGN_OR_RETURN(s.annotation, p.annotation("as"));
    return Step(s);
  }
  if (name == "unroll") {
    Unroll s;
    TS_ASSIGN_OR_RETURN(s.stage, p.position("stage"));
    TS_ASSIGN_OR_RETURN(s.auto_max_step, p.integer("max_step"));
    return Step(s);
  }
  if (name == "compute_at") {
    ComputeAt s;
    TS_ASSIGN_OR_RETURN(s.stage, p.position("stage"));
    TS_ASSIGN_OR_RETURN(s.target_stage, p.position("target"));
    TS_ASSIGN_OR_RETURN(s.target_iterator, p.position("iter"));
    return Step(s);
  }
  if (name == "reverse_compute_at") {
    ReverseComputeAt s;
    TS_ASSIGN_OR_RETURN(s.stage, p.position("stage"));
    TS_ASSIGN_OR_RETURN(s.producer_stage, p.position("producer"));
    TS_ASSIGN_OR_RETURN(s.producer_iterator, p.position("iter"));
    return Step(s);
  }
  if (name == "compute_inline") {
    ComputeInline s;
    TS_ASSIGN_OR_RETURN(s.stage, p.position("stage"));
    return Step(s);
  }
  if (name == "compute_root") {
    ComputeRoot s;
    TS_ASSIGN_OR_RETURN(s.stage, p.position("stage"));
    return Step(s);
  }
  if (name == "cache_read") {
    CacheRead s;
    TS_ASSIGN_OR_RETURN(s.stage, p.position("stage"));
    TS_ASSIGN_OR_RETURN(s.scope, p.scope("scope"));
    TS_ASSIGN_OR_RETURN(s.readers, p.integers<int>("readers"));
    return Step(s);
  }
  if (name == "cache_write") {
    CacheWrite s;
    TS_ASSIGN_OR_RETURN(s.stage, p.position("stage"));
    TS_ASSIGN_OR_RETURN(s.scope, p.scope("scope"));
    return Step(s);
  }
  if (name == "rfactor") {
    Rfactor s;
    TS_ASSIGN_OR_RETURN(s.stage, p.position("stage"));
    TS_ASSIGN_OR_RETURN(s.iterator, p.position("iter"));
    TS_ASSIGN_OR_RETURN(s.factor_axis, p.position("axis"));
    return Step(s);
  }
  if (name == "decompose_reduction") {
    DecomposeReduction s;
    TS_ASSIGN_OR_RETURN(s.stage, p.position("stage"));
    TS_ASSIGN_OR_RETURN(s.iterator, p.position("iter"));
    return Step(s);
  }
  if (name == "storage_align") {
    StorageAlign s;
    TS_ASSIGN_OR_RETURN(s.stage, p.position("stage"));
    TS_ASSIGN_OR_RETURN(s.iterator, p.position("iter"));
    TS_ASSIGN_OR_RETURN(s.factor, p.integer("factor"));
    TS_ASSIGN_OR_RETURN(s.offset, p.integer("offset"));
    return Step(s);
  }
  if (name == "pack_layout") {
    PackLayout s;
    TS_ASSIGN_OR_RETURN(s.stage, p.position("stage"));
    TS_ASSIGN_OR_RETURN(s.layout, p.layout("layout"));
    return Step(s);
  }
  if (name == "winograd") {
    Winograd s;
    TS_ASSIGN_OR_RETURN(s.stage, p.position("stage"));
    TS_ASSIGN_OR_RETURN(s.m, p.integer("m"));
    return Step(s);
  }
  return p.error("unknown step '" + std::string(name.substr(0, 40)) + "'");
}

}  // namespace

std::string_view step_name(const Step& step) { return kNames[step.index()]; }

std::string print(const Step& step) {
  std::string out(step_name(step));
  std::visit(
      ir::overloaded{
          [&](const Split& s) {
            out += key("stage", s.stage) + key("iter", s.iterator) + " lengths=" + list(s.lengths) +
                   " inner=" + (s.inner_to_outer ? "true" : "false") +
                   " tail=" + (s.tail == TailPolicy::kPeel ? "peel" : "predicate");
          },
          [&](const FollowSplit& s) {
            out += key("stage", s.stage) + key("iter", s.iterator) + key("source", s.source_step) +
                   key("n_split", s.n_split);
          },
          [&](const FollowFusedSplit& s) {
            out += key("stage", s.stage) + key("iter", s.iterator) + " sources=" + list(s.source_steps) +
                   key("level", s.level) + " factor=" + (s.factor ? "true" : "false");
          },
          [&](const Fuse& s) { out += key("stage", s.stage) + " iters=" + list(s.iterators); },
          [&](const Reorder& s) { out += key("stage", s.stage) + " order=" + list(s.order); },
          [&](const Annotate& s) {
            out += key("stage", s.stage) + key("iter", s.iterator) +
                   " as=" + std::string(to_string(s.annotation));
          },
          [&](const Unroll& s) { out += key("stage", s.stage) + key("max_step", s.auto_max_step); },
          [&](const ComputeAt& s) {
            out += key("stage", s.stage) + key("target", s.target_stage) + key("iter", s.target_iterator);
          },
          [&](const ReverseComputeAt& s) {
            out +=
                key("stage", s.stage) + key("producer", s.producer_stage) + key("iter", s.producer_iterator);
          },
          [&](const ComputeInline& s) { out += key("stage", s.stage); },
          [&](const ComputeRoot& s) { out += key("stage", s.stage); },
          [&](const CacheRead& s) {
            out += key("stage", s.stage) + " scope=" + std::string(scope_name(s.scope)) +
                   " readers=" + list(s.readers);
          },
          [&](const CacheWrite& s) {
            out += key("stage", s.stage) + " scope=" + std::string(scope_name(s.scope));
          },
          [&](const Rfactor& s) {
            out += key("stage", s.stage) + key("iter", s.iterator) + key("axis", s.factor_axis);
          },
          [&](const DecomposeReduction& s) { out += key("stage", s.stage) + key("iter", s.iterator); },
          [&](const StorageAlign& s) {
            out += key("stage", s.stage) + key("iter", s.iterator) + key("factor", s.factor) +
                   key("offset", s.offset);
          },
          [&](const PackLayout& s) {
            out += key("stage", s.stage) + " layout=[";
            for (size_t i = 0; i < s.layout.size(); ++i) {
              const LayoutDim& digit = s.layout[i];
              out += (i > 0 ? "," : "") + std::to_string(digit.dim) + "/" + std::to_string(digit.divisor) +
                     "%" + std::to_string(digit.extent);
            }
            out += "]";
          },
          [&](const Winograd& s) { out += key("stage", s.stage) + key("m", s.m); },
      },
      step);
  return out;
}

std::string print(const Trace& trace) {
  std::string out;
  for (const Step& step : trace.steps) {
    out += print(step);
    out += '\n';
  }
  return out;
}

Result<Trace> parse_trace(std::string_view text) {
  Trace trace;
  size_t number = 0;
  while (!text.empty()) {
    ++number;
    const size_t newline = text.find('\n');
    std::string_view line = text.substr(0, newline);
    text.remove_prefix(newline == std::string_view::npos ? text.size() : newline + 1);
    if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    LineParser parser(line, number);
    const std::string_view name = parser.word();
    if (name.empty()) continue;
    TS_ASSIGN_OR_RETURN(Step step, parse_step(name, parser));
    TS_RETURN_IF_ERROR(parser.end());
    trace.steps.push_back(std::move(step));
  }
  return trace;
}

}  // namespace tensorsmith::sched
