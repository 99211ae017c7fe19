#include "lower/interpreter.h"

#include <algorithm>
#include <deque>
#include <memory>
#include <string>

#include "lower/bytecode.h"

namespace tensorsmith::lower {

namespace {

// A statement with its code. Values that do not depend on memory are computed in the code of the
// loop that they depend on, all others in the statement's own stream.
struct Node {
  enum class Kind : uint8_t { kFor, kStore, kIf, kSeq, kAllocate };
  Kind kind = Kind::kSeq;
  Stream stream;     // extent, condition, or value and address
  Stream iteration;  // kFor: at the start of each iteration
  RegisterId a;      // kFor: extent, kStore: address, kIf: condition
  RegisterId b;      // kFor: variable, kStore: value
  SlotId slot;       // kStore, kAllocate
  const ir::StmtNode* stmt = nullptr;
  std::vector<std::unique_ptr<Node>> children;  // kIf: then, else (may be null)
};

struct SlotInfo {
  ir::Buffer buffer;
  bool is_input = false;
  std::vector<std::byte> data;
  std::vector<uint32_t> written;
};

struct CompiledProgram {
  Code code;
  Stream root;  // values that depend on no loop
  std::unique_ptr<Node> body;
  IdVector<SlotId, SlotInfo> slots;
  std::deque<ir::Load> targets;  // the targets of stores, as accesses
};

class ProgramCompiler {
 public:
  explicit ProgramCompiler(CompiledProgram& out) : out_(out), compiler_(out.code, false) {}

  Status run(const ir::Program& program) {
    compiler_.push_level(&out_.root);
    for (const ir::Buffer& buffer : program.inputs) add_slot(buffer, true);
    for (const ir::Buffer& buffer : program.outputs) add_slot(buffer, false);
    out_.body = compile(program.body);
    return status_;
  }

 private:
  SlotId add_slot(const ir::Buffer& buffer, bool is_input) {
    const SlotId slot = out_.slots.push_back({buffer, is_input, {}, {}});
    slots_[buffer.get()] = slot;
    compiler_.bind_buffer(buffer.get(), {slot, !is_input, buffer->effective_strides()});
    return slot;
  }

  std::unique_ptr<Node> compile(const ir::Stmt& s) {
    if (s == nullptr) return nullptr;
    auto node = std::make_unique<Node>();
    node->stmt = s.get();
    ir::visit(ir::overloaded{
                  [&](const ir::For& n) { compile_for(*node, n); },
                  [&](const ir::Store& n) { compile_store(*node, n); },
                  [&](const ir::IfThenElse& n) {
                    node->kind = Node::Kind::kIf;
                    compiler_.push_level(&node->stream);
                    node->a = compiler_.compile(n.condition);
                    compiler_.pop_level();
                    node->children.push_back(compile(n.then_body));
                    node->children.push_back(compile(n.else_body));
                  },
                  [&](const ir::Seq& n) {
                    for (const ir::Stmt& child : n.stmts) node->children.push_back(compile(child));
                  },
                  [&](const ir::Allocate& n) {
                    node->kind = Node::Kind::kAllocate;
                    node->slot = add_slot(n.buffer, false);
                    node->children.push_back(compile(n.body));
                  },
              },
              s);
    return node;
  }

  void compile_for(Node& node, const ir::For& n) {
    node.kind = Node::Kind::kFor;
    compiler_.push_level(&node.stream);
    node.a = compiler_.compile(n.extent);
    compiler_.pop_level();
    compiler_.push_level(&node.iteration);
    node.b = compiler_.bind_lanes(n.var, ir::as_int(n.extent).value_or(-1));
    node.children.push_back(compile(n.body));
    compiler_.pop_level();
  }

  void compile_store(Node& node, const ir::Store& n) {
    node.kind = Node::Kind::kStore;
    const auto slot = slots_.find(n.buffer.get());
    if (slot == slots_.end() || out_.slots[slot->second].is_input) {
      status_ = Error{ErrorCode::kIllegal, "store to '" + n.buffer->name + "'",
                      slot == slots_.end() ? "the buffer is not declared" : "the buffer is an input"};
      return;
    }
    node.slot = slot->second;
    out_.targets.push_back({n.buffer, n.indices});
    compiler_.push_level(&node.stream);
    node.b = compiler_.compile(n.value);
    node.a = compiler_.compile_address(out_.targets.back());
    compiler_.pop_level();
  }

  CompiledProgram& out_;
  ExprCompiler compiler_;
  std::unordered_map<const ir::BufferNode*, SlotId> slots_;
  Status status_;
};

class ProgramRunner final : private BytecodeMachine<1> {
 public:
  explicit ProgramRunner(CompiledProgram& program) : BytecodeMachine<1>(program.code), program_(program) {
    for (SlotInfo& info : program_.slots) {
      BufferSlot slot;
      slot.dtype = info.buffer->dtype;
      const int64_t n = info.buffer->allocation_elements();
      info.data.resize(ir::bytes_of(slot.dtype, n));
      slot.data = info.data.data();
      if (!info.is_input) {
        info.written.assign(std::max<int64_t>(n, 1), 0);
        slot.written = info.written.data();
      }
      slots.push_back(slot);
    }
  }

