#include "our_model.h"

#include <fmt/format.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>

#include "base/clock.h"
#include "engine/tune/prepare_tasks.h"
#include "graph/infer.h"
#include "ir/scalar.h"
#include "learn/online/online.h"
#include "measure/measurer.h"
#include "search/pipeline.h"
#include "search/tuner.h"
#include "space/design_space.h"

namespace tensorsmith::peers {
namespace {

namespace fs = std::filesystem;

using graph::ValueId;

// Builds a graph operator by operator, like the importer.
class Network {
 public:
  explicit Network(Element element)
      : dtype_(element == Element::kBF16 ? ir::DType::kBF16 : ir::DType::kF32) {}

  ValueId input(std::vector<int64_t> shape) {
    const ValueId id = value(std::move(shape));
    graph_.inputs.push_back(id);
    return id;
  }
  ValueId constant(std::vector<int64_t> shape, const float* contents) {
    lower::Tensor tensor = lower::Tensor::zeros(dtype_, shape);
    for (int64_t i = 0; i < tensor.num_elements(); ++i)
      tensor.set(i, ir::scalar_float(dtype_, static_cast<double>(contents[i])));
    const ValueId id = value(std::move(shape));
    graph_.values.back().constant = std::make_shared<const lower::Tensor>(std::move(tensor));
    return id;
  }
  Result<ValueId> node(const std::string& op, std::vector<ValueId> inputs,
                       std::map<std::string, graph::Attribute> attributes = {}) {
    const ValueId output = value({});
    graph::Node node{op, op, 17, std::move(attributes), std::move(inputs), {output}};
    graph::FoldLimits limits;
    TS_RETURN_IF_ERROR(graph::infer_node(graph_, node, limits));
    graph_.nodes.push_back(std::move(node));
    return output;
  }
  Result<engine::LoadedModel> finish(ValueId output) && {
    graph_.outputs = {output};
    engine::LoadedModel model;
    TS_RETURN_IF_ERROR(graph::optimize(graph_));
    model.graph = std::move(graph_);
    TS_ASSIGN_OR_RETURN(model.partition, graph::partition(model.graph));
    model.memory = graph::plan_memory(model.graph, model.partition);
    return model;
  }

