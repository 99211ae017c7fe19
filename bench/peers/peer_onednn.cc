// oneDNN 2 or 3 on OpenMP: matmul and convolution primitives.
//
// Convolutions have two variants: all tensors in the layouts that the library prefers (format_tag::any;
// reorders are not timed), and NCHW activations with weights in a layout of its choice. Matrix products
// have row-major operands, or a constant B in the library's own layout. oneDNN 2 also has Winograd
// convolutions, a third variant.
#include <omp.h>
#include <sched.h>

#include <algorithm>
#include <oneapi/dnnl/dnnl.hpp>
#include <unordered_map>
#include <vector>

#include "peer.h"

namespace tensorsmith::peers {
namespace {

using dnnl::memory;
using Tag = memory::format_tag;

constexpr bool kHasWinograd = DNNL_VERSION_MAJOR < 3;

memory::desc f32(const memory::dims& dims, Tag tag) { return {dims, memory::data_type::f32, tag}; }
memory::desc stored(Element element, const memory::dims& dims, Tag tag) {
  return {dims, element == Element::kBF16 ? memory::data_type::bf16 : memory::data_type::f32, tag};
}

class Primitive final : public PeerKernel {
 public:
  Primitive(const dnnl::engine& engine, int threads) : engine_(engine), stream_(engine), threads_(threads) {}

  // Converts contents in a plain layout to an argument in the layout that the primitive wants.
  void argument(int name, const memory::desc& plain, const float* contents, const memory::desc& wanted) {
    memory from(plain, engine_, const_cast<float*>(contents));  // not written
    memory to(wanted, engine_);
    dnnl::reorder(from, to).execute(stream_, from, to);
    stream_.wait();
    arguments_[name] = to;
  }
  void result(const memory::desc& plain, const memory::desc& wanted) {
    plain_result_ = plain;
    arguments_[DNNL_ARG_DST] = memory(wanted, engine_);
  }
  void set(dnnl::primitive primitive) { primitive_ = std::move(primitive); }

  void run() override {
    omp_set_num_threads(threads_);
    primitive_.execute(stream_, arguments_);
    stream_.wait();
  }
  void begin() override {
    sched_getaffinity(0, sizeof allowed_, &allowed_);
    std::vector<int> processors;
    for (int p = 0; p < CPU_SETSIZE; ++p) {
      if (CPU_ISSET(p, &allowed_)) processors.push_back(p);
    }
    if (processors.size() < static_cast<size_t>(threads_)) return;
#pragma omp parallel num_threads(threads_)
    {
      cpu_set_t own;
      CPU_ZERO(&own);
      CPU_SET(processors[static_cast<size_t>(omp_get_thread_num())], &own);
      sched_setaffinity(0, sizeof own, &own);
    }
  }
  void end() override { sched_setaffinity(0, sizeof allowed_, &allowed_); }
  Floats output() override {
    Floats out(plain_result_.get_size() / sizeof(float));
    memory to(plain_result_, engine_, out.data());
    memory from = arguments_.at(DNNL_ARG_DST);
    dnnl::reorder(from, to).execute(stream_, from, to);
    stream_.wait();
    return out;
  }

 private:
  dnnl::engine engine_;
  dnnl::stream stream_;
  dnnl::primitive primitive_;
  std::unordered_map<int, memory> arguments_;
  memory::desc plain_result_;
  int threads_;
  cpu_set_t allowed_{};
};

void append_relu(dnnl::post_ops& ops, float upper) {
  const auto algorithm = upper > 0 ? dnnl::algorithm::eltwise_clip : dnnl::algorithm::eltwise_relu;
#if DNNL_VERSION_MAJOR >= 3
  ops.append_eltwise(algorithm, 0, upper);
#else
  ops.append_eltwise(1, algorithm, 0, upper);
#endif
}

class OneDnn final : public Peer {
 public:
  OneDnn() : engine_(dnnl::engine::kind::cpu, 0) {}

  std::string name() const override { return "oneDNN " + std::to_string(dnnl_version()->major); }
  std::string version() const override {
    const auto* v = dnnl_version();
    std::string isa = "other";
    switch (dnnl::get_effective_cpu_isa()) {
      case dnnl::cpu_isa::avx2:
        isa = "avx2";
        break;
      case dnnl::cpu_isa::avx512_core:
        isa = "avx512_core";
        break;
      case dnnl::cpu_isa::avx512_core_vnni:
        isa = "avx512_core_vnni";
        break;
      case dnnl::cpu_isa::avx512_core_bf16:
        isa = "avx512_core_bf16";
        break;
      default:
        break;
    }
    return std::to_string(v->major) + "." + std::to_string(v->minor) + "." + std::to_string(v->patch) +
           ", OpenMP, " + isa;
  }

  PeerKernels gemm(const GemmCase& shape, const float* a, const float* b, int threads) override {
    omp_set_num_threads(threads);  // a primitive is made for a number of threads
    PeerKernels out;
    out.push_back(matmul(shape, a, b, threads, false, "plain"));
    if (shape.constant_b) out.push_back(matmul(shape, a, b, threads, true, "packed B"));
    return out;
  }

