#include "base/shared_library.h"

#include <dlfcn.h>
#include <link.h>

#include "base/files.h"

namespace ddl {

Result<SharedLibrary> SharedLibrary::load(const std::string& name) {
  void* handle = ::dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (handle == nullptr) {
    const char* reason = ::dlerror();
    return fail(ErrorCode::kUnavailable, reason != nullptr ? reason : name + " cannot be loaded");
  }
  link_map* map = nullptr;
  const bool has_path =
      ::dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 && map != nullptr && map->l_name != nullptr;
  return SharedLibrary(handle, has_path ? std::string(map->l_name) : name);
}

void* SharedLibrary::symbol(const char* name) const { return ::dlsym(handle_, name); }

bool is_in_this_program(const void* address) {
  static const int here = 0;
  Dl_info own{}, other{};
  return ::dladdr(&here, &own) != 0 && ::dladdr(address, &other) != 0 && own.dli_fbase == other.dli_fbase;
}

std::string file_of_code(const void* address) {
  // The loader knows this program by its argv[0], which may be in no folder.
  if (is_in_this_program(address)) return own_path();
  Dl_info info{};
  return ::dladdr(address, &info) != 0 && info.dli_fname != nullptr ? info.dli_fname : "";
}

}  // namespace ddl
