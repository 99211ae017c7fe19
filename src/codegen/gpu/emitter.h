// Emits a loop program as the text of GPU kernels, in a C-like language.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <utility>
#include <vector>

#include "codegen/backend.h"
#include "codegen/c/expr.h"
#include "codegen/gpu/dialect.h"
#include "codegen/gpu/register_tile.h"
#include "codegen/gpu/tensor_core_nest.h"
#include "codegen/gpu/warpgroup_nest.h"

namespace tensorsmith::codegen {

struct GpuSource {
  std::string text;  // kernels NAME_0, NAME_1, ... without gpu_prelude()
  std::vector<runtime::Launch> launches;
  int64_t workspace_bytes = 0;
  int tensor_core_nests = 0, pipelines = 0;
  int warpgroup_pipelines = 0;  // pipelines whose products warpgroups compute
  // Functions for instructions that few kernels use; they go between the prelude and the text.
  std::string instructions;
  std::vector<std::string> scalar_products;  // why candidate nests do not use tensor cores
};

// Returns the beginning of every file of kernels, which is the same for all kernels of a dialect.
std::string gpu_prelude(const GpuDialect& dialect);

// Errors: kUnsupported for programs that a GPU cannot run (kernels.h, virtual_threads.h,
// barriers.h); kResourceExhausted for blocks beyond the device's limits; kInvalidArgument for
// symbols that are not identifiers of C.
Result<GpuSource> emit_gpu(const ir::Program& program, const target::Device& device,
                           const CodegenOptions& options, const GpuDialect& dialect);

// Emits the text of one kernel.
class GpuKernelEmitter {
 public:
  GpuKernelEmitter(const GpuKernel& kernel, const MmaKernel& mma, const WarpgroupKernel& warpgroups,
                   std::unordered_set<const ir::StmtNode*> barriers, const CodegenOptions& options,
                   const GpuDialect& dialect);

  // Emits the kernel with these parameters, in order; those in `read_only` are never written.
  std::string run(const std::string& symbol, const std::vector<ir::Buffer>& parameters,
                  const std::unordered_set<const ir::BufferNode*>& read_only);
  int64_t launch_shared_bytes() const { return launch_shared_bytes_; }
  // Texts of the special instructions' functions by name.
  const std::map<std::string, std::string>& instructions() const { return instructions_; }

 private:
  void declare_shared();
  void emit(const ir::Stmt& s);
  void emit_for(const ir::Stmt& s, const ir::For& loop);
  void emit_vectorized(const ir::For& loop, int64_t lanes);
  void emit_store(const ir::Store& store);
  void emit_if(const ir::IfThenElse& branch);
  void emit_allocate(const ir::Allocate& allocate);
  // Returns whether the value can differ between the lanes of a warp.
  bool differs_by_lane(const ir::Expr& e) const;
  void meet_before(const ir::Stmt& s);
  // Returns whether the loop is emitted unrolled: because it indexes private arrays, which then
  // become registers, or because the schedule requests it.
  bool unrolls(const ir::Stmt& s, const ir::For& loop, int64_t extent);
  int64_t steps(const ir::Stmt& s);
  // Stores a vector of a buffer's elements (vector_access.h).
  void emit_vector_store(const ir::Store& store, const ir::Var& lane, int64_t lanes);
  // Emits the loop so that lanes exchange the values that they store (quad_store.h), if they can;
  // returns whether it did.
  bool emit_quad_store(const ir::For& loop, int64_t steps);
  void emit_lane_values(const ir::Expr& value, const ir::Var& lane, int64_t lanes, const ir::Buffer& result);
  ir::Expr load_vectors(const ir::Expr& value, const ir::Var& lane, int64_t lanes);
  void copy(const ir::Buffer& buffer, int64_t lanes, const std::string& to, const std::string& from);
  ir::Buffer lane_array(const std::string& name, ir::DType dtype, int64_t lanes);
  bool in_memory(const ir::Buffer& buffer) const;

