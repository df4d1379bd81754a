#include "runtime/src/bootstrap/pmix/pmix_module.h"

#include <dlfcn.h>

#include <string>

#include "contract/environment.h"
#include "runtime/src/bootstrap/pmix/module_interface.h"

namespace ddl::runtime {
namespace {

/// "/opt/ddl/lib/ddl" for a libddl.so in /opt/ddl/lib; empty if the loader does not know this code's file.
std::string folder_beside_library() {
  static const char here = 0;
  Dl_info info{};
  if (::dladdr(&here, &info) == 0 || info.dli_fname == nullptr) return "";
  const std::string file = info.dli_fname;
  const auto slash = file.rfind('/');
  return (slash == std::string::npos ? "." : file.substr(0, slash)) + "/ddl";
}

std::string loader_error() {
  const char* text = ::dlerror();
  return text == nullptr ? "unknown error of the dynamic loader" : text;
}

}  // namespace

Result<BootstrapAttempt> attempt_pmix(const Settings& settings, std::uint32_t generation) {
  if (!settings.pmix_promised) {
    return BootstrapAttempt{nullptr, std::string(contract::env::kPmixNamespace) + " and " +
                                         contract::env::kPmixRank + " are not both set"};
  }
  const std::string file =
      (settings.module_directory.empty() ? folder_beside_library() : settings.module_directory) + "/" +
      kPmixModuleFile;
  // Never closed: libpmix leaves thread-local destructors and atexit handlers behind.
  void* module = ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (module == nullptr) return BootstrapAttempt{nullptr, loader_error()};
  const auto create = reinterpret_cast<PmixFactory>(::dlsym(module, kPmixFactorySymbol));
  if (create == nullptr) return BootstrapAttempt{nullptr, loader_error()};

  Result<BootstrapAttempt> result;
  if (create(kBootstrapInterface, contract::kVersion, generation, &result) == 0) {
    return BootstrapAttempt{
        nullptr, file + " was built for another version of libddl (this is " + contract::kVersion + ")"};
  }
  return result;
}

}  // namespace ddl::runtime
