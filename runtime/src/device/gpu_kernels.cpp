#include "runtime/src/device/gpu_kernels.h"

#include <dlfcn.h>

#include <array>

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
  const std::string numbers = kNumbers;
  return program == GpuProgram::kForNccl ? numbers + kScaling + kCopies : numbers + kCombination;
}

using Program = void*;  ///< nvrtcProgram, hiprtcProgram
using RtcResult = int;  ///< 0: success

struct RtcFunctions {
  RtcResult (*create)(Program* program, const char* source, const char* name, int header_count,
                      const char* const* headers, const char* const* header_names);
  RtcResult (*compile)(Program program, int option_count, const char* const* options);
  RtcResult (*log_size)(Program program, std::size_t* bytes);
  RtcResult (*log)(Program program, char* text);
  RtcResult (*code_size)(Program program, std::size_t* bytes);
  RtcResult (*code)(Program program, char* code);
  RtcResult (*destroy)(Program* program);
};

Status load_compiler(const KernelCompiler& compiler, RtcFunctions& rtc) {
  void* library = nullptr;
  for (const char* const name : compiler.libraries) {
    library = ::dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
    if (library != nullptr) break;
  }
  if (library == nullptr)
    return fail(ErrorCode::kUnavailable, std::string(compiler.libraries.front()) + " cannot be loaded");
  const std::array symbols{
      needed(compiler.create, rtc.create),       needed(compiler.compile, rtc.compile),
      needed(compiler.log_size, rtc.log_size),   needed(compiler.log, rtc.log),
      needed(compiler.code_size, rtc.code_size), needed(compiler.code, rtc.code),
      needed(compiler.destroy, rtc.destroy),
  };
  return load_symbols(library, symbols);
}

/// What the compiler says, on one line.
std::string log_of(const RtcFunctions& rtc, Program program) {
  std::size_t bytes = 0;
  if (rtc.log_size(program, &bytes) != 0 || bytes <= 1) return "";
  std::string text(bytes, '\0');
  if (rtc.log(program, text.data()) != 0) return "";
  for (char& c : text) c = c == '\n' || c == '\0' ? ' ' : c;
  return ": " + text.substr(0, 400);
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

Result<std::vector<char>> compile_gpu_kernels(const KernelCompiler& compiler, GpuProgram program,
                                              const std::vector<std::string>& options) {
  RtcFunctions rtc{};
  DDL_TRY(load_compiler(compiler, rtc));
  struct Owned {
    const RtcFunctions& rtc;
    Program program = nullptr;
    ~Owned() {
      if (program != nullptr) (void)rtc.destroy(&program);
    }
  } owned{rtc};
  if (const auto result =
          rtc.create(&owned.program, source_of(program).c_str(), "ddl_kernels", 0, nullptr, nullptr);
      result != 0)
    return fail(ErrorCode::kSystem, std::string(compiler.create) + ": error " + std::to_string(result));
  std::vector<const char*> texts;
  for (const std::string& option : options) texts.push_back(option.c_str());
  if (const auto result = rtc.compile(owned.program, std::ssize(texts), texts.data()); result != 0) {
    return fail(ErrorCode::kSystem, std::string(compiler.compile) + ": error " + std::to_string(result) +
                                        log_of(rtc, owned.program));
  }
  std::size_t bytes = 0;
  if (const auto result = rtc.code_size(owned.program, &bytes); result != 0)
    return fail(ErrorCode::kSystem, std::string(compiler.code_size) + ": error " + std::to_string(result));
  std::vector<char> code(bytes);
  if (const auto result = rtc.code(owned.program, code.data()); result != 0)
    return fail(ErrorCode::kSystem, std::string(compiler.code) + ": error " + std::to_string(result));
  return code;
}

}  // namespace ddl::runtime