  PeerKernels conv(const ConvCase& shape, const ConvData& data, int threads) override {
    omp_set_num_threads(threads);
    PeerKernels out;
    out.push_back(convolution(shape, data, threads, Tag::any, dnnl::algorithm::convolution_direct, "any"));
    auto nchw = convolution(shape, data, threads, Tag::nchw, dnnl::algorithm::convolution_direct, "NCHW");
    // oneDNN has no optimized kernel for a residual in NCHW; beating its reference code means nothing.
    if (nchw->detail.rfind("ref", 0) != 0) out.push_back(std::move(nchw));
    if (kHasWinograd && shape.window == 3 && shape.stride == 1 && shape.groups == 1) {
      try {
        out.push_back(
            convolution(shape, data, threads, Tag::any, dnnl::algorithm::convolution_winograd, "Winograd"));
      } catch (const dnnl::error& error) {
        if (error.status != dnnl_unimplemented) throw;  // no Winograd kernel for this shape
      }
    }
    return out;
  }

 private:
  std::unique_ptr<PeerKernel> matmul(const GemmCase& shape, const float* a, const float* b, int threads,
                                     bool pack_b, const char* variant) {
    // A single product is passed as a 2D problem, since some kernels only support 2D.
    const bool batched = shape.batch > 1;
    const auto dims = [&](int64_t rows, int64_t columns) {
      return batched ? memory::dims{shape.batch, rows, columns} : memory::dims{rows, columns};
    };
    const Tag plain = batched ? Tag::abc : Tag::ab;
    const auto a_desc = stored(shape.element, dims(shape.m, shape.k), plain);
    const auto b_desc = stored(shape.element, dims(shape.k, shape.n), plain);
    const auto c_desc = stored(shape.element, dims(shape.m, shape.n), plain);
    const auto wanted = pack_b ? stored(shape.element, dims(shape.k, shape.n), Tag::any) : b_desc;
#if DNNL_VERSION_MAJOR >= 3
    const dnnl::matmul::primitive_desc description(engine_, a_desc, wanted, c_desc);
#else
    const dnnl::matmul::primitive_desc description({a_desc, wanted, c_desc}, engine_);
#endif
    auto out = std::make_unique<Primitive>(engine_, threads);
    out->variant = variant;
    out->detail = description.impl_info_str();
    out->argument(DNNL_ARG_SRC, f32(dims(shape.m, shape.k), plain), a, description.src_desc());
    out->argument(DNNL_ARG_WEIGHTS, f32(dims(shape.k, shape.n), plain), b, description.weights_desc());
    out->result(f32(dims(shape.m, shape.n), plain), description.dst_desc());
    out->set(dnnl::matmul(description));
    return out;
  }

  std::unique_ptr<PeerKernel> convolution(const ConvCase& shape, const ConvData& data, int threads,
                                          Tag activations, dnnl::algorithm algorithm, const char* variant) {
    const bool grouped = shape.groups > 1;
    const int64_t o = shape.out_image();
    const memory::dims in_dims = {1, shape.ci, shape.image, shape.image};
    const memory::dims out_dims = {1, shape.co, o, o};
    const memory::dims weight_dims = grouped
                                         ? memory::dims{shape.groups, shape.co / shape.groups,
                                                        shape.ci / shape.groups, shape.window, shape.window}
                                         : memory::dims{shape.co, shape.ci, shape.window, shape.window};
    const auto in = stored(shape.element, in_dims, activations);
    const auto result = stored(shape.element, out_dims, activations);
    const auto weights = stored(shape.element, weight_dims, Tag::any);
    const auto bias = stored(shape.element, {shape.co}, Tag::a);
    const memory::dims strides = {shape.stride, shape.stride}, pads = {shape.pad, shape.pad};
    dnnl::post_ops ops;
    if (shape.has_residual()) ops.append_binary(dnnl::algorithm::binary_add, result);
    if (shape.epilogue == Epilogue::kRelu || shape.epilogue == Epilogue::kAddRelu) append_relu(ops, 0);
    if (shape.epilogue == Epilogue::kRelu6) append_relu(ops, 6);
    dnnl::primitive_attr attributes;
    attributes.set_post_ops(ops);
    const auto kind = dnnl::prop_kind::forward_inference;
#if DNNL_VERSION_MAJOR >= 3
    const dnnl::convolution_forward::primitive_desc description(engine_, kind, algorithm, in, weights, bias,
                                                                result, strides, pads, pads, attributes);
#else
    const dnnl::convolution_forward::primitive_desc description(
        {kind, algorithm, in, weights, bias, result, strides, pads, pads}, attributes, engine_);
#endif
    auto out = std::make_unique<Primitive>(engine_, threads);
    out->variant = variant;
    out->detail = description.impl_info_str();
    out->argument(DNNL_ARG_SRC, f32(in_dims, Tag::nchw), data.input, description.src_desc());
    out->argument(DNNL_ARG_WEIGHTS, f32(weight_dims, grouped ? Tag::goihw : Tag::oihw), data.weights,
                  description.weights_desc());
    out->argument(DNNL_ARG_BIAS, f32({shape.co}, Tag::a), data.bias, bias);
    if (shape.has_residual()) {
      const int name = DNNL_ARG_ATTR_MULTIPLE_POST_OP(0) | DNNL_ARG_SRC_1;
      out->argument(name, f32(out_dims, Tag::nchw), data.residual,
                    description.query_md(dnnl::query::exec_arg_md, name));
    }
    out->result(f32(out_dims, Tag::nchw), description.dst_desc());
    out->set(dnnl::convolution_forward(description));
    return out;
  }

  dnnl::engine engine_;
};

}  // namespace
}  // namespace tensorsmith::peers

extern "C" __attribute__((visibility("default"))) tensorsmith::peers::Peer* tensorsmith_make_peer() {
  return new tensorsmith::peers::OneDnn;
}
