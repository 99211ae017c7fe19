// Test cases in ONNX's layout: FOLDER/model.onnx with FOLDER/test_data_set_N/{input,output}_I.pb.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "graph/evaluate.h"

namespace tensorsmith::graph::testing {

struct DataSet {
  std::vector<lower::Tensor> inputs;
  std::vector<lower::Tensor> outputs;
  std::vector<std::string> names;   // of the inputs; NAME[i] for the tensors of a sequence
  std::vector<std::string> absent;  // inputs that are empty optionals or sequences
};

// Reads input_0.pb, input_1.pb, ... and output_0.pb, ..., with the model's types.
Result<DataSet> read_data_set(const std::filesystem::path& folder, const std::filesystem::path& model);

// Returns an empty string if each element of `got` is within atol + rtol * |expected| (floats; NaN
// equals NaN) or equal (others); else a description of the first difference.
std::string difference(const lower::Tensor& got, const lower::Tensor& expected, double rtol, double atol);

// Returns the names of the graph inputs in the file's order, in which the data set numbers them.
std::vector<std::string> input_names(const Graph& graph);

}  // namespace tensorsmith::graph::testing
