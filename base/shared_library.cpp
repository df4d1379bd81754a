#include "base/shared_library.h"

#include <dlfcn.h>
#include <link.h>

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

}  // namespace ddl
