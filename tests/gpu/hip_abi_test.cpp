// libddl's own declarations of AMD's functions against hip_runtime_api.h and hiprtc.h. All is checked by the compiler.
// DDL_HIP_HEADER: "hip/hip_runtime_api.h", where it is installed.
#include <cstddef>
#include <cstdio>

#include "gpu/same_call.h"
#include "runtime/src/device/hip_abi.h"
#include "runtime/src/device/rtc_abi.h"
#include "support/catch.h"
#include "support/skip.h"

#ifdef DDL_HIP_HEADER
// Without templates of the same names. NOLINTNEXTLINE(bugprone-reserved-identifier): the header's own name
#define __HIP_DISABLE_CPP_FUNCTIONS__
#include DDL_HIP_HEADER

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
DDL_SAME(hip, hipDeviceGetUuid);
DDL_SAME(hip, hipMalloc);
DDL_SAME(hip, hipThreadExchangeStreamCaptureMode);
DDL_SAME(hip, hipLaunchHostFunc);
DDL_SAME(hip, hipEventCreateWithFlags);
DDL_SAME(hip, hipEventRecord);
DDL_SAME(hip, hipGetLastError);
DDL_SAME(hip, hipPointerGetAttribute);
DDL_SAME(hip, hipMemGetAddressRange);
DDL_SAME(hip, hipIpcGetMemHandle);
DDL_SAME(hip, hipIpcOpenMemHandle);
DDL_SAME(hip, hipIpcCloseMemHandle);
DDL_SAME(hip, hipIpcGetEventHandle);
DDL_SAME(hip, hipIpcOpenEventHandle);
static_assert(sizeof(hipUUID) == sizeof(hip::Uuid));
static_assert(sizeof(hipPointerAttribute_t) == sizeof(hip::PointerAttributes) &&
              offsetof(hipPointerAttribute_t, device) == offsetof(hip::PointerAttributes, device) &&
              offsetof(hipPointerAttribute_t, isManaged) == offsetof(hip::PointerAttributes, is_managed));
static_assert(hipSuccess == hip::kSuccess && hipErrorInvalidValue == hip::kErrorInvalidValue &&
              hipErrorNotReady == hip::kErrorNotReady &&
              hipErrorHostMemoryAlreadyRegistered == hip::kErrorAlreadyRegistered &&
              hipErrorStreamCaptureImplicit == hip::kErrorCaptureImplicit);
#if HIP_VERSION_MAJOR < 6
static_assert(hipMemoryTypeDevice == hip::kDeviceMemoryOf5);
#else
static_assert(hipMemoryTypeDevice == hip::kDeviceMemory && hipMemoryTypeManaged == hip::kManagedMemory);
#endif
static_assert(HIP_POINTER_ATTRIBUTE_BUFFER_ID == hip::kBufferId &&
              hipStreamNonBlocking == hip::kStreamNonBlocking &&
              hipEventDisableTiming == hip::kEventDisableTiming &&
              hipEventInterprocess == hip::kEventInterprocess &&
              hipHostRegisterPortable == hip::kHostRegisterPortable &&
              hipStreamCaptureModeRelaxed == hip::kCaptureModeRelaxed &&
              hipStreamCaptureStatusNone == hip::kCaptureNone && hipMemcpyDefault == hip::kCopyDefault);

#if __has_include(<hip/hiprtc.h>)
#include <hip/hiprtc.h>
#define DDL_HAS_HIPRTC_H
namespace rtc = ddl::runtime::rtc;
DDL_SAME_AS(rtc::Functions::create, hiprtcCreateProgram);
DDL_SAME_AS(rtc::Functions::compile, hiprtcCompileProgram);
DDL_SAME_AS(rtc::Functions::log_size, hiprtcGetProgramLogSize);
DDL_SAME_AS(rtc::Functions::log, hiprtcGetProgramLog);
DDL_SAME_AS(rtc::Functions::code_size, hiprtcGetCodeSize);
DDL_SAME_AS(rtc::Functions::code, hiprtcGetCode);
DDL_SAME_AS(rtc::Functions::destroy, hiprtcDestroyProgram);
static_assert(HIPRTC_SUCCESS == 0);
#endif
#endif

TEST_CASE("libddl declares HIP's functions as hip_runtime_api.h does") {
#ifdef DDL_HIP_HEADER
  std::printf("compared with HIP %d.%d\n", HIP_VERSION_MAJOR, HIP_VERSION_MINOR);
  SUCCEED();
#else
  DDL_SKIP("hip_runtime_api.h is not installed; on Debian it is in libamdhip64-dev");
#endif
}

TEST_CASE("libddl declares hipRTC's functions as hiprtc.h does") {
#ifdef DDL_HAS_HIPRTC_H
  SUCCEED();
#else
  DDL_SKIP("hiprtc.h is not installed; on Debian it is in libamdhip64-dev");
#endif
}
