#include "runtime/device/driver_library.h"

#include <dlfcn.h>

namespace tensorsmith::runtime {

Result<DriverLibrary> DriverLibrary::open(const std::string& file, const std::string& remedy) {
  void* handle = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (handle) return DriverLibrary(file, handle);
  const char* said = ::dlerror();
  std::string why = in_one_line(said ? said : "no reason given");
  if (why.starts_with(file + ": ")) why.erase(0, file.size() + 2);
  return Error{ErrorCode::kNotFound, file, "cannot be loaded (" + why + "); " + remedy};
}

void* DriverLibrary::address(const char* symbol) {
  void* found = ::dlsym(handle_, symbol);
  if (!found && missing_.empty()) missing_ = symbol;
  return found;
}

Status DriverLibrary::complete() const {
  if (missing_.empty()) return {};
  return Error{ErrorCode::kUnsupported, file_, "has no function " + missing_ + "; install a newer driver"};
}

std::string in_one_line(const std::string& text, size_t most) {
  std::string line;
  for (const char c : text) {
    const bool space = static_cast<unsigned char>(c) <= ' ';
    if (!space) line += c;
    if (space && !line.empty() && line.back() != ' ') line += ' ';
    if (line.size() >= most) return line + " ...";
  }
  if (!line.empty() && line.back() == ' ') line.pop_back();
  return line;
}

}  // namespace tensorsmith::runtime
