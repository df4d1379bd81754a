#include "runtime/src/device/gpu_kernels.h"

#include <dlfcn.h>

#include <algorithm>
#include <array>

#include "runtime/src/device/rtc_abi.h"
#include "runtime/src/device/vendor_library.h"

namespace ddl::runtime {
namespace {

#define DDL_GPU_KERNELS(...) #__VA_ARGS__
constexpr char kNumbers[] =
#include "runtime/src/device/gpu_numbers.inc"
    ;
constexpr char kScaling[] =
#include "runtime/src/device/gpu_scaling.inc"
    ;
constexpr char kCopies[] =
#include "runtime/src/device/gpu_copies.inc"
    ;
constexpr char kCombination[] =
#include "runtime/src/device/gpu_combination.inc"
    ;
#undef DDL_GPU_KERNELS

std::string source_of(GpuProgram program) {
  // The compiler must know how many threads a block has, or it may give each more registers than a block can have; and
  // that one block at a time is enough, or NVRTC 13 keeps values of 8-bit floats in memory so that three fit (sm_120).
  const std::string kernel = "#define DDL_KERNEL extern \"C\" __global__ void __launch_bounds__(" +
                             std::to_string(KernelGrid::kThreads) + ", 1)\n";
  // For a loop of stores: unrolled, it takes more registers, and NVRTC 13 takes half as long again for sm_100.
  const std::string begin = kernel + "#define DDL_NO_UNROLL _Pragma(\"unroll 1\")\n" + kNumbers;
  return program == GpuProgram::kForNccl ? begin + kScaling + kCopies : begin + kCombination;
}

Status load_compiler(const KernelCompiler& compiler, rtc::Functions& calls) {
  void* library = nullptr;
  for (const char* const name : compiler.libraries) {
    library = ::dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (library != nullptr) break;
  }
  if (library == nullptr)
    return fail(ErrorCode::kUnavailable, std::string(compiler.libraries.front()) + " cannot be loaded");
  const std::array symbols{
      needed(compiler.create, calls.create),       needed(compiler.compile, calls.compile),
      needed(compiler.log_size, calls.log_size),   needed(compiler.log, calls.log),
      needed(compiler.code_size, calls.code_size), needed(compiler.code, calls.code),
      needed(compiler.destroy, calls.destroy),
  };
  return load_symbols(library, symbols);
}

std::string log_of(const rtc::Functions& calls, rtc::Program program) {
  std::size_t bytes = 0;
  if (calls.log_size(program, &bytes) != 0 || bytes <= 1) return "";
  std::string text(bytes, '\0');
  if (calls.log(program, text.data()) != 0) return "";
  return text.c_str();
}

/// The beginning of what the compiler says, on one line.
std::string summary_of(std::string log) {
  if (log.empty()) return "";
  std::replace(log.begin(), log.end(), '\n', ' ');
  return ": " + log.substr(0, 400);
}

}  // namespace

std::optional<GpuKernel> scaling_kernel(ddl_dtype dtype) {
  switch (dtype) {
    case DDL_FLOAT8_E4M3FN: return GpuKernel::kScaleFloat8E4m3fn;
    case DDL_FLOAT8_E5M2: return GpuKernel::kScaleFloat8E5m2;
    case DDL_FLOAT8_E4M3FNUZ: return GpuKernel::kScaleFloat8E4m3fnuz;
    case DDL_FLOAT8_E5M2FNUZ: return GpuKernel::kScaleFloat8E5m2fnuz;
    case DDL_FLOAT16: return GpuKernel::kScaleFloat16;
    case DDL_BFLOAT16: return GpuKernel::kScaleBfloat16;
    case DDL_FLOAT32: return GpuKernel::kScaleFloat32;
    case DDL_FLOAT64: return GpuKernel::kScaleFloat64;
    default: return std::nullopt;
  }
}

GpuKernel combining_kernel(ddl_dtype dtype) {
  switch (dtype) {
    case DDL_INT8: return GpuKernel::kCombineInt8;
    case DDL_INT16: return GpuKernel::kCombineInt16;
    case DDL_INT32: return GpuKernel::kCombineInt32;
    case DDL_INT64: return GpuKernel::kCombineInt64;
    case DDL_UINT8: return GpuKernel::kCombineUint8;
    case DDL_UINT16: return GpuKernel::kCombineUint16;
    case DDL_UINT32: return GpuKernel::kCombineUint32;
    case DDL_UINT64: return GpuKernel::kCombineUint64;
    case DDL_FLOAT8_E4M3FN: return GpuKernel::kCombineFloat8E4m3fn;
    case DDL_FLOAT8_E5M2: return GpuKernel::kCombineFloat8E5m2;
    case DDL_FLOAT8_E4M3FNUZ: return GpuKernel::kCombineFloat8E4m3fnuz;
    case DDL_FLOAT8_E5M2FNUZ: return GpuKernel::kCombineFloat8E5m2fnuz;
    case DDL_FLOAT16: return GpuKernel::kCombineFloat16;
    case DDL_BFLOAT16: return GpuKernel::kCombineBfloat16;
    case DDL_FLOAT32: return GpuKernel::kCombineFloat32;
    case DDL_FLOAT64: return GpuKernel::kCombineFloat64;
    default: return GpuKernel::kCombineBool;
  }
}

// A product and a sum must not be contracted: their bits would be others than on the host. NVRTC 11 takes C++03 if it
// is not told a standard.
const KernelCompiler& nvrtc() {
  static const KernelCompiler& compiler = *new KernelCompiler{
      {"libnvrtc.so.13", "libnvrtc.so.12", "libnvrtc.so.11.2"},
      {"--fmad=false", "--std=c++17"},
      "nvrtcCreateProgram",
      "nvrtcCompileProgram",
      "nvrtcGetProgramLogSize",
      "nvrtcGetProgramLog",
      "nvrtcGetCUBINSize",
      "nvrtcGetCUBIN",
      "nvrtcDestroyProgram",
  };
  return compiler;
}
const KernelCompiler& hiprtc() {
  static const KernelCompiler& compiler = *new KernelCompiler{
      // Before HIP 7, the runtime has these functions, too.
      {"libhiprtc.so.7", "libhiprtc.so.6", "libhiprtc.so.5", "libamdhip64.so.6", "libamdhip64.so.5"},
      {"-ffp-contract=off"},
      "hiprtcCreateProgram",
      "hiprtcCompileProgram",
      "hiprtcGetProgramLogSize",
      "hiprtcGetProgramLog",
      "hiprtcGetCodeSize",
      "hiprtcGetCode",
      "hiprtcDestroyProgram",
  };
  return compiler;
}

Result<CompiledKernels> compile_gpu_kernels(const KernelCompiler& compiler, GpuProgram program,
                                            const std::vector<std::string>& options) {
  rtc::Functions calls{};
  DDL_TRY(load_compiler(compiler, calls));
  struct Owned {
    const rtc::Functions& calls;
    rtc::Program program = nullptr;
    ~Owned() {
      if (program != nullptr) (void)calls.destroy(&program);
    }
  } owned{calls};
  const auto check = [](const char* function, rtc::Result result, const std::string& log = "") -> Status {
    if (result == 0) return {};
    return fail(ErrorCode::kSystem,
                std::string(function) + ": error " + std::to_string(result) + summary_of(log));
  };
  DDL_TRY(check(compiler.create, calls.create(&owned.program, source_of(program).c_str(), "ddl_kernels", 0,
                                              nullptr, nullptr)));
  std::vector<const char*> texts;
  for (const auto* const list : {&compiler.options, &options})
    for (const std::string& option : *list) texts.push_back(option.c_str());
  const auto result = calls.compile(owned.program, static_cast<int>(texts.size()), texts.data());
  CompiledKernels compiled;
  compiled.log = log_of(calls, owned.program);
  DDL_TRY(check(compiler.compile, result, compiled.log));
  std::size_t bytes = 0;
  DDL_TRY(check(compiler.code_size, calls.code_size(owned.program, &bytes)));
  compiled.code.resize(bytes);
  DDL_TRY(check(compiler.code, calls.code(owned.program, compiled.code.data())));
  return compiled;
}

}  // namespace ddl::runtime
