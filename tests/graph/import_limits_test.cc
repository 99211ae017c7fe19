// Limits on the size, depth and time of an ONNX file, each with a file that would cause a failure
// without the limit.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <chrono>
#include <filesystem>
#include <fstream>

#include "graph/evaluate.h"
#include "graph/tasks.h"
#include "onnx_model_builder.h"

namespace tensorsmith::graph::import_limits_test {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using testing::ModelBuilder;
using ::testing::Not;

std::string error_of(const std::string& bytes) {
  const auto graph = import_onnx_bytes(bytes, {}, "test.onnx");
  if (graph.ok()) return "accepted";
  const std::string message = graph.error().message();
  EXPECT_LT(message.size(), 1200u);
  return message;
}
std::string error_of(const ModelBuilder& model) { return error_of(model.bytes()); }

// Import, passes, partition and memory plan of 30,000 nodes: each quadratic step would take
// minutes. The limit is ten times the duration with assertions enabled.
void expect_quick(const ModelBuilder& model) {
  const auto start = std::chrono::steady_clock::now();
  auto graph = model.import();
  ASSERT_TRUE(graph.ok()) << graph.error().message();
  ASSERT_TRUE(optimize(*graph).ok());
  const auto parts = partition(*graph);
  ASSERT_TRUE(parts.ok()) << parts.error().message();
  (void)plan_memory(*graph, *parts);
  EXPECT_LT(std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count(), 30);
}

constexpr int kLong = 30000;

// Each node reads the preceding one.
ModelBuilder chain(
    const std::function<void(ModelBuilder&, const std::string&, const std::string&, int)>& node,
    const std::vector<int64_t>& shape) {
  ModelBuilder model;
  model.input("x", shape).output("y");
  for (int i = 0; i < kLong; ++i) {
    node(model, i == 0 ? "x" : "t" + std::to_string(i - 1), i == kLong - 1 ? "y" : "t" + std::to_string(i),
         i);
  }
  return model;
}

TEST(ImportTime, ChainOfProducts) {
  expect_quick(chain([](auto& model, const auto& from, const auto& to,
                        int) { model.node("MatMul", {from, "w"}, {to}); },
                     {2, 2})
                   .initializer("w", {2, 2}, {1, 0, 0, 1}));
}

TEST(ImportTime, ChainOfTranspositions) {
  expect_quick(chain([](auto& model, const auto& from, const auto& to,
                        int) { model.node("Transpose", {from}, {to}).ints("perm", {1, 0}); },
                     {2, 3}));
}

TEST(ImportTime, ChainOfReshapes) {
  expect_quick(chain([](auto& model, const auto& from, const auto& to,
                        int i) { model.node("Reshape", {from, i % 2 == 0 ? "a" : "b"}, {to}); },
                     {4})
                   .integers("a", {2, 2})
                   .integers("b", {4}));
}

TEST(ImportTime, ChainOfIdentities) {
  expect_quick(chain(
      [](auto& model, const auto& from, const auto& to, int) { model.node("Identity", {from}, {to}); }, {4}));
}

// A second chain reads every node of the first one again, so the first node that all paths pass is
// far away.
TEST(ImportTime, LongSkipConnections) {
  ModelBuilder model;
  model.input("x", {4}).output("u" + std::to_string(kLong / 2 - 1));
  for (int i = 0; i < kLong / 2; ++i)
    model.node("Relu", {i == 0 ? "x" : "t" + std::to_string(i - 1)}, {"t" + std::to_string(i)});
  for (int i = 0; i < kLong / 2; ++i)
    model.node("Add", {i == 0 ? "t0" : "u" + std::to_string(i - 1), "t" + std::to_string(i)},
               {"u" + std::to_string(i)});
  expect_quick(model);
}

TEST(ImportTime, ManyOutputs) {
  ModelBuilder model;
  model.input("x", {4});
  for (int i = 0; i < kLong; ++i)
    model.node("Relu", {"x"}, {"y" + std::to_string(i)}).output("y" + std::to_string(i));
  expect_quick(model);
}

onnx::FunctionProto& add_function(ModelBuilder& model, const std::string& name, const std::string& output) {
  onnx::FunctionProto& function = *model.proto().add_functions();
  function.set_domain("f");
  function.set_name(name);
  function.add_input("a");
  function.add_output(output);
  auto* opset = function.add_opset_import();
  opset->set_domain("");
  opset->set_version(17);
  return function;
}
void add_call(onnx::FunctionProto& function, const std::string& op, const std::string& from,
              const std::string& to) {
  onnx::NodeProto& node = *function.add_node();
  node.set_domain("f");
  node.set_op_type(op);
  node.add_input(from);
  node.add_output(to);
}
ModelBuilder& call(ModelBuilder& model, const std::string& op) {
  model.input("x", {4}).output("y").node(op, {"x"}, {"y"});
  model.proto().mutable_graph()->mutable_node(0)->set_domain("f");
  return model;
}

// Twelve levels of functions with ten calls each; the last one is empty, so no node is ever added.
TEST(ImportTime, FunctionsThatGrow) {
  ModelBuilder model;
  for (int level = 0; level < 12; ++level) {
    onnx::FunctionProto& function = add_function(model, "f" + std::to_string(level), "t9");
    for (int i = 0; i < 10; ++i)
      add_call(function, "f" + std::to_string(level + 1), i == 0 ? "a" : "t" + std::to_string(i - 1),
               "t" + std::to_string(i));
  }
  add_function(model, "f12", "a");
  EXPECT_THAT(error_of(call(model, "f0")),
              HasSubstr("the model has too many nodes, with those of its functions"));
}

TEST(ImportTime, ManyFunctions) {
  ModelBuilder model;
  model.input("x", {4}).output("y" + std::to_string(kLong - 1));
  for (int i = 0; i < kLong / 4; ++i) add_function(model, "f" + std::to_string(i), "a");
  for (int i = 0; i < kLong; ++i) {
    model.node("f" + std::to_string(i % (kLong / 4)), {"x"}, {"y" + std::to_string(i)});
    model.proto().mutable_graph()->mutable_node(i)->set_domain("f");
  }
  expect_quick(model);
}

TEST(ImportLimits, FunctionsThatCallThemselves) {
  ModelBuilder model;
  add_call(add_function(model, "f", "b"), "f", "a", "b");
  EXPECT_THAT(error_of(call(model, "f")), HasSubstr("nested too deeply"));
  add_function(model, "f", "a");
  EXPECT_THAT(error_of(model), HasSubstr("the function 'f.f' is defined twice"));
}

// A tensor that each node of a function would copy.
TEST(ImportLimits, CopiesOfAttributesAreCounted) {
  ModelBuilder model;
  onnx::FunctionProto& function = add_function(model, "f", "t99");
  for (int i = 0; i < 100; ++i) {
    onnx::NodeProto& node = *function.add_node();
    node.set_op_type("Constant");
    node.add_output("t" + std::to_string(i));
    onnx::AttributeProto& attribute = *node.add_attribute();
    attribute.set_name("value");
    attribute.set_type(onnx::AttributeProto::TENSOR);
    attribute.set_ref_attr_name("big");
  }
  call(model, "f");
  onnx::AttributeProto& big = *model.proto().mutable_graph()->mutable_node(0)->add_attribute();
  big.set_name("big");
  big.set_type(onnx::AttributeProto::TENSOR);
  big.mutable_t()->set_data_type(1);
  big.mutable_t()->add_dims(1 << 20);
  big.mutable_t()->set_raw_data(std::string(size_t{4} << 20, '\0'));
  ImportOptions options;
  options.max_constant_bytes = int64_t{64} << 20;
  const auto graph = model.import(options);
  ASSERT_FALSE(graph.ok());
  EXPECT_EQ(graph.error().code, ErrorCode::kResourceExhausted);
  options.max_constant_bytes = int64_t{1} << 30;
  EXPECT_TRUE(model.import(options).ok());
}

std::string varint(size_t n) {
  std::string out;
  for (; n > 127; n >>= 7) out += static_cast<char>((n & 127) | 128);
  return out + static_cast<char>(n);
}
std::string field(char tag, const std::string& bytes) { return tag + varint(bytes.size()) + bytes; }

// Two bytes per node in the file, hundreds in memory.
TEST(ImportLimits, EmptyMessages) {
  std::string nodes;
  for (int i = 0; i < 20'000'000; ++i) nodes += std::string("\x0a\0", 2);
  EXPECT_THAT(error_of(field('\x3a', nodes)), HasSubstr("has too many parts"));
}

TEST(ImportLimits, NestedMessages) {
  std::string graph;
  for (int i = 0; i < 2000; ++i) graph = field('\x0a', field('\x2a', field('\x32', graph)));
  EXPECT_THAT(error_of(field('\x3a', graph)), HasSubstr("is not an ONNX model"));
  std::string type;
  for (int i = 0; i < 5000; ++i) type = field('\x22', field('\x0a', type));
  EXPECT_THAT(error_of(field('\x3a', field('\x5a', field('\x12', type)))), HasSubstr("is not an ONNX model"));
}

TEST(ImportLimits, TensorsThatAreNotThere) {
  for (const std::vector<int64_t>& shape : {std::vector<int64_t>{int64_t{1} << 32},
                                            {int64_t{1} << 62, int64_t{1} << 62},
                                            {-1},
                                            {0, INT64_MAX, 3},
                                            std::vector<int64_t>(100, 1),
                                            std::vector<int64_t>(1 << 20, 1)}) {
    ModelBuilder model;
    model.input("x", {4}).output("y").node("Add", {"x", "w"}, {"y"}).initializer("w", shape, {});
    EXPECT_THAT(error_of(model), HasSubstr("tensor 'w': ")) << shape.size();
  }
}

TEST(ImportLimits, NodesOfManyInputs) {
  ModelBuilder model;
  model.input("x", {4}).output("y").node("Sum", std::vector<std::string>(4097, "x"), {"y"});
  EXPECT_THAT(error_of(model), HasSubstr("has more than 4096 inputs or outputs"));
}

TEST(ImportLimits, SequencesOfManyTensors) {
  for (const bool whole : {false, true}) {
    const auto model = [&](int64_t extent) {
      ModelBuilder out;
      out.input("x", {1, extent}).output("y");
      const std::vector<std::string> inputs =
          whole ? std::vector<std::string>{"x", "each"} : std::vector<std::string>{"x"};
      const int64_t two = 2;
      out.raw("each", {}, 7, std::string(reinterpret_cast<const char*>(&two), sizeof two));
      out.node("SplitToSequence", inputs, {"s"}).integer("axis", 1);
      out.node("SequenceLength", {"s"}, {"y"});
      return out;
    };
    const int64_t most = (whole ? 2 : 1) * (int64_t{1} << 14);
    EXPECT_EQ(error_of(model(most)), "accepted");
    EXPECT_THAT(error_of(model(most + 1)), HasSubstr("would make more than 16384 tensors"));
    EXPECT_THAT(error_of(model(int64_t{1} << 40)), Not(HasSubstr("accepted")));
  }
}

TEST(ImportLimits, LongNamesAreCut) {
  const std::string name(1 << 20, 'n');
  ModelBuilder model;
  model.input("x", {4}).output("y").node("Relu", {name}, {"y"});
  EXPECT_THAT(error_of(model), HasSubstr("nnn..."));
  ModelBuilder unknown;
  unknown.input("x", {4}).output("y").node(name, {"x"}, {"y"});
  EXPECT_THAT(error_of(unknown), HasSubstr("unsupported operators: nnn"));
  ModelBuilder equation;
  equation.input("x", {4}).output("y").node("Einsum", {"x"}, {"y"}).text("equation", name + "->n");
  EXPECT_THAT(error_of(equation), HasSubstr("..."));
}

TEST(ImportLimits, VersionsThatAreNotKnown) {
  const auto relu = [](int opset) {
    ModelBuilder model(opset);
    model.input("x", {4}).output("y").node("Relu", {"x"}, {"y"});
    return model;
  };
  ModelBuilder model = relu(17);
  model.proto().set_ir_version(14);
  EXPECT_EQ(error_of(model), "accepted");
  model.proto().set_ir_version(15);
  EXPECT_THAT(error_of(model),
              HasSubstr("version 15 of ONNX's file format (IR), but the newest supported version is 14"));
  // Formerly, the last one was used.
  model = relu(25);
  auto* again = model.proto().add_opset_import();
  again->set_domain("ai.onnx");
  again->set_version(17);
  EXPECT_THAT(error_of(model), HasSubstr("names two different versions of the ONNX opset"));
}

// Attributes of functions have defaults since version 9 of the format; ignoring them would compute
// something else.
TEST(ImportLimits, DefaultAttributesOfFunctions) {
  ModelBuilder model;
  onnx::FunctionProto& function = add_function(model, "f", "b");
  onnx::NodeProto& node = *function.add_node();
  node.set_op_type("LeakyRelu");
  node.add_input("a");
  node.add_output("b");
  onnx::AttributeProto& reference = *node.add_attribute();
  reference.set_name("alpha");
  reference.set_type(onnx::AttributeProto::FLOAT);
  reference.set_ref_attr_name("alpha");
  onnx::AttributeProto alpha;
  alpha.set_name("alpha");
  alpha.set_type(onnx::AttributeProto::FLOAT);
  alpha.set_f(0.5F);
  function.mutable_unknown_fields()->AddLengthDelimited(11, alpha.SerializePartialAsString());
  const auto at_minus_2 = [&] {
    const auto graph = model.import();
    EXPECT_TRUE(graph.ok());
    lower::Tensor x = lower::Tensor::zeros(ir::DType::kF32, {4});
    x.set(0, ir::scalar_float(ir::DType::kF32, -2));
    return (*evaluate(*graph, std::vector{x}))[0].at(0).f;
  };
  call(model, "f");
  EXPECT_EQ(at_minus_2(), -1.0);
  onnx::AttributeProto given = alpha;
  given.set_f(0.25F);
  *model.proto().mutable_graph()->mutable_node(0)->add_attribute() = given;
  EXPECT_EQ(at_minus_2(), -0.5);
  function.mutable_unknown_fields()->AddLengthDelimited(13, "again");
  EXPECT_THAT(error_of(model), HasSubstr("has overloads"));
}

class ExternalData : public ::testing::Test {
 protected:
  ExternalData() {
    std::string pattern = (fs::temp_directory_path() / "tensorsmith_external_XXXXXX").string();
    root_ = mkdtemp(pattern.data());
    fs::create_directories(root_ / "models");
    write("secret", std::string(12, '\1'));
  }
  ~ExternalData() override { fs::remove_all(root_); }
  void write(const std::string& name, const std::string& bytes) const {
    std::ofstream(root_ / name, std::ios::binary) << bytes;
  }
  void write_model(const std::string& name, const std::string& location) const {
    ModelBuilder model;
    model.input("x", {3}).output("y").initializer("w", {3}, {}).node("Add", {"x", "w"}, {"y"});
    auto* tensor = model.proto().mutable_graph()->mutable_initializer(0);
    tensor->set_data_location(onnx::TensorProto::EXTERNAL);
    auto* entry = tensor->add_external_data();
    entry->set_key("location");
    entry->set_value(location);
    write(name, model.bytes());
  }
  std::string load(const std::string& name) const {
    const auto graph = import_onnx((root_ / name).string(), {});
    return graph.ok() ? "accepted" : graph.error().message();
  }
  fs::path root_;
};

TEST_F(ExternalData, SymlinksDoNotLeadOut) {
  write_model("models/m.onnx", "data");
  fs::create_symlink("../secret", root_ / "models/data");
  EXPECT_THAT(load("models/m.onnx"), HasSubstr("external data of tensor 'w': is a file outside"));
  fs::remove(root_ / "models/data");
  fs::create_directory_symlink(root_, root_ / "models/folder");
  write_model("models/m.onnx", "folder/secret");
  EXPECT_THAT(load("models/m.onnx"), HasSubstr("outside the folder"));
  write("models/inside", std::string(12, '\1'));
  fs::create_symlink("inside", root_ / "models/data");
  write_model("models/m.onnx", "data");
  EXPECT_EQ(load("models/m.onnx"), "accepted");
}

// The model and its data are symlinks to files in a common folder elsewhere.
TEST_F(ExternalData, CachesOfBlobs) {
  fs::create_directory(root_ / "blobs");
  write_model("blobs/1111", "model.onnx_data");
  write("blobs/2222", std::string(12, '\1'));
  fs::create_symlink("../blobs/1111", root_ / "models/model.onnx");
  fs::create_symlink("../blobs/2222", root_ / "models/model.onnx_data");
  EXPECT_EQ(load("models/model.onnx"), "accepted");
  fs::remove(root_ / "models/model.onnx_data");
  fs::create_symlink("../secret", root_ / "models/model.onnx_data");
  EXPECT_THAT(load("models/model.onnx"), HasSubstr("outside the folder"));
}

TEST_F(ExternalData, WhatIsNoFile) {
  write_model("models/m.onnx", "data");
  ASSERT_EQ(mkfifo((root_ / "models/data").c_str(), 0600), 0);
  EXPECT_THAT(load("models/m.onnx"), HasSubstr("is a FIFO or pipe"));
  ASSERT_EQ(mkfifo((root_ / "models/fifo.onnx").c_str(), 0600), 0);
  EXPECT_THAT(load("models/fifo.onnx"), HasSubstr("is a FIFO or pipe"));
  EXPECT_THAT(read_tensor_proto((root_ / "models/fifo.onnx").string()).error().message(),
              HasSubstr("is a FIFO"));
  EXPECT_THAT(read_tensor_proto("/dev/zero").error().message(), HasSubstr("is a device"));
  fs::remove(root_ / "models/data");
  fs::create_symlink("/dev/zero", root_ / "models/data");
  EXPECT_THAT(load("models/m.onnx"), HasSubstr("is a device"));
  // A sparse file of a terabyte is not a model.
  write("models/large.onnx", "");
  fs::resize_file(root_ / "models/large.onnx", uintmax_t{1} << 40);
  EXPECT_THAT(load("models/large.onnx"), HasSubstr("is longer than"));
}

}  // namespace
}  // namespace tensorsmith::graph::import_limits_test
