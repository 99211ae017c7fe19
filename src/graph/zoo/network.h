// A network of the zoo as plain data, which the builder makes and the ONNX writer reads. Weights
// are only described; their contents are drawn when the model is written, so that inspecting a
// network costs nothing.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <variant>
#include <vector>

namespace tensorsmith::graph::zoo {

using Shape = std::vector<int64_t>;
using AttributeValue = std::variant<int64_t, float, Shape>;

struct Port {
  std::string name;
  Shape shape;
  bool tokens = false;  // int64 indices; otherwise f32
};

// An f32 initializer: explicit values, or uniform around mean with the given standard deviation.
struct Weight {
  std::string name;
  Shape shape;
  double mean = 0;
  double deviation = 0;
  std::vector<float> values;
  bool trainable = true;  // counts as a parameter, and not as a statistic, a table or a scalar of the
                          // architecture
};

// An i64 initializer: shapes and indices.
struct Integers {
  std::string name;
  Shape shape;
  std::vector<int64_t> values;
};

struct Operation {
  std::string op;
  std::string name;
  std::vector<std::string> inputs;
  std::vector<std::string> outputs;
  std::map<std::string, AttributeValue> attributes;
};

struct Network {
  std::string name;
  std::vector<Port> inputs;
  std::vector<Port> outputs;
  std::vector<Weight> weights;
  std::vector<Integers> integers;
  std::vector<Operation> operations;  // topological order

  int64_t parameters() const;
};

}  // namespace tensorsmith::graph::zoo
