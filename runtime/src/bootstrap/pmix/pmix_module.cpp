#include "runtime/src/bootstrap/pmix/pmix_module.h"

#include <string>

#include "contract/environment.h"
#include "runtime/src/bootstrap/pmix/module_interface.h"
#include "runtime/src/module_loader.h"

namespace ddl::runtime {

Result<BootstrapAttempt> attempt_pmix(const Settings& settings, std::uint32_t generation) {
  if (!settings.pmix_promised) {
    return BootstrapAttempt{nullptr, std::string(contract::env::kPmixNamespace) + " and " +
                                         contract::env::kPmixRank + " are not both set"};
  }
  const std::string file = module_directory(settings) + "/" + kPmixModuleFile;
  const auto symbol = load_symbol(file, kPmixFactorySymbol);
  if (!symbol) return BootstrapAttempt{nullptr, symbol.error().message()};
  Result<BootstrapAttempt> result;
  if (reinterpret_cast<PmixFactory>(*symbol)(kBootstrapInterface, contract::kVersion, generation,
                                             settings.start_deadline(), &result) == 0) {
    return BootstrapAttempt{
        nullptr, file + " was built for another version of libddl (this is " + contract::kVersion + ")"};
  }
  if (!result || result->bootstrap) return result;
  // What a process inherits of a job that has gone may look like a promise.
  if (settings.allow_singleton && !settings.pmi) return result;
  // Other ranks have been let in, perhaps: by another way this one would wait for them, and they for it.
  return fail(ErrorCode::kProtocol, result->not_available +
                                        "; the launcher has promised PMIx to all ranks. Is there room in "
                                        "TMPDIR, and may this user start threads (ulimit "
                                        "-u)? If no launcher started this process, unset " +
                                        contract::env::kPmixNamespace);
}

}  // namespace ddl::runtime
