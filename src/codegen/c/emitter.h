// Emits a loop program as one C file: the kernel function, a function for the body of each parallel
// loop, and the kernel's demands. If vectors help, the file contains the program twice: with vector
// types for compilers that have them, and in plain C.
#pragma once

#include <string>
#include <unordered_map>
#include <vector>

#include "codegen/c/codegen.h"
#include "codegen/c/expr.h"
#include "codegen/c/lanes.h"
#include "codegen/loop_decisions.h"

namespace tensorsmith::codegen {

class CEmitter {
 public:
  CEmitter(const ir::Program& program, const target::Device& device, const CodegenOptions& options,
           const Dialect& dialect);
  CSource run();

 private:
  // Resources that the current function's code has used so far.
  struct Function {
    bool in_parallel = false;
    bool uses_shared = false, uses_thread = false;  // workspaces
    int64_t stack_bytes = 0;
  };

  std::string functions(bool vectors);
  void emit(const ir::Stmt& s);
  void emit_store(const ir::Store& store);
  void emit_for(const ir::Stmt& s, const ir::For& loop);
  void emit_serial(const ir::For& loop);
  void emit_unrolled(const ir::For& loop, int64_t extent);
  void emit_lanes(const ir::For& loop, int64_t extent, int64_t lanes);
  void emit_parallel(const ir::For& loop, int64_t extent);
  void emit_if(const ir::IfThenElse& branch);
  void emit_allocate(const ir::Allocate& allocate);
  std::string pointer_type(ir::DType dtype, bool read_only) const;
  std::string declaration(const ir::Buffer& buffer, bool read_only) const;  // for example "float*
                                                                            // restrict const C"

  const ir::Program program_;
  const int vector_bytes_;
  const CodegenOptions& options_;
  const Dialect& dialect_;
  const LoopDecisions decisions_;
  int64_t shared_bytes_ = 0;
  int64_t thread_bytes_ = 0;
  std::unordered_map<const ir::BufferNode*, int64_t> workspace_offset_;

  // State of the version under emission, with vectors or without.
  bool vectors_ = false;
  bool wrote_vectors_ = false;
  VectorParts vector_parts_;
  std::string bodies_;  // functions of the parallel loops' bodies
  int parallel_bodies_ = 0;
  int64_t emitted_steps_ = 0;
  Environment env_;
  Function f_;
  Block* out_ = nullptr;
  // The enclosing vectorized loop's variable and lanes; null and 1 if there is none.
  const ir::Var* lane_ = nullptr;
  int64_t lanes_ = 1;
};

}  // namespace tensorsmith::codegen
