#include "graph/place_region.h"

#include <algorithm>
#include <map>
#include <unordered_map>
#include <utility>

namespace tensorsmith::graph {
namespace {

// Turns that a loop is expected to run if that is only known at run time; for the weights of tasks and predictions.
constexpr int64_t kAssumedTurns = 16;

// A place in the network's memory: `bytes` behind a storage, and `step` bytes further after each turn.
struct Place {
  ValueId storage;
  int64_t bytes = 0;
  int64_t step = 0;
};

class RegionPlacer {
 public:
  using PartitionBody = std::function<Result<PartitionedBody>(const Graph&, int64_t)>;
  RegionPlacer(Graph& graph, Partition& partition, const Node& node, int64_t alignment,
               const PartitionBody& partition_body)
      : graph_(graph),
        partition_(partition),
        node_(node),
        region_(*node.region),
        alignment_(alignment),
        partition_body_(partition_body) {}

  Status run() { return node_.op == kLoopOperator ? place_loop() : place_branch(); }

 private:
  // Values of a body that live in the memory of the network, by their storage in the body.
  using Places = std::unordered_map<ValueId, Place>;

  Place place_of(ValueId id) const { return {partition_.storage_of[id], partition_.storage_offset[id]}; }
  ValueId body_output(const PartitionedBody& body, size_t i) const {
    return body.partition.storage_of[body.graph.outputs[i]];
  }

  // Adds a value with memory of its own, or at a place.
  ValueId add_value(const Value& like, const std::string& suffix, const Place* place = nullptr) {
    const ValueId id = graph_.values.push_back({like.name + suffix, like.dtype, like.shape, nullptr});
    partition_.storage_of.push_back(place != nullptr ? place->storage : id);
    partition_.storage_offset.push_back(place != nullptr ? place->bytes : 0);
    if (place != nullptr && place->step != 0) moves_[id] = place->step;
    return id;
  }

  void add_copy(ValueId from, ValueId to) {
    Call call;
    call.inputs = {from};
    call.outputs = {to};
    call.routine = runtime::copy_call(graph_.values[to].bytes());
    call.name = "copy_" + shape_text(graph_.values[to].shape);
    call.turns = turns_;
    partition_.calls.push_back(std::move(call));
  }

  // Appends the values of a body to those of the network. Returns them by the body's values.
  IdVector<ValueId, ValueId> add_values(PartitionedBody& body, const Places& places) {
    IdVector<ValueId, ValueId> made(body.graph.values.size());
    for (const ValueId v : body.graph.values.ids()) made[v] = graph_.values.push_back(body.graph.values[v]);
    for (const ValueId v : body.graph.values.ids()) {
      const ValueId storage = body.partition.storage_of[v];
      const int64_t offset = body.partition.storage_offset[v];
      const auto found = places.find(storage);
      const bool outside = found != places.end();
      partition_.storage_of.push_back(outside ? found->second.storage : made[storage]);
      partition_.storage_offset.push_back(offset + (outside ? found->second.bytes : 0));
      if (outside && found->second.step != 0) moves_[made[v]] = found->second.step;
    }
    return made;
  }

  void add_calls(PartitionedBody& body, const IdVector<ValueId, ValueId>& made) {
    const size_t first = partition_.calls.size();
    for (Call& call : body.partition.calls) {
      for (auto* ids : {&call.inputs, &call.outputs})
        for (ValueId& id : *ids) id = made[id];
      partition_.calls.push_back(std::move(call));
    }
    for (PlacedRegion& inner : body.partition.regions) {
      inner.begin += first;
      inner.end += first;
      for (ValueId* id : {&inner.count, &inner.condition})
        if (*id != kNoValue) *id = made[*id];
      std::map<ValueId, int64_t> moves;
      for (const auto& [id, bytes] : inner.moves) moves[made[id]] = bytes;
      inner.moves = std::move(moves);
      inner_.push_back(std::move(inner));
    }
  }

