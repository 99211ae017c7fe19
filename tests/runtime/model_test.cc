#include "runtime/model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <fstream>
#include <sstream>
#include <thread>

#include "support/sanitizers.h"
#include "tiny_model.h"

// Counts the allocations of this binary, to show that run() allocates nothing. Sanitizers define
// these functions themselves.
namespace {
std::atomic<int64_t> allocations{0};
}
#if !TENSORSMITH_THREAD_SANITIZER && !TENSORSMITH_ADDRESS_SANITIZER
__attribute__((noinline)) void* operator new(size_t bytes) {
  ++allocations;
  if (void* p = std::malloc(bytes ? bytes : 1)) return p;
  throw std::bad_alloc();
}
__attribute__((noinline)) void operator delete(void* p) noexcept { std::free(p); }
__attribute__((noinline)) void operator delete(void* p, size_t) noexcept { std::free(p); }
#endif

namespace tensorsmith::runtime::model_test {
namespace {

using ::testing::HasSubstr;

struct alignas(64) Output {
  std::array<float, 64> y;
};

void expect_outputs(const TinyModel& tiny, const float* y, int32_t count) {
  for (size_t i = 0; i < 64; ++i) ASSERT_NEAR(y[i], tiny.y[i], 1e-5) << i;
  EXPECT_EQ(count, tiny.count);
}

std::string read_text(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::stringstream text;
  text << file.rdbuf();
  return text.str();
}

void write_text(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;
}

TEST(Model, RunsAtAnyNumberOfThreads) {
  ScratchDirectory scratch;
  TinyModel tiny;
  ASSERT_TRUE(tiny.write(scratch / "m").ok());
  for (int threads : {0, 1, 2, 3, 8}) {
    auto model = Model::load(scratch / "m", {.threads = threads});
    ASSERT_TRUE(model.ok()) << model.error().message();
    if (threads > 0) {
      EXPECT_EQ((*model)->num_threads(), threads);
    }
    EXPECT_EQ((*model)->inputs()[0].name, "x");
    EXPECT_EQ((*model)->outputs()[1].dtype, DType::kI32);
    for (int repeat = 0; repeat < 3; ++repeat) {
      Output out{};
      int32_t count = -1;
      const void* inputs[] = {tiny.x.data()};
      void* outputs[] = {out.y.data(), &count};
      ASSERT_TRUE((*model)->run(inputs, outputs).ok());
      expect_outputs(tiny, out.y.data(), count);
    }
  }
}

// A model is compiled again into the same directory, and a server loads it while the old one still
// runs.
TEST(Model, ReplacedFilesAreLoadedBesideTheOldOnes) {
  ScratchDirectory scratch;
  TinyModel tiny;
  ASSERT_TRUE(tiny.write(scratch / "m").ok());
  std::vector<std::unique_ptr<Model>> models;
  for (const char* kernels : {TINY_KERNELS, TINY_DOUBLE_KERNELS, TINY_KERNELS}) {
    std::filesystem::remove_all(scratch / "m");
    ASSERT_TRUE(write_model(scratch / "m", tiny.description(), std::string(kernels), tiny.weights()).ok());
    auto model = Model::load(scratch / "m", {.threads = 1});
    ASSERT_TRUE(model.ok()) << model.error().message();
    models.push_back(std::move(*model));
  }
  for (size_t m = 0; m < models.size(); ++m) {
    Output out{};
    int32_t count = -1;
    const void* inputs[] = {tiny.x.data()};
    void* outputs[] = {out.y.data(), &count};
    ASSERT_TRUE(models[m]->run(inputs, outputs).ok());
    for (size_t i = 0; i < 64; ++i) ASSERT_NEAR(out.y[i], (m == 1 ? 2 : 1) * tiny.y[i], 2e-5) << m;
  }
}

TEST(Model, UnalignedPointersAreFine) {
  ScratchDirectory scratch;
  TinyModel tiny;
  ASSERT_TRUE(tiny.write(scratch / "m").ok());
  auto model = Model::load(scratch / "m", {.threads = 1});
  ASSERT_TRUE(model.ok()) << model.error().message();
  std::vector<std::byte> in(129), out(257);
  std::memcpy(in.data() + 1, tiny.x.data(), 128);
  int32_t count = -1;
  const void* inputs[] = {in.data() + 1};
  void* outputs[] = {out.data() + 1, &count};
  ASSERT_TRUE((*model)->run(inputs, outputs).ok());
  std::array<float, 64> y;
  std::memcpy(y.data(), out.data() + 1, 256);
  expect_outputs(tiny, y.data(), count);
}

TEST(Model, RunAllocatesNothing) {
  ScratchDirectory scratch;
  TinyModel tiny;
  ASSERT_TRUE(tiny.write(scratch / "m").ok());
  auto model = Model::load(scratch / "m", {.threads = 2, .profile = true});
  ASSERT_TRUE(model.ok()) << model.error().message();
  Output out{};
  int32_t count = -1;
  const void* inputs[] = {tiny.x.data()};
  void* outputs[] = {out.y.data(), &count};
  const int64_t before = allocations;
  bool ok = true;
  for (int i = 0; i < 100; ++i) ok &= (*model)->run(inputs, outputs).ok();
  EXPECT_EQ(allocations - before, 0);
  EXPECT_TRUE(ok);
  const auto profile = (*model)->profile();
  ASSERT_EQ(profile.size(), 2u);
  for (const auto& time : profile) {
    EXPECT_EQ(time.runs, 100);
    EXPECT_GT(time.min_seconds, 0);
    EXPECT_GE(time.total_seconds, 100 * time.min_seconds);
    EXPECT_EQ(time.min_seconds_alone, 0);  // no call runs more often than asked for
  }
  (*model)->reset_profile();
  EXPECT_EQ((*model)->profile()[0].runs, 0);
}

TEST(Model, CallsAreRepeatedWhereAskedFor) {
  ScratchDirectory scratch;
  TinyModel tiny;
  ASSERT_TRUE(tiny.write(scratch / "m").ok());
  auto model = Model::load(scratch / "m", {.threads = 1, .profile = true, .repeats_alone = 2});
  ASSERT_TRUE(model.ok()) << model.error().message();
  Output out{};
  int32_t count = -1;
  const void* inputs[] = {tiny.x.data()};
  void* outputs[] = {out.y.data(), &count};
  ASSERT_TRUE((*model)->run(inputs, outputs).ok());
  expect_outputs(tiny, out.y.data(), count);
  for (const auto& time : (*model)->profile()) {
    EXPECT_EQ(time.runs, 1);
    EXPECT_GT(time.min_seconds_alone, 0);
  }
}

TEST(Model, SeveralThreadsMayRunOneModel) {
  ScratchDirectory scratch;
  TinyModel tiny;
  ASSERT_TRUE(tiny.write(scratch / "m").ok());
  auto model = Model::load(scratch / "m", {.threads = 2});
  ASSERT_TRUE(model.ok()) << model.error().message();
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 50; ++i) {
        Output out{};
        int32_t count = -1;
        const void* inputs[] = {tiny.x.data()};
        void* outputs[] = {out.y.data(), &count};
        ASSERT_TRUE((*model)->run(inputs, outputs).ok());
        expect_outputs(tiny, out.y.data(), count);
      }
    });
  }
  for (auto& thread : threads) thread.join();
}

