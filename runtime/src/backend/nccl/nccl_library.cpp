#include "runtime/src/backend/nccl/nccl_library.h"

#include <dlfcn.h>

#include <array>
#include <map>
#include <memory>
#include <mutex>

#include "runtime/src/device/vendor_library.h"

namespace ddl::runtime {
namespace {

Status load_nccl(void* library, nccl::Functions& functions) {
  const std::array symbols{
      needed("ncclGetVersion", functions.ncclGetVersion),
      needed("ncclGetUniqueId", functions.ncclGetUniqueId),
      needed("ncclCommInitRankConfig", functions.ncclCommInitRankConfig),
      needed("ncclCommFinalize", functions.ncclCommFinalize),
      needed("ncclCommDestroy", functions.ncclCommDestroy),
      needed("ncclCommAbort", functions.ncclCommAbort),
      needed("ncclCommGetAsyncError", functions.ncclCommGetAsyncError),
      needed("ncclGetErrorString", functions.ncclGetErrorString),
      needed("ncclGetLastError", functions.ncclGetLastError),
      needed("ncclAllReduce", functions.ncclAllReduce),
      needed("ncclReduce", functions.ncclReduce),
      needed("ncclBroadcast", functions.ncclBroadcast),
      needed("ncclReduceScatter", functions.ncclReduceScatter),
      needed("ncclAllGather", functions.ncclAllGather),
      needed("ncclSend", functions.ncclSend),
      needed("ncclRecv", functions.ncclRecv),
      needed("ncclGroupStart", functions.ncclGroupStart),
      needed("ncclGroupEnd", functions.ncclGroupEnd),
  };
  return load_symbols(library, symbols);
}

Result<std::unique_ptr<NcclLibrary>> open_library(const char* file) {
  // Never closed: it has threads and exit handlers.
  void* const library = ::dlopen(file, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (library == nullptr) {
    const char* const text = ::dlerror();
    return fail(ErrorCode::kUnavailable, text == nullptr ? std::string(file) + " cannot be loaded" : text);
  }
  nccl::Functions functions{};
  if (auto loaded = load_nccl(library, functions); !loaded)
    return fail(std::move(loaded.error().during(file)));
  int version = 0;
  if (const auto result = functions.ncclGetVersion(&version); result != nccl::kSuccess)
    return fail(ErrorCode::kUnavailable,
                std::string(file) + ": ncclGetVersion: error " + std::to_string(result));
  if (version < nccl::kOldestVersion)
    return fail(ErrorCode::kUnavailable,
                std::string(file) + " is version " + nccl_version_text(version) +
                    "; libddl needs 2.14 or newer, which can be given up when a rank dies");
  return std::make_unique<NcclLibrary>(file, functions, version);
}

}  // namespace

Result<const NcclLibrary*> NcclLibrary::load(const char* file) {
  static std::mutex& mutex = *new std::mutex;
  static auto& loaded = *new std::map<std::string, std::unique_ptr<NcclLibrary>>;
  const std::lock_guard lock(mutex);
  std::unique_ptr<NcclLibrary>& known = loaded[file];
  if (!known) {
    DDL_ASSIGN(opened, open_library(file));
    known = std::move(opened);
  }
  return known.get();
}

std::string nccl_version_text(int version) {
  return std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "." +
         std::to_string(version % 100);
}

Status NcclLibrary::check(const char* function, nccl::Result result, nccl::Comm comm) const {
  // A communicator that is in progress is asked for its error later.
  if (result == nccl::kSuccess || result == nccl::kInProgress) return {};
  const char* const name = functions_.ncclGetErrorString(result);
  const char* const last = functions_.ncclGetLastError(comm);
  std::string text =
      std::string(function) + ": " + (name == nullptr ? "error " + std::to_string(result) : name);
  if (last != nullptr && *last != '\0') text += std::string(" (") + last + ")";
  return fail(ErrorCode::kSystem, std::move(text));
}

}  // namespace ddl::runtime
