#include "tools/console.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstring>

#include "tools/commands.h"

namespace tensorsmith::tools {
namespace {

int first_failure = 0;  // errno of the first failed write to standard output

struct Character {
  uint32_t code = 0;
  size_t bytes = 0;  // 0: no valid UTF-8 begins here
};

// Accepts only shortest encodings, no surrogates, and at most U+10FFFF (RFC 3629).
Character decode(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t first = byte(0);
  if (first < 0x80) return {first, 1};
  const size_t bytes = first >= 0xF0 ? 4 : first >= 0xE0 ? 3 : 2;
  if (first < 0xC2 || first > 0xF4 || text.size() < bytes) return {};
  uint32_t code = first & (0xFFU >> (bytes + 1));
  for (size_t i = 1; i < bytes; ++i) {
    if ((byte(i) & 0xC0U) != 0x80) return {};
    code = code << 6 | (byte(i) & 0x3FU);
  }
  const uint32_t smallest = bytes == 4 ? 0x10000 : bytes == 3 ? 0x800 : 0x80;
  if (code < smallest || code > 0x10FFFF || (code >= 0xD800 && code <= 0xDFFF)) return {};
  return {code, bytes};
}

// Characters that control a terminal or change how a line reads instead of being visible.
bool is_control(uint32_t c) {
  return c < 0x20 || (c >= 0x7F && c <= 0x9F) || (c >= 0x200B && c <= 0x200F) ||
         (c >= 0x2028 && c <= 0x202E) || (c >= 0x2060 && c <= 0x2069) || c == 0xFEFF ||
         (c >= 0xE0000 && c <= 0xE007F);
}

std::string escaped(uint32_t code) {
  if (code == '\n') return "\\n";
  if (code == '\r') return "\\r";
  if (code == '\t') return "\\t";
  return code < 0x80 ? fmt::format("\\x{:02x}", code) : fmt::format("\\u{:04x}", code);
}

std::string printable(std::string_view text, bool keep_newlines) {
  std::string out;
  out.reserve(text.size());
  while (!text.empty()) {
    const Character c = decode(text);
    const size_t bytes = std::max<size_t>(c.bytes, 1);
    if (c.bytes == 0) {
      out += fmt::format("\\x{:02x}", static_cast<uint8_t>(text[0]));
    } else if (is_control(c.code) && !(keep_newlines && c.code == '\n')) {
      out += escaped(c.code);
    } else {
      out += text.substr(0, bytes);
    }
    text.remove_prefix(bytes);
  }
  return out;
}

void remember_failure() {
  if (first_failure == 0) first_failure = errno != 0 ? errno : EIO;
}

}  // namespace

std::string printable(std::string_view text) { return printable(text, false); }
std::string printable_lines(std::string_view text) { return printable(text, true); }

std::string detail::escape_c1(std::string text) {
  // The text is valid UTF-8, in which C1 controls are C2 80 to C2 9F and occur only in strings.
  size_t found = text.find_first_of("\xC2\x7F");
  if (found == std::string::npos) return text;
  std::string out;
  size_t done = 0;
  for (; found != std::string::npos; found = text.find_first_of("\xC2\x7F", found + 1)) {
    const bool c1 = text[found] == '\xC2' && static_cast<uint8_t>(text[found + 1]) < 0xA0;
    if (text[found] == '\xC2' && !c1) continue;
    out.append(text, done, found - done);
    out += fmt::format("\\u{:04x}", c1 ? static_cast<uint8_t>(text[found + 1]) : 0x7FU);
    done = found + (c1 ? 2 : 1);
  }
  return out.append(text, done);
}

void write_out(std::string_view bytes) {
  errno = 0;
  if (std::fwrite(bytes.data(), 1, bytes.size(), stdout) != bytes.size()) remember_failure();
}

void write_error(std::string_view bytes) {
  // Errors are ignored: a full disk behind `2>log` must not end hours of work.
  [[maybe_unused]] const size_t written = std::fwrite(bytes.data(), 1, bytes.size(), stderr);
  std::fflush(stderr);
}

void warn(std::string_view message) { print_error("tensorsmith: warning: {}\n", message); }

void print_notes(const std::vector<std::string>& notes) {
  for (const std::string& note : notes) print_error("tensorsmith: note: {}\n", note);
}

void print_lines(std::string_view text) { write_out(printable_lines(text)); }

void open_missing_streams() {
  // open() takes the lowest free number. Opened for reading only, so that writes fail.
  int descriptor = 0;
  while (descriptor >= 0 && descriptor <= STDERR_FILENO) descriptor = open("/dev/null", O_RDONLY);
  if (descriptor > STDERR_FILENO) close(descriptor);
}

int finish_output(int exit_code) {
  errno = 0;
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) remember_failure();
  if (first_failure == 0) return exit_code;
  if (first_failure == EPIPE) return exit_code == 0 ? 128 + SIGPIPE : exit_code;
  print_error("tensorsmith: error: cannot write to standard output: {}\n", std::strerror(first_failure));
  return exit_code == 0 ? kExitFailed : exit_code;
}

}  // namespace tensorsmith::tools
