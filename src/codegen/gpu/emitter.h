// A loop program as the text of a GPU's kernels, in a language that is like C.
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
  int warpgroup_pipelines = 0;  // of these
  // What stands between the prelude and the text: functions for instructions that few kernels use.
  std::string instructions;
  std::vector<std::string> scalar_products;  // why nests that tensor cores might compute are scalar code
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
  GpuKernelEmitter(const GpuKernel& kernel, const MmaKernel& mma, const WarpgroupKernel& warpgroups,
                   std::unordered_set<const ir::StmtNode*> barriers, const CodegenOptions& options,
                   const GpuDialect& dialect);

  // parameters: what it gets, in order; of those in `read_only` nothing is written.
  std::string run(const std::string& symbol, const std::vector<ir::Buffer>& parameters,
                  const std::unordered_set<const ir::BufferNode*>& read_only);
  int64_t launch_shared_bytes() const { return launch_shared_bytes_; }
  // By name, their texts.
  const std::map<std::string, std::string>& instructions() const { return instructions_; }

 private:
  void declare_shared();
  void emit(const ir::Stmt& s);
  void emit_for(const ir::Stmt& s, const ir::For& loop);
  void emit_vectorized(const ir::For& loop, int64_t lanes);
  void emit_store(const ir::Store& store);
  void emit_if(const ir::IfThenElse& branch);
  void emit_allocate(const ir::Allocate& allocate);
  // Whether lanes of a warp can differ in it.
  bool differs_by_lane(const ir::Expr& e) const;
  void meet_before(const ir::Stmt& s);
  // Whether the loop is written to be unrolled: it indexes private arrays, which are registers then, or is asked to.
  bool unrolls(const ir::Stmt& s, const ir::For& loop, int64_t extent);
  int64_t steps(const ir::Stmt& s);
  // A vector of a buffer's elements (vector_access.h).
  void emit_vector_store(const ir::Store& store, const ir::Var& lane, int64_t lanes);
  // In place of the loop, where lanes can exchange what they store (quad_store.h); says whether.
  bool emit_quad_store(const ir::For& loop, int64_t steps);
  void emit_lane_values(const ir::Expr& value, const ir::Var& lane, int64_t lanes, const ir::Buffer& result);
  ir::Expr load_vectors(const ir::Expr& value, const ir::Var& lane, int64_t lanes);
  void copy(const ir::Buffer& buffer, int64_t lanes, const std::string& to, const std::string& from);
  ir::Buffer lane_array(const std::string& name, ir::DType dtype, int64_t lanes);
  bool in_memory(const ir::Buffer& buffer) const;

  // Tensor cores (tensor_core_emit.cc). Names of where a lane's lines of a tile begin, and of how chunks are exchanged.
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
  // lane: of the elements that are copied at once; null: the store is of one.
  bool emit_asynchronous(const ir::Store& store, const ir::Var* lane, int64_t lanes);
  // Of the stages of each tile, that at this place is meant until leave_place; returns the tiles' own names.
  std::vector<std::string> enter_place(const CopyPipeline& pipeline, const std::string& place);
  void leave_place(const CopyPipeline& pipeline, const std::vector<std::string>& names);
  std::string place(ScalarWriter& writer, const ir::Buffer& buffer, const std::vector<ir::Expr>& indices);

  // Sums in pairs of registers (register_tile.cc). What take_pairs returns names the pairs.
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
  // Names of the ring of stages: barriers, the next stage, and the parity of its phase.
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
  int64_t unroll_limit_ = 0;  // steps up to which loops are unrolled here
  int64_t launch_shared_bytes_ = 0;
  bool in_pipeline_ = false, asynchronous_ = false;
  bool lanes_agree_ = true;                // a warp's threads all come here, or none
  std::vector<ir::Buffer> lane_arrays_;    // keeps them alive
  std::vector<ir::Expr> kept_;             // the same
  std::vector<ir::Stmt> kept_statements_;  // the same, so that none is mistaken for another in steps_
  std::unordered_map<const ir::StmtNode*, int64_t> steps_;
  std::map<std::string, std::string> instructions_;
  RingText ring_;
  std::unordered_map<const ir::BufferNode*, std::string> maps_;  // by tile, the parameter's name
  bool copies_only_ = false;
};

}  // namespace tensorsmith::codegen
