#include "cases.h"

#include <fmt/format.h>

namespace tensorsmith::peers {
namespace {

std::string_view suffix(Epilogue epilogue) {
  switch (epilogue) {
    case Epilogue::kNone:
      return "";
    case Epilogue::kRelu:
      return " relu";
    case Epilogue::kRelu6:
      return " relu6";
    case Epilogue::kAdd:
      return " add";
    case Epilogue::kAddRelu:
      return " add relu";
  }
  return "";
}

}  // namespace

std::string GemmCase::name() const {
  return fmt::format("{}{}x{}x{}{}", batch > 1 ? fmt::format("{}*", batch) : "", m, n, k,
                     constant_b ? " constant B" : "");
}

std::string ConvCase::name() const {
  return fmt::format("{} {}->{} {}x{}{}{}{}", image, ci, co, window, window,
                     stride > 1 ? fmt::format("/{}", stride) : "",
                     groups > 1 ? fmt::format(" g{}", groups) : "", suffix(epilogue));
}

std::vector<GemmCase> gemm_cases() {
  std::vector<GemmCase> cases;
  for (const bool constant_b : {false, true}) {
    for (const int64_t n : {256, 512, 1024, 2048}) cases.push_back({1, n, n, n, constant_b});
  }
  for (const int64_t tokens : {128, 384}) {
    cases.push_back({1, tokens, 768, 768, true});
    cases.push_back({1, tokens, 3072, 768, true});
    cases.push_back({1, tokens, 768, 3072, true});
  }
  cases.push_back({12, 128, 128, 64, false});
  cases.push_back({12, 128, 64, 128, false});
  for (const bool constant_b : {false, true}) {
    for (const int64_t n : {512, 1024}) cases.push_back({1, n, n, n, constant_b, Element::kBF16});
  }
  cases.push_back({1, 128, 3072, 768, true, Element::kBF16});
  cases.push_back({12, 128, 128, 64, false, Element::kBF16});
  return cases;
}

std::vector<ConvCase> conv_cases() {
  using enum Epilogue;
  const std::string resnet = "resnet50", mobilenet = "mobilenet_v2", squeezenet = "squeezenet1.1";
  const std::string bf16 = "bf16";
  const Element kShort = Element::kBF16;
  return {
      // network, count, ci, co, image, window, stride, pad, groups, epilogue
      {resnet, 1, 3, 64, 224, 7, 2, 3, 1, kRelu},         {resnet, 1, 64, 64, 56, 1, 1, 0, 1, kRelu},
      {resnet, 3, 64, 64, 56, 3, 1, 1, 1, kRelu},         {resnet, 3, 64, 256, 56, 1, 1, 0, 1, kAddRelu},
      {resnet, 1, 64, 256, 56, 1, 1, 0, 1, kNone},        {resnet, 2, 256, 64, 56, 1, 1, 0, 1, kRelu},
      {resnet, 1, 256, 128, 56, 1, 1, 0, 1, kRelu},       {resnet, 1, 128, 128, 56, 3, 2, 1, 1, kRelu},
      {resnet, 4, 128, 512, 28, 1, 1, 0, 1, kAddRelu},    {resnet, 1, 256, 512, 56, 1, 2, 0, 1, kNone},
      {resnet, 3, 512, 128, 28, 1, 1, 0, 1, kRelu},       {resnet, 3, 128, 128, 28, 3, 1, 1, 1, kRelu},
      {resnet, 1, 512, 256, 28, 1, 1, 0, 1, kRelu},       {resnet, 1, 256, 256, 28, 3, 2, 1, 1, kRelu},
      {resnet, 6, 256, 1024, 14, 1, 1, 0, 1, kAddRelu},   {resnet, 1, 512, 1024, 28, 1, 2, 0, 1, kNone},
      {resnet, 5, 1024, 256, 14, 1, 1, 0, 1, kRelu},      {resnet, 5, 256, 256, 14, 3, 1, 1, 1, kRelu},
      {resnet, 1, 1024, 512, 14, 1, 1, 0, 1, kRelu},      {resnet, 1, 512, 512, 14, 3, 2, 1, 1, kRelu},
      {resnet, 3, 512, 2048, 7, 1, 1, 0, 1, kAddRelu},    {resnet, 1, 1024, 2048, 14, 1, 2, 0, 1, kNone},
      {resnet, 2, 2048, 512, 7, 1, 1, 0, 1, kRelu},       {resnet, 2, 512, 512, 7, 3, 1, 1, 1, kRelu},

      {mobilenet, 1, 3, 32, 224, 3, 2, 1, 1, kRelu6},     {mobilenet, 1, 32, 32, 112, 3, 1, 1, 32, kRelu6},
      {mobilenet, 1, 32, 16, 112, 1, 1, 0, 1, kNone},     {mobilenet, 1, 16, 96, 112, 1, 1, 0, 1, kRelu6},
      {mobilenet, 1, 96, 96, 112, 3, 2, 1, 96, kRelu6},   {mobilenet, 1, 96, 24, 56, 1, 1, 0, 1, kNone},
      {mobilenet, 2, 24, 144, 56, 1, 1, 0, 1, kRelu6},    {mobilenet, 1, 144, 144, 56, 3, 1, 1, 144, kRelu6},
      {mobilenet, 1, 144, 24, 56, 1, 1, 0, 1, kAdd},      {mobilenet, 1, 144, 144, 56, 3, 2, 1, 144, kRelu6},
      {mobilenet, 1, 144, 32, 28, 1, 1, 0, 1, kNone},     {mobilenet, 3, 32, 192, 28, 1, 1, 0, 1, kRelu6},
      {mobilenet, 2, 192, 192, 28, 3, 1, 1, 192, kRelu6}, {mobilenet, 2, 192, 32, 28, 1, 1, 0, 1, kAdd},
      {mobilenet, 1, 192, 192, 28, 3, 2, 1, 192, kRelu6}, {mobilenet, 1, 192, 64, 14, 1, 1, 0, 1, kNone},
      {mobilenet, 4, 64, 384, 14, 1, 1, 0, 1, kRelu6},    {mobilenet, 4, 384, 384, 14, 3, 1, 1, 384, kRelu6},
      {mobilenet, 3, 384, 64, 14, 1, 1, 0, 1, kAdd},      {mobilenet, 1, 384, 96, 14, 1, 1, 0, 1, kNone},
      {mobilenet, 3, 96, 576, 14, 1, 1, 0, 1, kRelu6},    {mobilenet, 2, 576, 576, 14, 3, 1, 1, 576, kRelu6},
      {mobilenet, 2, 576, 96, 14, 1, 1, 0, 1, kAdd},      {mobilenet, 1, 576, 576, 14, 3, 2, 1, 576, kRelu6},
      {mobilenet, 1, 576, 160, 7, 1, 1, 0, 1, kNone},     {mobilenet, 3, 160, 960, 7, 1, 1, 0, 1, kRelu6},
      {mobilenet, 3, 960, 960, 7, 3, 1, 1, 960, kRelu6},  {mobilenet, 2, 960, 160, 7, 1, 1, 0, 1, kAdd},
      {mobilenet, 1, 960, 320, 7, 1, 1, 0, 1, kNone},     {mobilenet, 1, 320, 1280, 7, 1, 1, 0, 1, kRelu6},

      {squeezenet, 1, 3, 64, 224, 3, 2, 0, 1, kRelu},     {squeezenet, 1, 64, 16, 55, 1, 1, 0, 1, kRelu},
      {squeezenet, 1, 128, 16, 55, 1, 1, 0, 1, kRelu},    {squeezenet, 2, 16, 64, 55, 1, 1, 0, 1, kRelu},
      {squeezenet, 2, 16, 64, 55, 3, 1, 1, 1, kRelu},     {squeezenet, 1, 128, 32, 27, 1, 1, 0, 1, kRelu},
      {squeezenet, 1, 256, 32, 27, 1, 1, 0, 1, kRelu},    {squeezenet, 2, 32, 128, 27, 1, 1, 0, 1, kRelu},
      {squeezenet, 2, 32, 128, 27, 3, 1, 1, 1, kRelu},    {squeezenet, 1, 256, 48, 13, 1, 1, 0, 1, kRelu},
      {squeezenet, 1, 384, 48, 13, 1, 1, 0, 1, kRelu},    {squeezenet, 2, 48, 192, 13, 1, 1, 0, 1, kRelu},
      {squeezenet, 2, 48, 192, 13, 3, 1, 1, 1, kRelu},    {squeezenet, 1, 384, 64, 13, 1, 1, 0, 1, kRelu},
      {squeezenet, 1, 512, 64, 13, 1, 1, 0, 1, kRelu},    {squeezenet, 2, 64, 256, 13, 1, 1, 0, 1, kRelu},
      {squeezenet, 2, 64, 256, 13, 3, 1, 1, 1, kRelu},    {squeezenet, 1, 512, 1000, 13, 1, 1, 0, 1, kRelu},

      {bf16, 1, 64, 64, 56, 3, 1, 1, 1, kRelu, kShort},   {bf16, 1, 256, 64, 56, 1, 1, 0, 1, kRelu, kShort},
      {bf16, 1, 64, 256, 56, 1, 1, 0, 1, kNone, kShort},  {bf16, 1, 128, 128, 56, 3, 2, 1, 1, kRelu, kShort},
      {bf16, 1, 256, 256, 14, 3, 1, 1, 1, kRelu, kShort}, {bf16, 1, 1024, 256, 14, 1, 1, 0, 1, kRelu, kShort},
  };
}

}  // namespace tensorsmith::peers
