#include "base/cpu_features.h"
#include "runtime/model_format.h"

namespace tensorsmith::runtime {

std::string_view host_arch() {
#if defined(__x86_64__)
  return "x86-64";
#elif defined(__aarch64__)
  return "aarch64";
#else
  return "unknown";
#endif
}

Status check_cpu(const ModelDescription& description) {
  if (description.arch != host_arch()) {
    return Error{ErrorCode::kUnsupported, "",
                 "compiled for " + description.arch + ", this machine is " + std::string(host_arch())};
  }
  std::string missing;
  for (const auto& feature : description.cpu_features) {
    if (!cpu_has_feature(feature)) missing += (missing.empty() ? "" : ", ") + feature;
  }
  if (missing.empty()) return {};
  if (missing.starts_with("amx")) {
    return Error{ErrorCode::kUnsupported, "",
                 "compiled for the matrix units " + missing +
                     ", which this CPU does not have or the operating system does not let this process use "
                     "(the alternative signal stack of each thread must have room for their state of 8 KiB); "
                     "compile the model with isa=avx512"};
  }
  return Error{ErrorCode::kUnsupported, "",
               "compiled for " + missing +
                   ", which this CPU does not have; compile the model for this machine or for an older "
                   "instruction set"};
}

}  // namespace tensorsmith::runtime
