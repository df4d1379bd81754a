#include "runtime/src/module_loader.h"

#include <dlfcn.h>

namespace ddl::runtime {
namespace {

/// "/opt/ddl/lib" for a libddl.so in /opt/ddl/lib; empty if the loader does not know this code's file.
std::string folder_of_library() {
  static const char here = 0;
  Dl_info info{};
  if (::dladdr(&here, &info) == 0 || info.dli_fname == nullptr) return "";
  const std::string file = info.dli_fname;
  const auto slash = file.rfind('/');
  return slash == std::string::npos ? "." : file.substr(0, slash);
}

std::string loader_error() {
  const char* text = ::dlerror();
  return text == nullptr ? "unknown error of the dynamic loader" : text;
}

}  // namespace

std::string module_directory(const Settings& settings) {
  return settings.module_directory.empty() ? folder_of_library() + "/ddl" : settings.module_directory;
}

Result<void*> load_symbol(const std::string& file, const char* symbol) {
  void* module = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (module == nullptr) return fail(ErrorCode::kNotFound, loader_error());
  void* found = ::dlsym(module, symbol);
  if (found == nullptr) return fail(ErrorCode::kNotFound, loader_error());
  return found;
}

}  // namespace ddl::runtime
