#include "codegen/gpu/emitter.h"

#include <algorithm>
#include <cctype>
#include <utility>

#include "codegen/c/header_text.h"
#include "codegen/gpu/barriers.h"
#include "codegen/gpu/index_width.h"
#include "codegen/gpu/vector_access.h"
#include "codegen/gpu/virtual_threads.h"
#include "codegen/launch.h"
#include "codegen/loop_decisions.h"
#include "ir/analysis.h"
#include "ir/parts.h"
#include "ir/simplify.h"
#include "ir/verify_program.h"
#include "sched/tensor_cores.h"

namespace tensorsmith::codegen {

using ir::Buffer;
using ir::Expr;
using ir::For;
using ir::ForKind;
using ir::Stmt;

namespace {

// Most bytes of a thread's private arrays: with more, the local memory of all threads would exceed
// a device's memory.
constexpr int64_t kMaxPrivateBytes = 64 << 10;

int64_t elements_of(const Buffer& buffer, const MmaKernel& mma) {
  const auto copies = mma.copies.find(buffer.get());
  return std::max<int64_t>(buffer->allocation_elements(), 1) *
         (copies == mma.copies.end() ? 1 : copies->second);
}

int64_t bytes_of_buffer(const Buffer& buffer, const MmaKernel& mma) {
  return ir::bytes_of(buffer->dtype, elements_of(buffer, mma));
}

GpuExtents extents_with_producer(GpuExtents extents, const WarpgroupKernel& warpgroups) {
  if (warpgroups.own_producer) extents[kThreadY] += sched::kWarpgroupWarps;
  return extents;
}

}  // namespace

GpuKernelEmitter::GpuKernelEmitter(const GpuKernel& kernel, const MmaKernel& mma,
                                   const WarpgroupKernel& warpgroups,
                                   std::unordered_set<const ir::StmtNode*> barriers,
                                   const CodegenOptions& options, const GpuDialect& dialect)
    : kernel_(kernel),
      mma_(mma),
      warpgroups_(warpgroups),
      barriers_(std::move(barriers)),
      dialect_(dialect),
      env_{dialect.c, options, {}, {}, {}, {}, {}, indices_fit_32_bits(kernel) ? "int" : "int64_t"} {}

std::string GpuKernelEmitter::run(const std::string& symbol, const std::vector<Buffer>& parameters,
                                  const std::unordered_set<const ir::BufferNode*>& read_only) {
  env_.names.make(symbol);
  env_.names.make("launch_shared");
  std::string list;
  for (const Buffer& b : parameters) {
    const std::string name = env_.names.make(b->name);
    env_.buffers[b.get()] = name;
    list += (list.empty() ? "" : ", ") + std::string(dialect_.device_pointer) +
            (read_only.contains(b.get()) ? "const " : "") + std::string(memory_type(b->dtype)) + "* " +
            std::string(dialect_.c.restrict_pointer) + " " + name;
  }
  const WarpgroupPipeline* pipeline = warpgroups_.pipeline();
  if (warpgroups_.uses_boxes) {
    for (const WarpgroupTile* tile : {&pipeline->a, &pipeline->b}) {
      const std::string name = env_.names.make(tile->buffer->name + "_map");
      maps_[tile->buffer.get()] = name;
      list += ", TS_MAP " + name;
    }
  }
  Block function;
  function.open(dialect_.kernel_head(extents_with_producer(kernel_.extents, warpgroups_)) +
                (warpgroups_.in_clusters ? "__cluster_dims__(2, 1, 1) " : "") + "void " + symbol + "(" +
                list + ")");
  out_ = &function;
  declare_shared();
  for (size_t axis = 0; axis < kGpuAxes; ++axis) {
    const ir::Var& var = kernel_.index[axis];
    if (kernel_.extents[axis] == 1) {
      env_.constants[var.get()] = Expr(0);
      continue;
    }
    const std::string name = env_.names.make(var.name());
    env_.vars[var.get()] = name;
    env_.bounds[var.get()] = {0, kernel_.extents[axis] - 1};
    function.line("const " + env_.index_type + " " + name + " = (" + env_.index_type + ")" +
                  std::string(dialect_.indices[axis]) + ";");
  }
  if (warpgroups_.uses_boxes) declare_ring(*pipeline);
  if (warpgroups_.own_producer)
    emit_in_roles(kernel_.body);
  else
    emit(kernel_.body);
  function.close();
  return function.str();
}

void GpuKernelEmitter::declare_shared() {
  if (const WarpgroupPipeline* p = warpgroups_.pipeline(); p != nullptr) return declare_warpgroup_shared(*p);
  int64_t bytes = 0;
  for (const Buffer& b : kernel_.shared) bytes += aligned_to_buffer(bytes_of_buffer(b, mma_));
  const bool from_launch = dialect_.declared_shared_bytes > 0 && bytes > dialect_.declared_shared_bytes;
  if (from_launch) {
    launch_shared_bytes_ = bytes;
    out_->line(std::string(dialect_.launch_shared));
  }
  int64_t offset = 0;
  for (const Buffer& b : kernel_.shared) {
    const std::string name = env_.names.make(b->name);
    env_.buffers[b.get()] = name;
    const std::string type(memory_type(b->dtype));
    const int64_t elements = elements_of(b, mma_);
    if (from_launch) {
      out_->line(type + "* const " + name + " = (" + type + "*)(launch_shared + " + std::to_string(offset) +
                 ");");
    } else {
      out_->line(std::string(dialect_.shared) + " " + type + " " + name + "[" + std::to_string(elements) +
                 "] " + std::string(dialect_.c.aligned) + ";");
    }
    offset += aligned_to_buffer(bytes_of_buffer(b, mma_));
  }
}

void GpuKernelEmitter::emit(const Stmt& s) {
  if (s == nullptr) return;
  meet_before(s);
  if (const auto found = warpgroups_.pipelines.find(s.get()); found != warpgroups_.pipelines.end())
    return emit_warpgroup_loop(*ir::as<For>(s), found->second);
  if (const auto nest = mma_.nests.find(s.get()); nest != mma_.nests.end()) return emit_mma(nest->second);
  if (const auto found = mma_.pipelines.find(s.get()); found != mma_.pipelines.end())
    return emit_pipeline(*ir::as<For>(s), found->second);
  ir::visit(ir::overloaded{[&](const For& loop) { emit_for(s, loop); },
                           [&](const ir::Store& store) { emit_store(store); },
                           [&](const ir::IfThenElse& branch) { emit_if(branch); },
                           [&](const ir::Seq& seq) {
                             for (const Stmt& part : seq.stmts) emit(part);
                           },
                           [&](const ir::Allocate& allocate) { emit_allocate(allocate); }},
            s);
}

void GpuKernelEmitter::meet_before(const Stmt& s) {
  // A ring of stages synchronizes by barriers of its own, and no other data is shared.
  if (warpgroups_.uses_boxes) return;
  if (!in_pipeline_ && barriers_.contains(s.get())) out_->line(std::string(dialect_.barrier));
}

void GpuKernelEmitter::emit_store(const ir::Store& store) {
  if (emit_asynchronous(store, nullptr, 1)) return;
  Block inside;
  ScalarWriter writer(env_, inside);
  const Expr value = writer.announce(store.value);
  std::vector<Expr> indices;
  for (const Expr& i : store.indices) indices.push_back(writer.announce(i));
  const Text v = writer.to_memory(store.buffer->dtype, writer.value(value));
  inside.line(place(writer, store.buffer, indices) + " = " + v.text + ";");
  out_->append(std::move(inside));
}

void GpuKernelEmitter::emit_for(const Stmt& s, const For& loop) {
  const std::optional<int64_t> extent =
      ir::as_int(ir::simplify(ir::substitute(loop.extent, env_.constants), env_.bounds));
  const ir::VarNode* node = loop.var.get();
  if (extent && *extent <= 0) return;
  if (extent && *extent == 1) {
    env_.constants[node] = Expr(0);
    emit(loop.body);
    env_.constants.erase(node);
    return;
  }
  if (loop.kind == ForKind::kVectorized && extent && ir::as<ir::Store>(loop.body) != nullptr)
    return emit_vectorized(loop, *extent);
  // If a condition guards a whole vector, it is emitted around the vector.
  if (const auto* guard = ir::as<ir::IfThenElse>(loop.body);
      guard != nullptr && loop.kind == ForKind::kVectorized && guard->else_body == nullptr &&
      !ir::uses_var(guard->condition, loop.var)) {
    meet_before(loop.body);
    For inside = loop;
    inside.body = guard->then_body;
    kept_statements_.push_back(ir::make_for(std::move(inside)));
    return emit_if({guard->condition, kept_statements_.back(), nullptr});
  }
  if (extent && loop.kind != ForKind::kVectorized && unrolls(s, loop, *extent) &&
      emit_quad_store(loop, *extent))
    return;
  const int64_t limit_outside = unroll_limit_;
  const bool agreed = lanes_agree_;
  if (!extent && differs_by_lane(loop.extent)) lanes_agree_ = false;
  if (loop.auto_unroll_max_step > 0) unroll_limit_ = std::max(unroll_limit_, loop.auto_unroll_max_step);
  ScalarWriter writer(env_, *out_);
  const Expr length = writer.announce(loop.extent);
  const ir::Interval range = ir::bounds_of(length, env_.bounds);
  const std::string limit = writer.value(length).at_least(Strength::kSum);
  const std::string name = env_.names.make(loop.var.name());
  env_.vars[node] = name;
  env_.bounds[node] = {0,
                       range.max == ir::Interval::kPosInf ? range.max : std::max<int64_t>(range.max - 1, 0)};
  if (extent && unrolls(s, loop, *extent)) out_->line(std::string(dialect_.unroll));
  out_->open("for (" + env_.index_type + " " + name + " = 0; " + name + " < " + limit + "; ++" + name + ")");
  emit(loop.body);
  out_->close();
  env_.bounds.erase(node);
  env_.vars.erase(node);
  unroll_limit_ = limit_outside;
  lanes_agree_ = agreed;
}

bool GpuKernelEmitter::differs_by_lane(const Expr& e) const {
  return ir::uses_var(e, kernel_.index[kThreadX]) || !ir::loads_of(e).empty();
}

int64_t GpuKernelEmitter::steps(const Stmt& s) {
  if (s == nullptr) return 0;
  if (const auto it = steps_.find(s.get()); it != steps_.end()) return it->second;
  const int64_t result = ir::visit(
      ir::overloaded{
          [&](const For& loop) {
            const auto extent = ir::as_int(loop.extent);
            return extent
                       ? std::min(LoopDecisions::kManySteps, steps(loop.body) * std::max<int64_t>(*extent, 0))
                       : LoopDecisions::kManySteps;
          },
          [&](const ir::Store&) { return int64_t{1}; },
          [&](const ir::IfThenElse& branch) { return steps(branch.then_body) + steps(branch.else_body); },
          [&](const ir::Seq& seq) {
            int64_t sum = 0;
            for (const Stmt& part : seq.stmts) sum = std::min(LoopDecisions::kManySteps, sum + steps(part));
            return sum;
          },
          [&](const ir::Allocate& allocate) { return steps(allocate.body); }},
      s);
  steps_[s.get()] = result;
  return result;
}

bool GpuKernelEmitter::unrolls(const Stmt& s, const For& loop, int64_t extent) {
  const int64_t all = steps(s);
  if (all > LoopDecisions::kMaxUnrolledSteps) return false;
  if (loop.kind == ForKind::kUnrolled || loop.kind == ForKind::kVectorized) return true;
  if (all <= unroll_limit_ || extent == 1) return true;
  bool indexes_private = false;
  const auto check = [&](const Buffer& buffer, const std::vector<Expr>& indices) {
    if (in_memory(buffer)) return;
    for (const Expr& i : indices) indexes_private = indexes_private || ir::uses_var(i, loop.var);
  };
  ir::for_each_stmt(loop.body, [&](const Stmt& inner) {
    const auto* store = ir::as<ir::Store>(inner);
    if (store == nullptr) return;
    check(store->buffer, store->indices);
    for (const ir::Load* load : ir::loads_of(store->value)) check(load->buffer, load->indices);
  });
  return indexes_private;
}

void GpuKernelEmitter::emit_if(const ir::IfThenElse& branch) {
  ScalarWriter writer(env_, *out_);
  const Expr condition = ir::simplify(writer.announce(branch.condition), env_.bounds);
  if (const auto known = ir::as_int(condition))
    return emit(*known != 0 ? branch.then_body : branch.else_body);
  const bool agreed = lanes_agree_;
  if (differs_by_lane(condition)) lanes_agree_ = false;
  out_->open("if (" + writer.value(condition).text + ")");
  emit(branch.then_body);
  if (branch.else_body) {
    out_->middle("} else {");
    emit(branch.else_body);
  }
  out_->close();
  lanes_agree_ = agreed;
}

void GpuKernelEmitter::emit_allocate(const ir::Allocate& allocate) {
  const Buffer& buffer = allocate.buffer;
  if (kernel_.memory.at(buffer.get()) == GpuMemory::kShared) return emit(allocate.body);
  const std::string name = env_.names.make(buffer->name);
  env_.buffers[buffer.get()] = name;
  out_->open("");
  out_->line(std::string(memory_type(buffer->dtype)) + " " + name + "[" +
             std::to_string(std::max<int64_t>(buffer->allocation_elements(), 1)) + "] " +
             std::string(dialect_.c.aligned) + ";");
  emit(allocate.body);
  out_->close();
  env_.buffers.erase(buffer.get());
}

// --- vectors

bool GpuKernelEmitter::in_memory(const Buffer& buffer) const {
  return kernel_.memory_of(buffer.get()) != GpuMemory::kPrivate;
}

Buffer GpuKernelEmitter::lane_array(const std::string& name, ir::DType dtype, int64_t lanes) {
  Buffer array = ir::make_buffer(name, dtype, {lanes}, ir::MemoryScope::kLocal);
  lane_arrays_.push_back(array);
  env_.buffers[array.get()] = env_.names.make(name);
  out_->line(std::string(memory_type(dtype)) + " " + env_.buffers[array.get()] + "[" + std::to_string(lanes) +
             "] " + std::string(dialect_.c.aligned) + ";");
  return array;
}

void GpuKernelEmitter::copy(const Buffer& buffer, int64_t lanes, const std::string& to,
                            const std::string& from) {
  out_->line("TS_COPY(" + std::to_string(lanes) + ", " + std::to_string(lanes * ir::bytes_of(buffer->dtype)) +
             ", " + to + ", " + from + ");");
}

// Emits the vector loads of the value and returns the value with their lanes in place of the loads.
Expr GpuKernelEmitter::load_vectors(const Expr& value, const ir::Var& lane, int64_t lanes) {
  std::unordered_map<const ir::ExprNode*, Expr> loaded;
  for (const Expr& e : certain_loads(value)) {
    const auto& load = *ir::as<ir::Load>(e);
    if (!in_memory(load.buffer) || !is_vector(load.buffer, load.indices, lane, lanes, env_.bounds)) continue;
    const Buffer array = lane_array("v", load.buffer->dtype, lanes);
    ScalarWriter writer(env_, *out_);
    std::vector<Expr> first;
    for (const Expr& i : load.indices)
      first.push_back(writer.announce(ir::substitute(i, {{lane.get(), Expr(0)}})));
    copy(load.buffer, lanes, env_.buffers.at(array.get()), "&" + writer.place(load.buffer, first));
    loaded[e.get()] = ir::load(array, {Expr(lane)});
  }
  return ir::rewrite(value, [&](const Expr& x) {
    const auto it = loaded.find(x.get());
    return it == loaded.end() ? x : it->second;
  });
}

void GpuKernelEmitter::emit_lane_values(const Expr& value, const ir::Var& lane, int64_t lanes,
                                        const Buffer& result) {
  const auto* select = ir::as<ir::Select>(value);
  if (select != nullptr && !ir::uses_var(select->condition, lane)) {
    ScalarWriter writer(env_, *out_);
    out_->open("if (" + writer.value(writer.announce(select->condition)).text + ")");
    emit_lane_values(select->a, lane, lanes, result);
    out_->middle("} else {");
    emit_lane_values(select->b, lane, lanes, result);
    out_->close();
    return;
  }
  if (const auto* load = ir::as<ir::Load>(value);
      load != nullptr && load->buffer->dtype == result->dtype && in_memory(load->buffer) &&
      is_vector(load->buffer, load->indices, lane, lanes, env_.bounds)) {
    ScalarWriter writer(env_, *out_);
    std::vector<Expr> first;
    for (const Expr& i : load->indices)
      first.push_back(writer.announce(ir::substitute(i, {{lane.get(), Expr(0)}})));
    return copy(result, lanes, env_.buffers.at(result.get()), "&" + writer.place(load->buffer, first));
  }
  const Expr of_lanes = load_vectors(value, lane, lanes);
  for (int64_t k = 0; k < lanes; ++k) {
    env_.constants[lane.get()] = Expr(k);
    emit_store({result, {Expr(k)}, of_lanes});
  }
  env_.constants.erase(lane.get());
}

void GpuKernelEmitter::emit_vector_store(const ir::Store& store, const ir::Var& lane, int64_t lanes) {
  out_->open("");
  const Buffer result = lane_array("r", store.buffer->dtype, lanes);
  const Expr value = ir::substitute(store.value, env_.constants);
  emit_lane_values(value, lane, lanes, result);
  ScalarWriter writer(env_, *out_);
  std::vector<Expr> first;
  for (const Expr& i : store.indices)
    first.push_back(writer.announce(ir::substitute(i, {{lane.get(), Expr(0)}})));
  copy(store.buffer, lanes, "&" + place(writer, store.buffer, first), env_.buffers.at(result.get()));
  out_->close();
}

void GpuKernelEmitter::emit_vectorized(const For& loop, int64_t lanes) {
  const auto& store = *ir::as<ir::Store>(loop.body);
  std::vector<Expr> indices;
  for (const Expr& i : store.indices) indices.push_back(ir::substitute(i, env_.constants));
  meet_before(loop.body);
  if (in_memory(store.buffer) && is_vector(store.buffer, indices, loop.var, lanes, env_.bounds))
    return emit_asynchronous(store, &loop.var, lanes) ? void() : emit_vector_store(store, loop.var, lanes);
  // Stores element by element, but loads vectors.
  out_->open("");
  const Expr value = load_vectors(ir::substitute(store.value, env_.constants), loop.var, lanes);
  for (int64_t k = 0; k < lanes; ++k) {
    env_.constants[loop.var.get()] = Expr(k);
    emit_store({store.buffer, store.indices, value});
  }
  env_.constants.erase(loop.var.get());
  out_->close();
}

// --- programs

namespace {

Status check_limits(const GpuKernel& kernel, const MmaKernel& mma, const WarpgroupKernel& warpgroups,
                    const target::Device& device) {
  const auto refuse = [](std::string reason) {
    return Error{ErrorCode::kResourceExhausted, "kernel", std::move(reason)};
  };
  int64_t shared = 0, own = 0;
  for (const Buffer& b : kernel.shared) shared += aligned_to_buffer(bytes_of_buffer(b, mma));
  if (const WarpgroupPipeline* p = warpgroups.pipeline(); p != nullptr) shared = warpgroup_shared_bytes(*p);
  ir::for_each_stmt(kernel.body, [&](const Stmt& s) {
    const auto* allocate = ir::as<ir::Allocate>(s);
    if (allocate != nullptr && kernel.memory.at(allocate->buffer.get()) == GpuMemory::kPrivate)
      own += bytes_of_buffer(allocate->buffer, mma);
  });
  const GpuExtents extents = extents_with_producer(kernel.extents, warpgroups);
  const int64_t threads = extents[kThreadX] * extents[kThreadY] * extents[kThreadZ];
  const target::GpuFigures& gpu = device.gpu();
  if (gpu.max_threads_per_block > 0 && threads > gpu.max_threads_per_block)
    return refuse("a block has " + std::to_string(threads) + " threads, but " + device.name + " allows " +
                  std::to_string(gpu.max_threads_per_block));
  if (gpu.shared_memory_per_block > 0 && shared > gpu.shared_memory_per_block)
    return refuse("a block needs " + std::to_string(shared) + " bytes of shared memory, but " + device.name +
                  " has " + std::to_string(gpu.shared_memory_per_block));
  if (own > kMaxPrivateBytes)
    return refuse("a thread needs " + std::to_string(own) +
                  " bytes of private memory, more than the limit of " + std::to_string(kMaxPrivateBytes));
  return {};
}

Status check_emittable(const ir::Program& program, const CodegenOptions& options) {
  const auto name_ok = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; };
  if (options.symbol.empty() || std::isdigit(static_cast<unsigned char>(options.symbol.front())) != 0 ||
      !std::all_of(options.symbol.begin(), options.symbol.end(), name_ok)) {
    return Error{ErrorCode::kInvalidArgument, "codegen of '" + program.name + "'",
                 "symbol '" + options.symbol + "' is not a C identifier"};
  }
  return ir::verify(program);
}

// Returns the buffers in device memory that a kernel uses, in the order of their first use.
std::vector<Buffer> device_buffers(const GpuKernel& kernel) {
  std::vector<Buffer> used;
  const auto use = [&](const Buffer& b) {
    if (!kernel.memory.contains(b.get()) && std::find(used.begin(), used.end(), b) == used.end())
      used.push_back(b);
  };
  const auto use_loads = [&](const Expr& e) {
    for (const ir::Load* load : ir::loads_of(e)) use(load->buffer);
  };
  ir::for_each_stmt(kernel.body, [&](const Stmt& s) {
    if (const auto* store = ir::as<ir::Store>(s)) use(store->buffer);
    ir::for_each_own_expr(s, use_loads);
  });
  return used;
}

runtime::LaunchArgument argument_of(const Buffer& buffer, const ir::Program& program, const GpuProgram& gpu) {
  int64_t position = 0;
  for (const auto* list : {&program.inputs, &program.outputs}) {
    for (const Buffer& b : *list) {
      if (b == buffer) return {position, 0};
      ++position;
    }
  }
  for (const WorkspaceBuffer& w : gpu.workspace)
    if (w.buffer == buffer) return {-1, w.offset};
  throw_internal_error(__FILE__, __LINE__, "a buffer is neither an argument nor in the workspace");
}

}  // namespace

