// A platform of GPUs that never has a device.
#include "runtime/device/gpu.h"

namespace tensorsmith::runtime {
namespace {

Error no_toy() { return {ErrorCode::kNotFound, "Toy", "there is no device; nobody makes toy GPUs"}; }

Result<std::vector<GpuProperties>> list_toys(const std::string&) { return no_toy(); }
Result<std::unique_ptr<Gpu>> open_toy(int, const std::string&) { return no_toy(); }

constexpr std::string_view kToyArchs[] = {"toy"};

}  // namespace

const GpuPlatform toy_platform = {
    .name = "toy", .title = "Toy", .archs = kToyArchs, .list = list_toys, .open = open_toy};

}  // namespace tensorsmith::runtime