TEST(Model, WrongArgumentsOfRun) {
  ScratchDirectory scratch;
  TinyModel tiny;
  ASSERT_TRUE(tiny.write(scratch / "m").ok());
  auto model = Model::load(scratch / "m", {.threads = 1});
  ASSERT_TRUE(model.ok());
  Output out{};
  const void* inputs[] = {tiny.x.data(), tiny.x.data()};
  void* outputs[] = {out.y.data(), nullptr};
  auto status = (*model)->run(inputs, outputs);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().code, ErrorCode::kInvalidArgument);
  EXPECT_EQ(status.error().message(), "inputs: got 2, the model has 1");
  status = (*model)->run(std::span(inputs).first(1), outputs);
  ASSERT_FALSE(status.ok());
  EXPECT_EQ(status.error().message(), "output 'count': is a null pointer");
  EXPECT_FALSE(Model::load(scratch / "m", {.threads = -1}).ok());
}

// Loads the model after `damage` and expects this error.
void expect_load_error(const std::function<void(const ScratchDirectory&)>& damage, ErrorCode code,
                       const std::string& text) {
  ScratchDirectory scratch;
  ASSERT_TRUE(TinyModel().write(scratch / "m").ok());
  damage(scratch);
  auto model = Model::load(scratch / "m", {.threads = 1});
  ASSERT_FALSE(model.ok()) << text;
  EXPECT_EQ(model.error().code, code) << model.error().message();
  EXPECT_THAT(model.error().message(), HasSubstr(text));
}

