#include "measure/profile/simulate.h"

#include <algorithm>
#include <numeric>

#include "codegen/traced.h"
#include "lower/lower.h"
#include "measure/profile/child_process.h"
#include "measure/profile/kernel_memory.h"
#include "measure/profile/memory_model.h"

namespace tensorsmith::measure {
namespace {

using Counters = std::map<std::string, double>;
constexpr size_t kBufferWords = size_t{1} << 18;
constexpr std::array<const char*, 3> kLevelNames = {"l1", "l2", "l3"};
// The hot blocks are those that make up this share of all instructions.
constexpr double kHotShare = 0.95;

// Reads the trace reports of a running kernel.
class Reader : public codegen::TraceBuffer {
 public:
  Reader() : words_(kBufferWords) {
    next = words_.data();
    limit = words_.data() + words_.size() - codegen::kMostReport;
    drain = [](codegen::TraceBuffer* buffer) { static_cast<Reader*>(buffer)->read(); };
  }

  // Must be called before the kernel runs. most: accesses that the model simulates in each run.
  void begin(const codegen::TracedKernel& traced, const KernelMemory& memory, MemoryModel& model,
             int64_t most) {
    traced_ = &traced;
    memory_ = &memory;
    model_ = &model;
    most_ = most;
    first_site_.assign(1, 0);
    for (const auto& segment : traced.segments)
      first_site_.push_back(first_site_.back() + segment.accesses.size());
    place_of_site_.assign(first_site_.back(), kNoPlace);
    restart();
  }
  // Resets the counts, so that only what follows is counted.
  void restart() {
    runs_.assign(traced_->segments.size(), 0);
    followed_.assign(traced_->segments.size(), 0);
    left_ = most_;
    model_->restart();
  }
  void finish_run() { read(); }

  static constexpr size_t kNoPlace = ~size_t{0};
  const std::vector<double>& runs() const { return runs_; }          // by segment
  const std::vector<double>& followed() const { return followed_; }  // of these, the simulated ones
  const std::vector<size_t>& first_site() const { return first_site_; }
  const std::vector<size_t>& place_of_site() const { return place_of_site_; }

 private:
  void read() {
    const uint64_t* at = words_.data();
    while (at != next) {
      const size_t number = *at++;
      const codegen::TracedSegment& segment = traced_->segments[number];
      ++runs_[number];
      const size_t accesses = segment.accesses.size();
      if (left_ > 0) {
        ++followed_[number];
        left_ -= accesses;
        for (size_t i = 0; i < accesses; ++i) follow(segment.accesses[i], at[i], first_site_[number] + i);
      }
      at += accesses;
    }
    next = words_.data();
  }
  void follow(const codegen::TracedAccess& access, uint64_t address, size_t site) {
    using Kind = codegen::TracedAccess::Kind;
    const auto offset = memory_->offset_of(address);
    if (!offset) return;
    if (place_of_site_[site] == kNoPlace) place_of_site_[site] = memory_->place_at(*offset);
    if (access.kind == Kind::kPrefetch) return model_->prefetch(*offset);
    model_->access(site, *offset, access.bytes, access.kind == Kind::kStore);
  }

