// Compiles loop programs, loads them into the test and runs them.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "codegen/backend.h"
#include "lower/interpreter.h"

namespace tensorsmith::test {

// The backend under test: that of TENSORSMITH_TEST_BACKEND in the environment, else the default.
const codegen::Backend& backend();

// Variants of this machine that can be executed here, strongest first: the instruction sets of isas.h. With
// TENSORSMITH_TEST_ISA in the environment that one alone; where the processor lacks it, all tests are
// skipped.
const std::vector<target::Device>& local_devices();

// Compiles for the device, runs on threads threads, returns the outputs. Workspaces are filled with garbage.
Result<std::vector<lower::Tensor>> compile_and_run(const ir::Program& program, const target::Device& device,
                                                   std::span<const lower::Tensor> inputs, int threads = 2);

// Which end of each input is next to memory that cannot be read.
enum class Fences { kBegin, kEnd };

// Runs a kernel that is already loaded.
std::vector<lower::Tensor> run_kernel(TensorsmithKernel function, const codegen::CompiledKernel& kernel,
                                      const ir::Program& program, std::span<const lower::Tensor> inputs,
                                      int threads, Fences fences = Fences::kEnd);

// Undefined symbols of an object file that the backend under test must not leave.
std::vector<std::string> undefined_symbols(const std::vector<char>& object);

// Whether two elements agree: integers exactly; floats within relative + absolute tolerance, NaN with NaN,
// infinities exactly.
bool close(ir::Scalar got, ir::Scalar want, double relative, double absolute);
// Empty if all elements agree, else a line about the first that does not.
std::string compare(const lower::Tensor& got, const lower::Tensor& want, double relative, double absolute);

}  // namespace tensorsmith::test