  // Tensor cores (tensor_core_emit.cc): names of the variables that hold the address of a lane's
  // line of a tile, the number of its first chunk, and the mask that swizzles chunks.
  struct TileText {
    std::string tile, chunk, swap;
  };
  TileText declare_tile(const MmaTile& tile, bool is_a);
  void emit_fragment(const MmaTile& tile, const TileText& text, const std::string& registers, int64_t lines,
                     int64_t units, const std::string& step);
  void emit_elements(const MmaTile& tile, const TileText& text, const std::string& registers, int64_t units,
                     const std::string& step, bool is_a);
  void emit_mma(const MmaNest& nest);
  void emit_pipeline(const ir::For& loop, const CopyPipeline& pipeline);
  void emit_copies(const CopyPipeline& pipeline, const std::string& place);
  // Starts the copies of all stages but one, before the loop over chunks.
  void copy_ahead(const ir::VarNode* chunk, const CopyPipeline& pipeline);
  // Emits an asynchronous copy if possible. `lane` is the variable of the elements that are copied
  // at once; null if the store has one element.
  bool emit_asynchronous(const ir::Store& store, const ir::Var* lane, int64_t lanes);
  // Makes the tiles' names refer to the stage `place` until leave_place; returns the tiles' own
  // names.
  std::vector<std::string> enter_place(const CopyPipeline& pipeline, const std::string& place);
  void leave_place(const CopyPipeline& pipeline, const std::vector<std::string>& names);
  std::string place(ScalarWriter& writer, const ir::Buffer& buffer, const std::vector<ir::Expr>& indices);

  // Sums in pairs of registers (register_tile.cc). take_pairs returns the name of the array of
  // pairs.
  std::string take_pairs(const RegisterTile& tile);
  void return_pairs(const RegisterTile& tile, const std::string& pairs);
  void emit_register_tile(const RegisterTile& tile, const std::string& pairs);

  // Warpgroups (warpgroup_emit.cc).
  void declare_warpgroup_shared(const WarpgroupPipeline& p);
  void declare_ring(const WarpgroupPipeline& p);
  void emit_in_roles(const ir::Stmt& body);
  void emit_warpgroup_loop(const ir::For& loop, const WarpgroupPipeline& p);
  void emit_copying_loop(const ir::For& loop, const WarpgroupPipeline& p);
  void emit_meeting_loop(const ir::For& loop, const WarpgroupPipeline& p);
  void emit_waiting_loop(const ir::For& loop, const WarpgroupPipeline& p);
  void emit_box_loop(const ir::For& loop, const WarpgroupPipeline& p);
  void emit_products(const WarpgroupPipeline& p);
  void emit_boxes(const WarpgroupPipeline& p, const std::string& stage);
  void open_chunks(const ir::For& loop, const WarpgroupPipeline& p);
  void close_chunks(const ir::For& loop);
  void advance_ring(const WarpgroupPipeline& p);
  std::string text_of(const ir::Expr& e);
  std::string place_in_panels(ScalarWriter& writer, const WarpgroupTile& tile,
                              const std::vector<ir::Expr>& indices);
  // Names of the ring of stages: its barriers, the next stage, and the parity of its phase.
  struct RingText {
    std::string full, empty, stage, parity;
  };

  const GpuKernel& kernel_;
  const MmaKernel& mma_;
  const WarpgroupKernel& warpgroups_;
  const std::unordered_set<const ir::StmtNode*> barriers_;
  const GpuDialect& dialect_;
  Environment env_;
  Block* out_ = nullptr;
  int64_t unroll_limit_ = 0;  // most steps of a loop that is unrolled here
  int64_t launch_shared_bytes_ = 0;
  bool in_pipeline_ = false, asynchronous_ = false;
  bool lanes_agree_ = true;                // all threads of a warp come here, or none
  std::vector<ir::Buffer> lane_arrays_;    // keeps the buffers alive
  std::vector<ir::Expr> kept_;             // keeps the expressions alive
  std::vector<ir::Stmt> kept_statements_;  // keeps the statements alive, so that the keys of steps_
                                           // stay unique
  std::unordered_map<const ir::StmtNode*, int64_t> steps_;
  std::map<std::string, std::string> instructions_;
  RingText ring_;
  std::unordered_map<const ir::BufferNode*, std::string> maps_;  // tensor map parameters
  bool copies_only_ = false;
};

}  // namespace tensorsmith::codegen
