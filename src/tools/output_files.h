// Protects files that a command must not destroy: its own inputs, and files of other origin at the
// path of an output. Every option that names an output is checked by check_outputs() before the
// work begins.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace tensorsmith::tools {

// Kind of an output, by which an earlier output of the same kind is recognized.
enum class OutputKind {
  kModelDirectory,  // a compiled model
  kStore,           // store of measured programs
  kDatabase,        // database of records: opened and extended, never replaced
  kRecordLines,     // `db export`
  kStoreLines,      // `dataset export`
  kFeatureLines,    // `dataset features`
  kAnsorLines,      // `lm generate --records`, `db export --format tvm`
  kTvmRecords,      // `db export --format metaschedule`
  kTvmModules,      // its --workloads
  kProgramLines,    // `lm generate -o`
  kWorkloads,       // `db export --workloads`
  kSplit,
  kLatencyModel,
  kCorpus,         // `lm corpus`
  kLanguageModel,  // `lm pretrain`
  kCheckpoint,     // checkpoint of a training: its reader checks it before it is replaced
  kTrialLog,       // trial log of a hyper-parameter search, checked in the same way
  kPredictions,    // `eval --predictions`
  kPlot,           // `eval --plot`, `compare --plot`, ...
  kTrace,          // `bench --trace`
  kOnnxModel,      // `zoo export`
  kTensor,         // `run --output`: output_I.npy or output_I.pb
  kReport,         // `report`, `tune --report`
};

// option: "--store", or the name of a positional argument in the help.
struct InputPath {
  std::string option;
  std::string path;
};
struct OutputPath {
  std::string option;
  std::string path;
  OutputKind kind;
  bool makes_parent = false;  // a missing parent is created with the compiled model
};

// Rejects the following (kInvalidArgument unless stated otherwise; the place is the output's path):
// - an output that is one of the inputs or another output under any name (links, hard links, "./"),
//   or a file that belongs to one (a database's journal); an output inside a directory that is an
//   input; an input inside a directory that is replaced;
// - an existing file that is not an earlier output of the same kind, unless it is empty or `force`
//   is set; a model directory that runtime::check_replaceable() rejects, whatever `force` is;
// - a path that cannot be written: a directory or device in place of a file, a directory that is
//   missing (kNotFound) or not writable (kIo).
// Inputs may be missing, and their paths may be empty.
Status check_outputs(const std::vector<OutputPath>& outputs, const std::vector<InputPath>& inputs,
                     bool force = false);

// Performs only the first of these checks for one output.
Status check_apart(const OutputPath& output, const std::vector<InputPath>& inputs);

// Checks for one output that its parent exists (kNotFound) and can be written (kIo).
Status check_parent(const OutputPath& output);

// Returns the default output directory for a model: beside its file, "a/model.onnx" ->
// "a/model_tuned" for the suffix "_tuned"; for a network of the zoo in the current directory,
// "zoo:resnet18:batch=4" -> "resnet18-batch=4_tuned".
std::string folder_beside(const std::string& model, const std::string& suffix);

// Returns the file that a device is read from ("board.json:threads=2"); empty for a device known by
// name.
std::string device_file(const std::string& device);

// For results without any record: rejects an existing output that is not empty, unless `force` is
// set.
Status check_not_emptied(const OutputPath& output, bool force);

}  // namespace tensorsmith::tools
