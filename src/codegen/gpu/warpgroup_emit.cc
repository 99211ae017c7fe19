// Emits products by warpgroups (wgmma): the loop over chunks of a reduction, and the copies of the
// chunks. There are three forms:
//
// - All threads copy (cp.async): a pipeline as for mma.sync, with the fences that a warpgroup needs between
//   copies and products.
// - One of the computing threads copies boxes (TMA) into a ring of stages. Each stage has a barrier `full` that
//   the bytes arrive at. All threads synchronize when they have finished a stage, which is then refilled.
// - A separate warp copies boxes. The other warps arrive at the stage's barrier `empty`, and the block never
//   synchronizes as a whole. The kernel's text then has two versions: one for the computing warps and one,
//   reduced to the loop's copies, for the copying warp.
#include <algorithm>
#include <array>
#include <utility>

#include "codegen/c/header_text.h"
#include "codegen/gpu/block_cluster.h"
#include "codegen/gpu/emitter.h"
#include "codegen/gpu/warpgroup_nest.h"
#include "ir/analysis.h"
#include "ir/simplify.h"
#include "sched/tensor_cores.h"

namespace tensorsmith::codegen {

using ir::Buffer;
using ir::Expr;
using ir::For;
using ir::Stmt;

namespace {

constexpr int64_t kBarrierBytes = 8;
constexpr int64_t kEncodingUnit = 16;  // unit in bytes of addresses and offsets in a descriptor
// Registers per thread if two warpgroups compute beside the copying one; a block starts with 168
// per thread.
constexpr const char* kRegistersOfCopies = "40";
constexpr const char* kRegistersOfProducts = "232";
constexpr int64_t kWarpgroupsThatTake = 2;
constexpr int64_t kColumnsThatTake = 192;  // columns of an instruction; with fewer, the sums fit
                                           // the registers that a thread starts with

int64_t aligned_to_panel(int64_t bytes) {
  return (bytes + sched::kWarpgroupTileAlignment - 1) / sched::kWarpgroupTileAlignment *
         sched::kWarpgroupTileAlignment;
}

// Returns a matrix descriptor without the address (PTX ISA, "Matrix Descriptor Format").
std::string layout_of(const WarpgroupTile& tile) {
  constexpr int kLeadingBit = 16, kStrideBit = 32, kSwizzleBit = 62;
  const int64_t line = tile.line_bytes();
  // The stride offset is that of eight lines. If lines are steps, the leading offset is the
  // distance between panels.
  const uint64_t stride = 8 * line / kEncodingUnit;
  const auto leading = tile.steps_contiguous ? uint64_t{1} : tile.panel_bytes() / kEncodingUnit;
  const uint64_t swizzle = line == 128 ? 1 : line == 64 ? 2 : 3;
  return std::to_string(leading << kLeadingBit | stride << kStrideBit | swizzle << kSwizzleBit) + "ull";
}

// Returns the offset of an instruction's operand from that of the chunk's first instruction, in
// units of the descriptor.
int64_t step_offset(const WarpgroupTile& tile, int64_t step) {
  if (!tile.steps_contiguous) {
    const int64_t lines = sched::kMmaStepBytes / ir::bytes_of(tile.buffer->dtype);
    return step * lines * tile.line_bytes() / kEncodingUnit;
  }
  const int64_t at = step * sched::kMmaStepBytes;
  return (at / tile.line_bytes() * tile.panel_bytes() + at % tile.line_bytes()) / kEncodingUnit;
}

std::string instruction_name(const WarpgroupPipeline& p) {
  return p.type + ", " + std::to_string(p.columns) + ", " + (p.a.steps_contiguous ? "0" : "1") + ", " +
         (p.b.steps_contiguous ? "0" : "1");
}

std::string instruction_text(const WarpgroupPipeline& p) {
  const bool real = ir::is_float(p.a.buffer->dtype);
  const std::string sum = real ? "float" : "int", constraint = real ? "\"+f\"" : "\"+r\"";
  const int64_t sums = p.columns / 2;
  std::string list, operands;
  for (int64_t i = 0; i < sums; ++i) {
    list += (i > 0 ? ", %" : "%") + std::to_string(i);
    operands += (i > 0 ? ", " : "") + constraint + "(c[" + std::to_string(i) + "])";
  }
  const size_t split = p.type.find('_');
  const std::string a = p.type.substr(0, split),
                    b = split == std::string::npos ? a : p.type.substr(split + 1);
  std::string text = "TS_INLINE void TS_WGMMA(" + instruction_name(p) + ")(" + sum +
                     "* c, uint64_t a, uint64_t b) {\n  asm volatile(\"wgmma.mma_async.sync.aligned.m64n" +
                     std::to_string(p.columns) + (real ? "k16.f32." : "k32.s32.") + a + "." + b + " {" +
                     list + "}, %" + std::to_string(sums) + ", %" + std::to_string(sums + 1) + ", 1";
  if (real)
    text += std::string(", 1, 1, ") + (p.a.steps_contiguous ? "0" : "1") + ", " +
            (p.b.steps_contiguous ? "0" : "1");
  return text + ";\"\n               : " + operands +
         "\n               : \"l\"(a), \"l\"(b)\n               : \"memory\");\n}\n";
}

// Returns the statement reduced to the loop over chunks: all stores outside it are dropped.
Stmt only(const Stmt& s, const ir::StmtNode* chunks) {
  if (s == nullptr || s.get() == chunks) return s;
  return ir::visit(ir::overloaded{[&](const For& loop) -> Stmt {
                                    For out = loop;
                                    out.body = only(loop.body, chunks);
                                    return out.body == nullptr ? nullptr : ir::make_for(std::move(out));
                                  },
                                  [&](const ir::Store&) -> Stmt { return nullptr; },
                                  [&](const ir::IfThenElse& branch) -> Stmt {
                                    Stmt a = only(branch.then_body, chunks),
                                         b = only(branch.else_body, chunks);
                                    if (a == nullptr && b == nullptr) return nullptr;
                                    if (a == nullptr) return ir::make_if(!branch.condition, std::move(b));
                                    return ir::make_if(branch.condition, std::move(a), std::move(b));
                                  },
                                  [&](const ir::Seq& seq) -> Stmt {
                                    std::vector<Stmt> list;
                                    for (const Stmt& part : seq.stmts)
                                      if (Stmt kept = only(part, chunks)) list.push_back(std::move(kept));
                                    return list.empty() ? nullptr : ir::make_seq(std::move(list));
                                  },
                                  [&](const ir::Allocate& allocate) { return only(allocate.body, chunks); }},
                   s);
}

}  // namespace

int64_t warpgroup_shared_bytes(const WarpgroupPipeline& p) {
  int64_t bytes = sched::kWarpgroupTileAlignment;  // lost to the alignment of the first tile
  for (const WarpgroupTile* tile : {&p.a, &p.b}) bytes += aligned_to_panel(p.loop.stages * tile->bytes());
  return bytes + 2 * kBarrierBytes * p.loop.stages;
}

// Declares the tiles of a warpgroup pipeline. They are aligned explicitly, since the launch's
// memory begins at any address.
void GpuKernelEmitter::declare_warpgroup_shared(const WarpgroupPipeline& p) {
  instructions_[instruction_name(p)] = instruction_text(p);
  out_->line(std::string(dialect_.launch_shared));
  const std::string base = env_.names.make("panels");
  out_->line("char* const " + base + " = launch_shared + (-ts_shared(launch_shared) & " +
             std::to_string(sched::kWarpgroupTileAlignment - 1) + ");");
  int64_t offset = 0;
  for (const WarpgroupTile* tile : {&p.a, &p.b}) {
    const std::string name = env_.names.make(tile->buffer->name);
    env_.buffers[tile->buffer.get()] = name;
    const std::string type(memory_type(tile->buffer->dtype));
    out_->line(type + "* const " + name + " = (" + type + "*)(" + base + " + " + std::to_string(offset) +
               ");");
    offset += aligned_to_panel(p.loop.stages * tile->bytes());
  }
  launch_shared_bytes_ = warpgroup_shared_bytes(p);
  if (!warpgroups_.uses_boxes) return;
  ring_ = {env_.names.make("full"), env_.names.make("empty"), env_.names.make("stage"),
           env_.names.make("parity")};
  out_->line("uint64_t* const " + ring_.full + " = (uint64_t*)(" + base + " + " + std::to_string(offset) +
             ");");
  if (warpgroups_.own_producer)
    out_->line("uint64_t* const " + ring_.empty + " = " + ring_.full + " + " + std::to_string(p.loop.stages) +
               ";");
}

void GpuKernelEmitter::declare_ring(const WarpgroupPipeline& p) {
  const std::string x = env_.vars.at(kernel_.index[kThreadX].get()),
                    y = env_.vars.at(kernel_.index[kThreadY].get());
  const std::string s = env_.names.make("s");
  out_->open("if (" + x + " == 0 && " + y + " == 0)");
  out_->open("for (int " + s + " = 0; " + s + " < " + std::to_string(p.loop.stages) + "; ++" + s + ")");
  out_->line("ts_make_barrier(" + ring_.full + " + " + s + ", 1);");
  if (warpgroups_.own_producer)
    out_->line(
        "ts_make_barrier(" + ring_.empty + " + " + s + ", " +
        std::to_string(kernel_.extents[kThreadY] * (warpgroups_.in_clusters ? sched::kClusterBlocks : 1)) +
        ");");
  out_->close();
  out_->line("ts_publish_barriers();");
  out_->close();
  out_->line(warpgroups_.in_clusters ? "ts_meet_in_cluster();" : std::string(dialect_.barrier));
  out_->line("int " + ring_.stage + " = 0;");
  out_->line("unsigned " + ring_.parity + " = 0;");
}

// Emits the kernel's text for the copying warp and for the computing warps.
void GpuKernelEmitter::emit_in_roles(const Stmt& body) {
  const int64_t warps = kernel_.extents[kThreadY];
  const std::string x = env_.vars.at(kernel_.index[kThreadX].get()),
                    y = env_.vars.at(kernel_.index[kThreadY].get());
  const bool takes = warps == kWarpgroupsThatTake * sched::kWarpgroupWarps &&
                     warpgroups_.pipeline()->columns >= kColumnsThatTake;
  out_->open("if (" + y + " >= " + std::to_string(warps) + ")");
  if (takes) out_->line("TS_KEEP_REGISTERS(" + std::string(kRegistersOfCopies) + ");");
  out_->open("if (" + y + " == " + std::to_string(warps) + " && " + x + " == 0)");
  copies_only_ = true;
  const Stmt copies = only(body, warpgroups_.pipelines.begin()->first);
  kept_statements_.push_back(copies);
  emit(copies);
  copies_only_ = false;
  out_->close();
  out_->middle("} else {");
  if (takes) out_->line("TS_TAKE_REGISTERS(" + std::string(kRegistersOfProducts) + ");");
  emit(body);
  out_->close();
  // The block must not end earlier, since the other block of the cluster may still arrive at its
  // barriers.
  if (warpgroups_.in_clusters) out_->line("ts_meet_in_cluster();");
}

std::string GpuKernelEmitter::text_of(const Expr& e) {
  ScalarWriter writer(env_, *out_);
  return writer.value(writer.announce(e)).at_least(Strength::kPrimary);
}

// Emits the products of the stage that enter_place has set.
void GpuKernelEmitter::emit_products(const WarpgroupPipeline& p) {
  std::array<std::string, 2> descriptors;
  for (size_t f = 0; f < 2; ++f) {
    const WarpgroupTile& tile = f == 0 ? p.a : p.b;
    descriptors[f] = env_.names.make(f == 0 ? "rows" : "columns");
    std::string offset = "0";
    if (!ir::is_int_value(tile.first, 0)) {
      const int64_t unit = tile.steps_contiguous ? tile.line : tile.panel;
      const int64_t bytes = tile.steps_contiguous ? tile.line_bytes() : tile.panel_bytes();
      offset = "(int)(" + text_of(tile.first) + " / " + std::to_string(unit) + ") * " + std::to_string(bytes);
    }
    out_->line("const uint64_t " + descriptors[f] + " = ts_descriptor(" + env_.buffers.at(tile.buffer.get()) +
               ", " + offset + ", " + layout_of(tile) + ");");
  }
  out_->line("ts_begin_products();");
  for (int64_t step = 0; step < p.steps; ++step) {
    out_->line("TS_WGMMA(" + instruction_name(p) + ")(" + env_.buffers.at(p.sums.get()) + ", " +
               descriptors[0] + " + " + std::to_string(step_offset(p.a, step)) + ", " + descriptors[1] +
               " + " + std::to_string(step_offset(p.b, step)) + ");");
  }
  out_->line("ts_end_products();");
}

// Emits the copies of a chunk into this stage; the variable of the loop over chunks has its text
// already.
void GpuKernelEmitter::emit_boxes(const WarpgroupPipeline& p, const std::string& stage) {
  out_->line("ts_expect(" + ring_.full + " + " + stage + ", " + std::to_string(p.a.bytes() + p.b.bytes()) +
             ");");
  for (const auto& [tile, box] : {std::pair(&p.a, &*p.box_a), {&p.b, &*p.box_b}}) {
    std::vector<std::string> at;
    for (const Expr& begin : box->begin) at.push_back("(int)" + text_of(begin));
    // A tile that the cluster shares is copied by halves, one per block.
    const int64_t lines = box->for_cluster ? tile->lines / sched::kClusterBlocks : tile->lines;
    std::string half;
    if (box->for_cluster) {
      const std::string rank = " + (" + env_.vars.at(kernel_.index[kBlockX].get()) + " & 1) * ";
      at[*box->lines_at] += rank + std::to_string(lines);
      half = rank + std::to_string(lines * tile->panel);
    }
    for (int64_t panel = 0; panel < tile->panels(); ++panel) {
      std::string list;
      for (size_t d = 0; d < at.size(); ++d)
        list += ", " + at[d] + (d == 0 && panel > 0 ? " + " + std::to_string(panel * tile->panel) : "");
      out_->line(std::string(box->for_cluster ? "ts_copy_box_for_cluster(" : "ts_copy_box(") +
                 env_.buffers.at(tile->buffer.get()) + " + " + stage + " * " +
                 std::to_string(tile->lines * tile->line) + " + " +
                 std::to_string(panel * tile->lines * tile->panel) + half + ", " +
                 maps_.at(tile->buffer.get()) + ", " + ring_.full + " + " + stage + list + ");");
    }
  }
}

void GpuKernelEmitter::advance_ring(const WarpgroupPipeline& p) {
  out_->line("if (++" + ring_.stage + " == " + std::to_string(p.loop.stages) + ") " + ring_.stage + " = 0, " +
             ring_.parity + " ^= 1;");
}

void GpuKernelEmitter::open_chunks(const For& loop, const WarpgroupPipeline& p) {
  const std::string name = env_.names.make(loop.var.name());
  env_.vars[loop.var.get()] = name;
  env_.bounds[loop.var.get()] = {0, p.loop.chunks - 1};
  out_->line(std::string(dialect_.unroll) + " 1");
  out_->open("for (" + env_.index_type + " " + name + " = 0; " + name + " < " +
             std::to_string(p.loop.chunks) + "; ++" + name + ")");
}

void GpuKernelEmitter::close_chunks(const For& loop) {
  out_->close();
  env_.vars.erase(loop.var.get());
  env_.bounds.erase(loop.var.get());
}

void GpuKernelEmitter::emit_warpgroup_loop(const For& loop, const WarpgroupPipeline& p) {
  if (copies_only_) return emit_box_loop(loop, p);
  out_->open("");
  const std::string sums = env_.buffers.at(p.sums.get());
  out_->line("ts_hold_sums(" + sums + ");");
  if (!warpgroups_.uses_boxes)
    emit_copying_loop(loop, p);
  else if (warpgroups_.own_producer)
    emit_waiting_loop(loop, p);
  else
    emit_meeting_loop(loop, p);
  out_->line("ts_hold_sums(" + sums + ");");
  out_->close();
}

// Loop of the copying warp: it fills stages that are empty.
void GpuKernelEmitter::emit_box_loop(const For& loop, const WarpgroupPipeline& p) {
  open_chunks(loop, p);
  out_->line("ts_wait_for(" + ring_.empty + " + " + ring_.stage + ", " + ring_.parity + " ^ 1);");
  emit_boxes(p, ring_.stage);
  advance_ring(p);
  close_chunks(loop);
}

// Loop of the computing warps: the products of a chunk overlap with those of the next chunk, then
// the chunk's stage is released.
void GpuKernelEmitter::emit_waiting_loop(const For& loop, const WarpgroupPipeline& p) {
  const std::string freed = env_.names.make("freed");
  const std::string lane = env_.vars.at(kernel_.index[kThreadX].get());
  const std::string arrive = warpgroups_.in_clusters
                                 ? "if (" + lane + " < " + std::to_string(sched::kClusterBlocks) +
                                       ") ts_arrive_at(" + ring_.empty + " + " + freed + ", " + lane + ");"
                                 : "if (" + lane + " == 0) ts_arrive(" + ring_.empty + " + " + freed + ");";
  out_->line("int " + freed + " = -1;");
  open_chunks(loop, p);
  out_->line("ts_wait_for(" + ring_.full + " + " + ring_.stage + ", " + ring_.parity + ");");
  const auto names = enter_place(p.loop, ring_.stage);
  emit_products(p);
  leave_place(p.loop, names);
  out_->line("TS_WAIT_FOR_PRODUCTS(1);");
  out_->open("if (" + freed + " >= 0)");
  out_->line(arrive);
  out_->close();
  out_->line(freed + " = " + ring_.stage + ";");
  advance_ring(p);
  close_chunks(loop);
  out_->line("TS_WAIT_FOR_PRODUCTS(0);");
  out_->line(arrive);
}

// Loop in which one of the computing threads copies, too: all stages before the loop, then each
// stage once all threads have finished it.
void GpuKernelEmitter::emit_meeting_loop(const For& loop, const WarpgroupPipeline& p) {
  const std::string first = "if (" + env_.vars.at(kernel_.index[kThreadX].get()) + " == 0 && " +
                            env_.vars.at(kernel_.index[kThreadY].get()) + " == 0";
  const int64_t ahead = std::min(p.loop.stages, p.loop.chunks);
  const std::string fill = env_.names.make("fill"), next = env_.names.make("next");
  out_->open(first + ")");
  out_->line("int " + fill + " = " + ring_.stage + ";");
  for (int64_t s = 0; s < ahead; ++s) {
    env_.constants[loop.var.get()] = Expr(s);
    emit_boxes(p, fill);
    if (s + 1 < ahead)
      out_->line(fill + " = " + fill + " + 1 == " + std::to_string(p.loop.stages) + " ? 0 : " + fill +
                 " + 1;");
  }
  env_.constants.erase(loop.var.get());
  out_->close();
  open_chunks(loop, p);
  out_->line("ts_wait_for(" + ring_.full + " + " + ring_.stage + ", " + ring_.parity + ");");
  const auto names = enter_place(p.loop, ring_.stage);
  emit_products(p);
  leave_place(p.loop, names);
  out_->line("TS_WAIT_FOR_PRODUCTS(0);");
  out_->line(std::string(dialect_.barrier));
  const std::string chunk = env_.vars.at(loop.var.get());
  out_->line("const " + env_.index_type + " " + next + " = " + chunk + " + " + std::to_string(p.loop.stages) +
             ";");
  env_.vars[loop.var.get()] = next;
  out_->open(first + " && " + next + " < " + std::to_string(p.loop.chunks) + ")");
  emit_boxes(p, ring_.stage);
  out_->close();
  advance_ring(p);
  close_chunks(loop);
}

// Loop in which all threads copy: with s stages, s - 1 chunks are copied before the loop, as for
// mma.sync.
void GpuKernelEmitter::emit_copying_loop(const For& loop, const WarpgroupPipeline& p) {
  const int64_t ahead = p.loop.stages - 1;
  const bool outside = std::exchange(in_pipeline_, true);
  copy_ahead(loop.var.get(), p.loop);
  const std::string next = env_.names.make("next"), full = env_.names.make("full"),
                    free = env_.names.make("free");
  out_->line("int " + full + " = 0, " + free + " = " + std::to_string(ahead) + ";");
  open_chunks(loop, p);
  const std::string chunk = env_.vars.at(loop.var.get());
  out_->line("TS_WAIT_FOR_COPIES(" + std::to_string(ahead - 1) + ");");
  out_->line("ts_fence_async();");
  out_->line(std::string(dialect_.barrier));
  out_->line("const " + env_.index_type + " " + next + " = " + chunk + " + " + std::to_string(ahead) + ";");
  const auto names = enter_place(p.loop, full);
  emit_products(p);
  leave_place(p.loop, names);
  env_.vars[loop.var.get()] = next;
  out_->open("if (" + next + " < " + std::to_string(p.loop.chunks) + ")");
  emit_copies(p.loop, free);
  out_->close();
  out_->line("ts_end_of_copies();");
  out_->line("TS_WAIT_FOR_PRODUCTS(0);");
  for (const std::string& place : {full, free})
    out_->line(place + " = " + place + " == " + std::to_string(ahead) + " ? 0 : " + place + " + 1;");
  close_chunks(loop);
  in_pipeline_ = outside;
}

// Returns the text of an element of a tile that is stored in panels.
std::string GpuKernelEmitter::place_in_panels(ScalarWriter& writer, const WarpgroupTile& tile,
                                              const std::vector<Expr>& indices) {
  const int64_t bytes = ir::bytes_of(tile.buffer->dtype);
  kept_.push_back(flat_index(tile.buffer, indices, env_.bounds));
  const MmaSwizzle swizzle = mma_swizzle(tile.line_bytes());
  std::string at = writer.value(kept_.back()).text;
  if (tile.panels() > 1)
    at = "TS_PANELS(" + at + ", " + std::to_string(tile.lines) + ", " + std::to_string(tile.line) + ", " +
         std::to_string(tile.panel) + ")";
  return env_.buffers.at(tile.buffer.get()) + "[TS_SWIZZLE(" + at + ", " +
         std::to_string(tile.panel << swizzle.shift) + ", " + std::to_string(swizzle.mask) + ", " +
         std::to_string(kEncodingUnit / bytes) + ")]";
}

}  // namespace tensorsmith::codegen
