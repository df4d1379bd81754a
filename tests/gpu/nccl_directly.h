// NCCL or RCCL as a program calls it that does not use libddl: what libddl's calls are compared with.
#pragma once

#include <dlfcn.h>

#include <cstddef>

#include "gpu/measurement.h"
#include "runtime/src/backend/nccl/nccl_library.h"

namespace ddl::gpu_bench {

/// A communicator of one rank. Its GPU has to be current.
class NcclDirectly {
 public:
  NcclDirectly() : library_(*take(runtime::NcclLibrary::load(is_hip() ? "librccl.so.1" : "libnccl.so.2"))) {
    runtime::nccl::UniqueId id{};
    check("ncclGetUniqueId", nccl().ncclGetUniqueId(&id));
    runtime::nccl::Config config;
    config.blocking = waits_ ? 1 : 0;
    check("ncclCommInitRankConfig", nccl().ncclCommInitRankConfig(&comm_, 1, id, 0, &config));
    if (!waits_) settle();
  }
  ~NcclDirectly() { (void)nccl().ncclCommAbort(comm_); }
  NcclDirectly(const NcclDirectly&) = delete;
  NcclDirectly& operator=(const NcclDirectly&) = delete;

  void allreduce(const float* from, float* to, std::size_t count, void* stream) {
    using namespace runtime::nccl;  // NOLINT(google-build-using-namespace)
    if (!waits_) check("ncclGroupStart", nccl().ncclGroupStart());
    check("ncclAllReduce", nccl().ncclAllReduce(from, to, count, kFloat32, kSum, comm_, stream));
    if (waits_) return;
    check("ncclGroupEnd", nccl().ncclGroupEnd());
    settle();
  }

 private:
  const runtime::nccl::Functions& nccl() const { return library_.functions(); }
  void check(const char* function, runtime::nccl::Result result) const {
    gpu_bench::check(library_.check(function, result, comm_));
  }
  void settle() const {
    runtime::nccl::Result state = runtime::nccl::kInProgress;
    while (state == runtime::nccl::kInProgress)
      check("ncclCommGetAsyncError", nccl().ncclCommGetAsyncError(comm_, &state));
    check("ncclCommGetAsyncError", state);
  }

  const runtime::NcclLibrary& library_;
  /// As most programs do it, without a group. The stand-in knows only communicators that do not wait, and groups.
  const bool waits_ = !is_stand_in();
  runtime::nccl::Comm comm_ = nullptr;

  static bool is_stand_in() {
    void* const driver = ::dlopen(is_hip() ? "libamdhip64.so.6" : "libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    return driver != nullptr && ::dlsym(driver, "ddl_stand_in_put") != nullptr;
  }
};

}  // namespace ddl::gpu_bench