void replace_in(const std::string& path, const std::string& from, const std::string& to) {
  std::string text = read_text(path);
  const size_t at = text.find(from);
  ASSERT_NE(at, std::string::npos) << from;
  write_text(path, text.replace(at, from.size(), to));
}

// Replaces text in the manifest and updates its hash.
void change_manifest(const ScratchDirectory& scratch, const std::string& from, const std::string& to) {
  const std::string path = scratch / "m/manifest.json";
  replace_in(path, from, to);
  const auto sealed = seal_manifest(read_text(path));
  ASSERT_TRUE(sealed.ok());
  write_text(path, *sealed);
}

TEST(Model, DamagedModelsGiveErrors) {
  namespace fs = std::filesystem;
  using S = const ScratchDirectory&;
  expect_load_error([](S s) { fs::remove_all(s / "m"); }, ErrorCode::kNotFound, "is not a compiled model");
  expect_load_error([](S s) { fs::remove(s / "m/manifest.json"); }, ErrorCode::kNotFound,
                    "is not a compiled model");
  expect_load_error([](S s) { fs::resize_file(s / "m/manifest.json", 500); }, ErrorCode::kCorrupt,
                    "not valid JSON");
  expect_load_error([](S s) { fs::resize_file(s / "m/manifest.json", 0); }, ErrorCode::kCorrupt,
                    "not valid JSON");
  expect_load_error([](S s) { write_text(s / "m/manifest.json", "{\"format\": 3}"); }, ErrorCode::kCorrupt,
                    "not the manifest");
  expect_load_error(
      [](S s) {
        replace_in(s / "m/manifest.json", "\"format_version\": " + std::to_string(kModelFormatVersion),
                   "\"format_version\": 999");
      },
      ErrorCode::kMismatch,
      "the model has format 999, but this runtime reads format " + std::to_string(kModelFormatVersion));
  expect_load_error([](S s) { replace_in(s / "m/manifest.json", "\"index\": 1", "\"index\": 0"); },
                    ErrorCode::kCorrupt, "do not have the hash");
  expect_load_error([](S s) { fs::remove(s / "m/weights.bin"); }, ErrorCode::kNotFound, "weights.bin");
  expect_load_error([](S s) { fs::resize_file(s / "m/weights.bin", 100); }, ErrorCode::kCorrupt,
                    "has 100 bytes instead of 576");
  expect_load_error(
      [](S s) {
        std::string bytes = read_text(s / "m/weights.bin");
        bytes[17] = static_cast<char>(bytes[17] ^ 1);
        write_text(s / "m/weights.bin", bytes);
      },
      ErrorCode::kCorrupt, "weights.bin: does not match the manifest");
  expect_load_error([](S s) { fs::remove(s / "m/kernels.so"); }, ErrorCode::kNotFound, "kernels.so");
  expect_load_error([](S s) { fs::resize_file(s / "m/kernels.so", 1000); }, ErrorCode::kCorrupt,
                    "kernels.so: does not match the manifest");
  expect_load_error([](S s) { change_manifest(s, "\"matmul\"", "\"matmul2\""); }, ErrorCode::kCorrupt,
                    "has no kernel 'matmul2'");
  expect_load_error(
      [](S s) { change_manifest(s, "\"cpu_features\": []", "\"cpu_features\": [\"avx9000\"]"); },
      ErrorCode::kUnsupported, "compiled for avx9000, which this CPU does not have");
  expect_load_error(
      [](S s) { change_manifest(s, "\"cpu_features\": []", "\"cpu_features\": [\"amx-9000\"]"); },
      ErrorCode::kUnsupported,
      "compiled for the matrix units amx-9000, which this CPU does not have or the operating system");
  expect_load_error(
      [](S s) { change_manifest(s, "\"arch\": \"" + std::string(host_arch()), "\"arch\": \"pdp-11"); },
      ErrorCode::kUnsupported, "compiled for pdp-11");
}