 private:
  ValueId value(std::vector<int64_t> shape) {
    graph::Value v;
    v.name = "v" + std::to_string(graph_.values.size());
    v.dtype = dtype_;
    v.shape = std::move(shape);
    return graph_.values.push_back(std::move(v));
  }
  ir::DType dtype_;
  graph::Graph graph_;
};

struct RemovedAtExit {
  std::string path;
  ~RemovedAtExit() {
    std::error_code ignored;
    fs::remove_all(path, ignored);
  }
};

}  // namespace

Result<engine::LoadedModel> gemm_model(const GemmCase& shape, const Floats& b) {
  Network network(shape.element);
  const auto dims = [&](int64_t rows, int64_t columns) {
    return shape.batch > 1 ? std::vector<int64_t>{shape.batch, rows, columns}
                           : std::vector<int64_t>{rows, columns};
  };
  const ValueId lhs = network.input(dims(shape.m, shape.k));
  const ValueId rhs = shape.constant_b ? network.constant(dims(shape.k, shape.n), b.data())
                                       : network.input(dims(shape.k, shape.n));
  TS_ASSIGN_OR_RETURN(const ValueId product, network.node("MatMul", {lhs, rhs}));
  return std::move(network).finish(product);
}

Result<engine::LoadedModel> conv_model(const ConvCase& shape, const ConvData& data) {
  Network network(shape.element);
  const ValueId x = network.input({1, shape.ci, shape.image, shape.image});
  const ValueId weights =
      network.constant({shape.co, shape.ci / shape.groups, shape.window, shape.window}, data.weights);
  const ValueId bias = network.constant({shape.co}, data.bias);
  using List = std::vector<int64_t>;
  TS_ASSIGN_OR_RETURN(ValueId out, network.node("Conv", {x, weights, bias},
                                                {{"strides", List{shape.stride, shape.stride}},
                                                 {"pads", List{shape.pad, shape.pad, shape.pad, shape.pad}},
                                                 {"group", shape.groups}}));
  if (shape.has_residual()) {
    const ValueId residual = network.input({1, shape.co, shape.out_image(), shape.out_image()});
    TS_ASSIGN_OR_RETURN(out, network.node("Add", {out, residual}));
  }
  if (shape.epilogue == Epilogue::kRelu || shape.epilogue == Epilogue::kAddRelu) {
    TS_ASSIGN_OR_RETURN(out, network.node("Relu", {out}));
  }
  if (shape.epilogue == Epilogue::kRelu6) {
    const float low = 0, high = 6;
    const ValueId lower = network.constant({}, &low), upper = network.constant({}, &high);
    TS_ASSIGN_OR_RETURN(out, network.node("Clip", {out, lower, upper}));
  }
  return std::move(network).finish(out);
}

Result<std::vector<BestKnown>> tune(const engine::LoadedModel& model, const target::Device& device,
                                    const TuneBudget& budget, record::Database& database, LogSink& log) {
  const SystemClock clock;
  measure::MeasureOptions measure_options;
  TS_ASSIGN_OR_RETURN(auto measurer,
                      measure::make_local_measurer(device, measure_options, budget.worker_command, log));
  TS_ASSIGN_OR_RETURN(const target::Device machine, target::probe_local());
  learn::GbtOptions gbt = learn::GbtOptions::online();
  gbt.seed = budget.seed;
  gbt.threads = machine.cpu().cores;
  const auto cost_model = learn::make_online_xgboost(gbt);
  std::vector<search::TuneTask> tasks;
  TS_ASSIGN_OR_RETURN(engine::PreparedTasks prepared, engine::prepare_tasks(model.partition, device));
  for (size_t t = 0; t < prepared.size(); ++t)
    tasks.push_back({std::move(prepared[t]), static_cast<double>(model.partition.tasks[t].calls)});
  search::TuneOptions options;
  options.seconds = budget.seconds;
  options.seed = budget.seed;
  options.threads = machine.cpu().cores;
  std::vector<BestKnown> history;
  const search::ProgressFn progress = [&](const search::TuneProgress& p) {
    const double best = p.model_best_seconds();
    if (history.empty() || best < history.back().seconds) history.push_back({p.elapsed_seconds, best});
  };
  const std::atomic<bool> cancel{false};
  TS_RETURN_IF_ERROR(search::tune(tasks, device, options,
                                  {database, *measurer, cost_model.get(), clock, log, cancel, progress}));
  return history;
}

Result<Chosen> choose(const engine::LoadedModel& model, const target::Device& device,
                      record::Database* database) {
  Chosen out;
  TS_ASSIGN_OR_RETURN(out.schedules, engine::default_schedules(model.partition, device));
  for (size_t t = 0; t < model.partition.tasks.size(); ++t) {
    const graph::Task& task = model.partition.tasks[t];
    TS_ASSIGN_OR_RETURN(const auto space, space::DesignSpace::build(task.workload, device, {}));
    std::string algorithm = space.describe(space.default_candidate().sketch);
    if (database != nullptr) {
      record::MeasureSettings settings;
      settings.threads = device.cpu().cores;
      TS_ASSIGN_OR_RETURN(const auto best, database->best(task.key, device.key(), settings));
      if (best) {
        TS_ASSIGN_OR_RETURN(out.schedules[t].trace, sched::parse_trace(best->trace));
        out.schedules[t].measured_seconds = best->result.best_estimate();
        out.tuned = true;
        const auto& point = best->candidate.point;
        if (point && space.check(search::from_point(*point)).ok()) algorithm = space.describe(point->sketch);
      }
    }
    out.algorithm += (t > 0 ? "; " : "") + algorithm;
  }
  return out;
}

Result<std::unique_ptr<OurModel>> OurModel::compile(const engine::LoadedModel& model,
                                                    const target::Device& device, const Chosen& chosen,
                                                    const std::vector<const Floats*>& inputs) {
  engine::CompileOptions options;
  options.directory =
      (fs::temp_directory_path() / fmt::format("tensorsmith-bench-{}.model", getpid())).string();
  options.model_name = "bench";
  options.tuned = chosen.tuned;
  const RemovedAtExit removed{options.directory};
  TS_RETURN_IF_ERROR(engine::compile_model(model, device, chosen.schedules, options));
  auto out = std::make_unique<OurModel>();
  runtime::LoadOptions load_options;
  load_options.threads = device.cpu().cores;
  TS_ASSIGN_OR_RETURN(out->model_, runtime::Model::load(options.directory, load_options));
  TS_CHECK(out->model_->inputs().size() == inputs.size() && out->model_->outputs().size() == 1,
           "a model of one operator");
  for (size_t i = 0; i < inputs.size(); ++i) {
    const auto& info = out->model_->inputs()[i];
    const auto elements = static_cast<int64_t>(inputs[i]->size());
    out->short_floats_ = info.dtype == DType::kBF16;
    TS_CHECK(info.bytes() == elements * (out->short_floats_ ? 2 : 4), "an input of the right size");
    if (out->short_floats_) {
      Shorts& converted = out->shorts_.emplace_back();
      for (const float x : *inputs[i]) converted.push_back(ir::f32_to_bf16(x));
      out->inputs_.push_back(converted.data());
    } else {
      out->inputs_.push_back(inputs[i]->data());
    }
  }
  out->result_.resize(static_cast<size_t>(out->model_->outputs()[0].bytes()) / sizeof(float) + 1);
  return out;
}

Status OurModel::run() {
  void* const outputs[] = {result_.data()};
  return model_->run(inputs_, outputs);
}

Floats OurModel::output() const {
  const auto bytes = static_cast<size_t>(model_->outputs()[0].bytes());
  if (!short_floats_) return {result_.begin(), result_.begin() + static_cast<ptrdiff_t>(bytes / 4)};
  std::vector<uint16_t> stored(bytes / 2);
  std::memcpy(stored.data(), result_.data(), bytes);
  Floats out;
  for (const uint16_t x : stored) out.push_back(ir::bf16_to_f32(x));
  return out;
}

}  // namespace tensorsmith::peers
