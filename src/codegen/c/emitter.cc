#include "codegen/c/emitter.h"

#include <algorithm>
#include <utility>

#include "codegen/captures.h"
#include "codegen/launch.h"
#include "codegen/promote.h"
#include "codegen/widen.h"
#include "ir/simplify.h"

namespace tensorsmith::codegen {

using ir::For;
using ir::ForKind;
using ir::Stmt;

namespace {

// A loop of at most this many vectors is unrolled.
constexpr int64_t kMaxVectorsInLine = 8;
// The fewest lanes of any vector function in the header.
constexpr int64_t kMinLanes = 4;

}  // namespace

CEmitter::CEmitter(const ir::Program& program, const target::Device& device, const CodegenOptions& options,
                   const Dialect& dialect)
    : program_(promote_accumulators(widen_copies(program), device.register_count(), device.register_bytes())),
      vector_bytes_(device.register_bytes()),
      options_(options),
      dialect_(dialect),
      decisions_(program_, device.register_count()),
      env_{dialect, options, {}, {}, {}, {}, {}} {}

CSource CEmitter::run() {
  const std::string plain = functions(false);
  std::string in_vectors = dialect_.vectors.empty() ? "" : functions(true);
  CSource source;
  source.symbol = options_.symbol;
  source.shared_workspace_bytes = shared_bytes_;
  source.thread_workspace_bytes = thread_bytes_;
  source.text = "/* Kernel '" + options_.symbol + "' */\n" + std::string(dialect_.prologue) + "#include \"" +
                std::string(dialect_.header) + "\"\n\n" + c_declarations(options_.symbol) + "\n";
  std::string demands;
  for (const int64_t field : demands_of(program_, shared_bytes_, thread_bytes_))
    demands += (demands.empty() ? "" : ", ") + std::to_string(field);
  source.text += "const int64_t " + options_.symbol + TENSORSMITH_INFO_SUFFIX + "[] = {" + demands + "};\n\n";
  if (wrote_vectors_) {
    source.text += "#if " + std::string(dialect_.vectors) + "\n\n" + vector_parts_.definitions() + "\n" +
                   in_vectors + "\n#else\n\n" + plain + "\n#endif\n";
  } else {
    source.text += plain;
  }
  return source;
}

std::string CEmitter::pointer_type(ir::DType dtype, bool read_only) const {
  return std::string(read_only ? "const " : "") + std::string(memory_type(dtype)) + "*";
}

std::string CEmitter::declaration(const ir::Buffer& buffer, bool read_only) const {
  return pointer_type(buffer->dtype, read_only) + " " + std::string(dialect_.restrict_pointer) + " const " +
         env_.buffers.at(buffer.get());
}

std::string CEmitter::functions(bool vectors) {
  vectors_ = vectors;
  bodies_.clear();
  parallel_bodies_ = 0;
  emitted_steps_ = 0;
  env_.names = {};
  for (const char* name :
       {"context", "buffers", "thread", "args", "begin", "end", "shared_workspace", "thread_workspace"})
    env_.names.make(name);
  env_.names.make(options_.symbol);
  env_.buffers.clear();
  f_ = {};
  for (const auto* list : {&program_.inputs, &program_.outputs})
    for (const ir::Buffer& b : *list) env_.buffers[b.get()] = env_.names.make(b->name);

  Block body;
  out_ = &body;
  emit(program_.body);

  const Captures used = program_.body ? captures_of(program_.body) : Captures{};
  Block function;
  function.open("void " + options_.symbol +
                "(const TensorsmithKernelContext* context, void* const* buffers)");
  size_t position = 0;
  for (const auto* list : {&program_.inputs, &program_.outputs}) {
    for (const ir::Buffer& b : *list) {
      const bool is_used = std::find(used.buffers.begin(), used.buffers.end(), b) != used.buffers.end();
      const bool read_only = list == &program_.inputs;
      if (is_used) {
        function.line(declaration(b, read_only) + " = (" + pointer_type(b->dtype, read_only) + ")buffers[" +
                      std::to_string(position) + "];");
      }
      ++position;
    }
  }
  if (!f_.uses_shared && parallel_bodies_ == 0) function.line("(void)context;");
  if (f_.uses_shared) function.line("char* const shared_workspace = (char*)context->shared_workspace;");
  function.append(std::move(body));
  function.close();
  return bodies_ + function.str();
}

void CEmitter::emit(const Stmt& s) {
  if (!s) return;
  ir::visit(ir::overloaded{[&](const For& loop) { emit_for(s, loop); },
                           [&](const ir::Store& store) { emit_store(store); },
                           [&](const ir::IfThenElse& branch) { emit_if(branch); },
                           [&](const ir::Seq& seq) {
                             for (const Stmt& part : seq.stmts) emit(part);
                           },
                           [&](const ir::Allocate& allocate) { emit_allocate(allocate); }},
            s);
}

void CEmitter::emit_store(const ir::Store& store) {
  ++emitted_steps_;
  // The names of shared subexpressions are local to the statement.
  Block inside;
  if (lanes_ > 1) {
    LaneWriter(env_, inside, vector_parts_, *lane_, lanes_).store(store);
  } else {
    ScalarWriter writer(env_, inside);
    const ir::Expr value = writer.announce(store.value);
    std::vector<ir::Expr> indices;
    for (const ir::Expr& i : store.indices) indices.push_back(writer.announce(i));
    const Text v = writer.to_memory(store.buffer->dtype, writer.value(value));
    inside.line(writer.place(store.buffer, indices) + " = " + v.text + ";");
  }
  out_->append(std::move(inside));
}

void CEmitter::emit_for(const Stmt& s, const For& loop) {
  const std::optional<int64_t> extent = ir::as_int(loop.extent);
  if (extent && *extent <= 0) return;
  if (extent && *extent == 1) return emit_unrolled(loop, 1);
  switch (loop.kind) {
    case ForKind::kVectorized:
      if (vectors_ && lanes_ == 1 && extent && decisions_.vectorizable(s)) {
        const auto lanes = lanes_of_body(loop, vector_bytes_);
        if (lanes && *lanes >= kMinLanes && *extent >= kMinLanes) return emit_lanes(loop, *extent, *lanes);
      }
      return emit_serial(loop);
    case ForKind::kParallel:
      if (!f_.in_parallel && lanes_ == 1 && extent) return emit_parallel(loop, *extent);
      return emit_serial(loop);
    case ForKind::kSerial:
    case ForKind::kUnrolled:
      // Elements of a local array can live in registers where all indices are constant.
      if (vectors_ && extent && decisions_.indexes_registers(s) &&
          decisions_.steps(s) <= LoopDecisions::kMaxUnrolledSteps &&
          emitted_steps_ + decisions_.steps(s) <= LoopDecisions::kMaxProgramSteps)
        return emit_unrolled(loop, *extent);
      return emit_serial(loop);
    case ForKind::kThread:
      throw_internal_error(__FILE__, __LINE__, "a GPU loop in CPU code");
  }
}

void CEmitter::emit_unrolled(const For& loop, int64_t extent) {
  const ir::VarNode* node = loop.var.get();
  for (int64_t i = 0; i < extent; ++i) {
    env_.constants[node] = ir::Expr(i);
    emit(loop.body);
  }
  env_.constants.erase(node);
}

void CEmitter::emit_serial(const For& loop) {
  ScalarWriter writer(env_, *out_);
  const ir::Expr extent = writer.announce(loop.extent);
  const ir::Interval range = ir::bounds_of(extent, env_.bounds);
  const std::string limit = writer.value(extent).at_least(Strength::kSum);
  const std::string name = env_.names.make(loop.var.name());
  const ir::VarNode* node = loop.var.get();
  env_.vars[node] = name;
  env_.bounds[node] = {0,
                       range.max == ir::Interval::kPosInf ? range.max : std::max<int64_t>(range.max - 1, 0)};
  out_->open("for (int64_t " + name + " = 0; " + name + " < " + limit + "; ++" + name + ")");
  emit(loop.body);
  out_->close();
  env_.bounds.erase(node);
  env_.vars.erase(node);
}

// Emits full vectors, then shorter vectors for the remainder, then single elements.
void CEmitter::emit_lanes(const For& loop, int64_t extent, int64_t lanes) {
  wrote_vectors_ = true;
  const ir::VarNode* node = loop.var.get();
  const auto at = [&](int64_t start, int64_t count) {
    env_.constants[node] = ir::Expr(start);
    lane_ = &loop.var;
    lanes_ = count;
    emit(loop.body);
    lanes_ = 1;
    lane_ = nullptr;
    env_.constants.erase(node);
  };
  int64_t start = 0;
  if (extent / lanes > kMaxVectorsInLine) {
    const int64_t end = extent / lanes * lanes;
    const std::string name = env_.names.make(loop.var.name());
    env_.vars[node] = name;
    env_.bounds[node] = {0, extent - lanes};
    out_->open("for (int64_t " + name + " = 0; " + name + " < " + std::to_string(end) + "; " + name +
               " += " + std::to_string(lanes) + ")");
    lane_ = &loop.var;
    lanes_ = lanes;
    emit(loop.body);
    lanes_ = 1;
    lane_ = nullptr;
    out_->close();
    env_.bounds.erase(node);
    env_.vars.erase(node);
    start = end;
  }
  for (int64_t width = lanes; start < extent;) {
    while (width > extent - start) width /= 2;
    if (width < kMinLanes) width = 1;
    at(start, width);
    start += width;
  }
}

void CEmitter::emit_if(const ir::IfThenElse& branch) {
  ScalarWriter writer(env_, *out_);
  const ir::Expr condition = ir::simplify(writer.announce(branch.condition), env_.bounds);
  if (const auto known = ir::as_int(condition)) {
    if (*known != 0) return emit(branch.then_body);
    return emit(branch.else_body);
  }
  out_->open("if (" + writer.value(condition).text + ")");
  emit(branch.then_body);
  if (branch.else_body) {
    out_->middle("} else {");
    emit(branch.else_body);
  }
  out_->close();
}

void CEmitter::emit_allocate(const ir::Allocate& allocate) {
  const ir::Buffer& buffer = allocate.buffer;
  const int64_t elements = std::max<int64_t>(buffer->allocation_elements(), 1);
  const int64_t bytes = ir::bytes_of(buffer->dtype, elements);
  const std::string name = env_.names.make(buffer->name);
  env_.buffers[buffer.get()] = name;
  const std::string type(memory_type(buffer->dtype));
  const bool on_stack = bytes <= kMaxStackBuffer && f_.stack_bytes + bytes <= kMaxStack;
  out_->open("");
  if (on_stack) {
    f_.stack_bytes += bytes;
    out_->line(type + " " + name + "[" + std::to_string(elements) + "] " + std::string(dialect_.aligned) +
               ";");
  } else {
    int64_t& total = f_.in_parallel ? thread_bytes_ : shared_bytes_;
    const auto [it, is_new] = workspace_offset_.try_emplace(buffer.get(), total);
    if (is_new) total += aligned_to_buffer(bytes);
    (f_.in_parallel ? f_.uses_thread : f_.uses_shared) = true;
    out_->line(declaration(buffer, false) + " = (" + type + "*)(void*)(" +
               (f_.in_parallel ? "thread_workspace" : "shared_workspace") + " + " +
               std::to_string(it->second) + ");");
  }
  emit(allocate.body);
  out_->close();
  if (on_stack) f_.stack_bytes -= bytes;
  env_.buffers.erase(buffer.get());
}

// Emits the body as a function of its own, which gets its captures through a structure.
void CEmitter::emit_parallel(const For& loop, int64_t extent) {
  const Captures used = captures_of(loop.body);
  const std::string function = options_.symbol + "_part" + std::to_string(parallel_bodies_++);
  Block structure, unpack;
  std::string pack = "context";
  structure.open("struct " + function + "_args");
  structure.line("const TensorsmithKernelContext* context;");
  for (const ir::Buffer& b : used.buffers) {
    const auto name = env_.buffers.find(b.get());
    if (name == env_.buffers.end()) continue;
    const bool read_only =
        std::find(program_.inputs.begin(), program_.inputs.end(), b) != program_.inputs.end();
    structure.line(pointer_type(b->dtype, read_only) + " " + name->second + ";");
    unpack.line(declaration(b, read_only) + " = args->" + name->second + ";");
    pack += ", " + name->second;
  }
  for (const ir::Var& v : used.vars) {
    const auto name = env_.vars.find(v.get());
    if (name == env_.vars.end()) continue;
    structure.line("int64_t " + name->second + ";");
    unpack.line("const int64_t " + name->second + " = args->" + name->second + ";");
    pack += ", " + name->second;
  }
  structure.close("};");

  Block body;
  Block* const outer_out = std::exchange(out_, &body);
  Function outer = std::exchange(f_, {});
  f_.in_parallel = true;
  const std::string name = env_.names.make(loop.var.name());
  env_.vars[loop.var.get()] = name;
  env_.bounds[loop.var.get()] = {0, extent - 1};
  body.open("for (int64_t " + name + " = begin; " + name + " < end; ++" + name + ")");
  emit(loop.body);
  body.close();
  env_.bounds.erase(loop.var.get());
  env_.vars.erase(loop.var.get());

  Block text;
  text.append(std::move(structure));
  text.open(std::string(dialect_.function) + " void " + function +
            "(void* closure, int64_t begin, int64_t end, int32_t thread)");
  text.line("const struct " + function + "_args* const args = (const struct " + function + "_args*)closure;");
  text.append(std::move(unpack));
  if (f_.uses_thread) {
    text.line("char* const thread_workspace =");
    text.line(
        "    (char*)args->context->thread_workspace + thread * args->context->thread_workspace_stride;");
  } else {
    text.line("(void)thread;");
  }
  text.append(std::move(body));
  text.close();
  bodies_ += text.str() + "\n";
  f_ = outer;
  out_ = outer_out;

  out_->open("");
  out_->line("struct " + function + "_args args = {" + pack + "};");
  out_->line("context->parallel_for(context->pool, " + std::to_string(extent) + ", " + function +
             ", &args);");
  out_->close();
}

}  // namespace tensorsmith::codegen
