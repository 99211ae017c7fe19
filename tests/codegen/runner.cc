#include "codegen/runner.h"

#include <elf.h>
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <new>

#include "codegen/isas.h"
#include "runtime/kernel_pool.h"

namespace tensorsmith::test {
namespace {

// 64-byte aligned memory between guard bytes, which reveal a kernel that writes outside a buffer.
class Block {
 public:
  explicit Block(size_t bytes, unsigned char fill) : bytes_(bytes) {
    data_ = static_cast<unsigned char*>(::operator new(bytes + 2 * kGuard, std::align_val_t(64)));
    std::memset(data_, 0xa5, bytes + 2 * kGuard);
    std::memset(data(), fill, bytes);
  }
  ~Block() { ::operator delete(data_, std::align_val_t(64)); }
  Block(const Block&) = delete;
  Block& operator=(const Block&) = delete;
  void* data() { return data_ + kGuard; }
  bool intact() const {
    for (size_t i = 0; i < kGuard; ++i)
      if (data_[i] != 0xa5 || data_[kGuard + bytes_ + i] != 0xa5) return false;
    return true;
  }

 private:
  static constexpr size_t kGuard = 256;
  size_t bytes_;
  unsigned char* data_;
};

// An input between inaccessible pages: a kernel that reads outside of it crashes the test. The
// buffer touches one of the pages; at its end only up to the 64-byte alignment.
class Fenced {
 public:
  Fenced(size_t bytes, bool at_end) {
    const size_t page = 4096;
    const size_t inside = (bytes + page - 1) / page * page;
    length_ = inside + 2 * page;
    void* all = mmap(nullptr, length_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    TS_CHECK(all != MAP_FAILED, "no memory");
    begin_ = static_cast<unsigned char*>(all);
    TS_CHECK(mprotect(begin_, page, PROT_NONE) == 0 && mprotect(begin_ + page + inside, page, PROT_NONE) == 0,
             "no fences");
    data_ = begin_ + page + (at_end ? (inside - bytes) / 64 * 64 : 0);
  }
  ~Fenced() { munmap(begin_, length_); }
  Fenced(const Fenced&) = delete;
  Fenced& operator=(const Fenced&) = delete;
  void* data() { return data_; }

 private:
  unsigned char* begin_ = nullptr;
  unsigned char* data_ = nullptr;
  size_t length_ = 0;
};

}  // namespace

const codegen::Backend& backend() {
  static const codegen::Backend& chosen = [&]() -> const codegen::Backend& {
    const char* wanted = std::getenv("TENSORSMITH_TEST_BACKEND");
    return wanted == nullptr ? codegen::default_backend() : *codegen::find_backend(wanted).value();
  }();
  return chosen;
}

const std::vector<target::Device>& local_devices() {
  static const std::vector<target::Device> devices = [] {
    std::vector<target::Device> all;
    const char* wanted = std::getenv("TENSORSMITH_TEST_ISA");
    for (const std::string& isa : all_isas()) {
      if (wanted != nullptr && isa != wanted) continue;
      if (auto device = local_device_with(isa)) all.insert(all.begin(), *std::move(device));
    }
    if (all.empty() && wanted == nullptr) all.push_back(target::probe_local().value());
    if (!backend().traits().self_contained && wanted == nullptr) {
      // Each kernel takes a process, so only the strongest set is tested, with and without vectors.
      all.resize(1);
      all.push_back(all.front());
      all.back().name += " without vectors";
      all.back().cpu().vector_bytes = 4;
    }
    return all;
  }();
  return devices;
}

namespace {

class SkipWithoutIsa : public ::testing::Environment {
 public:
  void SetUp() override {
    if (local_devices().empty())
      GTEST_SKIP() << "this processor has no " << std::getenv("TENSORSMITH_TEST_ISA");
  }
};
[[maybe_unused]] const auto* const registered = ::testing::AddGlobalTestEnvironment(new SkipWithoutIsa);

}  // namespace

std::vector<lower::Tensor> run_kernel(TensorsmithKernel function, const codegen::CompiledKernel& kernel,
                                      const ir::Program& program, std::span<const lower::Tensor> inputs,
                                      int threads, Fences fences) {
  std::vector<std::unique_ptr<Block>> blocks;
  std::vector<void*> pointers;
  const auto add = [&](size_t bytes, unsigned char fill) {
    blocks.push_back(std::make_unique<Block>(bytes, fill));
    pointers.push_back(blocks.back()->data());
  };
  TS_CHECK(inputs.size() == program.inputs.size(), "run_kernel: wrong number of inputs");
  std::vector<std::unique_ptr<Fenced>> fenced;
  for (const lower::Tensor& t : inputs) {
    fenced.push_back(std::make_unique<Fenced>(t.data.size(), fences == Fences::kEnd));
    pointers.push_back(fenced.back()->data());
    if (!t.data.empty()) std::memcpy(pointers.back(), t.data.data(), t.data.size());
  }
  std::vector<lower::Tensor> outputs;
  for (const ir::Buffer& b : program.outputs) {
    outputs.push_back(lower::Tensor::zeros(b->dtype, b->shape));
    add(outputs.back().data.size(), 0xcd);
  }
  runtime::KernelPool pool(threads);
  Block shared(static_cast<size_t>(kernel.shared_workspace_bytes), 0xee);
  const int64_t stride = (kernel.thread_workspace_bytes + 63) / 64 * 64;
  Block per_thread(static_cast<size_t>(stride * threads), 0xee);
  TensorsmithKernelContext context{};
  context.parallel_for = &runtime::KernelPool::parallel_for_abi;
  context.pool = &pool;
  context.num_threads = threads;
  context.shared_workspace = shared.data();
  context.thread_workspace = per_thread.data();
  context.thread_workspace_stride = stride;
  function(&context, pointers.data());
  for (const auto& block : blocks) TS_CHECK(block->intact(), "the kernel wrote outside of a buffer");
  TS_CHECK(shared.intact() && per_thread.intact(), "the kernel wrote outside of its workspace");
  for (size_t i = 0; i < outputs.size(); ++i)
    if (!outputs[i].data.empty())
      std::memcpy(outputs[i].data.data(), pointers[inputs.size() + i], outputs[i].data.size());
  return outputs;
}

Result<std::vector<lower::Tensor>> compile_and_run(const ir::Program& program, const target::Device& device,
                                                   std::span<const lower::Tensor> inputs, int threads) {
  TS_ASSIGN_OR_RETURN(const codegen::CompiledKernel kernel, backend().compile(program, device, {}));
  TS_ASSIGN_OR_RETURN(const auto loaded, backend().load(kernel.object, kernel.symbol));
  return run_kernel(loaded->function(), kernel, program, inputs, threads);
}

namespace {

// Kernels that are not self-contained may use only C's memory and mathematical functions.
bool is_allowed(std::string_view symbol) {
  if (backend().traits().self_contained) return false;
  for (const std::string_view name : {"memcpy", "memset", "memmove", "_GLOBAL_OFFSET_TABLE_"})
    if (symbol == name) return true;
  if (symbol.ends_with('f')) symbol.remove_suffix(1);  // the float variant
  for (const std::string_view name :
       {"exp",   "log",   "sin", "cos", "tan",   "asin", "acos", "atan",  "sinh", "cosh", "tanh", "asinh",
        "acosh", "atanh", "er",  "erf", "floor", "ceil", "rint", "trunc", "pow",  "fmod", "sqrt", "fma"})
    if (symbol == name) return true;
  return false;
}

}  // namespace

std::vector<std::string> undefined_symbols(const std::vector<char>& object) {
  std::vector<std::string> names;
  const auto read = [&]<typename T>(size_t offset, T) {
    T v;
    std::memcpy(&v, object.data() + offset, sizeof(T));
    return v;
  };
  const auto header = read(0, Elf64_Ehdr{});
  for (int s = 0; s < header.e_shnum; ++s) {
    const auto section = read(header.e_shoff + static_cast<size_t>(s) * sizeof(Elf64_Shdr), Elf64_Shdr{});
    if (section.sh_type != SHT_SYMTAB) continue;
    const auto strings = read(header.e_shoff + section.sh_link * sizeof(Elf64_Shdr), Elf64_Shdr{});
    for (size_t at = 0; at < section.sh_size; at += sizeof(Elf64_Sym)) {
      const auto symbol = read(section.sh_offset + at, Elf64_Sym{});
      const char* name = object.data() + strings.sh_offset + symbol.st_name;
      if (symbol.st_shndx == SHN_UNDEF && *name != '\0' && !is_allowed(name)) names.emplace_back(name);
    }
  }
  return names;
}

bool close(ir::Scalar got, ir::Scalar want, double relative, double absolute) {
  if (!ir::is_float(want.dtype)) return got.i == want.i;
  if (std::isnan(want.f) || std::isnan(got.f)) return std::isnan(want.f) && std::isnan(got.f);
  if (std::isinf(want.f) || std::isinf(got.f)) return want.f == got.f;
  return std::fabs(got.f - want.f) <= absolute + relative * std::fabs(want.f);
}

std::string compare(const lower::Tensor& got, const lower::Tensor& want, double relative, double absolute) {
  if (got.dtype != want.dtype || got.shape != want.shape) return "shapes or dtypes differ";
  for (int64_t i = 0; i < want.num_elements(); ++i) {
    const ir::Scalar g = got.at(i);
    const ir::Scalar w = want.at(i);
    if (!close(g, w, relative, absolute)) {
      return "element " + std::to_string(i) + ": got " +
             std::to_string(ir::is_float(g.dtype) ? g.f : double(g.i)) + ", want " +
             std::to_string(ir::is_float(w.dtype) ? w.f : double(w.i));
    }
  }
  return {};
}

}  // namespace tensorsmith::test
