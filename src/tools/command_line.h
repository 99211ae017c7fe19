// The command that runs, as a shell takes it.
#pragma once

#include <string>

namespace tensorsmith::tools {

// "tensorsmith tune 'my model.onnx' -o tuned"; empty if the system does not tell. The program goes by its file's name,
// addresses of databases have no password.
std::string command_line();
// The same of words that each end with a zero.
std::string command_line(const std::string& words);

// The word as a shell reads it back: in quotes where it has to be.
std::string shell_word(const std::string& word);

}  // namespace tensorsmith::tools