// Without the library's description of its kernels, each of these models would read or write out of
// bounds.
TEST(Model, KernelsGetWhatTheyNeed) {
  const struct {
    std::function<void(ModelDescription&)> damage;
    const char* message;
  } cases[] = {
      {[](auto& d) { d.calls[0].buffers.clear(), d.calls[0].outputs = 0; },
       "kernel 'matmul': takes 2 inputs and 1 outputs, but the manifest gives it 0 and 0"},
      {[](auto& d) { d.calls[0].buffers.erase(d.calls[0].buffers.begin()); },
       "takes 2 inputs and 1 outputs, but the manifest gives it 1 and 1"},
      {[](auto& d) { d.calls[1].outputs = 1; },
       "takes 2 inputs and 2 outputs, but the manifest gives it 3 and 1"},
      {[](auto& d) { d.calls[0].symbol = "bias_relu_count"; }, "takes 2 inputs and 2 outputs"},
      {[](auto& d) { d.calls[0].buffers[2].bytes = 192; },
       "needs 256 bytes as buffer 2, but the manifest gives it 192"},
      {[](auto& d) { d.inputs[0].shape = {4, 4}, d.calls[0].buffers[0].bytes = 64; },
       "needs 128 bytes as buffer 0, but the manifest gives it 64"},
      {[](auto& d) { d.calls[1].shared_workspace_bytes = 0; }, "needs more workspace"},
      {[](auto& d) { d.calls[1].thread_workspace_bytes = 63; }, "needs more workspace"},
      {[](auto& d) { d.calls[0].symbol = "matmul_info"; },
       "does not say what its kernel 'matmul_info' needs"},
  };
  for (const auto& c : cases) {
    ScratchDirectory scratch;
    const TinyModel tiny;
    ModelDescription d = tiny.description();
    c.damage(d);
    ASSERT_TRUE(write_model(scratch / "m", d, std::string(TINY_KERNELS), tiny.weights()).ok()) << c.message;
    const auto model = Model::load(scratch / "m", {.threads = 1});
    ASSERT_FALSE(model.ok()) << c.message;
    EXPECT_EQ(model.error().code, ErrorCode::kCorrupt);
    EXPECT_THAT(model.error().message(), HasSubstr(c.message));
  }
}

TEST(Model, FilesThatAreNoFiles) {
  namespace fs = std::filesystem;
  for (const char* name : {"manifest.json", "weights.bin", "kernels.so"}) {
    ScratchDirectory scratch;
    ASSERT_TRUE(TinyModel().write(scratch / "m").ok());
    const std::string path = scratch / ("m/" + std::string(name));
    fs::remove(path);
    ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
    const auto model =
        Model::load(scratch / "m", {.threads = 1});  // opening the FIFO would wait for a writer
    ASSERT_FALSE(model.ok());
    EXPECT_THAT(model.error().message(), HasSubstr("is a FIFO or pipe, not a file"));
    fs::remove(path);
    fs::create_symlink("/dev/zero", path);
    EXPECT_THAT(Model::load(scratch / "m", {.threads = 1}).error().message(),
                HasSubstr("is a device, not a file"));
  }
  // A manifest too long to be read in reasonable time is not read at all.
  ScratchDirectory scratch;
  ASSERT_TRUE(TinyModel().write(scratch / "m").ok());
  fs::resize_file(scratch / "m/manifest.json", kMaxManifestBytes + 1);
  EXPECT_THAT(Model::load(scratch / "m", {.threads = 1}).error().message(),
              HasSubstr("is longer than 64 MiB"));
}

TEST(Model, KernelsThatAreNoLibrary) {
  ScratchDirectory scratch;
  TinyModel tiny;
  const std::string text = "no library";
  ASSERT_TRUE(
      write_model(scratch / "m", tiny.description(), std::span<const char>(text), tiny.weights()).ok());
  auto model = Model::load(scratch / "m");
  ASSERT_FALSE(model.ok());
  EXPECT_EQ(model.error().code, ErrorCode::kCorrupt);
  EXPECT_THAT(model.error().message(), HasSubstr("cannot be loaded"));
}

}  // namespace
}  // namespace tensorsmith::runtime::model_test
