#include "codegen/gpu/copy_pipeline.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "ir/analysis.h"
#include "ir/parts.h"

namespace tensorsmith::codegen {

using ir::For;
using ir::Stmt;

void BufferUses::add(const Stmt& s) {
  ir::for_each_stmt(s, [&](const Stmt& inner) {
    const auto read = [&](const ir::Expr& e) {
      for (const ir::Load* load : ir::loads_of(e)) ++reads[load->buffer.get()];
    };
    ir::for_each_own_expr(inner, read);
    if (const auto* store = ir::as<ir::Store>(inner)) ++writes[store->buffer.get()];
  });
}

namespace {

// Collects the loop's statements, without the allocations around them.
void collect_statements(const Stmt& s, std::vector<Stmt>& out) {
  if (const auto* allocate = ir::as<ir::Allocate>(s)) return collect_statements(allocate->body, out);
  const auto* seq = ir::as<ir::Seq>(s);
  if (seq == nullptr) return out.push_back(s);
  for (const Stmt& part : seq->stmts) collect_statements(part, out);
}

class Matcher {
 public:
  Matcher(const GpuKernel& kernel, const BufferUses& all) : kernel_(kernel), all_(all) {}

  std::optional<CopyPipeline> match(const For& loop) const {
    const auto extent = ir::as_int(loop.extent);
    if (!extent || loop.kind != ir::ForKind::kSerial) return std::nullopt;
    CopyPipeline out{*extent, std::min(loop.auto_unroll_max_step, *extent), {}, nullptr, {}};
    if (out.stages < 2 || loop.auto_unroll_max_step > kMostStages) return std::nullopt;
    std::vector<Stmt> parts, rest;
    collect_statements(loop.body, parts);
    BufferUses copied, computed;
    for (const Stmt& s : parts) {
      const bool copies = writes_only(s, GpuMemory::kShared);
      if (!copies && !writes_only(s, GpuMemory::kPrivate)) return std::nullopt;
      if (copies && !rest.empty()) return std::nullopt;
      (copies ? copied : computed).add(s);
      (copies ? out.copies : rest).push_back(s);
    }
    if (out.copies.empty() || rest.empty()) return std::nullopt;
    for (const auto& [tile, writes] : copied.writes) {
      if (copied.reads.contains(tile) || all_.writes.at(tile) != writes) return std::nullopt;
      const auto reads = all_.reads.find(tile);
      const auto here = computed.reads.find(tile);
      if (reads == all_.reads.end() || here == computed.reads.end() || reads->second != here->second)
        return std::nullopt;
    }
    for (const ir::Buffer& b : kernel_.shared)
      if (copied.writes.contains(b.get())) out.tiles.push_back(b);
    out.nest = rest.size() == 1 ? rest.front() : ir::make_seq(std::move(rest));
    return out;
  }

 private:
  bool writes_only(const Stmt& s, GpuMemory memory) const {
    BufferUses own;
    own.add(s);
    return std::all_of(own.writes.begin(), own.writes.end(),
                       [&](const auto& write) { return kernel_.memory_of(write.first) == memory; });
  }

  const GpuKernel& kernel_;
  const BufferUses& all_;
};

}  // namespace

std::unordered_map<const ir::StmtNode*, CopyPipeline> find_copy_pipelines(const GpuKernel& kernel) {
  std::unordered_map<const ir::StmtNode*, CopyPipeline> found;
  BufferUses all;
  all.add(kernel.body);
  const Matcher matcher(kernel, all);
  ir::for_each_stmt(kernel.body, [&](const Stmt& s) {
    const auto* loop = ir::as<For>(s);
    if (loop == nullptr) return;
    if (auto pipeline = matcher.match(*loop)) found.emplace(s.get(), std::move(*pipeline));
  });
  return found;
}

}  // namespace tensorsmith::codegen
