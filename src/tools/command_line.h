// The running command line, as text for a shell.
#pragma once

#include <string>

namespace tensorsmith::tools {

// Returns for example "tensorsmith tune 'my model.onnx' -o tuned"; empty if the system does not
// provide it. The program is named by its file name, and passwords are removed from database
// addresses.
std::string command_line();
// As above, for words that each end with a zero byte.
std::string command_line(const std::string& words);

// Quotes the word if a shell needs that to read it back.
std::string shell_word(const std::string& word);

}  // namespace tensorsmith::tools
