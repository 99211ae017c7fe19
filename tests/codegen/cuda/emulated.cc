#include "codegen/cuda/emulated.h"

#include <dlfcn.h>

#include <cstddef>
#include <cstdlib>
#include <fstream>

#include "base/scratch_directory.h"
#include "codegen/c/header_text.h"
#include "codegen/gpu/emitter.h"

namespace tensorsmith::test {

using lower::Tensor;

namespace {

Error failed(std::string reason) { return {ErrorCode::kMismatch, "emulation", std::move(reason)}; }

// ts_tensor_map of the emulator.
struct HostMap {
  const void* begin;
  int dimensions, element_bytes, swizzle_bytes;
  long extents[5], strides[5], box[5];
};

HostMap host_map(const runtime::TensorMap& map, const void* data) {
  HostMap out{data,
              static_cast<int>(map.extents.size()),
              static_cast<int>(map.element_bytes),
              static_cast<int>(map.swizzle_bytes),
              {},
              {},
              {}};
  for (size_t d = 0; d < map.extents.size(); ++d) {
    out.extents[d] = map.extents[d];
    out.strides[d] = d == 0 ? map.element_bytes : map.strides[d - 1];
    out.box[d] = map.box[d];
  }
  return out;
}

std::string host_text(std::string text, size_t kernels) {
  const std::string declared(codegen::cuda_c().launch_shared);
  if (const size_t at = text.find(declared); at != std::string::npos) text.erase(at, declared.size());
  std::string calls;
  for (size_t k = 0; k < kernels; ++k) {
    const std::string number = std::to_string(k);
    calls += "  if (kernel_number == " + number + ") call(&kernel_" + number + ", arguments);\n";
  }
  return "#include \"" TENSORSMITH_CUDA_EMULATOR "\"\n" + std::string(codegen::kHelpersText) + text +
         "extern \"C\" { int kernel_number = 0; }\nstatic void run_kernel(void** arguments) {\n" + calls +
         "}\n";
}

}  // namespace

Result<std::vector<Emulated>> emulate(const ir::Program& program, const target::Device& device,
                                      std::span<const Tensor> inputs,
                                      std::span<const EmulationOrder> orders) {
  codegen::CodegenOptions options;
  options.symbol = "kernel";
  TS_ASSIGN_OR_RETURN(const auto source, codegen::emit_gpu(program, device, options, codegen::cuda_c()));
  TS_ASSIGN_OR_RETURN(const auto scratch, ScratchDirectory::create("cuda_emulation"));
  std::ofstream(scratch.file("kernel.cc")) << host_text(source.text, source.launches.size());
  const std::string command = std::string(TENSORSMITH_CXX) + " -std=c++17 -O1 -w -shared -fPIC -o '" +
                              scratch.file("kernel.so") + "' '" + scratch.file("kernel.cc") + "' 2> '" +
                              scratch.file("errors") + "'";
  if (std::system(command.c_str()) != 0) {
    std::ifstream errors(scratch.file("errors"));
    return failed(std::string(std::istreambuf_iterator<char>(errors), {}) + source.text);
  }
  void* library = dlopen(scratch.file("kernel.so").c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return failed(dlerror());
  using Emulate = bool (*)(void**, const int*, const int*, int, int, int, long*, long*);
  const auto run = reinterpret_cast<Emulate>(dlsym(library, "emulate"));
  auto* const kernel_number = static_cast<int*>(dlsym(library, "kernel_number"));
  std::vector<Emulated> results;
  const int cluster = source.text.find("__cluster_dims__(2, 1, 1)") == std::string::npos ? 1 : 2;
  for (const EmulationOrder& order : orders) {
    std::vector<Tensor> own(inputs.begin(), inputs.end());
    for (const ir::Buffer& b : program.outputs) own.push_back(Tensor::zeros(b->dtype, b->shape));
    std::vector<std::max_align_t> workspace(
        static_cast<size_t>(source.workspace_bytes) / sizeof(std::max_align_t) + 1);
    Emulated all;
    for (size_t k = 0; k < source.launches.size(); ++k) {
      const auto& launch = source.launches[k];
      std::vector<HostMap> maps(launch.arguments.size());
      std::vector<void*> arguments;
      for (size_t a = 0; a < launch.arguments.size(); ++a) {
        const auto& argument = launch.arguments[a];
        void* data = argument.buffer < 0
                         ? reinterpret_cast<std::byte*>(workspace.data()) + argument.workspace_offset
                         : own[static_cast<size_t>(argument.buffer)].data.data();
        if (argument.map) maps[a] = host_map(*argument.map, data);
        arguments.push_back(argument.map ? &maps[a] : data);
      }
      int grid[3], block[3];
      for (size_t d = 0; d < 3; ++d) {
        grid[d] = static_cast<int>(launch.grid[d]);
        block[d] = static_cast<int>(launch.block[d]);
      }
      *kernel_number = static_cast<int>(k);
      long conflicts = 0, broken = 0;
      if (!run(arguments.data(), grid, block, cluster, order.early_copies ? 1 : 0, order.last_first ? 1 : 0,
               &conflicts, &broken))
        return failed("threads wait for each other forever\n" + source.text);
      all.bank_conflicts += conflicts;
      all.broken_rules += broken;
    }
    own.erase(own.begin(), own.begin() + static_cast<std::ptrdiff_t>(inputs.size()));
    all.outputs = std::move(own);
    results.push_back(std::move(all));
  }
  dlclose(library);
  return results;
}

}  // namespace tensorsmith::test
