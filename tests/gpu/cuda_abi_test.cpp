// libddl's own declarations of NVIDIA's functions against cuda.h and nvrtc.h. All is checked by the compiler.
// DDL_CUDA_HEADER: "cuda.h", where it is installed.
#include <cstdio>

#include "gpu/same_call.h"
#include "runtime/src/device/cuda_abi.h"
#include "runtime/src/device/rtc_abi.h"
#include "support/catch.h"
#include "support/skip.h"

#ifdef DDL_CUDA_HEADER
#include DDL_CUDA_HEADER

namespace cuda = ddl::runtime::cuda;
DDL_SAME(cuda, cuInit);
DDL_SAME(cuda, cuGetErrorName);
DDL_SAME(cuda, cuDeviceGet);
// In newer headers a macro for cuDeviceGetUuid_v2, which has the same arguments.
DDL_SAME(cuda, cuDeviceGetUuid);
DDL_SAME(cuda, cuDevicePrimaryCtxRetain);
DDL_SAME(cuda, cuCtxGetCurrent);
DDL_SAME(cuda, cuCtxSetCurrent);
DDL_SAME(cuda, cuMemAlloc_v2);
DDL_SAME(cuda, cuMemFree_v2);
DDL_SAME(cuda, cuMemHostRegister_v2);
DDL_SAME(cuda, cuMemHostUnregister);
DDL_SAME(cuda, cuPointerGetAttributes);
DDL_SAME(cuda, cuMemcpyAsync);
DDL_SAME(cuda, cuStreamCreate);
DDL_SAME(cuda, cuStreamDestroy_v2);
DDL_SAME(cuda, cuStreamWaitEvent);
DDL_SAME(cuda, cuStreamIsCapturing);
DDL_SAME(cuda, cuLaunchHostFunc);
DDL_SAME(cuda, cuThreadExchangeStreamCaptureMode);
static_assert(CU_STREAM_CAPTURE_MODE_RELAXED == cuda::kCaptureModeRelaxed);
DDL_SAME(cuda, cuEventCreate);
DDL_SAME(cuda, cuEventDestroy_v2);
DDL_SAME(cuda, cuEventRecord);
DDL_SAME(cuda, cuEventQuery);
DDL_SAME(cuda, cuDeviceGetAttribute);
DDL_SAME(cuda, cuModuleLoadData);
DDL_SAME(cuda, cuModuleGetFunction);
DDL_SAME(cuda, cuLaunchKernel);
DDL_SAME(cuda, cuIpcGetMemHandle);
DDL_SAME(cuda, cuIpcOpenMemHandle_v2);
DDL_SAME(cuda, cuIpcCloseMemHandle);
DDL_SAME(cuda, cuIpcGetEventHandle);
DDL_SAME(cuda, cuIpcOpenEventHandle);
static_assert(CU_POINTER_ATTRIBUTE_BUFFER_ID == cuda::kBufferId &&
              CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE == cuda::kLegacyIpcCapable &&
              CU_POINTER_ATTRIBUTE_RANGE_START_ADDR == cuda::kRangeStart &&
              CU_POINTER_ATTRIBUTE_RANGE_SIZE == cuda::kRangeSize &&
              CU_EVENT_INTERPROCESS == cuda::kEventInterprocess &&
              CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS == cuda::kIpcLazyPeerAccess);
#if CUDA_VERSION >= 12000
static_assert(CU_DEVICE_ATTRIBUTE_IPC_EVENT_SUPPORTED == cuda::kIpcEventSupported);
#endif
static_assert(CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR == cuda::kComputeCapabilityMajor &&
              CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR == cuda::kComputeCapabilityMinor);
static_assert(sizeof(CUuuid) == sizeof(cuda::Uuid));
static_assert(CUDA_SUCCESS == cuda::kSuccess && CUDA_ERROR_NOT_READY == cuda::kErrorNotReady &&
              CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED == cuda::kErrorAlreadyRegistered &&
              CUDA_ERROR_STREAM_CAPTURE_IMPLICIT == cuda::kErrorCaptureImplicit);
static_assert(CU_POINTER_ATTRIBUTE_MEMORY_TYPE == cuda::kMemoryType &&
              CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL == cuda::kDeviceOrdinal &&
              CU_MEMORYTYPE_DEVICE == cuda::kDeviceMemory);
static_assert(CU_STREAM_NON_BLOCKING == cuda::kStreamNonBlocking &&
              CU_EVENT_DISABLE_TIMING == cuda::kEventDisableTiming &&
              CU_MEMHOSTREGISTER_PORTABLE == cuda::kHostRegisterPortable &&
              CU_STREAM_CAPTURE_STATUS_NONE == cuda::kCaptureNone);

#if __has_include(<nvrtc.h>)  // a package of its own
#include <nvrtc.h>
#define DDL_HAS_NVRTC_H
namespace rtc = ddl::runtime::rtc;
DDL_SAME_AS(rtc::Functions::create, nvrtcCreateProgram);
DDL_SAME_AS(rtc::Functions::compile, nvrtcCompileProgram);
DDL_SAME_AS(rtc::Functions::log_size, nvrtcGetProgramLogSize);
DDL_SAME_AS(rtc::Functions::log, nvrtcGetProgramLog);
DDL_SAME_AS(rtc::Functions::code_size, nvrtcGetCUBINSize);
DDL_SAME_AS(rtc::Functions::code, nvrtcGetCUBIN);
DDL_SAME_AS(rtc::Functions::destroy, nvrtcDestroyProgram);
static_assert(NVRTC_SUCCESS == 0);
#endif
#endif

TEST_CASE("libddl declares CUDA's functions as cuda.h does") {
#ifdef DDL_CUDA_HEADER
  std::printf("compared with CUDA %d.%d\n", CUDA_VERSION / 1000, CUDA_VERSION % 1000 / 10);
  SUCCEED();
#else
  DDL_SKIP("cuda.h is not installed; it is a part of the CUDA toolkit");
#endif
}

TEST_CASE("libddl declares NVRTC's functions as nvrtc.h does") {
#ifdef DDL_HAS_NVRTC_H
  SUCCEED();
#else
  DDL_SKIP("nvrtc.h is not installed; it is a part of the CUDA toolkit");
#endif
}