  Status add_region(PlacedRegion region) {
    region.end = partition_.calls.size();
    if (region.begin == region.end)
      return Error{ErrorCode::kUnsupported, node_.name, "its body computes nothing"};
    region.moves = std::exchange(moves_, {});
    partition_.regions.push_back(std::move(region));
    std::ranges::move(inner_, std::back_inserter(partition_.regions));
    inner_.clear();
    return {};
  }

  // Returns the body with outputs that are neither constants nor inputs, except for a state that does not change.
  Graph separated(Graph body) const {
    const size_t conditions = node_.op == kLoopOperator && region_.conditional ? 1 : 0;
    for (size_t o = 0; o < body.outputs.size(); ++o) {
      const ValueId output = body.outputs[o];
      const Value value = body.values[output];
      const auto input = std::ranges::find(body.inputs, output) - body.inputs.begin();
      const bool is_input = std::cmp_less(input, body.inputs.size());
      const bool kept = node_.op == kLoopOperator && std::cmp_equal(input, o - conditions) &&
                        std::cmp_less(input, region_.states);
      if (value.constant == nullptr && (!is_input || kept)) continue;
      const ValueId copy = body.values.push_back({value.name, value.dtype, value.shape, nullptr});
      body.nodes.push_back({value.name + "/copy", "Identity", 18, {}, {output}, {copy}});
      body.outputs[o] = copy;
    }
    return body;
  }

  Status place_branch() {
    for (size_t b = 0; b < region_.bodies.size(); ++b) {
      PlacedRegion placed;
      placed.begin = partition_.calls.size();
      placed.condition = node_.inputs[0];
      placed.until = b == 1;
      if (!region_.refused[b].empty()) {
        Call call;
        call.routine = runtime::refuse_call();
        call.name = node_.name + ": " + region_.refused[b];
        partition_.calls.push_back(std::move(call));
        TS_RETURN_IF_ERROR(add_region(std::move(placed)));
        continue;
      }
      TS_ASSIGN_OR_RETURN(PartitionedBody body, partition_body_(separated(region_.bodies[b]), 1));
      Places places;
      for (size_t i = 0; i < body.graph.inputs.size(); ++i)
        places[body.graph.inputs[i]] = place_of(node_.inputs[1 + i]);
      std::vector<std::pair<size_t, size_t>> repeated;  // an output that is the same value as an earlier one
      for (size_t i = 0; i < body.graph.outputs.size(); ++i) {
        const auto& outputs = body.graph.outputs;
        const size_t first = std::ranges::find(outputs, outputs[i]) - outputs.begin();
        if (first != i) {
          repeated.emplace_back(first, i);
        } else if (node_.outputs[i] != kNoValue) {
          places[body_output(body, i)] = place_of(node_.outputs[i]);
        }
      }
      const auto made = add_values(body, places);
      add_calls(body, made);
      for (const auto& [first, i] : repeated)
        if (node_.outputs[i] != kNoValue) add_copy(made[body.graph.outputs[first]], node_.outputs[i]);
      TS_RETURN_IF_ERROR(add_region(std::move(placed)));
    }
    return {};
  }

  bool aligned(const Place& place) const {
    return place.bytes % alignment_ == 0 && place.step % alignment_ == 0;
  }
  // Returns the place of a tensor's first slice.
  Place slice_of(ValueId tensor, int64_t slice_bytes, bool backwards) const {
    Place place = place_of(tensor);
    place.step = backwards ? -slice_bytes : slice_bytes;
    if (backwards) place.bytes += (region_.turns - 1) * slice_bytes;
    return place;
  }