  std::vector<uint64_t> words_;
  const codegen::TracedKernel* traced_ = nullptr;
  const KernelMemory* memory_ = nullptr;
  MemoryModel* model_ = nullptr;
  int64_t most_ = 0, left_ = 0;
  std::vector<double> runs_, followed_;
  std::vector<size_t> first_site_, place_of_site_;
};

void count_instructions(const codegen::TracedKernel& traced, const Reader& reader, Counters& out) {
  codegen::MachineMix all;
  std::vector<std::pair<double, double>> hot;  // instructions executed, instructions in the code
  for (size_t s = 0; s < traced.segments.size(); ++s) {
    const codegen::TracedSegment& segment = traced.segments[s];
    if (!segment.begins_block) continue;
    const codegen::MachineMix& mix = traced.blocks[segment.block];
    all.add(mix, reader.runs()[s]);
    const double in_code = mix[codegen::MachineCount::kInstructions];
    if (reader.runs()[s] > 0) hot.emplace_back(in_code * reader.runs()[s], in_code);
  }
  for (size_t i = 0; i < codegen::kMachineCountNames.size(); ++i)
    out[std::string(codegen::kMachineCountNames[i])] = all.counts()[i];
  std::sort(hot.rbegin(), hot.rend());
  double left = kHotShare * all[codegen::MachineCount::kInstructions], code = 0;
  for (const auto& [executed, in_code] : hot) {
    if (left <= 0) break;
    left -= executed;
    code += in_code;
  }
  out["hot_code"] = code;
}

void count_accesses(const codegen::TracedKernel& traced, const Reader& reader, const KernelMemory& memory,
                    const MemoryModel& model, Counters& out) {
  double all = 0, seen = 0;
  for (const char* level : kLevelNames)
    for (const char* name : {".misses", ".misses_in_order", ".written_back"})
      out[std::string(level) + name] = 0;
  for (const char* name : {"bytes_loaded", "bytes_stored", "tlb.misses", "split_accesses"}) out[name] = 0;
  for (size_t s = 0; s < traced.segments.size(); ++s) {
    const double runs = reader.runs()[s], followed = reader.followed()[s];
    const double scale = followed > 0 ? runs / followed : 0;
    for (size_t i = 0; i < traced.segments[s].accesses.size(); ++i) {
      const codegen::TracedAccess& access = traced.segments[s].accesses[i];
      const size_t site = reader.first_site()[s] + i;
      all += runs;
      seen += followed;
      if (access.kind == codegen::TracedAccess::Kind::kPrefetch) continue;
      const bool store = access.kind == codegen::TracedAccess::Kind::kStore;
      out[store ? "bytes_stored" : "bytes_loaded"] += runs * access.bytes;
      const AccessCounts& counts = model.by_site()[site];
      out["tlb.misses"] += scale * counts.pages;
      out["split_accesses"] += scale * counts.split;
      const size_t place = reader.place_of_site()[site];
      const std::string buffer =
          place == Reader::kNoPlace ? "" : "buffer." + memory.places()[place].name + ".";
      if (!buffer.empty()) out[buffer + "bytes"] += runs * access.bytes;
      for (size_t level = 0; level < kLevelNames.size(); ++level) {
        const std::string name = kLevelNames[level] + std::string(".misses");
        out[name] += scale * counts.misses[level];
        out[name + "_in_order"] += scale * counts.in_order[level];
        if (!buffer.empty()) out[buffer + name] += scale * counts.misses[level];
      }
    }
  }
  const double share = all > 0 ? seen / all : 1;
  for (size_t level = 0; level < kLevelNames.size(); ++level)
    out[std::string(kLevelNames[level]) + ".written_back"] =
        model.written_back()[level] / std::max(share, 1e-9);
  out["accesses"] = all;
  out["simulated_share"] = share;
}

double buffer_bytes(const ir::Program& program) {
  double bytes = 0;
  for (const auto* list : {&program.inputs, &program.outputs})
    for (const ir::Buffer& b : *list) bytes += ir::bytes_of(b->dtype, b->num_elements());
  return bytes;
}

}  // namespace

Result<Counters> simulate(const ir::Workload& workload, const sched::Trace& trace,
                          const target::Device& device, const codegen::Backend& backend,
                          const SimulationOptions& options) {
  const codegen::CodegenOptions names;
  TS_ASSIGN_OR_RETURN(const sched::Schedule schedule, sched::replay(workload, trace));
  TS_ASSIGN_OR_RETURN(const lower::LoweredProgram lowered, lower::lower(schedule, names.symbol));
  Reader reader;
  TS_ASSIGN_OR_RETURN(const codegen::TracedKernel traced,
                      backend.compile_traced(lowered.program, device, names, reader));
  TS_ASSIGN_OR_RETURN(const auto loaded, backend.load(traced.kernel.object, traced.kernel.symbol));
  TS_ASSIGN_OR_RETURN(const auto memory, KernelMemory::create(lowered.program, traced.kernel));
  size_t sites = 0;
  for (const auto& segment : traced.segments) sites += segment.accesses.size();
  return in_child_process(options.most_seconds, [&] {
    MemoryModel model(caches_of(device), sites);
    reader.begin(traced, *memory, model, options.most_accesses);
    // The first run leaves the caches in the state that a repeatedly called kernel finds.
    memory->run(loaded->function());
    reader.finish_run();
    reader.restart();
    memory->run(loaded->function());
    reader.finish_run();
    Counters counters;
    count_instructions(traced, reader, counters);
    count_accesses(traced, reader, *memory, model, counters);
    counters["workspace_bytes"] = traced.kernel.shared_workspace_bytes + traced.kernel.thread_workspace_bytes;
    counters["buffer_bytes"] = buffer_bytes(lowered.program);
    return counters;
  });
}

}  // namespace tensorsmith::measure
