// Emits products on tensor cores, and the copies into shared memory that run ahead of them.
#include <algorithm>

#include "codegen/gpu/emitter.h"
#include "codegen/gpu/vector_access.h"
#include "ir/analysis.h"
#include "ir/simplify.h"
#include "sched/tensor_cores.h"

namespace tensorsmith::codegen {

using ir::Buffer;
using ir::Expr;

namespace {

bool is_zero_value(const Expr& e) {
  if (const auto* value = ir::as<ir::FloatImm>(e)) return value->value == 0;
  return ir::is_int_value(e, 0);
}

}  // namespace

// Declares the address of the lane's line of the tile. Returns the names that addresses are built
// from; steps and fragments add offsets.
GpuKernelEmitter::TileText GpuKernelEmitter::declare_tile(const MmaTile& tile, bool is_a) {
  const int64_t bytes = ir::bytes_of(tile.buffer->dtype), line = tile.line * bytes;
  const std::string lane = env_.vars.at(kernel_.index[kThreadX].get());
  ScalarWriter writer(env_, *out_);
  const std::string first = writer.value(writer.announce(tile.first)).at_least(Strength::kPrimary);
  std::string at_line, at_unit = "0", within;
  if (tile.single_elements()) {
    at_line = "(" + lane + " & " + std::to_string(sched::kMmaPlaces - 1) + ")";
    within = " + " + std::to_string(bytes) + " * (" + lane + " / " + std::to_string(sched::kMmaPlaces) + ")";
  } else {
    // Determines which of a fragment's 8 x 8 matrices the lane reads a line of, and which line.
    const bool down = is_a == tile.steps_contiguous;
    at_line = down ? "(" + lane + " & 15)" : "(" + lane + " & 7) + (" + lane + " >> 4 << 3)";
    at_unit = down ? lane + " >> 4" : lane + " >> 3 & 1";
  }
  if (!ir::is_int_value(tile.first, 0)) {
    if (tile.steps_contiguous)
      at_line += " + (int)(" + first + " / " + std::to_string(tile.line) + ")";
    else
      at_unit =
          "(" + at_unit + ") + (int)(" + first + " / " + std::to_string(tile.swizzle.unit / bytes) + ")";
  }
  TileText text{env_.names.make("tile"), env_.names.make("chunk"), env_.names.make("swap")};
  const std::string line_name = env_.names.make("line");
  out_->line("const int " + line_name + " = " + at_line + ", " + text.chunk + " = " + at_unit + ";");
  out_->line("const int " + text.swap + " = " + line_name + " >> " + std::to_string(tile.swizzle.shift) +
             " & " + std::to_string(tile.swizzle.mask) + ";");
  out_->line("const unsigned " + text.tile + " = ts_shared(" + env_.buffers.at(tile.buffer.get()) + ") + " +
             line_name + " * " + std::to_string(line) + within + ";");
  return text;
}

// Loads the registers of one fragment of A, or of two fragments of B. `lines` and `units` are the
// fragment's offsets from the lane's own line and unit.
void GpuKernelEmitter::emit_fragment(const MmaTile& tile, const TileText& text, const std::string& registers,
                                     int64_t lines, int64_t units, const std::string& step) {
  const int64_t line = tile.line * ir::bytes_of(tile.buffer->dtype);
  const auto address = [&](const std::string& at_lines, const std::string& at_units) {
    return text.tile + " + " + at_lines + " + (((" + text.chunk + " + " + at_units + ") ^ " + text.swap +
           ") * " + std::to_string(tile.swizzle.unit) + ")";
  };
  // Each load takes four matrices of 8 x 8 elements of 16 bits (ldmatrix). A step is 16 lines, or
  // two chunks of each line.
  if (tile.steps_contiguous) {
    out_->line("ts_load_matrices(" + registers + ", " + address(std::to_string(lines * line), "2 * " + step) +
               ");");
  } else {
    out_->line("ts_load_transposed(" + registers + ", " +
               address(step + " * " + std::to_string(sched::kMmaRows * line), std::to_string(units)) + ");");
  }
}

// Loads a fragment of 4-byte elements, one by one. A step is 8 lines: a lane reads one of the first
// four and one of the others.
void GpuKernelEmitter::emit_elements(const MmaTile& tile, const TileText& text, const std::string& registers,
                                     int64_t units, const std::string& step, bool is_a) {
  const int64_t line = tile.line * ir::bytes_of(tile.buffer->dtype);
  for (int64_t r = 0; r < 4; ++r) {
    // The registers of A are ordered with rows changing fastest, those of B with steps changing
    // fastest.
    const int64_t half = is_a ? r / 2 : r % 2, unit = units + (is_a ? r % 2 : r / 2);
    out_->line("ts_load_element(" + registers + "[" + std::to_string(r) + "], " + text.tile + " + (2 * " +
               step + " + " + std::to_string(half) + ") * " + std::to_string(sched::kMmaPlaces * line) +
               " + (((" + text.chunk + " + " + std::to_string(unit) + ") ^ " + text.swap + ") * " +
               std::to_string(tile.swizzle.unit) + "));");
  }
}

void GpuKernelEmitter::emit_mma(const MmaNest& nest) {
  out_->open("");
  const TileText a = declare_tile(nest.a, true), b = declare_tile(nest.b, false);
  const std::string x = env_.names.make("a"), y = env_.names.make("b"), step = env_.names.make("step");
  const int64_t steps = nest.steps * ir::bytes_of(nest.a.buffer->dtype) / sched::kMmaStepBytes;
  out_->line(std::string(dialect_.unroll));
  out_->open("for (int " + step + " = 0; " + step + " < " + std::to_string(steps) + "; ++" + step + ")");
  out_->line("unsigned " + x + "[" + std::to_string(4 * nest.rows) + "], " + y + "[" +
             std::to_string(2 * nest.columns) + "];");
  const auto fragment = [&](const MmaTile& tile, const TileText& text, const std::string& registers,
                            int64_t lines, int64_t units) {
    if (tile.single_elements())
      emit_elements(tile, text, "(" + registers + ")", units, step, &tile == &nest.a);
    else
      emit_fragment(tile, text, registers, lines, units, step);
    if (tile.buffer->dtype == ir::DType::kF32) out_->line("ts_round_fragment(" + registers + ");");
  };
  // The unit of offsets is 8 rows or columns: one chunk of 16-bit elements or one unit of 32-bit
  // elements.
  for (int64_t r = 0; r < nest.rows; ++r)
    fragment(nest.a, a, x + " + " + std::to_string(4 * r), sched::kMmaRows * r, 2 * r);
  for (int64_t c = 0; c < nest.columns; c += 2)
    fragment(nest.b, b, y + " + " + std::to_string(2 * c), sched::kMmaColumns * c, c);
  std::string name = "ts_mma_" + std::string(row_of(nest.a.buffer->dtype).mma);
  if (!ir::is_float(nest.a.buffer->dtype)) name += "_" + std::string(row_of(nest.b.buffer->dtype).mma);
  const std::string sums = env_.buffers.at(nest.sums.get());
  const auto sum = [&](int64_t half, int64_t column, int64_t pair) {
    const int64_t at = nest.at[half * nest.columns + column] + pair * nest.pair;
    return sums + "[" + std::to_string(at) + "]";
  };
  for (int64_t r = 0; r < nest.rows; ++r) {
    for (int64_t c = 0; c < nest.columns; ++c) {
      out_->line(name + "(" + sum(2 * r, c, 0) + ", " + sum(2 * r, c, 1) + ", " + sum(2 * r + 1, c, 0) +
                 ", " + sum(2 * r + 1, c, 1) + ", " + x + " + " + std::to_string(4 * r) + ", " + y + " + " +
                 std::to_string(2 * c) + ");");
    }
  }
  out_->close();
  out_->close();
}

// Emits the copies of one chunk into the stage `place` of the tiles.
void GpuKernelEmitter::emit_copies(const CopyPipeline& pipeline, const std::string& place) {
  out_->open("");
  const auto names = enter_place(pipeline, place);
  asynchronous_ = true;
  for (const ir::Stmt& copy : pipeline.copies) emit(copy);
  asynchronous_ = false;
  leave_place(pipeline, names);
  out_->close();
}

std::vector<std::string> GpuKernelEmitter::enter_place(const CopyPipeline& pipeline,
                                                       const std::string& place) {
  std::vector<std::string> names;
  for (const Buffer& buffer : pipeline.tiles) {
    std::string& name = env_.buffers.at(buffer.get());
    const std::string here = env_.names.make(buffer->name + "_at");
    const std::string type(memory_type(buffer->dtype));
    out_->line(type + "* const " + here + " = " + name + " + " + place + " * " +
               std::to_string(buffer->allocation_elements()) + ";");
    names.push_back(std::exchange(name, here));
  }
  return names;
}

void GpuKernelEmitter::leave_place(const CopyPipeline& pipeline, const std::vector<std::string>& names) {
  for (size_t i = 0; i < names.size(); ++i) env_.buffers.at(pipeline.tiles[i].get()) = names[i];
}

void GpuKernelEmitter::copy_ahead(const ir::VarNode* chunk, const CopyPipeline& pipeline) {
  // An earlier iteration of a surrounding loop has read the tiles.
  out_->line(std::string(dialect_.barrier));
  for (int64_t s = 0; s < pipeline.stages - 1; ++s) {
    env_.constants[chunk] = Expr(s);
    emit_copies(pipeline, std::to_string(s));
    out_->line("ts_end_of_copies();");
  }
  env_.constants.erase(chunk);
}

// With s stages, s - 1 chunks are copied before the loop. Each iteration waits for its own chunk
// and for the other threads, which have then finished the chunk before it. It starts the copy of
// the chunk s - 1 further on into the stage that has become free, and computes.
void GpuKernelEmitter::emit_pipeline(const ir::For& loop, const CopyPipeline& pipeline) {
  const ir::VarNode* var = loop.var.get();
  const int64_t ahead = pipeline.stages - 1;
  const bool outside = std::exchange(in_pipeline_, true);
  out_->open("");
  copy_ahead(var, pipeline);
  const std::string name = env_.names.make(loop.var.name()), next = env_.names.make("next"),
                    full = env_.names.make("full"), free = env_.names.make("free");
  // The pairs are kept in registers over all chunks.
  ir::VarBounds bounds = env_.bounds;
  bounds[var] = {0, pipeline.chunks - 1};
  const auto tile = find_register_tile(pipeline.nest, kernel_, bounds, env_.constants);
  const std::string pairs = tile ? take_pairs(*tile) : "";
  out_->line("int " + full + " = 0, " + free + " = " + std::to_string(ahead) + ";");
  out_->line(std::string(dialect_.unroll) + " 1");
  out_->open("for (" + env_.index_type + " " + name + " = 0; " + name + " < " +
             std::to_string(pipeline.chunks) + "; ++" + name + ")");
  out_->line("TS_WAIT_FOR_COPIES(" + std::to_string(ahead - 1) + ");");
  out_->line(std::string(dialect_.barrier));
  out_->line("const " + env_.index_type + " " + next + " = " + name + " + " + std::to_string(ahead) + ";");
  env_.vars[var] = next;
  env_.bounds[var] = {0, pipeline.chunks - 1};
  out_->open("if (" + next + " < " + std::to_string(pipeline.chunks) + ")");
  emit_copies(pipeline, free);
  out_->close();
  out_->line("ts_end_of_copies();");
  env_.vars[var] = name;
  const auto names = enter_place(pipeline, full);
  if (tile)
    emit_register_tile(*tile, pairs);
  else
    emit(pipeline.nest);
  leave_place(pipeline, names);
  for (const std::string& place : {full, free})
    out_->line(place + " = " + place + " == " + std::to_string(ahead) + " ? 0 : " + place + " + 1;");
  out_->close();
  if (tile) return_pairs(*tile, pairs);
  env_.vars.erase(var);
  env_.bounds.erase(var);
  out_->close();
  in_pipeline_ = outside;
}

// Copies elements of device memory, or zeros, to shared memory.
bool GpuKernelEmitter::emit_asynchronous(const ir::Store& store, const ir::Var* lane, int64_t lanes) {
  const int64_t bytes = lanes * ir::bytes_of(store.buffer->dtype);
  if (!asynchronous_ || (bytes != 4 && bytes != 8 && bytes != 16)) return false;
  if (kernel_.memory_of(store.buffer.get()) != GpuMemory::kShared) return false;
  const Expr value = ir::substitute(store.value, env_.constants);
  const auto* select = ir::as<ir::Select>(value);
  const auto* load = ir::as<ir::Load>(select != nullptr ? select->a : value);
  if (load == nullptr || load->buffer->dtype != store.buffer->dtype ||
      kernel_.memory.contains(load->buffer.get()))
    return false;
  if (lane != nullptr && !is_vector(load->buffer, load->indices, *lane, lanes, env_.bounds)) return false;
  if (select != nullptr &&
      (!is_zero_value(select->b) || (lane != nullptr && ir::uses_var(select->condition, *lane))))
    return false;
  out_->open("");
  ScalarWriter writer(env_, *out_);
  const auto first = [&](const std::vector<Expr>& indices) {
    std::vector<Expr> list;
    for (const Expr& i : indices)
      list.push_back(writer.announce(lane != nullptr ? ir::substitute(i, {{lane->get(), Expr(0)}})
                                                     : ir::substitute(i, env_.constants)));
    return list;
  };
  const std::string to = place(writer, store.buffer, first(store.indices));
  const std::string from = writer.place(load->buffer, first(load->indices));
  std::string count = std::to_string(bytes);
  if (select != nullptr)
    count = writer.value(writer.announce(select->condition)).at_least(Strength::kOr) + " ? " + count + " : 0";
  out_->line("TS_COPY_AHEAD(" + std::to_string(bytes) + ", &" + to + ", &" + from + ", " + count + ");");
  out_->close();
  return true;
}

// Returns the text of the element at its swizzled place.
std::string GpuKernelEmitter::place(ScalarWriter& writer, const Buffer& buffer,
                                    const std::vector<Expr>& indices) {
  if (const auto tile = warpgroups_.tiles.find(buffer.get()); tile != warpgroups_.tiles.end())
    return place_in_panels(writer, *tile->second, indices);
  const auto tile = mma_.swizzled.find(buffer.get());
  if (tile == mma_.swizzled.end()) return writer.place(buffer, indices);
  kept_.push_back(flat_index(buffer, indices, env_.bounds));
  const MmaSwizzle& swizzle = tile->second.swizzle;
  return env_.buffers.at(buffer.get()) + "[TS_SWIZZLE(" + writer.value(kept_.back()).text + ", " +
         std::to_string(tile->second.line << swizzle.shift) + ", " + std::to_string(swizzle.mask) + ", " +
         std::to_string(swizzle.unit / ir::bytes_of(buffer->dtype)) + ")]";
}

}  // namespace tensorsmith::codegen
