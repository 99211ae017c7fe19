// Models that the importer accepts, and its errors for others.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "graph/evaluate.h"
#include "graph/onnx/declared.h"
#include "onnx_model_builder.h"

namespace tensorsmith::graph::onnx_import_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::ModelBuilder;

void expect_error(const Result<Graph>& graph, ErrorCode code,
                  const ::testing::Matcher<std::string>& message) {
  ASSERT_FALSE(graph.ok());
  EXPECT_EQ(graph.error().code, code) << graph.error().message();
  EXPECT_THAT(graph.error().message(), message);
  EXPECT_EQ(graph.error().message().find('\n'), std::string::npos);
}

class TemporaryFolder {
 public:
  TemporaryFolder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "tensorsmith_import_XXXXXX").string();
    path_ = mkdtemp(pattern.data());
  }
  ~TemporaryFolder() { std::filesystem::remove_all(path_); }
  std::filesystem::path operator/(const std::string& name) const { return path_ / name; }

 private:
  std::filesystem::path path_;
};

void write(const std::filesystem::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

ModelBuilder relu() {
  ModelBuilder model;
  model.input("x", {2, 3}).output("y").node("Relu", {"x"}, {"y"});
  return model;
}

TEST(Import, ReadsAFile) {
  const TemporaryFolder folder;
  write(folder / "model.onnx", relu().bytes());
  const auto graph = import_onnx((folder / "model.onnx").string(), {});
  ASSERT_TRUE(graph.ok()) << graph.error().message();
  EXPECT_EQ(graph->nodes.size(), 1u);
  EXPECT_EQ(graph->values[graph->outputs[0]].shape, (std::vector<int64_t>{2, 3}));
}

TEST(Import, TellsWhatAFileDeclares) {
  const TemporaryFolder folder;
  ModelBuilder model;
  model.input("x", {2, 3}).input("tokens", {-1, 7, -2}, onnx::TensorProto::INT64, "batch").input("bias", {3});
  model.initializer("bias", {3}, {1, 2, 3}).output("y").node("Add", {"x", "bias"}, {"y"});
  write(folder / "model.onnx", model.bytes());
  const auto declared = onnx_declared((folder / "model.onnx").string());
  ASSERT_TRUE(declared.ok()) << declared.error().message();
  ASSERT_EQ(declared->inputs.size(), 2u);
  EXPECT_EQ(declared->inputs[0].name, "x");
  EXPECT_EQ(declared->inputs[0].dtype, ir::DType::kF32);
  EXPECT_EQ((*declared->inputs[0].shape)[1].length, 3);
  const DeclaredTensor& tokens = declared->inputs[1];
  EXPECT_EQ(tokens.dtype, ir::DType::kI64);
  EXPECT_EQ((*tokens.shape)[0].length, -1);
  EXPECT_EQ((*tokens.shape)[0].name, "batch");
  EXPECT_EQ((*tokens.shape)[1].length, 7);
  EXPECT_EQ((*tokens.shape)[2].length, -1);
  ASSERT_EQ(declared->outputs.size(), 1u);
  EXPECT_EQ(declared->outputs[0].name, "y");
  const auto missing = onnx_declared("/nowhere/model.onnx");
  ASSERT_FALSE(missing.ok());
  EXPECT_EQ(missing.error().code, ErrorCode::kNotFound);
}

TEST(Import, MissingFile) {
  expect_error(import_onnx("/nowhere/model.onnx", {}), ErrorCode::kNotFound,
               HasSubstr("/nowhere/model.onnx"));
}

TEST(Import, Folder) {
  expect_error(import_onnx("/tmp", {}), ErrorCode::kInvalidArgument, HasSubstr("/tmp: is a folder"));
}

TEST(Import, EveryTruncationIsAnError) {
  const std::string bytes = relu().bytes();
  for (size_t n = 0; n < bytes.size(); ++n) {
    const auto graph = import_onnx_bytes(std::string_view(bytes).substr(0, n), {}, "cut.onnx");
    if (graph.ok()) continue;  // the cut was behind the graph
    EXPECT_THAT(graph.error().message(), HasSubstr("cut.onnx")) << n;
  }
  expect_error(import_onnx_bytes(std::string_view(bytes).substr(0, bytes.size() / 2), {}, "cut.onnx"),
               ErrorCode::kCorrupt, HasSubstr("is not an ONNX model"));
}

TEST(Import, TextIsNoModel) {
  expect_error(import_onnx_bytes("this is not a model", {}, "text.onnx"), ErrorCode::kCorrupt,
               HasSubstr("text.onnx: is not an ONNX model"));
  expect_error(import_onnx_bytes("", {}, "empty.onnx"), ErrorCode::kCorrupt, HasSubstr("has no graph"));
}

TEST(Import, AllUnsupportedOperatorsInOneLine) {
  ModelBuilder model;
  model.input("x", {2}).output("z");
  model.node("Frobnicate", {"x"}, {"a"}).node("Relu", {"a"}, {"b"}).node("Twirl", {"b"}, {"c"});
  model.node("Frobnicate", {"c"}, {"z"});
  expect_error(model.import(), ErrorCode::kUnsupported,
               AllOf(HasSubstr("unsupported operators: Frobnicate (node 'a' and 1 more), Twirl (node 'c')"),
                     HasSubstr("test.onnx")));
}

TEST(Import, ForeignDomain) {
  ModelBuilder model = relu();
  model.proto().mutable_graph()->mutable_node(0)->set_domain("com.example");
  expect_error(model.import(), ErrorCode::kUnsupported, HasSubstr("com.example.Relu"));
}

TEST(Import, OpenInputsAreNamedAllAtOnce) {
  ModelBuilder model;
  model.input("image", {1, 3, -1, -2}, 1, "height").input("rows", {-1, 4}, 1, "batch").input("z", {4});
  model.output("y").output("z2").node("Relu", {"image"}, {"y"}).node("Add", {"rows", "z"}, {"z2"});
  ImportOptions options;
  const std::string open =
      "the model leaves the shapes of inputs open: 'image' [1, 3, height, ?], 'rows' [batch, 4]";
  expect_error(model.import(options), ErrorCode::kInvalidArgument, HasSubstr(open));
  // The caller's advice follows the error, made from the same inputs as data.
  std::vector<OpenInput> told;
  options.shape_advice = [&](std::span<const OpenInput> inputs) {
    told.assign(inputs.begin(), inputs.end());
    return std::string("say so");
  };
  expect_error(model.import(options), ErrorCode::kInvalidArgument, HasSubstr(open + "; say so"));
  ASSERT_EQ(told.size(), 2);
  EXPECT_EQ(told[0].name, "image");
  ASSERT_EQ(told[0].shape->size(), 4);
  EXPECT_EQ((*told[0].shape)[1].length, 3);
  EXPECT_EQ((*told[0].shape)[2].length, -1);
  EXPECT_EQ((*told[0].shape)[2].name, "height");
  EXPECT_EQ(told[1].name, "rows");
  options.shapes["image"] = {1, 3, 8, 9};
  expect_error(model.import(options), ErrorCode::kInvalidArgument,
               HasSubstr("the model leaves the shape of an input open: 'rows' [batch, 4]; say so"));
}

TEST(Import, UnknownDimensionIsGivenByShape) {
  ModelBuilder model;
  model.input("image", {1, 3, -1, -2}, 1, "height").output("y").node("Relu", {"image"}, {"y"});
  ImportOptions options;
  options.shapes["image"] = {1, 3, 8, 9};
  const auto graph = model.import(options);
  ASSERT_TRUE(graph.ok()) << graph.error().message();
  EXPECT_EQ(graph->values[graph->outputs[0]].shape, (std::vector<int64_t>{1, 3, 8, 9}));
}

TEST(Import, ANamedDimensionIsGivenOnce) {
  ModelBuilder model;
  model.input("a", {-1, 4}).input("b", {-1, 4}).output("y").node("Add", {"a", "b"}, {"y"});
  ImportOptions options;
  options.shapes["a"] = {5, 4};
  const auto graph = model.import(options);
  ASSERT_TRUE(graph.ok()) << graph.error().message();
  EXPECT_EQ(graph->values[graph->inputs[1]].shape, (std::vector<int64_t>{5, 4}));
}

TEST(Import, DimensionsAreGivenByName) {
  ModelBuilder model;
  model.input("a", {-1, 4}, 1, "batch")
      .input("b", {-1, -1}, 1, "batch")
      .output("y")
      .node("Add", {"a", "b"}, {"y"});
  auto* dims = model.proto().mutable_graph()->mutable_input(1)->mutable_type()->mutable_tensor_type();
  dims->mutable_shape()->mutable_dim(1)->set_dim_param("width");
  ImportOptions options;
  options.dims = {{"batch", 5}, {"width", 4}};
  const auto graph = model.import(options);
  ASSERT_TRUE(graph.ok()) << graph.error().message();
  for (const ValueId input : graph->inputs)
    EXPECT_EQ(graph->values[input].shape, (std::vector<int64_t>{5, 4}));
  options.dims = {{"batch", 5}};
  expect_error(model.import(options), ErrorCode::kInvalidArgument, HasSubstr("open: 'b' [5, width]"));
  options.dims = {{"bacth", 5}};
  expect_error(
      model.import(options), ErrorCode::kInvalidArgument,
      AllOf(HasSubstr("'bacth'"), HasSubstr("did you mean 'batch'?"), HasSubstr("'batch', 'width'")));
  options.dims = {{"batch", 0}};
  expect_error(model.import(options), ErrorCode::kInvalidArgument, HasSubstr("at least 1"));
  options.dims = {{"batch", 5}, {"width", 4}};
  options.shapes["a"] = {6, 4};
  expect_error(model.import(options), ErrorCode::kInvalidArgument, HasSubstr("given as 5 elsewhere"));
  options = {};
  options.dims = {{"batch", 1}};
  expect_error(relu().import(options), ErrorCode::kInvalidArgument,
               HasSubstr("no input of the model has a symbolic"));
}

TEST(Import, MistypedInputsAreSuggested) {
  ModelBuilder model;
  model.input("image", {1, 3, -1, -1}).input("mask", {-1, 4}).output("y").output("z");
  model.node("Relu", {"image"}, {"y"}).node("Relu", {"mask"}, {"z"});
  ImportOptions options;
  options.shapes["imgae"] = {1, 3, 8, 8};
  expect_error(model.import(options), ErrorCode::kInvalidArgument,
               AllOf(HasSubstr("a shape is given for 'imgae', but the model has no input of this name"),
                     HasSubstr("did you mean 'image'?"), HasSubstr("its inputs are 'image', 'mask'")));
}

TEST(Import, WrongShapeOptions) {
  ImportOptions options;
  options.shapes["x"] = {2, 3, 4};
  expect_error(relu().import(options), ErrorCode::kInvalidArgument,
               HasSubstr("has 3 dimensions, the model's 2"));
  options.shapes = {{"w", {1}}};
  expect_error(
      relu().import(options), ErrorCode::kInvalidArgument,
      AllOf(HasSubstr("'w', but the model has no input of this name"), HasSubstr("its inputs are 'x'")));
  ModelBuilder open;
  open.input("x", {-2, -2}).output("y").node("Relu", {"x"}, {"y"});
  options.shapes = {{"x", {int64_t{1} << 40, int64_t{1} << 40}}};
  expect_error(open.import(options), ErrorCode::kInvalidArgument, HasSubstr("unreasonable shape"));
  options.shapes = {{"x", {-1, 3}}};
  expect_error(open.import(options), ErrorCode::kInvalidArgument, HasSubstr("unreasonable shape"));
}

Result<Graph> import_with(const ModelBuilder& model, const std::vector<int64_t>& shape) {
  ImportOptions options;
  options.shapes["x"] = shape;
  return model.import(options);
}

void declare(onnx::ValueInfoProto& info, const std::vector<int64_t>& shape) {
  auto* type = info.mutable_type()->mutable_tensor_type();
  type->set_elem_type(1);
  for (const int64_t extent : shape) type->mutable_shape()->add_dim()->set_dim_value(extent);
}

TEST(Import, AGivenShapeTakesThePlaceOfAFixedOne) {
  ModelBuilder model;
  model.input("x", {1, 3}).output("y").node("Exp", {"x"}, {"h"}).node("Flatten", {"h"}, {"y"});
  // The file's declarations of other values have the declared shape, too.
  declare(*model.proto().mutable_graph()->mutable_output(0), {1, 3});
  onnx::ValueInfoProto& inner = *model.proto().mutable_graph()->add_value_info();
  inner.set_name("h");
  declare(inner, {1, 3});
  const auto graph = import_with(model, {4, 5});
  ASSERT_TRUE(graph.ok()) << graph.error().message();
  for (const Value& value : graph->values) EXPECT_EQ(value.shape, (std::vector<int64_t>{4, 5})) << value.name;
  EXPECT_THAT(graph->notes, ::testing::ElementsAre("input 'x' is 4x5 here, 1x3 in the model"));
  EXPECT_THAT(import_with(model, {1, 3})->notes, ::testing::IsEmpty());
}

// x of shape [1,2,3], reshaped by a constant.
ModelBuilder reshaped(const std::vector<int64_t>& shape) {
  ModelBuilder model;
  return model.input("x", {1, 2, 3}).output("y").integers("s", shape).node("Reshape", {"x", "s"}, {"y"});
}

constexpr const char* kExported =
    "; the model was exported for 'x' of 1x2x3, and this node depends on that; export it for the shape that "
    "you "
    "need, or with symbolic dimensions";

TEST(Import, ABatchThatIsWrittenIntoTheModelIsNamed) {
  for (const auto& [shape, text] :
       {std::pair(std::vector<int64_t>{1, 6}, "[1,6]"), std::pair(std::vector<int64_t>{1, -1}, "[1,-1]"),
        std::pair(std::vector<int64_t>{1, -1, 3}, "[1,-1,3]")}) {
    EXPECT_TRUE(import_with(reshaped(shape), {1, 2, 3}).ok());
    expect_error(import_with(reshaped(shape), {4, 2, 3}), ErrorCode::kInvalidArgument,
                 ::testing::EndsWith(std::string(": Reshape_0: Reshape: its constant shape ") + text +
                                     " is for a batch of 1, and its input is f32[4,2,3]" + kExported));
  }
  ModelBuilder flat;
  flat.input("x", {1, 2, 3}).output("y").node("Flatten", {"x"}, {"y"}).integer("axis", 0);
  expect_error(import_with(flat, {4, 2, 3}), ErrorCode::kInvalidArgument,
               AllOf(HasSubstr("Flatten: with axis 0 it puts the whole input into one row, which is right "
                               "only for a batch of 1"),
                     ::testing::EndsWith(kExported)));
}

TEST(Import, ShapesThatFollowTheBatch) {
  for (const std::vector<int64_t>& shape :
       std::vector<std::vector<int64_t>>{{-1, 6}, {0, -1}, {0, 3, 2}, {-1, 2}}) {
    const auto graph = import_with(reshaped(shape), {4, 2, 3});
    EXPECT_TRUE(graph.ok()) << graph.error().message();
  }
  // A single row on purpose: its length is computed from the input.
  ModelBuilder row;
  row.input("x", {1, 2, 3}).output("y").integers("one", {1}).node("Size", {"x"}, {"n"});
  row.node("Reshape", {"n", "one"}, {"length"}).node("Concat", {"one", "length"}, {"s"}).integer("axis", 0);
  row.node("Reshape", {"x", "s"}, {"y"});
  const auto graph = import_with(row, {4, 2, 3});
  ASSERT_TRUE(graph.ok()) << graph.error().message();
  EXPECT_EQ(graph->values[graph->outputs[0]].shape, (std::vector<int64_t>{1, 24}));
}

// Constants of the old shape cause errors; errors that occur with the declared shape, too, are not
// blamed on the given one.
TEST(Import, OtherNodesThatRelyOnTheShape) {
  ModelBuilder model;
  model.input("x", {1, 2, 3}).output("y").initializer("w", {1, 2, 3}, {1, 2, 3, 4, 5, 6});
  model.node("Concat", {"x", "w"}, {"y"}).integer("axis", 1);
  EXPECT_TRUE(import_with(model, {1, 7, 3}).ok());
  expect_error(import_with(model, {4, 2, 3}), ErrorCode::kInvalidArgument,
               AllOf(HasSubstr(": Concat_0: Concat: input 1 f32[1,2,3] does not fit"),
                     ::testing::EndsWith(kExported)));
  ModelBuilder broken;
  broken.input("x", {1, 2, 3}).output("y").initializer("w", {5}, {1, 2, 3, 4, 5});
  broken.node("Add", {"x", "w"}, {"y"});
  expect_error(import_with(broken, {4, 2, 3}), ErrorCode::kInvalidArgument,
               ::testing::Not(HasSubstr("exported")));
}

TEST(Import, NamedDimensionsThatContradict) {
  ImportOptions options;
  ModelBuilder named;
  named.input("a", {-1, 4}).input("b", {-1, 4}).output("y").node("Add", {"a", "b"}, {"y"});
  options.shapes = {{"a", {5, 4}}, {"b", {1, 4}}};
  expect_error(named.import(options), ErrorCode::kInvalidArgument,
               HasSubstr("input 'b' has 1 in dimension 0, which ('N') is given as 5 elsewhere"));
}

TEST(Import, UnsupportedDtypes) {
  ModelBuilder strings;
  strings.input("x", {2}, 8).output("y").node("Identity", {"x"}, {"y"});
  expect_error(strings.import(), ErrorCode::kUnsupported, HasSubstr("input 'x' has type string, which"));
  ModelBuilder mixed;
  mixed.input("a", {2}, 1).input("b", {2}, 7).output("y").node("Add", {"a", "b"}, {"y"});
  expect_error(mixed.import(), ErrorCode::kUnsupported, HasSubstr("Add: input 1 has dtype i64"));
}

TEST(Import, Opsets) {
  ModelBuilder none = relu();
  none.proto().clear_opset_import();
  expect_error(none.import(), ErrorCode::kCorrupt, HasSubstr("does not say which ONNX opset"));
  ModelBuilder old(5);
  old.input("a", {2}).input("b", {2}).output("y").node("Add", {"a", "b"}, {"y"});
  expect_error(old.import(), ErrorCode::kUnsupported, HasSubstr("convert the model to opset 7 or later"));
  ModelBuilder pool(6);
  pool.input("x", {1, 1, 2, 2}).output("y").node("LpPool", {"x"}, {"y"}).ints("kernel_shape", {2, 2});
  expect_error(pool.import(), ErrorCode::kUnsupported, HasSubstr("LpPool of opset 6 is too old"));
}

TEST(Import, WiringErrors) {
  ModelBuilder undefined;
  undefined.input("x", {2}).output("y").node("Add", {"x", "ghost"}, {"y"});
  expect_error(undefined.import(), ErrorCode::kCorrupt,
               HasSubstr("reads 'ghost', which is not defined before this node"));
  ModelBuilder twice;
  twice.input("x", {2}).output("y").node("Relu", {"x"}, {"y"}).node("Relu", {"x"}, {"y"});
  expect_error(twice.import(), ErrorCode::kCorrupt, HasSubstr("'y' is defined twice"));
  ModelBuilder cycle;
  cycle.input("x", {2}).output("y").node("Add", {"x", "z"}, {"y"}).node("Relu", {"y"}, {"z"});
  expect_error(cycle.import(), ErrorCode::kCorrupt, HasSubstr("reads 'z'"));
  ModelBuilder output;
  output.input("x", {2}).output("q").node("Relu", {"x"}, {"y"});
  expect_error(output.import(), ErrorCode::kCorrupt, HasSubstr("nothing computes the output 'q'"));
}

TEST(Import, BadTensors) {
  ModelBuilder count;
  count.input("x", {2}).output("y").initializer("w", {3}, {1, 2}).node("Add", {"x", "w"}, {"y"});
  expect_error(count.import(), ErrorCode::kCorrupt,
               AllOf(HasSubstr("tensor 'w'"), HasSubstr("2 elements instead of 3")));
  ModelBuilder huge;
  huge.input("x", {2}).output("y").initializer("w", {int64_t{1} << 40, int64_t{1} << 40}, {});
  huge.node("Add", {"x", "w"}, {"y"});
  expect_error(huge.import(), ErrorCode::kCorrupt, HasSubstr("unreasonable shape"));
  ModelBuilder raw;
  raw.input("x", {2}).output("y").initializer("w", {2}, {}).node("Add", {"x", "w"}, {"y"});
  raw.proto().mutable_graph()->mutable_initializer(0)->set_raw_data("abc");
  expect_error(raw.import(), ErrorCode::kCorrupt, HasSubstr("3 bytes instead of 8"));
}

TEST(Import, NodeErrorsNameTheNode) {
  ModelBuilder matmul;
  matmul.input("a", {2, 3}).input("b", {4, 5}).output("y").node("MatMul", {"a", "b"}, {"y"});
  matmul.proto().mutable_graph()->mutable_node(0)->set_name("projection");
  expect_error(matmul.import(), ErrorCode::kInvalidArgument,
               HasSubstr("test.onnx: projection: MatMul: shapes do not fit: f32[2,3] and f32[4,5]"));
  ModelBuilder attribute;
  attribute.input("x", {2, 3}).output("y").node("Softmax", {"x"}, {"y"}).text("axis", "last");
  expect_error(attribute.import(), ErrorCode::kInvalidArgument,
               HasSubstr("attribute axis is not an integer"));
  ModelBuilder runtime;
  runtime.input("x", {6}).input("s", {2}, 7).output("y").node("Reshape", {"x", "s"}, {"y"});
  expect_error(runtime.import(), ErrorCode::kUnsupported, HasSubstr("input 1 (shape) must be constant"));
  ModelBuilder missing;
  missing.input("x", {1, 3, 8, 8}).output("y").node("Conv", {"x"}, {"y"});
  expect_error(missing.import(), ErrorCode::kInvalidArgument, HasSubstr("Conv: input 1 is missing"));
  ModelBuilder data;
  data.input("x", {4}).output("y").node("NonZero", {"x"}, {"y"});
  expect_error(data.import(), ErrorCode::kUnsupported, HasSubstr("NonZero: its inputs must be constant"));
}

TEST(Import, ConstantInputs) {
  ModelBuilder model;
  model.input("x", {6}).input("s", {2}, 7).output("y").node("Reshape", {"x", "s"}, {"y"});
  lower::Tensor shape = lower::Tensor::zeros(ir::DType::kI64, {2});
  shape.set(0, ir::scalar_int(ir::DType::kI64, 2));
  shape.set(1, ir::scalar_int(ir::DType::kI64, -1));
  ImportOptions options;
  options.constant_inputs["s"] = shape;
  const auto graph = model.import(options);
  ASSERT_TRUE(graph.ok()) << graph.error().message();
  EXPECT_EQ(graph->inputs.size(), 1u);
  EXPECT_EQ(graph->values[graph->outputs[0]].shape, (std::vector<int64_t>{2, 3}));
  options.constant_inputs["s"] = lower::Tensor::zeros(ir::DType::kF32, {2});
  expect_error(model.import(options), ErrorCode::kInvalidArgument,
               HasSubstr("are f32[2], but the model declares i64"));
}

TEST(Import, ConstantsHaveALimit) {
  ModelBuilder model;
  model.input("x", {1})
      .output("y")
      .initializer("c", {1 << 19}, std::vector<float>(1 << 19))
      .node("Add", {"x", "c"}, {"y"});
  ImportOptions options;
  options.max_constant_bytes = 1 << 20;
  expect_error(model.import(options), ErrorCode::kResourceExhausted, HasSubstr("take too much memory"));
}

// Shape arithmetic as PyTorch exports it: view(x.size(0), -1).
TEST(Import, FoldsShapeArithmetic) {
  ModelBuilder model;
  model.input("x", {2, 3, 4}).output("y").integers("zero", {0}).integers("minus", {-1});
  model.node("Shape", {"x"}, {"s"}).node("Gather", {"s", "zero"}, {"n"});
  model.node("Concat", {"n", "minus"}, {"shape"}).integer("axis", 0).node("Reshape", {"x", "shape"}, {"y"});
  const auto graph = model.import();
  ASSERT_TRUE(graph.ok()) << graph.error().message();
  EXPECT_EQ(graph->nodes.size(), 1u);
  EXPECT_EQ(graph->values[graph->outputs[0]].shape, (std::vector<int64_t>{2, 12}));
}

TEST(Import, ExternalData) {
  const TemporaryFolder folder;
  const float values[] = {9, 1, 2, 3};
  write(folder / "weights.bin", std::string(reinterpret_cast<const char*>(values), sizeof values));
  const auto build = [&](const std::string& location, const std::string& offset, const std::string& length) {
    ModelBuilder model;
    model.input("x", {3}).output("y").initializer("w", {3}, {}).node("Add", {"x", "w"}, {"y"});
    auto* tensor = model.proto().mutable_graph()->mutable_initializer(0);
    tensor->set_data_location(onnx::TensorProto::EXTERNAL);
    for (const auto& [key, value] :
         {std::pair("location", location), std::pair("offset", offset), std::pair("length", length)}) {
      auto* entry = tensor->add_external_data();
      entry->set_key(key);
      entry->set_value(value);
    }
    write(folder / "model.onnx", model.bytes());
    return import_onnx((folder / "model.onnx").string(), {});
  };
  const auto graph = build("weights.bin", "4", "12");
  ASSERT_TRUE(graph.ok()) << graph.error().message();
  const auto sum = evaluate(*graph, std::vector{lower::Tensor::zeros(ir::DType::kF32, {3})});
  ASSERT_TRUE(sum.ok());
  EXPECT_EQ((*sum)[0].at(2).f, 3.0);
  expect_error(build("../weights.bin", "0", "12"), ErrorCode::kCorrupt,
               HasSubstr("below the model's folder"));
  expect_error(build("/etc/passwd", "0", "12"), ErrorCode::kCorrupt, HasSubstr("below the model's folder"));
  expect_error(build("none.bin", "0", "12"), ErrorCode::kNotFound, HasSubstr("none.bin"));
  expect_error(build("weights.bin", "8", "12"), ErrorCode::kCorrupt, HasSubstr("too short"));
  expect_error(build("weights.bin", "-4", "12"), ErrorCode::kCorrupt, HasSubstr("bad offset"));
  expect_error(build("weights.bin", "0", "8"), ErrorCode::kCorrupt, HasSubstr("8 bytes instead of 12"));
}

TEST(Import, DeclaresTheFilesOfItsWeights) {
  const TemporaryFolder folder;
  ModelBuilder model;
  model.input("x", {3}).output("y").initializer("w", {3}, {}).initializer("v", {3}, {});
  model.initializer("inside", {3}, {1, 2, 3}).node("Add", {"x", "w"}, {"a"}).node("If", {"x"}, {"y"});
  const auto place = [](onnx::TensorProto* tensor, const std::string& file) {
    tensor->set_data_location(onnx::TensorProto::EXTERNAL);
    auto* entry = tensor->add_external_data();
    entry->set_key("location");
    entry->set_value(file);
  };
  auto* graph = model.proto().mutable_graph();
  place(graph->mutable_initializer(0), "weights.bin");
  place(graph->mutable_initializer(1), "weights.bin");
  auto* attribute = graph->mutable_node(1)->add_attribute();
  place(attribute->mutable_g()->add_initializer(), "branch.bin");
  place(graph->mutable_node(0)->add_attribute()->mutable_t(), "attribute.bin");
  auto* function = model.proto().add_functions()->add_node();
  place(function->add_attribute()->add_tensors(), "function.bin");
  write(folder / "model.onnx", model.bytes());
  const auto declared = onnx_declared((folder / "model.onnx").string());
  ASSERT_TRUE(declared.ok()) << declared.error().message();
  EXPECT_THAT(declared->external_files,
              ::testing::ElementsAre("attribute.bin", "branch.bin", "function.bin", "weights.bin"));
}

TEST(Import, ConstantIfIsInlined) {
  ModelBuilder model;
  model.input("x", {2}).output("y").integers("one", {1}).integers("two", {2});
  model.node("Less", {"one", "two"}, {"c"}).node("If", {"c"}, {"y"});
  auto* node = model.proto().mutable_graph()->mutable_node(1);
  for (const auto& [branch, op] : {std::pair("then_branch", "Exp"), std::pair("else_branch", "Log")}) {
    auto* attribute = node->add_attribute();
    attribute->set_name(branch);
    attribute->set_type(onnx::AttributeProto::GRAPH);
    auto* inner = attribute->mutable_g()->add_node();
    inner->set_op_type(op);
    inner->add_input("x");
    inner->add_output("r");
    attribute->mutable_g()->add_output()->set_name("r");
  }
  const auto graph = model.import();
  ASSERT_TRUE(graph.ok()) << graph.error().message();
  ASSERT_EQ(graph->nodes.size(), 1u);
  EXPECT_EQ(graph->nodes[NodeId(0)].op, "Exp");
  model.proto().mutable_graph()->mutable_node(0)->set_input(0, "x");
  model.proto().mutable_graph()->mutable_node(0)->set_input(1, "x");
  expect_error(model.import(), ErrorCode::kCorrupt, HasSubstr("input 0 (condition) must be one bool"));
}

TEST(Import, FunctionsAreInlined) {
  ModelBuilder model;
  model.input("x", {2}).output("y").node("Twice", {"x"}, {"y"}).number("slope", 0.5F);
  model.proto().mutable_graph()->mutable_node(0)->set_domain("local");
  auto* function = model.proto().add_functions();
  function->set_name("Twice");
  function->set_domain("local");
  function->add_input("a");
  function->add_output("b");
  function->add_attribute("slope");
  *function->add_opset_import() = model.proto().opset_import(0);
  for (const auto& [from, to] : {std::pair("a", "t"), std::pair("t", "b")}) {
    auto* node = function->add_node();
    node->set_op_type("LeakyRelu");
    node->add_input(from);
    node->add_output(to);
    auto* attribute = node->add_attribute();
    attribute->set_name("alpha");
    attribute->set_ref_attr_name("slope");
    attribute->set_type(onnx::AttributeProto::FLOAT);
  }
  const auto graph = model.import();
  ASSERT_TRUE(graph.ok()) << graph.error().message();
  lower::Tensor x = lower::Tensor::zeros(ir::DType::kF32, {2});
  x.set(0, ir::scalar_float(ir::DType::kF32, -4));
  const auto y = evaluate(*graph, std::vector{x});
  ASSERT_TRUE(y.ok()) << y.error().message();
  EXPECT_EQ((*y)[0].at(0).f, -1.0);

  // A function that calls itself must not be expanded forever.
  function->mutable_node(0)->set_op_type("Twice");
  function->mutable_node(0)->set_domain("local");
  expect_error(model.import(), ErrorCode::kCorrupt, HasSubstr("nested too deeply"));
}

TEST(TensorFiles, RoundTrip) {
  const TemporaryFolder folder;
  Rng rng(7);
  for (ir::DType dtype :
       {ir::DType::kBool, ir::DType::kI8, ir::DType::kU16, ir::DType::kI32, ir::DType::kI64, ir::DType::kU64,
        ir::DType::kF16, ir::DType::kBF16, ir::DType::kF32, ir::DType::kF64}) {
    const lower::Tensor tensor = lower::random_tensor(dtype, {2, 3}, rng);
    const std::string path = (folder / "tensor.pb").string();
    ASSERT_TRUE(write_tensor_proto(path, "t", tensor).ok());
    const auto read = read_tensor_proto(path);
    ASSERT_TRUE(read.ok()) << read.error().message();
    EXPECT_EQ(read->dtype, tensor.dtype);
    EXPECT_EQ(read->shape, tensor.shape);
    EXPECT_EQ(read->data, tensor.data);
  }
}

TEST(TensorFiles, Errors) {
  const TemporaryFolder folder;
  EXPECT_EQ(read_tensor_proto((folder / "none.pb").string()).error().code, ErrorCode::kNotFound);
  write(folder / "bad.pb", "\x08\xff");
  EXPECT_EQ(read_tensor_proto((folder / "bad.pb").string()).error().code, ErrorCode::kCorrupt);
  const auto tensor = lower::Tensor::zeros(ir::DType::kF32, {1});
  const Status status = write_tensor_proto("/nowhere/t.pb", "t", tensor);
  EXPECT_EQ(status.error().code, ErrorCode::kIo);
}

}  // namespace
}  // namespace tensorsmith::graph::onnx_import_test
