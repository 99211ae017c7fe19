// The table of neural networks. A new one needs a file of its own, a line here, and a line in the
// list of sources.
#pragma once

// Calls ONE(name, design) with ModelCard::kind and the function for NetKind::design. It is a macro
// because the program uses only the names and does not link the networks.
#define TENSORSMITH_PRODUCT_NETS(ONE) ONE("resource-net", resource_net_design)
#define TENSORSMITH_COMPARED_NETS(ONE) \
  ONE("mlp", mlp_design)               \
  ONE("tlp", tlp_design)               \
  ONE("mtl-tlp", mtl_tlp_design)       \
  ONE("cdmpp", cdmpp_design)
#define TENSORSMITH_NETS(ONE) TENSORSMITH_PRODUCT_NETS(ONE) TENSORSMITH_COMPARED_NETS(ONE)
