// OpenBLAS: sgemm.
#include <cblas.h>

#include "peer.h"

// PyPI's scipy-openblas32 puts a prefix before every symbol; Debian's library has none.
#ifdef TENSORSMITH_OPENBLAS_PREFIX
#define OPENBLAS_CONCAT_(a, b) a##b
#define OPENBLAS_CONCAT(a, b) OPENBLAS_CONCAT_(a, b)
#define OPENBLAS(symbol) OPENBLAS_CONCAT(TENSORSMITH_OPENBLAS_PREFIX, symbol)
#else
#define OPENBLAS(symbol) symbol
#endif

namespace tensorsmith::peers {
namespace {

class Sgemm final : public PeerKernel {
 public:
  Sgemm(const GemmCase& shape, const float* a, const float* b, int threads)
      : shape_(shape), a_(a), b_(b), c_(static_cast<size_t>(shape.c_elements())), threads_(threads) {
    variant = "sgemm";
  }
  void run() override {
    OPENBLAS(openblas_set_num_threads)(threads_);
    const auto m = static_cast<blasint>(shape_.m), n = static_cast<blasint>(shape_.n),
               k = static_cast<blasint>(shape_.k);
    for (int64_t i = 0; i < shape_.batch; ++i) {
      OPENBLAS(cblas_sgemm)
      (CblasRowMajor, CblasNoTrans, CblasNoTrans, m, n, k, 1.0F, a_ + i * m * k, k, b_ + i * k * n, n, 0.0F,
       c_.data() + i * m * n, n);
    }
  }
  Floats output() override { return c_; }

 private:
  GemmCase shape_;
  const float* a_;
  const float* b_;
  Floats c_;
  int threads_;
};

class OpenBlas final : public Peer {
 public:
  std::string name() const override { return "OpenBLAS"; }
  std::string version() const override {
    return std::string(OPENBLAS(openblas_get_config)()) + ", kernels " + OPENBLAS(openblas_get_corename)();
  }
  PeerKernels gemm(const GemmCase& shape, const float* a, const float* b, int threads) override {
    PeerKernels out;
    if (shape.element != Element::kF32) return out;
    out.push_back(std::make_unique<Sgemm>(shape, a, b, threads));
    return out;
  }
  PeerKernels conv(const ConvCase&, const ConvData&, int) override { return {}; }
};

}  // namespace
}  // namespace tensorsmith::peers

extern "C" __attribute__((visibility("default"))) tensorsmith::peers::Peer* tensorsmith_make_peer() {
  return new tensorsmith::peers::OpenBlas;
}
