// Which module executes the collectives by MPI: chosen from what the process has loaded, what libddl has and what the
// user wants.
#include <dlfcn.h>

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "base/fd.h"
#include "base/files.h"
#include "base/text.h"
#include "runtime/src/bootstrap/mpi_choice.h"
#include "runtime/src/bootstrap/needed_libraries.h"
#include "support/catch.h"

using namespace ddl::runtime;
using Catch::Matchers::Contains;
namespace fs = std::filesystem;

namespace {

// As mpi_modules() returns them where Debian's Open MPI and MPICH were when libddl was built.
const std::vector<MpiModule> kModules = {{"abi", "/ddl/abi/libddl_mpi.so", "libmpi_abi.so.1"},
                                         {"mpich", "/ddl/mpich/libddl_mpi.so", "libmpich.so.12"},
                                         {"mpich", "/ddl/mpich/libddl_mpi_12.so", "libmpi.so.12"},
                                         {"openmpi", "/ddl/openmpi/libddl_mpi.so", "libmpi.so.40"}};

LoadedMpi loaded_from(const std::string& folder, const std::string& soname) {
  return {soname, folder + "/" + soname};
}

/// The files to try without "/ddl/" and ".so", or the error.
std::string chosen(const std::vector<LoadedMpi>& loaded, const std::string& wanted, bool pmix_promised,
                   const std::vector<MpiModule>& modules = kModules) {
  const auto choice = choose_mpi(loaded, modules, wanted, pmix_promised);
  if (!choice) return choice.error().message();
  std::vector<std::string> files;
  for (const MpiModule& module : *choice) files.push_back(module.file.substr(5, module.file.size() - 8));
  return ddl::join(files, " ");
}

struct Closer {
  void operator()(void* library) const { ::dlclose(library); }
};
using Library = std::unique_ptr<void, Closer>;

/// A library with the soname of an MPI, and its functions, which do nothing.
Library load_stub(const std::string& name) {
  Library library(::dlopen((std::string(DDL_MPI_STUBS) + "/" + name).c_str(), RTLD_NOW | RTLD_LOCAL));
  INFO(name);
  REQUIRE(library);
  return library;
}

TEST_CASE("the module for the MPI that the process has loaded is taken, under every launcher") {
  for (const bool pmix_promised : {false, true}) {
    CHECK(chosen({loaded_from("/venv/lib", "libmpi_abi.so.1")}, "", pmix_promised) == "abi/libddl_mpi");
    CHECK(chosen({loaded_from("/venv/lib", "libmpi.so.12")}, "", pmix_promised) == "mpich/libddl_mpi_12");
    CHECK(chosen({loaded_from("/usr/lib", "libmpich.so.12")}, "", pmix_promised) == "mpich/libddl_mpi");
    CHECK(chosen({loaded_from("/usr/lib", "libmpi.so.40")}, "", pmix_promised) == "openmpi/libddl_mpi");
  }
  CHECK(chosen({loaded_from("/venv/lib", "libmpi.so.12")}, "mpich", true) == "mpich/libddl_mpi_12");
}

TEST_CASE("without a loaded MPI DDL_MPI decides, or else the launcher") {
  CHECK(chosen({}, "", true) == "openmpi/libddl_mpi abi/libddl_mpi mpich/libddl_mpi mpich/libddl_mpi_12");
  CHECK(chosen({}, "", false) == "abi/libddl_mpi mpich/libddl_mpi mpich/libddl_mpi_12 openmpi/libddl_mpi");
  CHECK(chosen({}, "abi", true) == "abi/libddl_mpi");
  CHECK(chosen({}, "mpich", true) == "mpich/libddl_mpi mpich/libddl_mpi_12");
  CHECK(chosen({}, "none-such", true).empty());
}

TEST_CASE("two MPIs in one process are refused by a sentence that names both files") {
  const LoadedMpi own = loaded_from("/venv/lib", "libmpi.so.12"),
                  abi = loaded_from("/venv/lib", "libmpi_abi.so.1");
  CHECK(
      chosen({own, abi}, "", true) ==
      "this process has loaded two MPIs, /venv/lib/libmpi.so.12 and /venv/lib/libmpi_abi.so.1; a process can "
      "have only one MPI: start the program where it finds just one of them");
  CHECK(chosen({own}, "abi", true) ==
        "DDL_MPI=abi would load libmpi_abi.so.1, by /ddl/abi/libddl_mpi.so, beside /venv/lib/libmpi.so.12, "
        "which "
        "this process has loaded; a process can have only one MPI: unset DDL_MPI");
}

TEST_CASE("a loaded MPI for which there is no module is named, with what there is") {
  const LoadedMpi cray = loaded_from("/opt/cray/lib", "libmpi_gnu_123.so.12");
  for (const std::string wanted : {"", "none-such"}) {
    CHECK(chosen({cray}, wanted, true, {kModules[0], kModules[3]}) ==
          "libddl has no module for /opt/cray/lib/libmpi_gnu_123.so.12, the MPI that this process has "
          "loaded; it "
          "has those for libmpi_abi.so.1 (abi), libmpi.so.40 (openmpi): build libddl where the mpicc of that "
          "MPI "
          "is in PATH");
  }
  CHECK_THAT(chosen({cray}, "", true, {}), Contains("has loaded; it has none: build libddl"));
}

TEST_CASE("an MPI is seen however it was loaded, and once by whatever name") {
  CHECK(loaded_mpis(kModules).empty());
  const std::string folder = DDL_MPI_STUBS;
  {
    const Library abi = load_stub("libmpi_abi.so.1");
    auto loaded = loaded_mpis(kModules);
    REQUIRE(loaded.size() == 1);
    CHECK(loaded[0].soname == "libmpi_abi.so.1");
    CHECK(loaded[0].file == folder + "/libmpi_abi.so.1");
    const Library mpich = load_stub("libmpich.so.12");
    loaded = loaded_mpis(kModules);
    REQUIRE(loaded.size() == 2);
    CHECK_THAT(chosen(loaded, "", true),
               Contains(folder + "/libmpi_abi.so.1 and " + folder + "/libmpich.so.12"));
  }
  CHECK(loaded_mpis(kModules).empty());
}

TEST_CASE(
    "modules are found with the MPI that they link, and a file that is none is kept for the loader's error") {
  const auto folder = ddl::TemporaryFolder::make_in(ddl::tmp_directory(), "ddl-modules");
  REQUIRE(folder);
  CHECK(mpi_modules(folder->path() + "/none").empty());
  for (const char* name : {"/abi", "/broken", "/empty"}) fs::create_directory(folder->path() + name);
  fs::copy_file(DDL_MPI_ABI_MODULE, folder->path() + "/abi/libddl_mpi.so");
  fs::copy_file(DDL_SOURCE_DIR "/LICENSE", folder->path() + "/broken/libddl_mpi.so");
  fs::copy_file(DDL_SOURCE_DIR "/LICENSE", folder->path() + "/abi/LICENSE");
  const auto modules = mpi_modules(folder->path());
  REQUIRE(modules.size() == 2);
  CHECK(modules[0].name == "abi");
  CHECK(modules[0].file == folder->path() + "/abi/libddl_mpi.so");
  CHECK(modules[0].library == "libmpi_abi.so.1");
  CHECK(modules[1].name == "broken");
  CHECK(modules[1].library.empty());
}

TEST_CASE("an MPI that the loader does not find is looked for in the Python environment") {
  const auto folder = ddl::TemporaryFolder::make_in(ddl::tmp_directory(), "ddl-venv");
  REQUIRE(folder);
  fs::create_directory(folder->path() + "/lib");
  // Never closed again: of a soname for which no other test looks.
  fs::copy_file(DDL_MPI_STUBS "/libddl_test_mpi.so.1", folder->path() + "/lib/libddl_test_mpi.so.1");
  Settings settings;
  CHECK_FALSE(load_from_python_environment("libddl_test_mpi.so.1", settings));
  settings.python_environment = folder->path();
  CHECK_FALSE(load_from_python_environment("libddl_test_other_mpi.so.1", settings));
  CHECK(load_from_python_environment("libddl_test_mpi.so.1", settings));
}

TEST_CASE("what a library links is read from its file, and a damaged file links nothing") {
  const auto file = ddl::read_file(DDL_MPI_ABI_MODULE, std::size_t{64} << 20);
  REQUIRE(file);
  const std::vector<std::string> libraries = needed_libraries(*file);
  CHECK_THAT(libraries, Catch::VectorContains(std::string("libmpi_abi.so.1")));
  CHECK_THAT(libraries, Catch::VectorContains(std::string("libstdc++.so.6")));
  CHECK(needed_libraries("").empty());
  CHECK(needed_libraries("\x7f"
                         "ELF")
            .empty());
  CHECK(needed_libraries(file->substr(0, 4096)).size() <= libraries.size());
  std::string other_class = *file;
  other_class[4] = 1;  // 32 bits
  CHECK(needed_libraries(other_class).empty());
}

}  // namespace