  Status run() {
    if (execute(program_.root) && (program_.body == nullptr || exec(*program_.body))) return {};
    std::string place;
    for (auto it = path_.rbegin(); it != path_.rend(); ++it) place += (place.empty() ? "" : "/") + *it;
    const LoadSite& site = program_.code.sites[fault().site];
    const std::string& buffer = site.load->buffer->name;
    if (!site.dimension) {
      return Error{ErrorCode::kIllegal, place,
                   "read of element " + std::to_string(fault().index) + " of '" + buffer +
                       "', which was never written"};
    }
    return Error{ErrorCode::kIllegal, place,
                 "access out of range: index " + std::to_string(fault().index) + " of dimension " +
                     std::to_string(*site.dimension) + " of '" + buffer + "', whose extent is " +
                     std::to_string(site.load->buffer->shape[*site.dimension])};
  }

 private:
  bool fail(std::string step) {
    path_.push_back(std::move(step));
    return false;
  }

  bool exec(const Node& node) {
    switch (node.kind) {
      case Node::Kind::kSeq:
        for (const auto& child : node.children) {
          if (child != nullptr && !exec(*child)) return false;
        }
        return true;
      case Node::Kind::kFor: {
        const ir::For& loop = std::get<ir::For>(node.stmt->kind);
        if (!execute(node.stream)) return fail("extent of loop '" + loop.var.name() + "'");
        const int64_t extent = *ints(node.a);
        const Node* body = node.children[0].get();
        for (int64_t i = 0; i < extent && body != nullptr; ++i) {
          *ints(node.b) = i;
          if (!execute(node.iteration) || !exec(*body))
            return fail(loop.var.name() + "=" + std::to_string(i));
        }
        return true;
      }
      case Node::Kind::kIf: {
        if (!execute(node.stream)) return fail("condition");
        const Node* side = node.children[*ints(node.a) != 0 ? 0 : 1].get();
        return side == nullptr || exec(*side);
      }
      case Node::Kind::kAllocate:
        ++slots[node.slot].epoch;
        return node.children[0] == nullptr || exec(*node.children[0]);
      case Node::Kind::kStore: {
        BufferSlot& slot = slots[node.slot];
        if (!execute(node.stream)) {
          return fail("store to '" + std::get<ir::Store>(node.stmt->kind).buffer->name + "'");
        }
        const int64_t address = *ints(node.a);
        store_lanes<1>(*this, node.b, slot.dtype, slot.data + address * ir::bytes_of(slot.dtype), 1);
        slot.written[address] = slot.epoch;
        return true;
      }
    }
    return false;
  }

  bool on_missing(const Instruction& check) override {
    fault_ = {check.site, *ints(check.a)};
    return false;
  }

  CompiledProgram& program_;
  std::vector<std::string> path_;  // path of the fault, innermost first
};

// Copies between a compact tensor and a buffer with strides.
template <class Copy>
void for_each_element(const ir::BufferNode& buffer, const Copy& copy) {
  const std::vector<int64_t> strides = buffer.effective_strides();
  std::vector<int64_t> index(buffer.shape.size(), 0);
  const int64_t n = buffer.num_elements();
  for (int64_t flat = 0; flat < n; ++flat) {
    int64_t at = 0;
    for (size_t d = 0; d < index.size(); ++d) at += index[d] * strides[d];
    copy(flat, at);
    for (size_t d = index.size(); d-- > 0;) {
      if (++index[d] < buffer.shape[d]) break;
      index[d] = 0;
    }
  }
}

}  // namespace

Result<std::vector<Tensor>> run(const ir::Program& program, std::span<const Tensor> inputs) {
  if (inputs.size() != program.inputs.size()) {
    return Error{ErrorCode::kInvalidArgument, "program '" + program.name + "'",
                 std::to_string(inputs.size()) + " input tensors were given, but the program has " +
                     std::to_string(program.inputs.size())};
  }
  CompiledProgram compiled;
  TS_RETURN_IF_ERROR(ProgramCompiler(compiled).run(program));
  ProgramRunner runner(compiled);
  for (size_t k = 0; k < inputs.size(); ++k) {
    const ir::BufferNode& buffer = *program.inputs[k];
    if (inputs[k].dtype != buffer.dtype || inputs[k].shape != buffer.shape) {
      return Error{ErrorCode::kInvalidArgument, "input '" + buffer.name + "'",
                   "the tensor has another dtype or shape than the buffer"};
    }
    const int bytes = ir::bytes_of(buffer.dtype);
    std::byte* data = compiled.slots[SlotId(k)].data.data();
    for_each_element(buffer, [&](int64_t flat, int64_t at) {
      std::copy_n(inputs[k].data.data() + flat * bytes, bytes, data + at * bytes);
    });
  }
  TS_RETURN_IF_ERROR(runner.run());
  std::vector<Tensor> outputs;
  for (size_t k = 0; k < program.outputs.size(); ++k) {
    const ir::BufferNode& buffer = *program.outputs[k];
    const SlotInfo& slot = compiled.slots[SlotId(inputs.size() + k)];
    Tensor t = Tensor::zeros(buffer.dtype, buffer.shape);
    const int bytes = ir::bytes_of(buffer.dtype);
    int64_t missing = -1;
    for_each_element(buffer, [&](int64_t flat, int64_t at) {
      std::copy_n(slot.data.data() + at * bytes, bytes, t.data.data() + flat * bytes);
      if (slot.written[at] == 0 && missing < 0) missing = flat;
    });
    if (missing >= 0) {
      return Error{ErrorCode::kIllegal, "output '" + buffer.name + "'",
                   "element " + std::to_string(missing) + " is never written"};
    }
    outputs.push_back(std::move(t));
  }
  return outputs;
}

}  // namespace tensorsmith::lower
