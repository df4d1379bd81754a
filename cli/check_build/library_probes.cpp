// Probes of third-party libraries and packages: CUDA, HIP, NCCL, RCCL, MPI, Gloo, PyTorch and TensorFlow.
#include <array>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "base/shared_library.h"
#include "base/text.h"
#include "cli/check_build/probe.h"
#include "cli/options/this_process.h"
#include "launcher/node/node_probe.h"

namespace ddl::cli {

// Shared libraries, loaded and called: CUDA, HIP, NCCL, RCCL, MPI, Gloo.

namespace {

/// "2.18.5" from 21805: the encoding of NCCL since 2.9, and of RCCL.
std::string nccl_version(int number) {
  constexpr int kMajor = 10000, kMinor = 100;
  return fmt::format("{}.{}.{}", number / kMajor, number % kMajor / kMinor, number % kMinor);
}

Finding ask_nccl(const std::string& name, const char* soname, const std::string& vendor,
                 const std::string& remedy) {
  const auto library = SharedLibrary::load(soname);
  if (!library) return fails(library.error().message(), remedy);
  auto* get_version = library->function<int(int*)>("ncclGetVersion");
  if (get_version == nullptr) return fails(library->path() + " has no ncclGetVersion", remedy);
  int number = 0;
  if (const int code = get_version(&number); code != 0)
    return fails(fmt::format("ncclGetVersion of {} fails with {}", library->path(), code));
  Finding found = works(name + " " + nccl_version(number), library->path());
  found.detail = "one rank added on a GPU with it";
  if (const Finding sum = probe_gpu_operations(vendor); !sum.works) {
    found.works = false;
    found.detail = "one rank cannot add on a GPU with it: " + sum.detail;
    found.remedy = "run it on a host with a GPU; without NCCL, libddl moves memory of GPUs in other ways";
  }
  for (const auto& address : launcher::node_addresses()) {
    if (!address.interface.starts_with("hsn")) continue;
    found.detail +=
        "; this host is on Slingshot, where LL128 with GPUDirect has corrupted data without "
        "FI_MR_CACHE_MONITOR=userfaultfd, NCCL_CROSS_NIC=1 and NCCL_NET_GDR_LEVEL=PHB (NVIDIA/nccl issue "
        "2001)";
    break;
  }
  return found;
}

// Wheels put an MPI beside the interpreter or into the user's own folder, and mpi4py looks for it there first.
constexpr char kFindLibrary[] = R"(import os, site, sys
folders = [sys.prefix] + ([site.getuserbase()] if site.ENABLE_USER_SITE else [])
for folder in folders:
    path = os.path.join(folder, 'lib', sys.argv[1])
    if folder != '/usr' and os.path.exists(path): sys.exit(print(path)))";

struct PythonsMpi {
  std::string library;
  std::string python;
};
/// Of the python3 in PATH; empty if it has none of these.
PythonsMpi mpi_of_python(const std::vector<const char*>& sonames) {
  const CommandPath python = command_in_path("python3", "");
  if (python.path.empty()) return {};
  for (const char* const soname : sonames) {
    const FirstLine line = first_line_of({python.path, "-c", kFindLibrary, soname});
    if (!line.text.empty()) return {line.text, python.path};
  }
  return {};
}

/// The one that mpi4py loads, else the first that the loader finds.
Finding ask_mpi(const std::vector<const char*>& sonames, const std::string& remedy) {
  const PythonsMpi of_python = mpi_of_python(sonames);
  auto library = SharedLibrary::load(of_python.library.empty() ? sonames.front() : of_python.library);
  for (const char* const soname : sonames) {
    if (library || !of_python.library.empty()) break;
    if (auto other = SharedLibrary::load(soname)) library = std::move(other);
  }
  if (!library) return fails(library.error().message(), remedy);
  auto* get_version = library->function<int(char*, int*)>("MPI_Get_library_version");
  if (get_version == nullptr) return fails(library->path() + " has no MPI_Get_library_version", remedy);
  std::array<char, 8192> text{};  // MPI_MAX_LIBRARY_VERSION_STRING of MPICH, the largest known
  int length = 0;
  // May be called before MPI_Init().
  if (const int code = get_version(text.data(), &length); code != 0)
    return fails(fmt::format("MPI_Get_library_version of {} fails with {}", library->path(), code));
  std::string line(text.data());
  line = line.substr(0, line.find_first_of(",\n"));
  for (char& c : line) c = c == '\t' ? ' ' : c;
  return works(line, library->path(), of_python.python.empty() ? "" : "the MPI of " + of_python.python);
}

// Does not import the module, which may take seconds. Python would look into the working directory first, and run what
// lies there by the name of a module. A folder of the module's name is a module without an origin.
constexpr char kFindModule[] = R"(import sys
sys.path[:] = [folder for folder in sys.path if folder]
import importlib.metadata, importlib.util
module, distribution = sys.argv[1:]
spec = importlib.util.find_spec(module)
if spec is None or spec.origin is None: sys.exit('no ' + module)
try: version = importlib.metadata.version(distribution)
except importlib.metadata.PackageNotFoundError: version = 'of unknown version'
print(version, '|', spec.origin))";

