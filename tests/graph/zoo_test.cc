// The network zoo: published numbers of parameters, all sizes, and the resulting graphs.
#include "graph/zoo/zoo.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <map>

#include "graph/evaluate.h"
#include "graph/tasks.h"
#include "graph/zoo/builder.h"
#include "graph/zoo/write.h"

namespace tensorsmith::graph::zoo::zoo_test {
namespace {

using ::testing::HasSubstr;

Request request(const std::string& spec) { return parse_request(spec).value(); }

// Numbers from torchvision's documentation (without auxiliary heads), the model cards of Hugging
// Face's transformers, and llama2.c's checkpoints; DCGAN's is the sum of its layers.
TEST(Zoo, ParametersAreThePublishedOnes) {
  const std::map<std::string_view, int64_t> published = {{"alexnet", 61'100'840},
                                                         {"bert_base", 109'482'240},
                                                         {"bert_large", 335'141'888},
                                                         {"bert_medium", 41'373'184},
                                                         {"bert_tiny", 4'385'920},
                                                         {"dcgan", 12'656'384},
                                                         {"densenet121", 7'978'856},
                                                         {"efficientnet_b0", 5'288'548},
                                                         {"efficientnet_b4", 19'341'616},
                                                         {"googlenet", 6'624'904},
                                                         {"gpt2", 124'439'808},
                                                         {"inception_v3", 23'834'568},
                                                         {"llama_110m", 109'529'856},
                                                         {"llama_15m", 15'191'712},
                                                         {"mnasnet1_0", 4'383'312},
                                                         {"mobilebert", 24'581'888},
                                                         {"mobilenet_v2", 3'504'872},
                                                         {"mobilenet_v3_large", 5'483'032},
                                                         {"mobilenet_v3_small", 2'542'856},
                                                         {"resnet18", 11'689'512},
                                                         {"resnet3d18", 33'371'472},
                                                         {"resnet50", 25'557'032},
                                                         {"resnext50", 25'028'904},
                                                         {"squeezenet1_1", 1'235'496},
                                                         {"vgg16", 138'357'544},
                                                         {"vit_b_16", 86'567'656},
                                                         {"wide_resnet50", 68'883'240}};
  EXPECT_EQ(entries().size(), published.size());
  for (const Entry& entry : entries()) {
    const auto count = parameters(request(std::string(entry.name)));
    ASSERT_TRUE(count.ok()) << count.error().message();
    EXPECT_EQ(*count, published.at(entry.name)) << entry.name;
    // The number does not depend on the batch.
    EXPECT_EQ(parameters(request(std::string(entry.name) + ":batch=7")).value(), *count) << entry.name;
  }
}

TEST(Zoo, RequestsAreParsed) {
  const Request r = request("resnet50:batch=4:size=256:seed=9");
  EXPECT_EQ(r.name, "resnet50");
  EXPECT_EQ(r.batch, 4);
  EXPECT_EQ(r.size, 256);
  EXPECT_EQ(r.sequence, 0);
  EXPECT_EQ(r.seed, 9u);
  EXPECT_EQ(request("bert_base:sequence=64").sequence, 64);
  for (const char* wrong : {"x:batch", "x:batch=", "x:batch=0", "x:size=-1", "x:size=4x",
                            "x:batch=99999999999", "x:", "x:seed=", "x:depth=3"}) {
    const auto parsed = parse_request(wrong);
    ASSERT_FALSE(parsed.ok()) << wrong;
    EXPECT_EQ(parsed.error().code, ErrorCode::kInvalidArgument);
    EXPECT_THAT(parsed.error().message(), HasSubstr("network 'x': ")) << wrong;
  }
}

TEST(Zoo, ImpossibleNetworksAreErrors) {
  const auto message = [](const std::string& spec) {
    const auto bytes = to_onnx(request(spec));
    return bytes.ok() ? std::string() : bytes.error().message();
  };
  EXPECT_THAT(message("resnet51"),
              HasSubstr("network 'resnet51': is not in the zoo; the zoo has resnet18, resnet50"));
  EXPECT_THAT(message("resnet18:sequence=8"), HasSubstr("give their size"));
  EXPECT_THAT(message("bert_tiny:size=8"), HasSubstr("give the sequence length"));
  EXPECT_THAT(message("bert_tiny:sequence=513"), HasSubstr("from 1 to 512"));
  EXPECT_THAT(message("dcgan:size=40"), HasSubstr("multiple of 16"));
  EXPECT_THAT(message("alexnet:size=16"),
              HasSubstr("alexnet: the input is too small: MaxPool_1 has a kernel of 3"));
  EXPECT_THAT(message("inception_v3:size=40"), HasSubstr("too small"));
  Request r = request("bert_tiny");
  r.batch = 0;
  EXPECT_THAT(to_onnx(r).error().message(), HasSubstr("the batch must be from 1"));
}

TEST(Zoo, SeedsAndNamesDecideTheWeights) {
  const std::string first = to_onnx(request("squeezenet1_1:size=32")).value();
  EXPECT_EQ(first, to_onnx(request("squeezenet1_1:size=32:seed=0")).value());
  EXPECT_NE(first, to_onnx(request("squeezenet1_1:size=32:seed=1")).value());
  // The weights are the same at another size and batch.
  const auto weights = [](const std::string& spec) {
    const Graph graph = import(request(spec)).value();
    std::map<std::string, std::vector<std::byte>> out;
    for (const Value& value : graph.values)
      if (value.constant != nullptr && value.name.ends_with(".weight"))
        out[value.name].assign(value.constant->data.begin(), value.constant->data.end());
    return out;
  };
  EXPECT_EQ(weights("squeezenet1_1:size=32"), weights("squeezenet1_1:size=48:batch=2"));
}

// A model exported for a batch of 1 and imported for a batch of 2 equals one exported for 2;
// networks that reshape to constant sizes give an error.
TEST(Zoo, AnotherBatchThanTheExportedOne) {
  const auto at_batch_2 = [](const std::string& spec) {
    const Graph one = import(request(spec)).value();
    ImportOptions options;
    for (const ValueId id : one.inputs) {
      const Value& input = one.values[id];
      options.shapes[input.name] = input.shape;
      options.shapes[input.name][0] = 2;
    }
    return import_onnx_bytes(to_onnx(request(spec)).value(), options, spec);
  };
  for (const std::string spec :
       {"squeezenet1_1:size=32", "mobilenet_v3_small:size=32", "googlenet:size=32"}) {
    const auto replaced = at_batch_2(spec);
    ASSERT_TRUE(replaced.ok()) << replaced.error().message();
    EXPECT_EQ(replaced->notes.size(), 1u) << spec;
    const Graph exported = import(request(spec + ":batch=2")).value();
    ASSERT_EQ(replaced->values.size(), exported.values.size()) << spec;
    for (const ValueId v : exported.values.ids()) {
      EXPECT_EQ(replaced->values[v].name, exported.values[v].name);
      EXPECT_EQ(replaced->values[v].shape, exported.values[v].shape) << exported.values[v].name;
    }
    EXPECT_EQ(replaced->nodes.size(), exported.nodes.size()) << spec;
  }
  for (const std::string spec : {"bert_tiny:sequence=6", "dcgan:size=32"}) {
    const auto refused = at_batch_2(spec);
    ASSERT_FALSE(refused.ok()) << spec;
    EXPECT_THAT(refused.error().message(), HasSubstr("Reshape: its constant shape [1,"));
    EXPECT_THAT(refused.error().message(), HasSubstr("is for a batch of 1, and its input is f32[2,"));
  }
}

// Every architecture at a small size; the sizes of an architecture differ only in numbers.
TEST(Zoo, NetworksImportAndPartition) {
  const std::map<std::string_view, std::string> sizes = {{"alexnet", "size=64"}, {"inception_v3", "size=80"}};
  for (const Entry& entry : entries()) {
    const std::string name(entry.name);
    // vgg16's weights would take half a gigabyte, and it has no operator that alexnet lacks.
    if (name == "bert_medium" || name == "bert_base" || name == "bert_large" || name == "llama_110m" ||
        name == "wide_resnet50" || name == "vgg16") {
      continue;
    }
    const bool image = entry.kind == InputKind::kImage;
    const auto size = sizes.find(entry.name);
    const std::string spec = name + ":batch=2:" +
                             (size != sizes.end() ? size->second
                              : image             ? "size=32"
                                                  : "sequence=6");
    auto graph = import(request(spec));
    ASSERT_TRUE(graph.ok()) << spec << ": " << graph.error().message();
    EXPECT_EQ(graph->name, name);
    for (ValueId id : graph->outputs) EXPECT_EQ(graph->values[id].shape[0], 2) << name;
    const Status optimized = optimize(*graph);
    ASSERT_TRUE(optimized.ok()) << spec << ": " << optimized.error().message();
    const auto partitioned = partition(*graph);
    ASSERT_TRUE(partitioned.ok()) << spec << ": " << partitioned.error().message();
    EXPECT_GT(partitioned->tasks.size(), 3u) << name;
  }
}

// Twice the multiply-adds that the papers and torchvision give for one image (convolutions and
// matrices), up to the work of normalization, activations and pooling.
TEST(Zoo, WorkIsThePublishedOne) {
  const std::map<std::string, double> published = {{"resnet18", 1.81e9},           {"mobilenet_v2", 0.30e9},
                                                   {"mobilenet_v3_large", 0.22e9}, {"mnasnet1_0", 0.31e9},
                                                   {"efficientnet_b0", 0.39e9},    {"googlenet", 1.50e9},
                                                   {"densenet121", 2.83e9},        {"squeezenet1_1", 0.35e9}};
  for (const auto& [name, multiply_adds] : published) {
    Graph graph = import(request(name)).value();
    ASSERT_TRUE(optimize(graph).ok()) << name;
    double flops = 0;
    const Partition partitioned = partition(graph).value();
    for (const Task& task : partitioned.tasks) flops += task.flops * task.calls;
    EXPECT_GT(flops, 1.96 * multiply_adds) << name;
    EXPECT_LT(flops, 2.25 * multiply_adds) << name;
  }
}

// Bins by their definition, for image sizes that are multiples of the number of bins and others.
TEST(NetworkBuilder, AdaptiveAveragePool) {
  for (const int64_t n : {2, 3, 5, 6, 9}) {
    constexpr int64_t kBins = 3;
    NetworkBuilder b("pool");
    b.output("y", b.adaptive_average_pool(b.input("x", {1, 1, n, n}), kBins));
    const Network network = std::move(b).finish().value();
    const Graph graph = import_onnx_bytes(serialize(network, 0).value(), {}, "pool").value();
    Rng rng(static_cast<uint64_t>(n));
    const lower::Tensor x = lower::random_tensor(ir::DType::kF32, {1, 1, n, n}, rng, 0);
    const auto y = evaluate(graph, std::vector<lower::Tensor>{x});
    ASSERT_TRUE(y.ok()) << y.error().message();
    ASSERT_EQ((*y)[0].shape, (Shape{1, 1, kBins, kBins}));
    const auto begin = [&](int64_t i) { return i * n / kBins; };
    const auto end = [&](int64_t i) { return ((i + 1) * n + kBins - 1) / kBins; };
    for (int64_t i = 0; i < kBins; ++i) {
      for (int64_t j = 0; j < kBins; ++j) {
        double sum = 0;
        for (int64_t r = begin(i); r < end(i); ++r)
          for (int64_t c = begin(j); c < end(j); ++c) sum += x.at(r * n + c).f;
        const double mean = sum / static_cast<double>((end(i) - begin(i)) * (end(j) - begin(j)));
        EXPECT_NEAR((*y)[0].at(i * kBins + j).f, mean, 1e-6) << n << ": " << i << ", " << j;
      }
    }
  }
}

// The expected mean squares that scale the weights are correct: outputs of small networks are
// neither tiny nor huge.
TEST(NetworkBuilder, ScalesHold) {
  for (const char* spec : {"squeezenet1_1:size=32", "mobilenet_v3_small:size=32", "bert_tiny:sequence=5",
                           "llama_15m:sequence=3", "dcgan:size=16"}) {
    const Graph graph = import(request(spec)).value();
    Rng rng(5);
    std::vector<lower::Tensor> inputs;
    for (ValueId id : graph.inputs) {
      const Value& value = graph.values[id];
      inputs.push_back(
          lower::random_tensor(value.dtype, value.shape, rng, ir::is_float(value.dtype) ? 0 : 2));
    }
    const auto outputs = evaluate(graph, inputs);
    ASSERT_TRUE(outputs.ok()) << spec << ": " << outputs.error().message();
    const lower::Tensor& y = (*outputs)[0];
    double squares = 0;
    for (int64_t i = 0; i < y.num_elements(); ++i) squares += y.at(i).f * y.at(i).f;
    const double rms = std::sqrt(squares / static_cast<double>(y.num_elements()));
    EXPECT_GT(rms, 0.05) << spec;
    EXPECT_LT(rms, 20) << spec;
  }
}

}  // namespace
}  // namespace tensorsmith::graph::zoo::zoo_test
