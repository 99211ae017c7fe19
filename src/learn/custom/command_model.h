// A user's cost model as a program: `--cost-model command:PROGRAM`.
//
// Every message is a line with a JSON object. The program reads messages from standard input and answers on
// standard output. The first message:
//   {"protocol": 1, "device": {...}, "inputs": [...], "feature_names": [...], "store_names": [...]}
// The answer says what the program reads of each program; all but "inputs" may be missing:
//   {"inputs": ["features"], "update": true, "format": "binary", "sigma": 0.2, "timeout": 60}
// update: whether it learns. sigma: CustomTraits::sigma. timeout: most seconds for an answer.
//
// A task is announced before its first program, and not answered:
//   {"task": 0, "name": "conv2d", "key": "...", "flops": 1e9, "workload": "..."}
// A batch has a list for each input, with an element for each program:
//   {"id": 1, "predict": 2, "tasks": [0, 0], "features": [[...], [...]]}
//   {"id": 2, "update": 2, "tasks": [0, 0], "features": [[...], [...]], "seconds": [1.5e-5, null]}
// "stores" has a list of rows for each program. In seconds, null stands for a program that failed. Answers:
//   {"id": 1, "scores": [11.2, null]}      as CustomScorer::predict; null: the program cannot run
//   {"id": 2}                              learned; always all measurements so far
//   {"error": "..."}                       ends the search
//
// With "format": "binary", the numbers follow the line as arrays instead, in the byte order of the machine,
// and their shapes stand in "arrays", in their order: tasks and store_counts int32; features, stores (rows of
// all programs) and seconds (infinite: failed) float32. The answer to predict is {"scores": N} and N times
// float32.
#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "learn/custom/custom_model.h"

namespace tensorsmith::learn {

inline constexpr std::string_view kCommandPrefix = "command:";
inline constexpr int kCommandProtocol = 1;

struct CommandModelOptions {
  double start_timeout_s = 120;  // for the first answer: large libraries take long to load
};
// Starts the program, with its arguments in the command, and asks what it reads. Errors: those of
// ModelProcess; kCorrupt for answers that are not as above.
Result<std::unique_ptr<CustomScorer>> make_command_model(std::string_view command,
                                                         const CustomSession& session,
                                                         const CommandModelOptions& options = {});

}  // namespace tensorsmith::learn
