// Traces as text: one step per line, "name key=value key=value". Keys have the order in which
// print() writes them.
#include <charconv>
#include <initializer_list>
#include <type_traits>
#include <utility>

#include "sched/step.h"

namespace tensorsmith::sched {

namespace {

// A key of a step's text, and the variable for its value.
template <class T>
struct Key {
  std::string_view name;
  T& value;
};
template <class T>
Key(std::string_view, T&) -> Key<T>;

// Values as text.
std::string text_of(int64_t value) { return std::to_string(value); }
std::string text_of(int value) { return std::to_string(value); }
std::string text_of(bool value) { return value ? "true" : "false"; }
std::string text_of(TailPolicy tail) {
  switch (tail) {
    case TailPolicy::kPredicate:
      return "predicate";
    case TailPolicy::kPeel:
      return "peel";
    case TailPolicy::kShift:
      return "shift";
    case TailPolicy::kOverrun:
      return "overrun";
  }
  throw_internal_error(__FILE__, __LINE__, "unknown tail policy");
}
std::string text_of(ir::MemoryScope scope) { return std::string(ir::to_string(scope)); }
std::string text_of(Annotation annotation) { return std::string(to_string(annotation)); }
// A dimension of a layout stores one digit of an index: (index[dim] / divisor) % extent.
std::string text_of(const LayoutDim& digit) {
  return text_of(digit.dim) + "/" + text_of(digit.divisor) + "%" + text_of(digit.extent);
}
template <class T>
std::string text_of(const std::vector<T>& values) {
  std::string out = "[";
  for (size_t i = 0; i < values.size(); ++i) out += (i > 0 ? "," : "") + text_of(values[i]);
  return out + "]";
}

// Parses one line from left to right.
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

  Status read(const Key<int64_t>& field) {
    TS_ASSIGN_OR_RETURN(const std::string_view text, value(field.name));
    if (!parse_whole(text, &field.value)) return error(quoted(field.name) + " is not an integer");
    return {};
  }

  Status read(const Key<int>& field) {
    int64_t wide = 0;
    TS_RETURN_IF_ERROR(read(Key<int64_t>{field.name, wide}));
    if (!std::in_range<int>(wide)) return error(quoted(field.name) + " is out of range");
    field.value = wide;
    return {};
  }

  template <class T>
  Status read(const Key<std::vector<T>>& field) {
    return read_list(field.name, "[1,2]", "contains a value that is not an integer",
                     [&](std::string_view item) {
                       T v = 0;
                       if (!parse_whole(item, &v)) return false;
                       field.value.push_back(v);
                       return true;
                     });
  }

  // Parses dim/divisor%extent.
  Status read(const Key<Layout>& field) {
    return read_list(
        field.name, "[0/1%3,1/16%4]", "is not a list like [0/1%3,1/16%4]", [&](std::string_view item) {
          const size_t slash = item.find('/');
          const size_t percent = item.find('%');
          if (slash == std::string_view::npos || percent == std::string_view::npos || percent < slash)
            return false;
          LayoutDim digit;
          if (!parse_whole(item.substr(0, slash), &digit.dim) ||
              !parse_whole(item.substr(slash + 1, percent - slash - 1), &digit.divisor) ||
              !parse_whole(item.substr(percent + 1), &digit.extent))
            return false;
          field.value.push_back(digit);
          return true;
        });
  }

  Status read(const Key<bool>& field) {
    return read_word(field, {true, false}, " is neither true nor false");
  }
  Status read(const Key<TailPolicy>& field) {
    return read_word(field,
                     {TailPolicy::kPredicate, TailPolicy::kPeel, TailPolicy::kShift, TailPolicy::kOverrun},
                     " is not one of predicate, peel, shift, overrun");
  }
  Status read(const Key<ir::MemoryScope>& field) {
    return read_word(field, {ir::MemoryScope::kGlobal, ir::MemoryScope::kShared, ir::MemoryScope::kLocal},
                     " is not one of global, shared, local");
  }

  Status read(const Key<Annotation>& field) {
    TS_ASSIGN_OR_RETURN(const std::string_view text, value(field.name));
    for (int a = 0; a <= static_cast<int>(Annotation::kThreadZ); ++a) {
      field.value = static_cast<Annotation>(a);
      if (text == to_string(field.value)) return {};
    }
    return error("unknown annotation '" + std::string(text.substr(0, 40)) + "'");
  }

  Status end() {
    skip_spaces();
    if (!rest_.empty()) return error("unexpected text after the step");
    return {};
  }

 private:
  static std::string quoted(std::string_view name) { return "'" + std::string(name) + "'"; }

  // Returns the text after "NAME=" up to the next space.
  Result<std::string_view> value(std::string_view name) {
    const std::string_view w = word();
    if (w.size() <= name.size() || w.substr(0, name.size()) != name || w[name.size()] != '=')
      return error("expected '" + std::string(name) + "=...'");
    return w.substr(name.size() + 1);
  }

  // Reads items that are separated by commas, in brackets.
  template <class ReadItem>
  Status read_list(std::string_view name, const std::string& example, const std::string& wrong_item,
                   const ReadItem& read_item) {
    TS_ASSIGN_OR_RETURN(std::string_view text, value(name));
    if (text.size() < 2 || text.front() != '[' || text.back() != ']')
      return error(quoted(name) + " is not a list like " + example);
    text = text.substr(1, text.size() - 2);
    while (!text.empty()) {
      const size_t comma = text.find(',');
      if (!read_item(text.substr(0, comma))) return error(quoted(name) + " " + wrong_item);
      if (comma == std::string_view::npos) break;
      text.remove_prefix(comma + 1);
      if (text.empty()) return error(quoted(name) + " ends with a comma");
    }
    return {};
  }

  template <class T>
  Status read_word(const Key<T>& field, std::initializer_list<T> values, std::string_view otherwise) {
    TS_ASSIGN_OR_RETURN(const std::string_view text, value(field.name));
    for (const T v : values) {
      if (text != text_of(v)) continue;
      field.value = v;
      return {};
    }
    return error(quoted(field.name) + std::string(otherwise));
  }

  // Returns false also if T cannot represent the number.
  template <class T>
  static bool parse_whole(std::string_view text, T* out) {
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), *out);
    return code == std::errc() && end == text.data() + text.size();
  }
  void skip_spaces() {
    while (!rest_.empty() && rest_.front() == ' ') rest_.remove_prefix(1);
  }

  std::string_view rest_;
  size_t number_;
};

template <size_t kIndex = 0>
Result<Step> parse_step(std::string_view name, LineParser& parser) {
  if constexpr (kIndex == std::variant_size_v<Step>) {
    return parser.error("unknown step '" + std::string(name.substr(0, 40)) + "'");
  } else {
    using S = std::variant_alternative_t<kIndex, Step>;
    if (name != S::kName) return parse_step<kIndex + 1>(name, parser);
    S step;
    Status status;
    for_each_field(step, [&](std::string_view key, auto& value) {
      if (status.ok()) status = parser.read(Key{key, value});
    });
    if (!status.ok()) return status.error();
    return Step(std::move(step));
  }
}

}  // namespace

std::string_view step_name(const Step& step) {
  return std::visit([](const auto& s) { return std::decay_t<decltype(s)>::kName; }, step);
}

std::string print(const Step& step) {
  std::string out(step_name(step));
  const auto add = [&](std::string_view key, const auto& value) {
    out += " " + std::string(key) + "=" + text_of(value);
  };
  std::visit([&](const auto& s) { for_each_field(s, add); }, step);
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
