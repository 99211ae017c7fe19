// What a command must not destroy: its own inputs, and what somebody else put at the place of an output.
// Every option that names an output goes through check_outputs() before the work begins.
#pragma once

#include <string>
#include <vector>

#include "base/result.h"

namespace tensorsmith::tools {

// What is written, by which an earlier output of the same kind is known.
enum class OutputKind {
  kModelDirectory,  // a compiled model
  kStore,           // of measured programs
  kDatabase,        // of records: opened and added to, never replaced
  kRecordLines,     // `db export`
  kStoreLines,      // `dataset export`
  kFeatureLines,    // `dataset features`
  kAnsorLines,      // `lm generate --records`, `db export --format tvm`
  kWorkloads,       // `db export --workloads`
  kSplit,
  kLatencyModel,
  kCorpus,         // `lm corpus`
  kLanguageModel,  // `lm pretrain`
  kCheckpoint,     // of a training: read before it is replaced, by who knows it
  kTrialLog,       // the same of a search for hyper-parameters
  kPredictions,    // `eval --predictions`
  kPlot,           // `eval --plot`, `compare --plot`, ...
  kTrace,          // `bench --trace`
  kOnnxModel,      // `zoo export`
  kTensor,         // `run --output`: output_I.npy or output_I.pb
  kReport,         // `report`, `tune --report`
};

// option: "--store", or an argument's name as in the help.
struct InputPath {
  std::string option;
  std::string path;
};
struct OutputPath {
  std::string option;
  std::string path;
  OutputKind kind;
};

// Refuses (kInvalidArgument unless said otherwise; the place is the output's path)
// - an output that is one of the inputs or another output, by whatever name (links, hard links, "./"), or a
//   file that belongs to one (a database's journal); an output inside of a folder that is an input; an input
//   inside of a folder that is replaced;
// - an existing file that is no earlier output of the same kind, unless it is empty or `force` is set; a
//   model's directory where runtime::check_replaceable() says so, whatever `force` is;
// - what cannot be written: a folder or device where a file is to be, a folder that is missing (kNotFound) or
//   that may not be written (kIo).
// Inputs may be missing and paths of inputs empty.
Status check_outputs(const std::vector<OutputPath>& outputs, const std::vector<InputPath>& inputs,
                     bool force = false);

// The first of these alone: an output that is one of the inputs or stands in the way of one.
Status check_apart(const OutputPath& output, const std::vector<InputPath>& inputs);

// The folder for what is made of a model when nobody names one: beside its file, "a/model.onnx" -> "a/model_tuned" for
// the suffix "_tuned"; for a network of the zoo in the current folder, "zoo:resnet18:batch=4" ->
// "resnet18-batch=4_tuned".
std::string folder_beside(const std::string& model, const std::string& suffix);

// The file that a device is read from ("board.json:threads=2"), empty for one that is known by its name.
std::string device_file(const std::string& device);

// For results without a single record: an existing output that is not empty stays, unless `force` is set.
Status check_not_emptied(const OutputPath& output, bool force);

}  // namespace tensorsmith::tools
