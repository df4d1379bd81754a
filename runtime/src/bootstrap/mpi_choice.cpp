#include "runtime/src/bootstrap/mpi_choice.h"

#include <dlfcn.h>
#include <link.h>
#include <sys/auxv.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <iterator>
#include <optional>
#include <system_error>

#include "base/fd.h"
#include "base/text.h"
#include "contract/environment.h"
#include "runtime/src/bootstrap/mpi_world.h"
#include "runtime/src/bootstrap/needed_libraries.h"

namespace ddl::runtime {
namespace {

namespace env = contract::env;
namespace fs = std::filesystem;

/// Of the ABI of MPI 5; of MPICH and Intel MPI; of Open MPI; of Debian's MPICH.
constexpr std::array kKnownLibraries = {"libmpi_abi.so.1", "libmpi.so.12", "libmpi.so.40", "libmpich.so.12"};

/// The MPI among what a module links: libmpi.so.40, libmpi_cray.so.12.
std::string mpi_among(const std::vector<std::string>& libraries) {
  const auto mpi = std::find_if(libraries.begin(), libraries.end(),
                                [](const std::string& name) { return name.starts_with("libmpi"); });
  return mpi == libraries.end() ? "" : *mpi;
}

/// The file of a library that this process has loaded.
std::optional<std::string> loaded_file(const std::string& soname) {
  void* const library = ::dlopen(soname.c_str(), RTLD_LAZY | RTLD_NOLOAD);
  if (library == nullptr) return std::nullopt;
  const link_map* map = nullptr;
  const bool is_known = ::dlinfo(library, RTLD_DI_LINKMAP, &map) == 0;
  std::string file = is_known ? map->l_name : soname;
  (void)::dlclose(library);  // The process has it still.
  return file;
}

/// The file that has MPI's functions for this program, whatever its soname is: a library, or the program itself.
std::optional<std::string> file_of_functions() {
  void* const function = ::dlsym(RTLD_DEFAULT, "MPI_Get_library_version");
  Dl_info info{};
  if (function == nullptr || ::dladdr(function, &info) == 0 || info.dli_fname == nullptr) return std::nullopt;
  return info.dli_fname;
}

std::string list_of(const std::vector<MpiModule>& modules) {
  std::vector<std::string> names;
  for (const MpiModule& module : modules) {
    if (!module.library.empty()) names.push_back(module.library + " (" + module.name + ")");
  }
  return names.empty() ? "it has none" : "it has those for " + join(names, ", ");
}

/// Without a known MPI. Open MPI finds its launcher by PMIx, MPICH and Intel MPI by PMI-1, which launchers without
/// PMIx offer; of these two the ABI's are the newer ones.
int place_of(const MpiModule& module, bool pmix_promised) {
  if (module.name == "openmpi") return pmix_promised ? 0 : 3;
  if (module.name == "abi") return 1;
  return module.name == "mpich" ? 2 : 4;
}

/// The folder "lib" beside that of this program as it was called: the python of an environment is a link. "": unknown.
std::string lib_beside_program() {
  std::string program = ::program_invocation_name;
  // Found by PATH: the kernel has noted the file. Of a script that is the script, but its interpreter is called by a path.
  if (const auto file = ::getauxval(AT_EXECFN); file != 0 && program.find('/') == program.npos)
    program =
        reinterpret_cast<const char*>(file);  // NOLINT(performance-no-int-to-ptr): the kernel gives it so
  const fs::path folder = fs::path(program).parent_path();
  return folder.empty() ? "" : (folder / "../lib").lexically_normal().string();
}

/// Never closed again, as the modules that link it.
bool load(const std::string& file) {
  return ::dlopen(file.c_str(), RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE) != nullptr;
}

}  // namespace

std::vector<MpiModule> mpi_modules(const std::string& directory) {
  constexpr std::size_t kMaxBytes = std::size_t{64} << 20;  // with what a debugger needs
  std::vector<MpiModule> modules;
  std::error_code ignored;
  for (const fs::directory_entry& folder : fs::directory_iterator(directory, ignored)) {
    for (const fs::directory_entry& entry : fs::directory_iterator(folder.path(), ignored)) {
      if (!entry.path().filename().string().starts_with(kMpiModuleStart)) continue;
      const std::string library =
          mpi_among(needed_libraries(read_file(entry.path(), kMaxBytes).value_or("")));
      modules.push_back({folder.path().filename(), entry.path(), library});
    }
  }
  std::sort(modules.begin(), modules.end(),
            [](const MpiModule& a, const MpiModule& b) { return a.file < b.file; });
  return modules;
}

std::vector<LoadedMpi> loaded_mpis(const std::vector<MpiModule>& modules) {
  std::vector<std::string> sonames(kKnownLibraries.begin(), kKnownLibraries.end());
  for (const MpiModule& module : modules) sonames.push_back(module.library);
  std::vector<LoadedMpi> loaded;
  for (const std::string& soname : sonames) {
    const auto file = soname.empty() ? std::nullopt : loaded_file(soname);
    // A library may be known by two names.
    const bool is_new = file && std::none_of(loaded.begin(), loaded.end(),
                                             [&file](const LoadedMpi& mpi) { return mpi.file == *file; });
    if (is_new) loaded.push_back({soname, *file});
  }
  if (!loaded.empty()) return loaded;
  if (const auto file = file_of_functions()) loaded.push_back({fs::path(*file).filename(), *file});
  return loaded;
}

Result<std::vector<MpiModule>> choose_mpi(const std::vector<LoadedMpi>& loaded,
                                          const std::vector<MpiModule>& modules, std::string_view wanted,
                                          bool pmix_promised) {
  constexpr char kOneOnly[] = "a process can have only one MPI";
  if (loaded.size() > 1) {
    return fail(ErrorCode::kInvalidArgument, "this process has loaded two MPIs, " + loaded[0].file + " and " +
                                                 loaded[1].file + "; " + kOneOnly +
                                                 ": start the program where it finds just one of them");
  }
  std::vector<MpiModule> named, chosen;
  std::copy_if(modules.begin(), modules.end(), std::back_inserter(named),
               [wanted](const MpiModule& module) { return wanted.empty() || module.name == wanted; });
  std::copy_if(named.begin(), named.end(), std::back_inserter(chosen), [&loaded](const MpiModule& module) {
    return loaded.empty() || module.library == loaded[0].soname;
  });
  std::stable_sort(chosen.begin(), chosen.end(), [pmix_promised](const MpiModule& a, const MpiModule& b) {
    return place_of(a, pmix_promised) < place_of(b, pmix_promised);
  });
  if (!chosen.empty() || loaded.empty()) return chosen;
  if (!wanted.empty() && !named.empty()) {
    return fail(ErrorCode::kInvalidArgument, std::string(env::kMpi) + "=" + named[0].name + " would load " +
                                                 named[0].library + ", by " + named[0].file + ", beside " +
                                                 loaded[0].file + ", which this process has loaded; " +
                                                 kOneOnly + ": unset " + env::kMpi);
  }
  return fail(ErrorCode::kUnavailable, "libddl has no module for " + loaded[0].file +
                                           ", the MPI that this process has loaded; " + list_of(modules) +
                                           ": build libddl where the mpicc of that MPI is in PATH");
}

bool load_from_python_environment(const std::string& soname, const Settings& settings) {
  const std::string active = settings.python_environment.empty() ? "" : settings.python_environment + "/lib";
  const std::array folders = {lib_beside_program(), active};
  std::error_code ignored;
  for (const std::string& folder : folders) {
    const std::string file = folder + "/" + soname;
    if (folder.empty() || !fs::exists(file, ignored)) continue;
    // Intel MPI looks for its libfabric, and that for its providers, as if mpirun had been told where they are: without
    // them it reaches no other host. mpi4py does the same.
    if (load(folder + "/libfabric.so.1")) (void)::setenv("FI_PROVIDER_PATH", folder.c_str(), 0);
    if (load(file)) return true;
  }
  return false;
}

}  // namespace ddl::runtime
