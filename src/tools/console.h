// All output to the standard streams. Text from files (names of nodes, models, devices) cannot send
// escape codes to a terminal, and JSON is always valid. If standard output loses text, the program
// fails; losses of standard error are ignored.
#pragma once

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace tensorsmith::tools {

// Escapes a line so that a terminal shows it literally: control characters, including those of
// Unicode (C1, line separators, direction changes), and bytes that are not UTF-8 become "\x1b",
// "\n", "\xff", "\u202e".
std::string printable(std::string_view text);
// As printable(), for each line of a text.
std::string printable_lines(std::string_view text);

// Serializes to valid UTF-8: invalid bytes in strings become U+FFFD. indent: spaces, -1 = one line.
template <class Json>
std::string json_text(const Json& json, int indent = -1);

// Writes raw bytes, for redrawn progress lines and for text that is printable already.
void write_out(std::string_view bytes);
void write_error(std::string_view bytes);

namespace detail {
template <class T>
decltype(auto) shown(const T& value) {
  if constexpr (std::is_convertible_v<const T&, std::string_view>) {
    return printable(std::string_view(value));
  } else {
    return static_cast<const T&>(value);
  }
}
// Writes DEL and C1 controls, which nlohmann's serializer leaves unchanged, as \u escapes.
std::string escape_c1(std::string text);
}  // namespace detail

// As fmt::format, but string arguments are made printable; the format itself may contain newlines.
template <class... T>
std::string format_printable(fmt::format_string<T...> format, T&&... args) {
  return fmt::vformat(format, fmt::make_format_args(detail::shown(args)...));
}
template <class... T>
void print_out(fmt::format_string<T...> format, T&&... args) {
  write_out(fmt::vformat(format, fmt::make_format_args(detail::shown(args)...)));
}
template <class... T>
void print_error(fmt::format_string<T...> format, T&&... args) {
  write_error(fmt::vformat(format, fmt::make_format_args(detail::shown(args)...)));
}
// "tensorsmith: warning: ..." with a newline.
void warn(std::string_view message);
// "tensorsmith: note: ..." on standard error, each on a line of its own.
void print_notes(const std::vector<std::string>& notes);
// Prints text of several lines, such as tables.
void print_lines(std::string_view text);
template <class Json>
void print_json(const Json& json, int indent = -1) {
  write_out(json_text(json, indent) + "\n");
}

// Opens the descriptors 0 to 2 if they are closed. Otherwise the next opened file would get one of
// these numbers, and messages would be written into it. Reads find nothing, writes fail.
void open_missing_streams();

// Flushes standard output at the end of the program. If some output was lost, exit code 0 becomes
// kExitFailed, with one line on standard error that says why. A closed pipe (`| head`) is not an
// error; it gives the exit code that SIGPIPE would have given.
int finish_output(int exit_code);

// --- definitions of templates

template <class Json>
std::string json_text(const Json& json, int indent) {
  return detail::escape_c1(json.dump(indent, ' ', false, Json::error_handler_t::replace));
}

}  // namespace tensorsmith::tools
