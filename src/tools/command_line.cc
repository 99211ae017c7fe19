#include "tools/command_line.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string_view>

#include "record/database.h"

namespace tensorsmith::tools {

std::string shell_word(const std::string& word) {
  constexpr std::string_view kPlain = "_-+=:,./@%";
  const bool plain = !word.empty() && std::all_of(word.begin(), word.end(), [&](char c) {
    return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
           kPlain.find(c) != std::string_view::npos;
  });
  if (plain) return word;
  std::string out = "'";
  for (const char c : word) {
    if (c == '\'') {
      out += R"('\'')";
    } else {
      out += c;
    }
  }
  return out + "'";
}

std::string command_line(const std::string& words) {
  std::string out;
  for (size_t begin = 0; begin < words.size();) {
    const size_t end = std::min(words.find('\0', begin), words.size());
    std::string word = words.substr(begin, end - begin);
    if (begin == 0) word = std::filesystem::path(word).filename().string();
    if (!out.empty()) out += ' ';
    // Removes the password of a database address, also in "--db=ADDRESS".
    const size_t address = word.find("postgres");
    if (address != std::string::npos && record::is_database_address(word.substr(address)))
      word = word.substr(0, address) + record::shown_database(word.substr(address));
    out += shell_word(word);
    begin = end + 1;
  }
  return out;
}

std::string command_line() {
  std::ifstream file("/proc/self/cmdline", std::ios::binary);
  return command_line({std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()});
}

}  // namespace tensorsmith::tools