  Status place_loop() {
    const bool known = region_.turns > 0 && !region_.counted && !region_.conditional;
    turns_ =
        known ? region_.turns : std::min(region_.turns > 0 ? region_.turns : kAssumedTurns, kAssumedTurns);
    TS_ASSIGN_OR_RETURN(PartitionedBody body, partition_body_(separated(region_.bodies[0]), turns_));
    const auto& inputs = body.graph.inputs;
    const auto& outputs = body.graph.outputs;
    const size_t states = region_.states, slices = region_.slices_backwards.size(),
                 results = region_.results_backwards.size(), lead = region_.leading_inputs(),
                 conditions = static_cast<size_t>(region_.conditional);
    Places places;
    std::vector<ValueId> state(states);  // in the network
    for (size_t s = 0; s < states; ++s) {
      const ValueId last = node_.outputs[s];
      state[s] = last != kNoValue ? last : add_value(body.graph.values[inputs[s]], "");
      places[inputs[s]] = place_of(state[s]);
    }
    std::vector<std::pair<ValueId, Place>> staged;  // slice of the body, its place in the tensor
    for (size_t i = 0; i < slices; ++i) {
      const ValueId slice = inputs[states + i];
      const Place place = slice_of(node_.inputs[lead + states + i], body.graph.values[slice].bytes(),
                                   region_.slices_backwards[i]);
      if (aligned(place)) {
        places[slice] = place;
      } else {
        staged.emplace_back(slice, place);
      }
    }
    for (size_t i = states + slices; i < inputs.size(); ++i)
      places[inputs[i]] = place_of(node_.inputs[lead + i]);
    // A result is computed at its place, if it has just one; other results are copied there.
    std::vector<std::pair<ValueId, Place>> copied;
    for (size_t i = 0; i < results; ++i) {
      const size_t o = conditions + states + i;
      const ValueId tensor = node_.outputs[states + i];
      if (tensor == kNoValue) continue;
      const Place place =
          slice_of(tensor, body.graph.values[outputs[o]].bytes(), region_.results_backwards[i]);
      const ValueId storage = body_output(body, o);
      const bool whole = storage == outputs[o] && body.graph.values[storage].constant == nullptr;
      if (whole && aligned(place) && !places.contains(storage)) {
        places[storage] = place;
      } else {
        copied.emplace_back(outputs[o], place);
      }
    }
    ValueId condition = kNoValue;
    if (region_.conditional) condition = add_value(body.graph.values[outputs[0]], "");

    PlacedRegion placed;
    placed.turns = region_.turns;
    if (region_.counted) placed.count = node_.inputs[0];
    placed.condition = condition;
    const int64_t turns = std::exchange(turns_, 1);
    if (region_.conditional) add_copy(node_.inputs[lead - 1], condition);
    for (size_t s = 0; s < states; ++s) add_copy(node_.inputs[lead + s], state[s]);
    turns_ = turns;
    placed.begin = partition_.calls.size();
    const auto made = add_values(body, places);
    for (const auto& [slice, place] : staged)
      add_copy(add_value(body.graph.values[slice], "", &place), made[slice]);
    add_calls(body, made);
    for (const auto& [result, place] : copied)
      add_copy(made[result], add_value(body.graph.values[result], "", &place));
    if (region_.conditional) add_copy(made[outputs[0]], condition);
    for (size_t s = 0; s < states; ++s) {
      const ValueId next = outputs[conditions + s];
      if (next != inputs[s]) add_copy(made[next], state[s]);
    }
    return add_region(std::move(placed));
  }

  Graph& graph_;
  Partition& partition_;
  const Node& node_;
  const Region& region_;
  const int64_t alignment_;
  const PartitionBody& partition_body_;
  int64_t turns_ = 1;                 // of the copies
  std::map<ValueId, int64_t> moves_;  // of the region that is being placed
  std::vector<PlacedRegion> inner_;   // regions inside it
};

}  // namespace

Status place_region(Graph& graph, Partition& partition, const Node& node, int64_t alignment,
                    const std::function<Result<PartitionedBody>(const Graph&, int64_t)>& partition_body) {
  return RegionPlacer(graph, partition, node, alignment, partition_body).run();
}

}  // namespace tensorsmith::graph
