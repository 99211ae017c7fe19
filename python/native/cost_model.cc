#include "cost_model.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "feature/per_store.h"
#include "target/target.h"

namespace tensorsmith::python {

namespace nb = nanobind;

namespace {

using Scores = nb::ndarray<const double, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// Makes an array that owns the values, without a copy.
template <class T>
nb::object array_of(std::vector<T> values, std::initializer_list<size_t> shape) {
  auto* held = new std::vector<T>(std::move(values));
  held->reserve(1);  // an array without memory would be None
  const nb::capsule owner(held, [](void* vector) noexcept { delete static_cast<std::vector<T>*>(vector); });
  return nb::cast(nb::ndarray<nb::numpy, T>(held->data(), shape, owner));
}

class PythonScorer final : public learn::CustomScorer {
 public:
  PythonScorer(nb::handle adapter, std::exception_ptr& raised, const learn::CustomTraits& traits)
      : adapter_(adapter), raised_(raised), traits_(traits) {}

  const learn::CustomTraits& traits() const override { return traits_; }

  Result<std::vector<double>> predict(learn::CustomBatch batch,
                                      std::span<const learn::CustomTask> tasks) override {
    return call(adapter_, raised_, [&] {
      tell(tasks);
      const auto scores = nb::cast<Scores>(adapter_.attr("predict")(**arrays(std::move(batch))));
      return std::vector<double>(scores.data(), scores.data() + scores.size());
    });
  }

  Status update(learn::CustomBatch batch, std::span<const learn::CustomTask> tasks) override {
    const auto done = call(adapter_, raised_, [&] {
      tell(tasks);
      adapter_.attr("update")(**arrays(std::move(batch)));
      return true;
    });
    return done.ok() ? Status() : Status(done.error());
  }

  // Calls the function with the GIL. An exception is kept, and becomes an error of one line.
  template <class Function>
  static auto call(nb::handle adapter, std::exception_ptr& raised, const Function& function)
      -> Result<decltype(function())> {
    const nb::gil_scoped_acquire locked;
    try {
      return function();
    } catch (nb::python_error& error) {
      if (!raised) raised = std::current_exception();
      const nb::object line = adapter.attr("line_of")(error.value());
      return Error{ErrorCode::kInvalidArgument, "", nb::cast<std::string>(line)};
    }
  }

 private:
  // Passes on the tasks that the object has not met.
  void tell(std::span<const learn::CustomTask> tasks) {
    for (; told_ < tasks.size(); ++told_) {
      const learn::CustomTask& task = tasks[told_];
      adapter_.attr("add_task")(task.name, task.key, task.flops, task.workload);
    }
  }

  // Returns the keyword arguments of a call: the parts that the model reads.
  nb::dict arrays(learn::CustomBatch batch) const {
    const learn::CustomInputs& inputs = traits_.inputs;
    const size_t size = batch.size;
    nb::dict out;
    out["task_of"] = array_of(std::move(batch.tasks), {size});
    const size_t width = size > 0 ? batch.features.size() / size : 0;
    if (inputs.features) out["features"] = array_of(std::move(batch.features), {size, width});
    if (inputs.stores) {
      const size_t rows = batch.stores.size() / feature::kPerStoreWidth;
      out["store_counts"] = array_of(std::move(batch.store_counts), {size});
      out["stores"] = array_of(std::move(batch.stores), {rows, size_t{feature::kPerStoreWidth}});
    }
    if (inputs.decisions) out["decisions"] = nb::cast(batch.decisions);
    if (inputs.traces) out["traces"] = nb::cast(batch.traces);
    if (inputs.programs) out["programs"] = nb::cast(batch.programs);
    if (!batch.seconds.empty()) out["seconds"] = array_of(std::move(batch.seconds), {size});
    return out;
  }

  nb::handle adapter_;
  std::exception_ptr& raised_;
  learn::CustomTraits traits_;
  size_t told_ = 0;
};

}  // namespace

learn::MakeCustomScorer PythonCostModel::maker() {
  return [this](const learn::CustomSession& session) -> Result<std::unique_ptr<learn::CustomScorer>> {
    std::vector<std::string> inputs;
    learn::CustomTraits traits;
    const auto begun = PythonScorer::call(adapter_, raised_, [&] {
      adapter_.attr("begin")(target::to_json(session.device), session.feature_names,
                             feature::per_store_schema().names());
      inputs = nb::cast<std::vector<std::string>>(adapter_.attr("inputs"));
      traits.learns = nb::cast<bool>(adapter_.attr("learns"));
      traits.sigma = nb::cast<double>(adapter_.attr("sigma"));
      return true;
    });
    if (!begun.ok()) return begun.error();
    TS_ASSIGN_OR_RETURN(traits.inputs, learn::parse_custom_inputs(inputs));
    return std::unique_ptr<learn::CustomScorer>(std::make_unique<PythonScorer>(adapter_, raised_, traits));
  };
}

}  // namespace tensorsmith::python
