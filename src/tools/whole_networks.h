// `compare --whole`: compares ways to make whole networks fast (lab/compare_networks.h).
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <string>
#include <vector>

#include "lab/compare_searches.h"
#include "tools/options.h"

namespace tensorsmith::tools {

struct WholeNetworks {
  std::string folder;  // empty: whole networks are not compared
  int64_t programs = 8;
  double limit = 600;
  // Options that `compare` has for both of its kinds of comparison.
  std::vector<std::string> networks, from, cost_models, language_models;
  DeviceOptions device;
  int seeds = 1, batch = 16;
  bool quiet = false, json = false;
};

// Adds --whole and the options that belong to it; options that have no effect with it exclude it.
void add_whole_network_options(CLI::App& compare, WholeNetworks& options);

Status compare_whole_networks(const WholeNetworks& options);

}  // namespace tensorsmith::tools
