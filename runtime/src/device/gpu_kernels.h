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
#include "ddl/ddl.h"

namespace ddl::runtime {

/// What is compiled and loaded together: the kernels beside NCCL's, and those of ranks that share a GPU.
enum class GpuProgram { kForNccl, kForIpc };
inline constexpr std::size_t kGpuPrograms = 2;

/// Each has one argument: ScalingArguments, CopiesArguments or CombinationArguments.
enum class GpuKernel {
  kScaleFloat8E4m3fn,
  kScaleFloat8E5m2,
  kScaleFloat8E4m3fnuz,
  kScaleFloat8E5m2fnuz,
  kScaleFloat16,
  kScaleBfloat16,
  kScaleFloat32,
  kScaleFloat64,
  kCopies,
  kCombineInt8,
  kCombineInt16,
  kCombineInt32,
  kCombineInt64,
  kCombineUint8,
  kCombineUint16,
  kCombineUint32,
  kCombineUint64,
  kCombineFloat8E4m3fn,
  kCombineFloat8E5m2,
  kCombineFloat8E4m3fnuz,
  kCombineFloat8E5m2fnuz,
  kCombineFloat16,
  kCombineBfloat16,
  kCombineFloat32,
  kCombineFloat64,
  kCombineBool,
};
inline constexpr const char* kGpuKernelNames[] = {
    "ddl_scale_float8_e4m3fn",
    "ddl_scale_float8_e5m2",
    "ddl_scale_float8_e4m3fnuz",
    "ddl_scale_float8_e5m2fnuz",
    "ddl_scale_float16",
    "ddl_scale_bfloat16",
    "ddl_scale_float32",
    "ddl_scale_float64",
    "ddl_copies",
    "ddl_combine_int8",
    "ddl_combine_int16",
    "ddl_combine_int32",
    "ddl_combine_int64",
    "ddl_combine_uint8",
    "ddl_combine_uint16",
    "ddl_combine_uint32",
    "ddl_combine_uint64",
    "ddl_combine_float8_e4m3fn",
    "ddl_combine_float8_e5m2",
    "ddl_combine_float8_e4m3fnuz",
    "ddl_combine_float8_e5m2fnuz",
    "ddl_combine_float16",
    "ddl_combine_bfloat16",
    "ddl_combine_float32",
    "ddl_combine_float64",
    "ddl_combine_bool",
};
inline constexpr std::size_t kGpuKernels = std::size(kGpuKernelNames);

constexpr GpuProgram program_of(GpuKernel kernel) {
  return kernel < GpuKernel::kCombineInt8 ? GpuProgram::kForNccl : GpuProgram::kForIpc;
}
/// For the elements of a type. Only floats are scaled.
std::optional<GpuKernel> scaling_kernel(ddl_dtype dtype);
GpuKernel combining_kernel(ddl_dtype dtype);

/// What a thread reads and writes at once, if all addresses of a call are multiples of it.
inline constexpr std::size_t kPackBytes = 16;
inline bool begins_pack(const void* address) {
  return reinterpret_cast<std::uintptr_t>(address) % kPackBytes == 0;
}

/// Every element is divided by one number and multiplied by another. out may be in. Plain data, which the kernel gets
/// by value.
struct ScalingArguments {
  const void* in;
  void* out;
  unsigned long long count;  ///< elements
  double divisor;
  double factor;
  unsigned has_packs;  ///< 1: both addresses begin a pack
};

/// The same elements of several buffers are combined, from the first to the last, and the results written to several
/// buffers; collective/reduce_kernel.h says how. An output may be an input. Plain data, which the kernel gets by value.
struct CombinationArguments {
  static constexpr std::size_t kMost = 64;

  const void* in[kMost];
  void* out[kMost];
  unsigned long long count;  ///< elements
  unsigned ins;              ///< at least 1
  unsigned outs;
  unsigned op;         ///< a ddl_op
  unsigned has_packs;  ///< 1: all addresses begin a pack
  double prescale;
  double postscale;
};

/// Copies of at least one byte, between memories of one GPU, that do not overlap. Plain data, which the kernel gets by
/// value.
struct CopiesArguments {
  static constexpr std::size_t kMost = 128;
  static constexpr std::size_t kChunkBytes = 32768;  ///< what a block of threads takes at a time

  const void* from[kMost];
  void* to[kMost];
  unsigned long long bytes[kMost];
  unsigned first_chunk[kMost];
  unsigned copies;
  unsigned chunks;

  bool is_full() const { return copies == kMost; }
  void add(const void* source, void* target, std::size_t size) {
    from[copies] = source;
    to[copies] = target;
    bytes[copies] = size;
    first_chunk[copies++] = chunks;
    chunks += static_cast<unsigned>((size + kChunkBytes - 1) / kChunkBytes);
  }
};

/// How many threads of a GPU work on elements, or packs of them. Each takes several if there are many.
struct KernelGrid {
  unsigned blocks;
  unsigned threads;  ///< of a block

  static constexpr std::uint64_t kThreads = 512, kMostBlocks = 1024;

  static KernelGrid for_elements(std::uint64_t elements) {
    return {static_cast<unsigned>(
                std::clamp<std::uint64_t>((elements + kThreads - 1) / kThreads, 1, kMostBlocks)),
            static_cast<unsigned>(kThreads)};
  }
};

/// A GPU's kernels, once they have been compiled and loaded, or why that cannot be done. Thread-safe.
class LoadedKernels {
 public:
  /// The first time: load() gives what find(module, function, name) finds the program's kernels in.
  template <class Load, class Find>
  Status prepare(GpuProgram program, Load load, Find find) {
    const std::lock_guard lock(mutex_);
    std::optional<Status>& result = results_[static_cast<std::size_t>(program)];
    if (!result) result = load_all(program, load, find);
    return *result;
  }
  /// The vendor's handle, after prepare().
  void* function(GpuKernel kernel) const { return functions_[static_cast<std::size_t>(kernel)]; }

 private:
  template <class Load, class Find>
  Status load_all(GpuProgram program, Load load, Find find) {
    DDL_ASSIGN(module, load());
    for (std::size_t i = 0; i < kGpuKernels; ++i) {
      if (program_of(static_cast<GpuKernel>(i)) == program)
        DDL_TRY(find(module, functions_[i], kGpuKernelNames[i]));
    }
    return {};
  }

  std::mutex mutex_;
  std::array<std::optional<Status>, kGpuPrograms> results_;
  std::array<void*, kGpuKernels> functions_{};
};

/// A vendor's compiler, which is loaded at run time.
struct KernelCompiler {
  std::vector<const char*> libraries;  ///< in the order in which they are tried
  std::vector<std::string> options;
  // Functions: of both vendors alike, but for their names.
  const char* create;
  const char* compile;
  const char* log_size;
  const char* log;
  const char* code_size;
  const char* code;
  const char* destroy;
};
const KernelCompiler& nvrtc();
const KernelCompiler& hiprtc();

/// A program's code for a GPU, and what the compiler says of it.
struct CompiledKernels {
  std::vector<char> code;
  std::string log;
};

/// options: beside the compiler's own. Without one that names a GPU, hipRTC compiles for the current one. kUnavailable:
/// there is no compiler; kSystem: it refused, and what it says.
Result<CompiledKernels> compile_gpu_kernels(const KernelCompiler& compiler, GpuProgram program,
                                            const std::vector<std::string>& options);

}  // namespace ddl::runtime
