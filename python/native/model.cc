#include "runtime/model.h"

#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <string>
#include <vector>

#include "bindings.h"
#include "errors.h"
#include "runtime/device/gpu_platform.h"

namespace tensorsmith::python {

namespace nb = nanobind;

namespace {

using Tensor = nb::ndarray<nb::ro, nb::c_contig>;
using OutTensor = nb::ndarray<nb::c_contig>;

nb::dlpack::dtype dlpack_dtype(DType dtype) {
  using Code = nb::dlpack::dtype_code;
  const auto bits = static_cast<uint8_t>(8 * bytes_of(dtype));
  const auto make = [&](Code code) { return nb::dlpack::dtype{static_cast<uint8_t>(code), bits, 1}; };
  if (dtype == DType::kBF16) return make(Code::Bfloat);
  switch (row_of(dtype).kind) {
    case DTypeKind::kBool:
      return make(Code::Bool);
    case DTypeKind::kSigned:
      return make(Code::Int);
    case DTypeKind::kUnsigned:
      return make(Code::UInt);
    case DTypeKind::kFloat:
      return make(Code::Float);
  }
  throw_internal_error(__FILE__, __LINE__, "unknown kind of dtype");
}

std::string text(nb::dlpack::dtype dtype) {
  static constexpr const char* kNames[] = {"int", "uint", "float", "handle", "bfloat", "complex", "bool"};
  const std::string name = dtype.code < std::size(kNames) ? kNames[dtype.code] : "type";
  return name == "bool" ? name : name + std::to_string(dtype.bits);
}

std::string text(const std::vector<int64_t>& shape) {
  std::string out = "(";
  for (size_t d = 0; d < shape.size(); ++d) out += (d == 0 ? "" : ", ") + std::to_string(shape[d]);
  return out + ")";
}

// Returns the array's data if its type and shape are those of the model's tensor.
template <typename Array>
auto data_of(nb::handle object, const runtime::TensorInfo& info, const char* role) {
  const std::string place = std::string(role) + " '" + info.name + "'";
  Array array;
  // A conversion would make a copy of an output array, and the results would be lost.
  constexpr bool kMayCopy = std::is_same_v<Array, Tensor>;
  if (!nb::try_cast(object, array, kMayCopy))
    raise(
        {ErrorCode::kInvalidArgument, place,
         "is not an array that the processor can read in place: give a NumPy array, or an object with DLPack "
         "(__dlpack__)" +
             std::string(kMayCopy ? "" : " that is contiguous and may be written")});
  if (array.device_type() != nb::device::cpu::value && array.device_type() != 3 /* pinned, of CUDA */)
    raise({ErrorCode::kInvalidArgument, place, "is in the memory of a device; copy it to the processor's"});
  const nb::dlpack::dtype wanted = dlpack_dtype(info.dtype);
  // The bits of a type that NumPy lacks are passed as integers.
  const bool bits =
      row_of(info.dtype).numpy.empty() && array.dtype() == dlpack_dtype(row_of(info.dtype).stored);
  if (array.dtype() != wanted && !bits)
    raise({ErrorCode::kInvalidArgument, place,
           "has elements of " + text(array.dtype()) + ", the model takes " + text(wanted)});
  std::vector<int64_t> shape;
  for (size_t d = 0; d < array.ndim(); ++d) shape.push_back(static_cast<int64_t>(array.shape(d)));
  if (shape != info.shape)
    raise({ErrorCode::kInvalidArgument, place,
           "has the shape " + text(shape) + ", the model takes " + text(info.shape)});
  return array;
}

class Model {
 public:
  Model(const std::string& directory, int threads, const std::string& device, bool profile) {
    runtime::LoadOptions options;
    options.threads = threads;
    options.profile = profile;
    if (!device.empty()) options.gpu = value_or_raise(runtime::require_gpu_place(device));
    model_ = value_or_raise(without_lock([&] { return runtime::Model::load(directory, options); }));
  }

  const runtime::Model& model() const { return *model_; }
  void reset_profile() { model_->reset_profile(); }

  void run(const nb::list& inputs, const nb::list& outputs) {
    if (inputs.size() != model_->inputs().size() || outputs.size() != model_->outputs().size())
      raise({ErrorCode::kInvalidArgument, "run",
             "the model has " + std::to_string(model_->inputs().size()) + " inputs and " +
                 std::to_string(model_->outputs().size()) + " outputs"});
    std::vector<Tensor> held_inputs;
    std::vector<OutTensor> held_outputs;
    std::vector<const void*> input_data;
    std::vector<void*> output_data;
    for (size_t i = 0; i < inputs.size(); ++i) {
      held_inputs.push_back(data_of<Tensor>(inputs[i], model_->inputs()[i], "input"));
      input_data.push_back(held_inputs.back().data());
    }
    for (size_t i = 0; i < outputs.size(); ++i) {
      held_outputs.push_back(data_of<OutTensor>(outputs[i], model_->outputs()[i], "output"));
      output_data.push_back(held_outputs.back().data());
    }
    check(without_lock([&] { return model_->run(input_data, output_data); }));
  }

 private:
  std::unique_ptr<runtime::Model> model_;
};

// Returns (task, mean seconds of a run) for each call.
nb::list calls(const runtime::Model& model) {
  nb::list list;
  const std::vector<runtime::CallTime> times = model.profile();
  for (size_t c = 0; c < times.size(); ++c)
    list.append(nb::make_tuple(
        model.description().calls[c].task,
        times[c].runs > 0 ? times[c].total_seconds / static_cast<double>(times[c].runs) : 0.0));
  return list;
}

nb::list tensors(std::span<const runtime::TensorInfo> infos) {
  nb::list list;
  for (const auto& info : infos)
    list.append(
        nb::make_tuple(info.name, std::string(to_string(info.dtype)), nb::tuple(nb::cast(info.shape))));
  return list;
}

}  // namespace

void bind_model(nb::module_& module) {
  nb::class_<Model>(module, "Model", "A compiled model, loaded.")
      .def(nb::init<const std::string&, int, const std::string&, bool>(), nb::arg("directory"),
           nb::arg("threads"), nb::arg("device"), nb::arg("profile"))
      .def_prop_ro("name", [](const Model& m) { return m.model().description().name; })
      .def_prop_ro("num_threads", [](const Model& m) { return m.model().num_threads(); })
      .def_prop_ro(
          "inputs", [](const Model& m) { return tensors(m.model().inputs()); },
          "(name, dtype, shape) of each.")
      .def_prop_ro(
          "outputs", [](const Model& m) { return tensors(m.model().outputs()); },
          "(name, dtype, shape) of each.")
      .def("reset_profile", &Model::reset_profile, "Discards the times of earlier runs.")
      .def(
          "calls", [](const Model& m) { return calls(m.model()); },
          "(task, mean seconds over the runs) of each kernel call; empty unless the model was loaded with "
          "profile.")
      .def("run", &Model::run, nb::arg("inputs"), nb::arg("outputs"),
           "Runs the model: reads the inputs and writes the outputs, arrays in the model's order.");
}

}  // namespace tensorsmith::python
