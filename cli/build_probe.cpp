#include "cli/build_probe.h"

#include <cstdlib>
#include <filesystem>
#include <utility>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/mapped_memory.h"
#include "base/path_search.h"
#include "base/pidfd.h"
#include "base/shared_library.h"
#include "base/text.h"
#include "base/unique_fd.h"
#include "cli/this_process.h"
#include "contract/environment.h"
#include "contract/version.h"
#include "launcher/agent/node_addresses.h"
#include "launcher/pmix/pmix_advisory.h"

namespace ddl::cli {

namespace fs = std::filesystem;

namespace {

constexpr char kFrameworks[] = "Frameworks";
constexpr char kControllers[] = "Controllers";
constexpr char kOperations[] = "Tensor Operations";
constexpr char kLaunchers[] = "Launchers";
constexpr char kKernel[] = "Kernel Features";

BuildBox box_of(const char* heading, std::string name, const Result<std::string>& found) {
  return {heading, std::move(name), found.has_value(), found ? *found : found.error().message()};
}

BuildBox empty_box(const char* heading, std::string name, std::string reason) {
  return {heading, std::move(name), false, std::move(reason)};
}

/// Beside this ddlrun, as in the build and install trees; else wherever the loader finds it.
Result<SharedLibrary> load_libddl() {
  constexpr char kName[] = "libddl.so.0";
  std::error_code ignored;
  const fs::path program = fs::read_symlink("/proc/self/exe", ignored);
  for (const char* directory : {"../lib", DDL_LIBDIR_FROM_BINDIR}) {
    const fs::path candidate = (program.parent_path() / directory / kName).lexically_normal();
    if (fs::exists(candidate, ignored)) return SharedLibrary::load(candidate.string());
  }
  auto library = SharedLibrary::load(kName);
  if (!library) return fail(std::move(library.error().during("not in ../lib beside ddlrun")));
  return library;
}

Result<std::string> probe_libddl(const Result<SharedLibrary>& libddl) {
  if (!libddl) return fail(libddl.error());
  auto* version = libddl->function<const char*()>("ddl_version");
  if (version == nullptr) return fail(ErrorCode::kUnavailable, libddl->path() + " has no ddl_version()");
  if (std::string_view(version()) != contract::kVersion) {
    return fail(ErrorCode::kUnavailable,
                libddl->path() + " is libddl " + version() + ", not this ddlrun's " + contract::kVersion);
  }
  return "libddl " + std::string(version()) + ", " + libddl->path();
}

Result<std::string> probe_pmix_module(const Result<SharedLibrary>& libddl) {
  if (!libddl) return fail(ErrorCode::kUnavailable, "libddl itself was not found");
  const char* configured = std::getenv(contract::env::kModuleDirectory);
  const fs::path directory = configured != nullptr && *configured != '\0'
                                 ? fs::path(configured)
                                 : fs::path(libddl->path()).parent_path() / "ddl";
  const auto module = SharedLibrary::load((directory / "libddl_pmix.so").string());
  if (!module) return fail(module.error());
  return module->path();
}

Result<std::string> probe_pmix_server() {
  const auto library = SharedLibrary::load("libpmix.so.2");
  if (!library) return fail(library.error());
  auto* version = library->function<const char*()>("PMIx_Get_version");
  if (version == nullptr || library->function<void()>("PMIx_server_init") == nullptr) {
    return fail(ErrorCode::kUnavailable, library->path() + " has no PMIx server");
  }
  return launcher::pmix_sentence(version(), launcher::pmix_package_version(library->path()),
                                 ::geteuid() == 0);
}

/// What libddl's ranks do with each other's memory: a memfd of fixed size, mapped by both.
Result<std::string> probe_sealed_memory() {
  const UniqueFd memory(::memfd_create("ddlrun-check-build", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!memory) return fail_errno("memfd_create");
  constexpr std::size_t kSize = 4096;
  if (::ftruncate(memory.get(), kSize) != 0) return fail_errno("ftruncate of a memfd");
  constexpr int kSeals = F_SEAL_GROW | F_SEAL_SHRINK | F_SEAL_SEAL;
  if (::fcntl(memory.get(), F_ADD_SEALS, kSeals) != 0) return fail_errno("F_ADD_SEALS");
  if (::fcntl(memory.get(), F_GET_SEALS) != kSeals) {
    return fail(ErrorCode::kUnavailable, "the kernel took the seals of a memfd and does not show them");
  }
  const auto mapped = MappedMemory::map_shared(memory.get(), kSize);
  if (!mapped) return fail(mapped.error());
  return std::string("memfd_create with F_SEAL_GROW, F_SEAL_SHRINK, F_SEAL_SEAL");
}

Result<std::string> probe_pidfd() {
  const auto pidfd = open_pidfd(::getpid());
  if (!pidfd) return fail(pidfd.error());
  DDL_TRY(send_signal(pidfd->get(), 0));
  return std::string("pidfd_open and pidfd_send_signal");
}

Result<std::string> probe_shared_memory(const Result<std::string>& sealed, const Result<std::string>& pidfd) {
  if (!sealed) return fail(sealed.error());
  if (!pidfd) return fail(pidfd.error());
  return std::string("between ranks of one machine");
}

/// Between ranks of several hosts; every address but the loopback is offered.
Result<std::string> probe_tcp(const Result<SharedLibrary>& libddl) {
  if (!libddl) return fail(ErrorCode::kUnavailable, "libddl itself was not found");
  std::vector<std::string> names;
  for (const auto& address : launcher::node_addresses())
    names.push_back(address.interface + " " + address.address);
  if (names.empty()) return fail(ErrorCode::kUnavailable, "no network interface but the loopback is up");
  return "between hosts, by " + join(names, ", ");
}

/// What "ssh" is when ddlrun starts it.
Result<std::string> probe_command(const std::string& name, const std::string& remedy) {
  const char* path = std::getenv("PATH");
  if (const auto file = find_in_path(name, path != nullptr ? path : "/usr/bin:/bin")) return *file;
  return fail(ErrorCode::kNotFound, "there is no " + name + " in PATH; " + remedy);
}

/// Where srun is; whether there is a job to use it in is another question.
Result<std::string> probe_srun() {
  auto srun = probe_command("srun", "Slurm's commands are where its jobs are submitted");
  if (!srun) return srun;
  return *srun + ", inside a Slurm job";
}

/// "this version has no NCCL backend (libnccl.so.2 is not installed either)".
std::string no_backend(const std::string& what, std::initializer_list<const char*> libraries) {
  for (const char* library : libraries) {
    if (SharedLibrary::load(library))
      return "this version has no " + what + ", though " + library + " is installed";
  }
  return "this version has no " + what + ", and " + *libraries.begin() + " is not installed either";
}

}  // namespace

std::vector<BuildBox> probe_build() {
  const auto libddl = load_libddl();
  const auto pmix = probe_pmix_server();
  const auto sealed = probe_sealed_memory();
  const auto pidfd = probe_pidfd();
  const std::string no_python = "this version has no Python package";

  const Result<std::string> this_machine =
      !pmix    ? Result<std::string>(fail(ErrorCode::kUnavailable, "ranks need a PMIx server, see above"))
      : !pidfd ? Result<std::string>(fail(pidfd.error()))
               : Result<std::string>(counted(allowed_cpus(), "CPU"));
  return {
      box_of(kFrameworks, "C and C++", probe_libddl(libddl)),
      empty_box(kFrameworks, "PyTorch",
                no_python + "; programs that use torch.distributed find their variables set"),
      empty_box(kFrameworks, "TensorFlow", no_python),
      empty_box(kFrameworks, "MXNet", no_python),
      box_of(kControllers, "PMIx server", pmix),
      box_of(kControllers, "PMIx client", probe_pmix_module(libddl)),
      empty_box(kControllers, "MPI", "not needed: MPI programs find the PMIx server"),
      empty_box(kControllers, "Gloo", "not needed: ranks meet at the PMIx server"),
      box_of(kOperations, "Shared memory", probe_shared_memory(sealed, pidfd)),
      box_of(kOperations, "TCP", probe_tcp(libddl)),
      empty_box(kOperations, "CUDA", no_backend("support of GPU memory", {"libcuda.so.1"})),
      empty_box(kOperations, "NCCL", no_backend("NCCL backend", {"libnccl.so.2"})),
      empty_box(kOperations, "MPI", no_backend("MPI backend", {"libmpi.so.40", "libmpi.so.12"})),
      empty_box(kOperations, "Gloo", "this version has no Gloo backend; shared memory takes its place"),
      box_of(kLaunchers, "this machine", this_machine),
      box_of(kLaunchers, "ssh", probe_command("ssh", "install openssh-client")),
      box_of(kLaunchers, "Slurm", probe_srun()),
      empty_box(kLaunchers, "mpirun", "ddlrun starts ranks itself and never calls mpirun"),
      box_of(kKernel, "sealed memory", sealed),
      box_of(kKernel, "pidfd", pidfd),
  };
}

}  // namespace ddl::cli
