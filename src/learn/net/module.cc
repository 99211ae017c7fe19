// The only function that the module exports.
#include "learn/net/module.h"

extern "C" __attribute__((visibility("default"))) const tensorsmith::learn::net::Module*
tensorsmith_net_module() {
  using namespace tensorsmith::learn::net;  // NOLINT: this file defines their table
  static const Module module = {TENSORSMITH_VERSION, layout_of_interface(), &make_trainer, &from_file,
                                &train_language_net};
  return &module;
}
