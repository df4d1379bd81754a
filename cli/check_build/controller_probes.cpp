// How ranks learn who they are: what agents serve, tried by ranks that ask.
#include <unistd.h>

#include "base/shared_library.h"
#include "cli/check_build/probe.h"
#include "cli/check_build/probe_tools.h"
#include "cli/this_process.h"
#include "launcher/pmix/pmix_advisory.h"

namespace ddl::cli {

namespace {

constexpr char kInstallPmix[] =
    "install OpenPMIx 4 or 5 (Debian: libpmix2), or name its folder in LD_LIBRARY_PATH";

}  // namespace

Finding look_at_pmix_server() {
  const auto library = SharedLibrary::load("libpmix.so.2");
  if (!library) return fails(library.error().message(), kInstallPmix);
  auto* version = library->function<const char*()>("PMIx_Get_version");
  if (version == nullptr || library->function<void()>("PMIx_server_init") == nullptr)
    return fails(library->path() + " has no PMIx server", kInstallPmix);
  const std::string package = launcher::pmix_package_version(library->path()).value_or("");
  if (::geteuid() == 0) {
    if (auto refusal = launcher::pmix_refusal(version(), package)) return fails(*std::move(refusal));
  }
  Finding asked = look_at_pmix_bootstrap();
  if (!asked.works) return asked;
  return works(launcher::pmix_sentence(version(), package, ::geteuid() == 0), library->path());
}

Finding look_at_pmi_server() {
  Finding found = look_at_pmi_bootstrap();
  if (found.works) found = works("PMI-1", own_path(), "for programs of MPICH");
  return found;
}

}  // namespace ddl::cli