/// distribution: what pip calls the package that has the module. remedy: if there is a python3 without it.
Finding ask_python(
    const std::string& package, const std::string& module, const std::string& distribution,
    const std::string& remedy = "load the environment or container that has it before you start ddlrun") {
  const CommandPath python =
      command_in_path("python3", "load the module, environment or container that has Python");
  if (python.path.empty()) return python.missing;
  const FirstLine line = first_line_of({python.path, "-c", kFindModule, module, distribution});
  if (line.text.empty()) return fails(python.path + " has no " + module, remedy);
  const std::size_t bar = line.text.find(" | ");
  return works(package + " " + line.text.substr(0, bar),
               bar == std::string::npos ? "" : line.text.substr(bar + 3));
}

}  // namespace

Finding probe_nccl() {
  return ask_nccl("NCCL", "libnccl.so.2", "cuda", "install NCCL, or name its folder in LD_LIBRARY_PATH");
}

Finding probe_rccl() {
  return ask_nccl("RCCL", "librccl.so.1", "hip",
                  "install RCCL (ROCm), or name its folder in LD_LIBRARY_PATH");
}

Finding probe_cuda() {
  constexpr char kRemedy[] = "install NVIDIA's driver, which contains it";
  const auto library = SharedLibrary::load("libcuda.so.1");
  if (!library) return fails(library.error().message(), kRemedy);
  auto* init = library->function<int(unsigned)>("cuInit");
  auto* get_version = library->function<int(int*)>("cuDriverGetVersion");
  auto* get_count = library->function<int(int*)>("cuDeviceGetCount");
  if (init == nullptr || get_version == nullptr || get_count == nullptr)
    return fails(library->path() + " lacks a function of CUDA", kRemedy);
  if (const int code = init(0); code != 0)
    return fails(fmt::format("cuInit of {} fails with {}", library->path(), code),
                 "run nvidia-smi here to see why");
  int version = 0, count = 0;
  if (get_version(&version) != 0 || get_count(&count) != 0)
    return fails(library->path() + " does not report its version or its number of devices");
  constexpr int kMajor = 1000, kMinor = 10;
  return works(fmt::format("CUDA {}.{}", version / kMajor, version % kMajor / kMinor), library->path(),
               counted(count, "GPU"));
}

Finding probe_hip() {
  constexpr char kRemedy[] = "install ROCm's HIP runtime, or name its folder in LD_LIBRARY_PATH";
  std::string reason;
  for (const char* soname : {"libamdhip64.so.6", "libamdhip64.so.5", "libamdhip64.so.7", "libamdhip64.so"}) {
    const auto library = SharedLibrary::load(soname);
    if (!library) {
      if (reason.empty()) reason = library.error().message();
      continue;
    }
    auto* get_version = library->function<int(int*)>("hipRuntimeGetVersion");
    auto* get_count = library->function<int(int*)>("hipGetDeviceCount");
    if (get_version == nullptr || get_count == nullptr)
      return fails(library->path() + " lacks a function of HIP", kRemedy);
    int version = 0, count = 0;
    if (const int code = get_version(&version); code != 0)
      return fails(fmt::format("hipRuntimeGetVersion of {} fails with {}", library->path(), code));
    if (const int code = get_count(&count); code != 0)
      return fails(fmt::format("hipGetDeviceCount of {} fails with {}", library->path(), code),
                   "run rocminfo here to see why");
    return works(fmt::format("HIP {}", version), library->path(), counted(count, "GPU"));
  }
  return fails(reason, kRemedy);
}

Finding probe_open_mpi() {
  Finding found =
      ask_mpi({"libmpi.so.40"}, "install Open MPI (Debian: openmpi-bin), if your programs use it");
  if (found.works && found.version.find(" v4.") != std::string::npos) {
    if (!found.detail.empty()) found.detail += "; ";
    found.detail +=
        "ddlrun sets the variables that version 4 needs to find a PMIx server that is not mpirun's";
  }
  return found;
}

Finding probe_mpich() {
  // The name of Debian, and that of all others.
  return ask_mpi({"libmpich.so.12", "libmpi.so.12"},
                 "install MPICH (Debian: mpich) or Intel MPI, if your programs use it");
}

Finding probe_gloo() {
  const auto library = SharedLibrary::load("libgloo.so.0");
  if (!library) return fails(library.error().message());
  return works("Gloo", library->path());
}

// Packages of python3. Programs of PyTorch and TensorFlow run unchanged, too.

Finding probe_python() {
  return ask_python("ddl", "ddl", "ddlrun",
                    "install the package ddl into it: " + document("guide/python.md"));
}

Finding probe_ddl_torch() {
  Finding package = probe_python();
  if (!package.works) return package;
  Finding torch = probe_torch();
  if (torch.works) torch.detail = "with " + package.version + ": import ddl.torch as hvd";
  return torch;
}

Finding probe_torch() { return ask_python("PyTorch", "torch", "torch"); }
Finding probe_tensorflow() { return ask_python("TensorFlow", "tensorflow", "tensorflow"); }

}  // namespace ddl::cli
