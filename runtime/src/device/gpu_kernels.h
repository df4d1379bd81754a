// libddl's own kernels: which there are, and how a vendor's library compiles them.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <iterator>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"

namespace ddl::runtime {

/// Arguments of a scaling: const T* in, T* out, unsigned long long count, double divisor, double factor.
enum class GpuKernel { kScaleFloat16, kScaleBfloat16, kScaleFloat32, kScaleFloat64 };
inline constexpr const char* kGpuKernelNames[] = {"ddl_scale_float16", "ddl_scale_bfloat16",
                                                  "ddl_scale_float32", "ddl_scale_float64"};

/// How many threads of a GPU work on elements. Each takes several if there are many: the kernels walk.
struct KernelGrid {
  unsigned blocks;
  unsigned threads;  ///< of a block

  static KernelGrid for_elements(std::uint64_t elements) {
    constexpr std::uint64_t kThreads = 512, kMostBlocks = 1024;
    return {static_cast<unsigned>(
                std::clamp<std::uint64_t>((elements + kThreads - 1) / kThreads, 1, kMostBlocks)),
            static_cast<unsigned>(kThreads)};
  }
};

/// A GPU's kernels, once they have been compiled and loaded, or why that cannot be done. Thread-safe.
class LoadedKernels {
 public:
  /// load(functions) is called once.
  template <class Load>
  Status prepare(Load load) {
    const std::lock_guard lock(mutex_);
    if (!result_) result_ = load(functions_);
    return *result_;
  }
  /// The vendor's handle, after prepare().
  void* function(GpuKernel kernel) const { return functions_[static_cast<std::size_t>(kernel)]; }

 private:
  std::mutex mutex_;
  std::optional<Status> result_;
  std::array<void*, std::size(kGpuKernelNames)> functions_{};
};

/// A vendor's compiler, which is loaded at run time: NVRTC or hipRTC.
struct KernelCompiler {
  std::vector<const char*> libraries;  ///< in the order in which they are tried
  // Functions: of both vendors alike, but for their names.
  const char* create;
  const char* compile;
  const char* log_size;
  const char* log;
  const char* code_size;
  const char* code;
  const char* destroy;
};

/// The code of all kernels for a GPU. options: for the compiler. kUnavailable: there is no compiler; kSystem: it refused,
/// and what it says.
Result<std::vector<char>> compile_gpu_kernels(const KernelCompiler& compiler,
                                              const std::vector<std::string>& options);

}  // namespace ddl::runtime
