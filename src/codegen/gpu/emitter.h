// A loop program as the text of a GPU's kernels, in a language that is like C.
#pragma once

#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "codegen/backend.h"
#include "codegen/c/expr.h"
#include "codegen/gpu/dialect.h"

namespace tensorsmith::codegen {

struct GpuSource {
  std::string text;  // kernels NAME_0, NAME_1, ... without gpu_prelude()
  std::vector<runtime::Launch> launches;
  int64_t workspace_bytes = 0;
};

// What every file of kernels begins with: the same for all of a dialect.
std::string gpu_prelude(const GpuDialect& dialect);

// kUnsupported: programs that a GPU cannot run (kernels.h, virtual_threads.h, barriers.h); kResourceExhausted: blocks
// beyond the device's limits; kInvalidArgument: symbols that are no names of C.
Result<GpuSource> emit_gpu(const ir::Program& program, const target::Device& device,
                           const CodegenOptions& options, const GpuDialect& dialect);

// What Backend::link makes of modules: one after the other.
std::vector<char> join_modules(const std::vector<std::vector<char>>& modules);

// The text of one kernel.
class GpuKernelEmitter {
 public:
  GpuKernelEmitter(const GpuKernel& kernel, std::unordered_set<const ir::StmtNode*> barriers,
                   const CodegenOptions& options, const GpuDialect& dialect);

  // parameters: what it gets, in order; of those in `read_only` nothing is written.
  std::string run(const std::string& symbol, const std::vector<ir::Buffer>& parameters,
                  const std::unordered_set<const ir::BufferNode*>& read_only);
  int64_t launch_shared_bytes() const { return launch_shared_bytes_; }

 private:
  void declare_shared();
  void emit(const ir::Stmt& s);
  void emit_for(const ir::Stmt& s, const ir::For& loop);
  void emit_vectorized(const ir::For& loop, int64_t lanes);
  void emit_store(const ir::Store& store);
  void emit_if(const ir::IfThenElse& branch);
  void emit_allocate(const ir::Allocate& allocate);
  // Whether the loop is written to be unrolled: it indexes private arrays, which are registers then, or is asked to.
  bool unrolls(const ir::Stmt& s, const ir::For& loop, int64_t extent);
  int64_t steps(const ir::Stmt& s);
  // A vector of a buffer's elements (vector_access.h).
  void emit_vector_store(const ir::Store& store, const ir::Var& lane, int64_t lanes);
  void emit_lane_values(const ir::Expr& value, const ir::Var& lane, int64_t lanes, const ir::Buffer& result);
  ir::Expr load_vectors(const ir::Expr& value, const ir::Var& lane, int64_t lanes);
  void copy(const ir::Buffer& buffer, int64_t lanes, const std::string& to, const std::string& from);
  ir::Buffer lane_array(const std::string& name, ir::DType dtype, int64_t lanes);
  bool in_memory(const ir::Buffer& buffer) const;

  const GpuKernel& kernel_;
  const std::unordered_set<const ir::StmtNode*> barriers_;
  const GpuDialect& dialect_;
  Environment env_;
  Block* out_ = nullptr;
  int64_t unroll_limit_ = 0;  // steps up to which loops are unrolled here
  int64_t launch_shared_bytes_ = 0;
  std::vector<ir::Buffer> lane_arrays_;  // keeps them alive
  std::unordered_map<const ir::StmtNode*, int64_t> steps_;
};

}  // namespace tensorsmith::codegen
