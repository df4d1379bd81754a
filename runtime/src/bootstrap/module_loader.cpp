#include "runtime/src/bootstrap/module_loader.h"

#include <dlfcn.h>

#include <set>
#include <string>
#include <vector>

#include "base/text.h"
#include "contract/environment.h"
#include "runtime/src/bootstrap/bootstrap.h"
#include "runtime/src/bootstrap/bootstrap_list.h"
#include "runtime/src/bootstrap/mpi_choice.h"
#include "runtime/src/bootstrap/mpi_world.h"
#include "runtime/src/common/interruption.h"

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

namespace {

namespace env = contract::env;

/// "DDL_MPI can be mpich or openmpi: "; "" if libddl has no module.
std::string what_there_is(const std::vector<MpiModule>& modules) {
  std::set<std::string> names;
  for (const MpiModule& module : modules) names.insert(module.name);
  return names.empty()
             ? ""
             : std::string(env::kMpi) + " can be " + join({names.begin(), names.end()}, " or ") + ": ";
}

/// A function of the module for the MPI of this process, or else for an MPI that the settings allow.
struct MpiFunction {
  std::string file;
  void* address = nullptr;
};
Result<MpiFunction> load_mpi(const Settings& settings, const char* symbol) {
  const std::string directory = module_directory(settings);
  const std::vector<MpiModule> modules = mpi_modules(directory);
  const std::vector<LoadedMpi> loaded = loaded_mpis(modules);
  DDL_ASSIGN(chosen, choose_mpi(loaded, modules, settings.mpi, settings.pmix_promised));
  std::string reasons;
  if (chosen.empty()) {
    const std::string name = settings.mpi.empty() ? "*" : settings.mpi;
    reasons = "there is no " + directory + "/" + name + "/" + kMpiModuleStart + "*.so";
  }
  for (const MpiModule& module : chosen) {
    auto address = load_symbol(module.file, symbol);
    if (!address && loaded.empty() && load_from_python_environment(module.library, settings))
      address = load_symbol(module.file, symbol);
    if (address) return MpiFunction{module.file, *address};
    reasons += (reasons.empty() ? "" : "; ") + module.name + ": " + address.error().message();
    // The next one would load a second MPI.
    if (loaded.empty() && !loaded_mpis(modules).empty()) break;
  }
  return fail(ErrorCode::kUnavailable,
              "no module for MPI can be loaded (" + reasons + "); " + what_there_is(modules) +
                  "install such an MPI, or build libddl where another one's mpicc is in PATH");
}

Error other_build(const std::string& file) {
  return Error(ErrorCode::kUnavailable, file + " was built for another version of libddl (this is " +
                                            contract::kVersion + "); install both from one build");
}

/// Before PMIx, for an MPI that needs it. If no module can be loaded, join_mpi() says so later.
Status enter_mpi_first(const Settings& settings) {
  const auto function = load_mpi(settings, kMpiEnterFirstSymbol);
  if (!function) return {};
  Status entered;
  if (reinterpret_cast<MpiEnterFirst>(function->address)(kMpiInterface, contract::kVersion, &entered) == 0)
    return fail(other_build(function->file));
  return entered;
}

}  // namespace

Result<std::unique_ptr<MpiWorld>> join_mpi(const Settings& settings,
                                           const std::optional<MpiIdentity>& identity) {
  DDL_ASSIGN(function, load_mpi(settings, kMpiFactorySymbol));
  Result<std::unique_ptr<MpiWorld>> world;
  if (reinterpret_cast<MpiFactory>(function.address)(kMpiInterface, contract::kVersion,
                                                     identity ? &*identity : nullptr, &world) == 0) {
    return fail(other_build(function.file));
  }
  return world;
}

namespace {

/// Where a rank of one launcher has started another one, a process would join as a second rank of the same number.
Status check_single_launcher(const Settings& settings, const Membership& world) {
  if (!settings.pmi_is_hydras || (settings.pmi->rank == world.rank && settings.pmi->size == world.size))
    return {};
  const auto place = [](int rank, int size) {
    return "rank " + std::to_string(rank) + " of " + std::to_string(size);
  };
  return fail(
      ErrorCode::kProtocol,
      "the variables of two launchers: this is " + place(world.rank, world.size) + " by PMIX_RANK, and " +
          place(settings.pmi->rank, settings.pmi->size) +
          " by PMI_RANK; remove those of the outer one, as in env -u PMIX_NAMESPACE -u PMIX_RANK mpirun ..");
}

}  // namespace

Result<BootstrapAttempt> attempt_pmix(const Settings& settings, std::uint32_t generation) {
  if (!settings.pmix_promised) {
    return BootstrapAttempt{nullptr, std::string(contract::env::kPmixNamespace) + " and " +
                                         contract::env::kPmixRank + " are not both set"};
  }
  if (settings.has_no_home)
    return fail(ErrorCode::kUnavailable,
                std::string("HOME is not set, and this user has no entry in passwd: libpmix "
                            "would end the process with SIGSEGV; start it with env HOME=") +
                    kHomeOfUnknownUser);
  if (settings.cpu_operations == contract::CpuOperations::kMpi) DDL_TRY(enter_mpi_first(settings));
  const std::string directory = module_directory(settings), file = directory + "/" + kPmixModuleFile;
  auto symbol = load_symbol(file, kPmixFactorySymbol);
  // The module links libpmix: the program's, if it has loaded one, or the system's. A package for systems without one
  // brings it along; once it is loaded, the module finds it by its name.
  if (!symbol && ::dlopen((directory + "/pmix/libpmix.so.2").c_str(), RTLD_NOW | RTLD_NODELETE) != nullptr)
    symbol = load_symbol(file, kPmixFactorySymbol);
  if (!symbol) return BootstrapAttempt{nullptr, symbol.error().message()};
  Result<BootstrapAttempt> result;
  if (reinterpret_cast<PmixFactory>(*symbol)(kBootstrapInterface, contract::kVersion, generation,
                                             settings.is_successor, settings.start_deadline(),
                                             interrupt_check(), &result) == 0) {
    return BootstrapAttempt{
        nullptr, file + " was built for another version of libddl (this is " + contract::kVersion + ")"};
  }
  if (result && result->bootstrap) DDL_TRY(check_single_launcher(settings, result->bootstrap->membership()));
  if (!result || result->bootstrap) return result;
  // Variables that a process inherits from a job that has ended may look like a promise.
  if (settings.allow_singleton && !settings.pmi) return result;
  // The server may have admitted other ranks: by another bootstrap this rank would wait for them, and they for it.
  return fail(ErrorCode::kProtocol, result->not_available +
                                        "; the launcher has promised PMIx to all ranks. Is there room in "
                                        "TMPDIR, and may this user start threads (ulimit "
                                        "-u)? If no launcher started this process, unset " +
                                        contract::env::kPmixNamespace);
}

}  // namespace ddl::runtime
