// The table of nets. A new one is a file of its own, a line here, and a line in the list of sources.
#pragma once

// ONE(name, design): ModelCard::kind, and the function of NetKind::design. A macro, because the program, which does
// not link the nets, reads the names alone.
#define TENSORSMITH_NETS(ONE)    \
  ONE("mlp", mlp_design)         \
  ONE("tlp", tlp_design)         \
  ONE("mtl-tlp", mtl_tlp_design) \
  ONE("cdmpp", cdmpp_design)     \
  ONE("resource-net", resource_net_design)
