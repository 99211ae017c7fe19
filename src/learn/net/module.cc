// The module's one exported function.
#include "learn/net/module.h"

extern "C" __attribute__((visibility("default"))) const tensorsmith::learn::net::Module*
tensorsmith_net_module() {
  using namespace tensorsmith::learn::net;  // NOLINT: the names of this file
  static const Module module = {TENSORSMITH_VERSION, layout_of_interface(), &make_trainer, &from_file,
                                &train_language_net};
  return &module;
}
