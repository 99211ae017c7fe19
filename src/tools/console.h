// The only way to the standard streams. What comes from files (names of nodes, models, devices) cannot send
// escape codes to a terminal; JSON is always JSON; text that standard output loses makes the program fail,
// and what standard error loses makes no difference.
#pragma once

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

namespace tensorsmith::tools {

// One line that a terminal shows as it is: control characters, also those of Unicode (C1, line separators,
// changes of direction), and bytes that are not UTF-8 are written out: "\x1b", "\n", "\xff", "\u202e".
std::string printable(std::string_view text);
// The same of each line of a text.
std::string printable_lines(std::string_view text);

// Valid UTF-8 whatever the strings in it: bytes that are not become U+FFFD. indent: spaces, -1 = one line.
template <class Json>
std::string json_text(const Json& json, int indent = -1);

// Raw bytes, for the lines of a display that redraws itself and for text that was made printable.
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
// Writes DEL and C1 controls, which nlohmann's writer leaves as they are, as \u escapes.
std::string escape_c1(std::string text);
}  // namespace detail

// As fmt::format; arguments that are text are made printable, the format itself may hold newlines.
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
// Text of several lines, such as tables.
void print_lines(std::string_view text);
template <class Json>
void print_json(const Json& json, int indent = -1) {
  write_out(json_text(json, indent) + "\n");
}

// Gives the descriptors 0 to 2 a place where they are closed: else the next file that is opened gets one of
// these numbers, and messages are written into it. Reads find nothing, writes fail.
void open_missing_streams();

// After everything: writes what is still held back. Where standard output did not take all of it, 0 becomes
// kExitFailed, with one line on standard error that says why; a reader that went away (`| head`) is no error
// of anybody, and gives the exit code that SIGPIPE would have given.
int finish_output(int exit_code);

// --- definitions of templates

template <class Json>
std::string json_text(const Json& json, int indent) {
  return detail::escape_c1(json.dump(indent, ' ', false, Json::error_handler_t::replace));
}

}  // namespace tensorsmith::tools