std::string gpu_prelude(const GpuDialect& dialect) {
  return std::string(dialect.c.prologue) + "\n" + kHelpersText + "\n";
}

Result<GpuSource> emit_gpu(const ir::Program& program, const target::Device& device,
                           const CodegenOptions& options, const GpuDialect& dialect) {
  TS_RETURN_IF_ERROR(check_emittable(program, options));
  TS_ASSIGN_OR_RETURN(GpuProgram gpu, split_kernels(program));
  std::unordered_set<const ir::BufferNode*> inputs;
  for (const Buffer& b : program.inputs) inputs.insert(b.get());
  GpuSource source;
  std::map<std::string, std::string> instructions;
  source.workspace_bytes = gpu.workspace_bytes;
  for (GpuKernel& kernel : gpu.kernels) {
    TS_RETURN_IF_ERROR(push_virtual_threads(kernel));
    const MmaKernel mma = find_mma(kernel, dialect.tensor_cores ? target::compute_capability(device) : 0);
    const WarpgroupKernel warpgroups =
        find_warpgroups(kernel, mma, dialect.tensor_cores ? target::compute_capability(device) : 0);
    TS_RETURN_IF_ERROR(check_limits(kernel, mma, warpgroups, device));
    source.warpgroup_pipelines += static_cast<int>(warpgroups.pipelines.size());
    source.tensor_core_nests += static_cast<int>(mma.nests.size());
    source.pipelines += static_cast<int>(mma.pipelines.size());
    source.scalar_products.insert(source.scalar_products.end(), mma.refused.begin(), mma.refused.end());
    TS_ASSIGN_OR_RETURN(auto barriers, place_barriers(kernel));
    runtime::Launch launch;
    launch.symbol = options.symbol + "_" + std::to_string(source.launches.size());
    for (size_t d = 0; d < 3; ++d) {
      launch.grid[d] = kernel.extents[d];
      launch.block[d] = extents_with_producer(kernel.extents, warpgroups)[kThreadX + d];
    }
    const std::vector<Buffer> parameters = device_buffers(kernel);
    for (const Buffer& b : parameters) launch.arguments.push_back(argument_of(b, program, gpu));
    if (warpgroups.uses_boxes) {
      const WarpgroupPipeline& p = *warpgroups.pipeline();
      for (const TensorBox* box : {&*p.box_a, &*p.box_b}) {
        launch.arguments.push_back(argument_of(box->from, program, gpu));
        launch.arguments.back().map = box->map;
      }
    }
    GpuKernelEmitter emitter(kernel, mma, warpgroups, std::move(barriers), options, dialect);
    source.text += emitter.run(launch.symbol, parameters, inputs) + "\n";
    launch.shared_bytes = emitter.launch_shared_bytes();
    instructions.insert(emitter.instructions().begin(), emitter.instructions().end());
    source.launches.push_back(std::move(launch));
  }
  if (!instructions.empty()) source.instructions = kWarpgroupText;
  for (const auto& [name, text] : instructions) source.instructions += text;
  return source;
}

}  // namespace tensorsmith::codegen
