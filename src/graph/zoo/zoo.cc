#include "graph/zoo/zoo.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "graph/files.h"
#include "graph/zoo/networks.h"
#include "graph/zoo/write.h"

namespace tensorsmith::graph::zoo {
namespace {

// Bounds that keep every extent and element count well within 64 bits.
constexpr int64_t kMaxBatch = 4096;
constexpr int64_t kMaxSize = 4096;

using Extents = Request;  // with size or sequence resolved
struct Architecture {
  Entry entry;
  int64_t multiple = 1;    // sizes must be multiples of this
  int64_t max_tokens = 0;  // rows of the position table; 0 for images
  void (*add)(NetworkBuilder&, const Extents&) = nullptr;
};

constexpr Entry of_images(std::string_view name, std::string_view description, int64_t size = 224) {
  return {name, description, InputKind::kImage, size};
}
constexpr Entry of_tokens(std::string_view name, std::string_view description) {
  return {name, description, InputKind::kTokens, 128};
}
void bert(NetworkBuilder& b, const Extents& e, int64_t layers, int64_t width) {
  add_bert(b, e.batch, e.sequence, layers, width);
}

constexpr auto kArchitectures = std::to_array<Architecture>({
    {of_images("resnet18", "ResNet-18"), 1, 0,
     [](NetworkBuilder& b, const Extents& e) { add_resnet(b, e.batch, e.size, {{2, 2, 2, 2}, false}); }},
    {of_images("resnet50", "ResNet-50"), 1, 0,
     [](NetworkBuilder& b, const Extents& e) { add_resnet(b, e.batch, e.size, {{3, 4, 6, 3}}); }},
    {of_images("wide_resnet50", "wide ResNet-50, twice as wide"), 1, 0,
     [](NetworkBuilder& b, const Extents& e) {
       add_resnet(b, e.batch, e.size, {{3, 4, 6, 3}, true, 1, 128});
     }},
    {of_images("resnext50", "ResNeXt-50, 32 groups of 4"), 1, 0,
     [](NetworkBuilder& b, const Extents& e) {
       add_resnet(b, e.batch, e.size, {{3, 4, 6, 3}, true, 32, 4});
     }},
    {of_images("resnet3d18", "ResNet-18 over 16 frames of video", 112), 1, 0,
     [](NetworkBuilder& b, const Extents& e) { add_resnet3d18(b, e.batch, e.size); }},
    {of_images("mobilenet_v2", "MobileNet v2"), 1, 0,
     [](NetworkBuilder& b, const Extents& e) { add_mobilenet_v2(b, e.batch, e.size); }},
    {of_images("mobilenet_v3_large", "MobileNet v3, large"), 1, 0,
     [](NetworkBuilder& b, const Extents& e) { add_mobilenet_v3(b, e.batch, e.size, true); }},
    {of_images("mobilenet_v3_small", "MobileNet v3, small"), 1, 0,
     [](NetworkBuilder& b, const Extents& e) { add_mobilenet_v3(b, e.batch, e.size, false); }},
    {of_images("mnasnet1_0", "MnasNet"), 1, 0,
     [](NetworkBuilder& b, const Extents& e) { add_mnasnet(b, e.batch, e.size); }},
    {of_images("efficientnet_b0", "EfficientNet-B0"), 1, 0,
     [](NetworkBuilder& b, const Extents& e) { add_efficientnet(b, e.batch, e.size, 1, 1); }},
    {of_images("efficientnet_b4", "EfficientNet-B4", 380), 1, 0,
     [](NetworkBuilder& b, const Extents& e) { add_efficientnet(b, e.batch, e.size, 1.4, 1.8); }},
    {of_images("googlenet", "GoogLeNet with batch normalization"), 1, 0,
     [](NetworkBuilder& b, const Extents& e) { add_googlenet(b, e.batch, e.size); }},
    {of_images("inception_v3", "Inception v3", 299), 1, 0,
     [](NetworkBuilder& b, const Extents& e) { add_inception_v3(b, e.batch, e.size); }},
    {of_images("densenet121", "DenseNet-121"), 1, 0,
     [](NetworkBuilder& b, const Extents& e) { add_densenet121(b, e.batch, e.size); }},
    {of_images("alexnet", "AlexNet"), 1, 0,
     [](NetworkBuilder& b, const Extents& e) { add_alexnet(b, e.batch, e.size); }},
    {of_images("vgg16", "VGG-16"), 1, 0,
     [](NetworkBuilder& b, const Extents& e) { add_vgg16(b, e.batch, e.size); }},
    {of_images("squeezenet1_1", "SqueezeNet 1.1"), 1, 0,
     [](NetworkBuilder& b, const Extents& e) { add_squeezenet(b, e.batch, e.size); }},
    {of_images("dcgan", "DCGAN's generator: noise to images of the given size", 64), 16, 0,
     [](NetworkBuilder& b, const Extents& e) { add_dcgan(b, e.batch, e.size); }},
    {of_images("vit_b_16", "vision transformer, base, patches of 16"), 16, 0,
     [](NetworkBuilder& b, const Extents& e) { add_vit_b16(b, e.batch, e.size); }},
    {of_tokens("bert_tiny", "BERT, 2 layers of 128"), 1, 512,
     [](NetworkBuilder& b, const Extents& e) { bert(b, e, 2, 128); }},
    {of_tokens("bert_medium", "BERT, 8 layers of 512"), 1, 512,
     [](NetworkBuilder& b, const Extents& e) { bert(b, e, 8, 512); }},
    {of_tokens("bert_base", "BERT, 12 layers of 768"), 1, 512,
     [](NetworkBuilder& b, const Extents& e) { bert(b, e, 12, 768); }},
    {of_tokens("bert_large", "BERT, 24 layers of 1024"), 1, 512,
     [](NetworkBuilder& b, const Extents& e) { bert(b, e, 24, 1024); }},
    {of_tokens("mobilebert", "MobileBERT"), 1, 512,
     [](NetworkBuilder& b, const Extents& e) { add_mobilebert(b, e.batch, e.sequence); }},
    {of_tokens("gpt2", "GPT-2, 12 layers of 768, with logits"), 1, 1024,
     [](NetworkBuilder& b, const Extents& e) { add_gpt2(b, e.batch, e.sequence); }},
    {of_tokens("llama_15m", "Llama of llama2.c's stories15M, with logits"), 1, kMaxSize,
     [](NetworkBuilder& b, const Extents& e) { add_llama(b, e.batch, e.sequence, {6, 288, 6, 768}); }},
    {of_tokens("llama_110m", "Llama of llama2.c's stories110M, with logits"), 1, kMaxSize,
     [](NetworkBuilder& b, const Extents& e) { add_llama(b, e.batch, e.sequence, {12, 768, 12, 2048}); }},
});

constexpr auto kEntries = [] {
  std::array<Entry, kArchitectures.size()> entries;
  for (size_t i = 0; i < entries.size(); ++i) entries[i] = kArchitectures[i].entry;
  return entries;
}();

Error invalid(std::string_view name, std::string reason) {
  return {ErrorCode::kInvalidArgument, "network '" + std::string(name) + "'", std::move(reason)};
}

Result<Network> build(const Request& request) {
  const auto found = std::find_if(kArchitectures.begin(), kArchitectures.end(),
                                  [&](const Architecture& a) { return a.entry.name == request.name; });
  if (found == kArchitectures.end()) {
    std::string names;
    for (const Entry& entry : kEntries) names += (names.empty() ? "" : ", ") + std::string(entry.name);
    return Error{ErrorCode::kNotFound, "network '" + request.name + "'",
                 "is not in the zoo; the zoo has " + names};
  }
  const bool image = found->entry.kind == InputKind::kImage;
  if (image ? request.sequence != 0 : request.size != 0) {
    return invalid(request.name, image ? "has images as input; give their size instead of a sequence length"
                                       : "has tokens as input; give the sequence length instead of a size");
  }
  Extents extents = request;
  int64_t& extent = image ? extents.size : extents.sequence;
  if (extent == 0) extent = found->entry.extent;
  const int64_t limit = image ? kMaxSize : found->max_tokens;
  if (request.batch < 1 || request.batch > kMaxBatch)
    return invalid(request.name, "the batch must be from 1 to " + std::to_string(kMaxBatch));
  if (extent < 1 || extent > limit || extent % found->multiple != 0) {
    return invalid(
        request.name,
        std::string(image ? "the size" : "the sequence length") + " must be from " +
            std::to_string(found->multiple) + " to " + std::to_string(limit) +
            (found->multiple > 1 ? " and a multiple of " + std::to_string(found->multiple) : std::string()));
  }
  NetworkBuilder builder(request.name);
  found->add(builder, extents);
  return std::move(builder).finish();
}

}  // namespace

std::span<const Entry> entries() { return kEntries; }

Result<Request> parse_request(std::string_view spec) {
  Request request;
  size_t colon = spec.find(':');
  request.name = spec.substr(0, colon);
  while (colon != std::string_view::npos) {
    spec.remove_prefix(colon + 1);
    colon = spec.find(':');
    const std::string_view option = spec.substr(0, colon);
    const size_t equals = option.find('=');
    const std::string_view key = option.substr(0, equals);
    const std::string_view text = equals == std::string_view::npos ? "" : option.substr(equals + 1);
    uint64_t value = 0;
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    const bool number = error == std::errc() && end == text.data() + text.size() && !text.empty();
    const bool seed = key == "seed";
    if (!number || (!seed && (value < 1 || value > uint64_t{kMaxBatch}))) {
      return invalid(request.name, "option '" + std::string(option) +
                                       "' is not one of batch=B, size=S, sequence=L "
                                       "and seed=N with a positive number up to " +
                                       std::to_string(kMaxBatch));
    }
    if (seed) {
      request.seed = value;
    } else if (key == "batch") {
      request.batch = value;
    } else if (key == "size") {
      request.size = value;
    } else if (key == "sequence") {
      request.sequence = value;
    } else {
      return invalid(request.name, "unknown option '" + std::string(key) +
                                       "'; options are batch=B, size=S, sequence=L and seed=N");
    }
  }
  return request;
}

Result<int64_t> parameters(const Request& request) {
  TS_ASSIGN_OR_RETURN(const Network network, build(request));
  return network.parameters();
}

Result<std::string> to_onnx(const Request& request) {
  TS_ASSIGN_OR_RETURN(const Network network, build(request));
  return serialize(network, request.seed);
}

Status export_onnx(const Request& request, const std::string& path) {
  TS_ASSIGN_OR_RETURN(const std::string bytes, to_onnx(request));
  return write_file(path, bytes);
}

Result<Graph> import(const Request& request) {
  TS_ASSIGN_OR_RETURN(const std::string bytes, to_onnx(request));
  return import_onnx_bytes(bytes, {}, "network '" + request.name + "'");
}

}  // namespace tensorsmith::graph::zoo
