// oracle_runner runs models for scripts/fuzz_graphs. It reads one request per line and answers each
// with one line.
//   oracle_runner --operators   prints the operators that can be imported, one a line
//   oracle_runner --devices     prints the instruction sets of this machine as devices, one a line
#include <cstdio>
#include <iostream>
#include <string>

#include "graph/ops/registry.h"
#include "serve.h"
#include "target/target.h"

namespace {

int list_operators() {
  for (const std::string_view op : tensorsmith::graph::operator_names()) std::cout << op << '\n';
  return 0;
}

int list_devices() {
  std::cout << "local\n";
  for (const std::string isa : {"avx512", "avx2", "sse4.2"}) {
    if (tensorsmith::target::find_device("local:isa=" + isa).ok()) std::cout << "local:isa=" << isa << '\n';
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const std::string mode = argc > 1 ? argv[1] : "";
  if (mode == "--operators") return list_operators();
  if (mode == "--devices") return list_devices();
  if (argc > 1) {
    std::cerr << "oracle_runner: unknown argument " << mode << '\n';
    return 1;
  }
  std::ios::sync_with_stdio(false);
  for (std::string line; std::getline(std::cin, line);) {
    tensorsmith::oracle::Reply reply;
    const auto request = tensorsmith::oracle::parse_request(line);
    if (request.ok()) {
      reply = serve(*request);
    } else {
      reply.stage = "request";
      reply.error = request.error().message();
      reply.code = "request";
    }
    std::cout << print(reply) << std::endl;
  }
  return 0;
}
