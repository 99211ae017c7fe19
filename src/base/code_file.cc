#include "base/code_file.h"

#include <dlfcn.h>
#include <link.h>

#include <filesystem>

namespace tensorsmith {

std::string code_file() {
  Dl_info info{};
  link_map* object = nullptr;
  const int found = dladdr1(reinterpret_cast<const void*>(&code_file), &info,
                            reinterpret_cast<void**>(&object), RTLD_DL_LINKMAP);
  // The main program has an empty name in the link map.
  const bool in_library = found != 0 && object != nullptr && object->l_name[0] != '\0';
  std::error_code error;
  if (in_library) return std::filesystem::canonical(object->l_name, error);
  return std::filesystem::read_symlink("/proc/self/exe", error);
}

}  // namespace tensorsmith
