// Errors as values. An error that a user or a search can cause is returned in a Result. A bug throws an
// InternalError. It is caught at the borders of the program (main() of the tools, the C interface) and in
// measure/builder.cc, where it fails one candidate instead of a tuning run.
#pragma once

#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <variant>

namespace tensorsmith {

enum class ErrorCode {
  kInvalidArgument,  // the caller's or user's input is wrong
  kNotFound,         // a file, tensor, device or record that does not exist
  kUnsupported,      // legal input that Tensorsmith cannot handle (operator, dtype, feature)
  kIllegal,          // a schedule step that would change the program's meaning
  kCorrupt,          // a file or record that does not follow its format
  kIo,               // the operating system refused: disk full, permission denied
  kTimeout,
  kResourceExhausted,
  kCancelled,
  kMismatch,  // computed values differ from expected values; versions differ
};

const char* to_string(ErrorCode code);

// One problem: what went wrong, where, and (if something can be done) what to do.
struct Error {
  ErrorCode code = ErrorCode::kInvalidArgument;
  std::string place;   // file:line, node name, step index; may be empty
  std::string reason;  // one line: what is wrong and what to do about it

  // "place: reason", or "reason" alone.
  std::string message() const { return place.empty() ? reason : place + ": " + reason; }
};

// A bug in Tensorsmith, never bad input.
class InternalError : public std::logic_error {
 public:
  using std::logic_error::logic_error;
};

[[noreturn]] void throw_internal_error(const char* file, int line, const std::string& what);

// Checks an invariant; failing is a bug in Tensorsmith.
#define TS_CHECK(condition, what)                                                      \
  do {                                                                                 \
    if (!(condition)) ::tensorsmith::throw_internal_error(__FILE__, __LINE__, (what)); \
  } while (false)

template <typename T>
class [[nodiscard]] Result {
 public:
  using Value = T;
  Result(T value)
      : state_(std::in_place_index<0>, std::move(value)) {}  // NOLINT(google-explicit-constructor)
  Result(Error error)
      : state_(std::in_place_index<1>, std::move(error)) {}  // NOLINT(google-explicit-constructor)

  bool ok() const { return state_.index() == 0; }
  explicit operator bool() const { return ok(); }

  T& value() & {
    TS_CHECK(ok(), "value() of a failed Result: " + error().message());
    return std::get<0>(state_);
  }
  const T& value() const& {
    TS_CHECK(ok(), "value() of a failed Result: " + error().message());
    return std::get<0>(state_);
  }
  T&& value() && {
    TS_CHECK(ok(), "value() of a failed Result: " + error().message());
    return std::get<0>(std::move(state_));
  }
  T& operator*() & { return value(); }
  const T& operator*() const& { return value(); }
  T&& operator*() && { return std::move(*this).value(); }
  T* operator->() { return &value(); }
  const T* operator->() const { return &value(); }

  const Error& error() const& { return std::get<1>(state_); }
  Error&& error() && { return std::get<1>(std::move(state_)); }

 private:
  std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)) {}  // NOLINT(google-explicit-constructor)
  bool ok() const { return !error_.has_value(); }
  explicit operator bool() const { return ok(); }
  const Error& error() const& { return *error_; }
  Error&& error() && { return *std::move(error_); }

 private:
  std::optional<Error> error_;
};

using Status = Result<void>;

// TS_RETURN_IF_ERROR(status_expr): returns the error from the enclosing function.
#define TS_RETURN_IF_ERROR(expr)                      \
  do {                                                \
    if (auto ts_status_ = (expr); !ts_status_.ok()) { \
      return std::move(ts_status_).error();           \
    }                                                 \
  } while (false)

#define TS_CONCAT_INNER(a, b) a##b
#define TS_CONCAT(a, b) TS_CONCAT_INNER(a, b)
// TS_ASSIGN_OR_RETURN(auto x, result_expr): binds the value or returns the error.
#define TS_ASSIGN_OR_RETURN(declaration, expr) \
  TS_ASSIGN_OR_RETURN_IMPL(TS_CONCAT(ts_result_, __LINE__), declaration, expr)
#define TS_ASSIGN_OR_RETURN_IMPL(tmp, declaration, expr) \
  auto tmp = (expr);                                     \
  if (!tmp.ok()) return std::move(tmp).error();          \
  declaration = std::move(tmp).value()

}  // namespace tensorsmith
