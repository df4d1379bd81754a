// libddl's own declarations of the vendors' functions against the vendors' headers, where these are installed. All is
// checked by the compiler; DDL_HAS_CUDA_H, DDL_HAS_NCCL_H and DDL_HAS_HIP_H
// say what is there.
#include <cstddef>
#include <type_traits>

#include "runtime/src/backend/nccl/nccl_abi.h"
#include "runtime/src/device/cuda_abi.h"
#include "runtime/src/device/hip_abi.h"
#include "support/catch.h"
#include "support/skip.h"

#ifdef DDL_HAS_CUDA_H
#include <cuda.h>
#endif
#ifdef DDL_HAS_NCCL_H
#include <nccl.h>
#endif
#ifdef DDL_HAS_HIP_H
#define __HIP_PLATFORM_AMD__
#include <hip/hip_runtime_api.h>
#endif

namespace {

/// How a value is passed: a pointer, a number, or an object, and its size.
template <class T>
constexpr int kind_of() {
  if constexpr (std::is_void_v<T>) {
    return 0;
  } else if constexpr (std::is_pointer_v<T>) {
    return 1;
  } else if constexpr (std::is_floating_point_v<T>) {
    return 2;
  } else if constexpr (std::is_class_v<T>) {
    return 3 + 16 * static_cast<int>(sizeof(T));
  } else {
    return 4 + 16 * static_cast<int>(sizeof(T));
  }
}

/// Whether a call through one type is a call of the other.
template <class Ours, class Theirs>
struct SameCall : std::false_type {};
template <class R, class... As, class S, class... Bs>
  requires(sizeof...(As) == sizeof...(Bs))
struct SameCall<R (*)(As...), S (*)(Bs...)>
    : std::bool_constant<kind_of<R>() == kind_of<S>() && ((kind_of<As>() == kind_of<Bs>()) && ...)> {};

// The comparison itself finds what it should.
static_assert(SameCall<int (*)(void*, unsigned), long unsigned (*)(void*, int)>::value == false);
static_assert(SameCall<int (*)(char**, unsigned), unsigned (*)(void*, int)>::value);
static_assert(!SameCall<int (*)(unsigned), int (*)(unsigned long)>::value);
static_assert(!SameCall<int (*)(unsigned), int (*)(unsigned, int)>::value);

}  // namespace

#define DDL_SAME(ours, name) \
  static_assert(SameCall<decltype(ours::Functions::name), decltype(&::name)>::value)

#ifdef DDL_HAS_CUDA_H
namespace cuda = ddl::runtime::cuda;
DDL_SAME(cuda, cuInit);
DDL_SAME(cuda, cuGetErrorName);
DDL_SAME(cuda, cuDeviceGet);
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
              CU_DEVICE_ATTRIBUTE_IPC_EVENT_SUPPORTED == cuda::kIpcEventSupported &&
              CU_EVENT_INTERPROCESS == cuda::kEventInterprocess &&
              CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS == cuda::kIpcLazyPeerAccess);
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
#endif

#ifdef DDL_HAS_NCCL_H
namespace nccl = ddl::runtime::nccl;
DDL_SAME(nccl, ncclGetVersion);
DDL_SAME(nccl, ncclGetUniqueId);
DDL_SAME(nccl, ncclCommInitRankConfig);
DDL_SAME(nccl, ncclCommFinalize);
DDL_SAME(nccl, ncclCommDestroy);
DDL_SAME(nccl, ncclCommAbort);
DDL_SAME(nccl, ncclCommGetAsyncError);
DDL_SAME(nccl, ncclGetErrorString);
DDL_SAME(nccl, ncclGetLastError);
DDL_SAME(nccl, ncclAllReduce);
DDL_SAME(nccl, ncclReduce);
DDL_SAME(nccl, ncclBroadcast);
DDL_SAME(nccl, ncclReduceScatter);
DDL_SAME(nccl, ncclAllGather);
DDL_SAME(nccl, ncclSend);
DDL_SAME(nccl, ncclRecv);
DDL_SAME(nccl, ncclGroupStart);
DDL_SAME(nccl, ncclGroupEnd);
static_assert(sizeof(ncclUniqueId) == sizeof(nccl::UniqueId));
static_assert(offsetof(ncclConfig_t, size) == offsetof(nccl::Config, size) &&
              offsetof(ncclConfig_t, magic) == offsetof(nccl::Config, magic) &&
              offsetof(ncclConfig_t, version) == offsetof(nccl::Config, version) &&
              offsetof(ncclConfig_t, blocking) == offsetof(nccl::Config, blocking));
static_assert(ncclSuccess == nccl::kSuccess && ncclInProgress == nccl::kInProgress);
static_assert(ncclInt8 == nccl::kInt8 && ncclUint8 == nccl::kUint8 && ncclInt32 == nccl::kInt32 &&
              ncclUint32 == nccl::kUint32 && ncclInt64 == nccl::kInt64 && ncclUint64 == nccl::kUint64 &&
              ncclFloat16 == nccl::kFloat16 && ncclFloat32 == nccl::kFloat32 &&
              ncclFloat64 == nccl::kFloat64 && ncclBfloat16 == nccl::kBfloat16);
#if NCCL_VERSION_CODE >= 22400
static_assert(ncclFloat8e4m3 == nccl::kFloat8E4m3 && ncclFloat8e5m2 == nccl::kFloat8E5m2);
#endif
static_assert(ncclSum == nccl::kSum && ncclProd == nccl::kProduct && ncclMax == nccl::kMax &&
              ncclMin == nccl::kMin);
#endif

#ifdef DDL_HAS_HIP_H
namespace hip = ddl::runtime::hip;
DDL_SAME(hip, hipInit);
DDL_SAME(hip, hipRuntimeGetVersion);
DDL_SAME(hip, hipGetErrorName);
DDL_SAME(hip, hipDeviceGet);
DDL_SAME(hip, hipDeviceGetPCIBusId);
DDL_SAME(hip, hipGetDevice);
DDL_SAME(hip, hipSetDevice);
DDL_SAME(hip, hipFree);
DDL_SAME(hip, hipHostRegister);
DDL_SAME(hip, hipHostUnregister);
DDL_SAME(hip, hipPointerGetAttributes);
DDL_SAME(hip, hipDeviceGetAttribute);
static_assert(hipDeviceAttributeComputeCapabilityMajor == hip::kComputeCapabilityMajor &&
              hipDeviceAttributeComputeCapabilityMinor == hip::kComputeCapabilityMinor);
DDL_SAME(hip, hipMemcpyAsync);
DDL_SAME(hip, hipStreamCreateWithFlags);
DDL_SAME(hip, hipStreamDestroy);
DDL_SAME(hip, hipStreamWaitEvent);
DDL_SAME(hip, hipStreamIsCapturing);
DDL_SAME(hip, hipStreamAddCallback);
DDL_SAME(hip, hipEventDestroy);
DDL_SAME(hip, hipEventQuery);
DDL_SAME(hip, hipModuleLoadData);
DDL_SAME(hip, hipModuleGetFunction);
DDL_SAME(hip, hipModuleLaunchKernel);
static_assert(sizeof(hipPointerAttribute_t) == sizeof(hip::PointerAttributes));
static_assert(hipErrorNotReady == hip::kErrorNotReady && hipMemcpyDefault == hip::kCopyDefault);
#endif

TEST_CASE("the vendors' functions are declared as their headers do") {
#ifdef DDL_HAS_CUDA_H
  SUCCEED("cuda.h agrees");
#else
  DDL_SKIP("cuda.h is not installed");
#endif
}
