#include "feature/store_body.h"

#include <algorithm>

#include "feature/value_ops.h"

namespace tensorsmith::feature {

namespace {

class BodyMaker {
 public:
  BodyMaker(const sched::Reads& reads, Body& body) : reads_(reads), body_(body) {}

  void value(const ir::Expr& e) {
    if (e.dtype() == ir::DType::kI64) {
      add(BodyPart::Kind::kIndex, e);
    } else if (e.dtype() == ir::DType::kBool) {
      add(BodyPart::Kind::kCondition, e);
    } else {
      tree(e);
    }
  }

  void tree(const ir::Expr& e) {
    ir::visit(ir::overloaded{
                  [](const ir::IntImm&) {},
                  [](const ir::FloatImm&) {},
                  [](const ir::VarRef&) {},
                  [&](const ir::Unary& unary) {
                    count_unary(unary.op, e.dtype(), body_.ops);
                    value(unary.a);
                  },
                  [&](const ir::Binary& binary) { operation(e, binary); },
                  [&](const ir::Select& select) {
                    BodyPart& part = add(BodyPart::Kind::kSelect, e);
                    BodyMaker(reads_, part.a).value(select.a);
                    BodyMaker(reads_, part.b).value(select.b);
                  },
                  [&](const ir::Cast& cast) { value(cast.a); },
                  [&](const ir::Call& call) {
                    body_.ops.add("mathfunc", ir::is_float(e.dtype()));
                    for (const ir::Expr& arg : call.args) value(arg);
                  },
                  [&](const ir::Load& load) { read(load); },
              },
              e);
  }

 private:
  BodyPart& add(BodyPart::Kind kind, const ir::Expr& e) {
    BodyPart& part = body_.parts.emplace_back();
    part.kind = kind;
    part.expr = &e;
    return part;
  }

  void operation(const ir::Expr& e, const ir::Binary& binary) {
    if (binary.op == ir::BinaryOp::kDiv && ir::is_float(binary.a.dtype())) {
      // TVM turns x / c into a product, or into x for c = 1; c may be an integer that turns out to
      // be constant.
      if (const auto* imm = ir::as<ir::FloatImm>(binary.b)) {
        if (imm->value != 1) body_.ops.add("mul", true);
        value(binary.a);
        return;
      }
      const auto* cast = ir::as<ir::Cast>(binary.b);
      if (cast != nullptr && cast->a.dtype() == ir::DType::kI64) {
        BodyPart& part = add(BodyPart::Kind::kDivision, e);
        BodyMaker(reads_, part.a).value(binary.a);
        BodyMaker(reads_, part.b).value(binary.b);
        return;
      }
    }
    count_binary(binary.op, binary.a.dtype(), body_.ops);
    value(binary.a);
    value(binary.b);
  }

  void read(const ir::Load& load) {
    if (body_.parts.empty() || body_.parts.back().kind != BodyPart::Kind::kReads) body_.parts.emplace_back();
    ReadRun& run = body_.parts.back().reads;
    run.loads.push_back(&load);
    auto tensor = std::find_if(run.tensors.begin(), run.tensors.end(),
                               [&](const ReadRun::Tensor& t) { return t.buffer == load.buffer.get(); });
    if (tensor == run.tensors.end()) tensor = run.tensors.insert(tensor, {load.buffer.get(), 0, {}});
    ++tensor->reads;
    const sched::Reads::IndexId* indices = reads_.indices_of(&load);
    for (size_t d = 0; d < load.indices.size(); ++d) {
      tensor->indices.push_back(indices[d]);
      const auto known = std::find_if(run.indices.begin(), run.indices.end(),
                                      [&](const auto& index) { return index.first == indices[d]; });
      if (known != run.indices.end()) {
        ++known->second;
      } else {
        run.indices.emplace_back(indices[d], 1);
      }
    }
  }

  const sched::Reads& reads_;
  Body& body_;
};

}  // namespace

const Body& BodyCache::of(const ir::Expr& e, const std::shared_ptr<const sched::Reads>& reads) {
  auto& entries = known_[e.get()];
  for (const auto& entry : entries)
    if (entry->reads == reads) return entry->body;
  auto entry = std::make_unique<Entry>(Entry{e, reads, {}});
  BodyMaker(*reads, entry->body).tree(entry->expr);
  entries.push_back(std::move(entry));
  return entries.back()->body;
}

}  // namespace tensorsmith::feature
