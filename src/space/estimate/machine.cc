#include "space/estimate/machine.h"

namespace tensorsmith::space {

EstimateMachine::EstimateMachine(const target::Device& device, const Constants& constants)
    : target::CpuMachine(device), kind(device.kind()), gpu(device), constants_(&constants) {
  masked_memory = target::has_masked_memory(device);
  dot4 = target::has_dot4(device);
  dot2 = target::has_dot2(device);
  matrix = sched::MatrixUnits::of(device);
  dot4_operations = dot4 ? 1 : constants.emulated_dot4;
  dot4_narrow_operations = dot4 ? 1 : constants.emulated_dot4_narrow;
  dot2_i16_operations = dot4 ? 1 : constants.emulated_dot2_i16;
  // An emulated dot2 is two FMAs. Extracting the halves is mostly shared by several products.
  dot2_operations = dot2 ? 1 : constants.emulated_dot2;
  dot2_latency = dot2 ? rates.dot2_latency : 2 * rates.fma_latency;
}

}  // namespace tensorsmith::space
