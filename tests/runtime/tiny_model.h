// The toy model of tiny_kernels.c, its inputs and its expected outputs.
#pragma once

#include <unistd.h>

#include <array>
#include <atomic>
#include <cmath>
#include <filesystem>
#include <string>
#include <vector>

#include "base/input_file.h"
#include "base/rng.h"
#include "runtime/model_writer.h"

namespace tensorsmith::runtime {

// Writes a model whose shared library is in a file.
inline Status write_model(const std::string& directory, ModelDescription description,
                          const std::string& kernels_path, const std::vector<WeightData>& weights) {
  TS_ASSIGN_OR_RETURN(const std::string kernels, read_input(kernels_path, kMaxKernelBytes));
  return write_model(directory, std::move(description), std::span<const char>(kernels), weights);
}

// A separate directory for each test, removed at the end.
class ScratchDirectory {
 public:
  ScratchDirectory() {
    std::string pattern = (std::filesystem::temp_directory_path() / "tensorsmith-test-XXXXXX").string();
    TS_CHECK(::mkdtemp(pattern.data()) != nullptr, "no temporary directory");
    path_ = pattern;
  }
  ScratchDirectory(const ScratchDirectory&) = delete;
  ScratchDirectory& operator=(const ScratchDirectory&) = delete;
  ~ScratchDirectory() {
    std::error_code ignored;
    std::filesystem::remove_all(path_, ignored);
  }
  std::string operator/(const std::string& name) const { return (path_ / name).string(); }
  const std::filesystem::path& path() const { return path_; }

 private:
  std::filesystem::path path_;
};

struct TinyModel {
  std::vector<float> x = std::vector<float>(4 * 8), w = std::vector<float>(8 * 16),
                     b = std::vector<float>(16);
  std::vector<double> y = std::vector<double>(4 * 16);  // expected
  int32_t count = 0;                                    // expected

  TinyModel() {
    Rng rng(7);
    for (auto* values : {&x, &w, &b}) {
      for (float& value : *values) value = static_cast<float>(rng.uniform() * 2 - 1);
    }
    for (size_t i = 0; i < 4; ++i) {
      for (size_t j = 0; j < 16; ++j) {
        double sum = b[j];
        for (size_t k = 0; k < 8; ++k) sum += static_cast<double>(x[i * 8 + k]) * w[k * 16 + j];
        y[i * 16 + j] = std::max(sum, 0.0);
        count += sum > 0;
      }
    }
  }

  ModelDescription description() const {
    ModelDescription d;
    d.name = "tiny";
    d.tool_version = "test";
    d.device = "any";
    d.arch = std::string(host_arch());
    d.threads = 2;
    d.inputs = {{"x", DType::kF32, {4, 8}}};
    d.outputs = {{"y", DType::kF32, {4, 16}}, {"count", DType::kI32, {}}};
    d.arena_bytes = 64 + 256;
    CallInfo matmul{
        "matmul",
        {{BufferKind::kInput, 0, 128}, {BufferKind::kWeight, 0, 512}, {BufferKind::kArena, 64, 256}},
        1,
        0,
        0,
        {},
        0,
        0,
        "matmul_4x8x16",
        1024,
        1e-6,
        2e-6};
    CallInfo relu{"bias_relu_count",
                  {{BufferKind::kArena, 64, 256},
                   {BufferKind::kWeight, 1, 64},
                   {BufferKind::kOutput, 0, 256},
                   {BufferKind::kOutput, 1, 4}},
                  2,
                  16,
                  64,
                  {},
                  0,
                  0,
                  "bias_relu",
                  64,
                  0,
                  0};
    d.calls = {matmul, relu};
    return d;
  }

  std::vector<WeightData> weights() const {
    return {{"w", std::as_bytes(std::span(w))}, {"b", std::as_bytes(std::span(b))}};
  }

  Status write(const std::string& directory) const {
    return write_model(directory, description(), std::string(TINY_KERNELS), weights());
  }
};

}  // namespace tensorsmith::runtime
