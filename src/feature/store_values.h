// Visits the value of a store: its reads, and the operations that remain of it with what is known
// about the loops around it.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "feature/store_body.h"
#include "feature/store_collector.h"
#include "sched/schedule.h"

namespace tensorsmith::feature {

class StoreValues {
 public:
  explicit StoreValues(StoreCollector& collector) : collector_(collector), forms_(collector.forms()) {}

  // Forgets the buffers of the previous schedule.
  void clear(const sched::Schedule& schedule) {
    schedule_ = &schedule;
    layouts_.clear();
  }

  // Returns the collector's id of a buffer of the workload, in the layout in which it is stored.
  StoredBufferId id_of(const ir::BufferNode* buffer);
  // Returns null if the buffer has its declared layout.
  const sched::Layout* layout(const ir::BufferNode* buffer) { return layouts_[id_of(buffer)]; }
  // Adds an access, given its logical indices.
  void add_access(const ir::BufferNode* buffer, const std::vector<Form>& indices, bool write);

  // Begins the value of this stage at these indices of its axes (spatial, then reduce).
  void begin(const sched::Stage& stage, const std::vector<Form>& axes);
  // Adds the reads and, to `ops`, the operations that remain after simplification.
  void visit_value(const ir::Expr& e, OpCounts& ops);
  // Counts the operations of the form when it is written out as an expression.
  void count_form(const Form& form, OpCounts& ops);

 private:
  enum class Truth : uint8_t { kNo, kYes, kOpen };
  // Reads often share indices, so facts about an index are kept to the end of the store.
  struct ReadIndex {
    bool known = false;
    bool plain = false;  // no part is an expression that must be visited
    IndexId id;          // none: not yet added to the collector
    Form form;
    OpCounts ops;  // set if `plain`
  };

  const sched::Layout* layout_of(const ir::BufferNode* buffer) const;
  template <class IndexOf>
  void add_digits(const sched::Layout& layout, const ir::BufferNode& buffer, const IndexOf& index_of);
  void count_atom(const FormArena::Term& term, OpCounts& ops);
  void run(const Body& body, OpCounts& ops);
  void run_select(const BodyPart& part, OpCounts& ops);
  void run_division(const BodyPart& part, OpCounts& ops);
  void run_reads(const ReadRun& run, OpCounts& ops);
  ReadIndex& read_index(sched::Reads::IndexId id);
  bool is_plain(const Form& form) const;
  void add_reads(const ir::BufferNode* buffer, const sched::Reads::IndexId* indices, size_t reads);
  std::optional<int64_t> constant_value(const ir::Expr& e);
  Truth condition(const ir::Expr& e, OpCounts& ops);
  static Truth compare(ir::BinaryOp op, const ValueRange& d);
  void count_comparison(const Form& difference, OpCounts& ops);

  StoreCollector& collector_;
  FormArena& forms_;
  BodyCache bodies_;
  const sched::Schedule* schedule_ = nullptr;
  IdVector<StoredBufferId, const sched::Layout*> layouts_;  // null: as declared
  std::vector<Binding> axis_bindings_;
  std::shared_ptr<const sched::Reads> reads_;  // of the current store's operation
  IdVector<sched::Reads::IndexId, ReadIndex> read_indices_;
};

}  // namespace tensorsmith::feature
