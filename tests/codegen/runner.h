// Compiles loop programs, loads them into the test and runs them.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "codegen/backend.h"
#include "lower/interpreter.h"

namespace tensorsmith::test {

// Returns the backend under test: the one in the environment variable TENSORSMITH_TEST_BACKEND,
// else the default.
const codegen::Backend& backend();

// Returns the variants of this machine that can be executed, strongest first: the instruction sets
// of isas.h. If TENSORSMITH_TEST_ISA is set, only that one; all tests are skipped if the processor
// lacks it.
const std::vector<target::Device>& local_devices();

// Compiles for the device, runs with the given number of threads and returns the outputs.
// Workspaces are filled with garbage.
Result<std::vector<lower::Tensor>> compile_and_run(const ir::Program& program, const target::Device& device,
                                                   std::span<const lower::Tensor> inputs, int threads = 2);

// The end of each input that is next to inaccessible memory.
enum class Fences { kBegin, kEnd };

// Runs a kernel that is already loaded.
std::vector<lower::Tensor> run_kernel(TensorsmithKernel function, const codegen::CompiledKernel& kernel,
                                      const ir::Program& program, std::span<const lower::Tensor> inputs,
                                      int threads, Fences fences = Fences::kEnd);

// Returns undefined symbols of an object file that the backend under test must not produce.
std::vector<std::string> undefined_symbols(const std::vector<char>& object);

// Returns whether two elements agree: integers exactly; floats within relative + absolute
// tolerance, NaN with NaN, infinities exactly.
bool close(ir::Scalar got, ir::Scalar want, double relative, double absolute);
// Returns an empty string if all elements agree, else a line about the first that does not.
std::string compare(const lower::Tensor& got, const lower::Tensor& want, double relative, double absolute);

}  // namespace tensorsmith::test
