// The part of NVIDIA's driver interface (libcuda.so.1) that libddl uses, declared here so that nothing of NVIDIA's is
// needed to build it. tests/gpu/cuda_abi_test.cpp compares it with cuda.h where that is installed.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ddl::runtime::cuda {

using Result = int;             ///< CUresult
using DeviceNumber = int;       ///< CUdevice
using Context = void*;          ///< CUcontext
using Address = std::uint64_t;  ///< CUdeviceptr

struct Uuid {
  unsigned char bytes[16];
};

/// CUipcMemHandle and CUipcEventHandle, which functions take by value.
struct Ipc {
  char bytes[64];
};

// CUresult
inline constexpr Result kSuccess = 0;
inline constexpr Result kErrorNotReady = 600;
inline constexpr Result kErrorAlreadyRegistered = 712;
inline constexpr Result kErrorCaptureImplicit = 906;

// CUpointer_attribute
inline constexpr int kMemoryType = 2;
inline constexpr int kBufferId = 7;
inline constexpr int kDeviceOrdinal = 9;
inline constexpr int kLegacyIpcCapable = 10;
inline constexpr int kRangeStart = 11;
inline constexpr int kRangeSize = 12;
/// CU_MEMORYTYPE_DEVICE
inline constexpr unsigned kDeviceMemory = 2;

// CUdevice_attribute
inline constexpr int kComputeCapabilityMajor = 75;
inline constexpr int kComputeCapabilityMinor = 76;
inline constexpr int kIpcEventSupported = 125;

inline constexpr unsigned kStreamNonBlocking = 1;
inline constexpr unsigned kEventDisableTiming = 2;
inline constexpr unsigned kEventInterprocess = 4;
inline constexpr unsigned kIpcLazyPeerAccess = 1;
inline constexpr unsigned kHostRegisterPortable = 1;
/// CU_STREAM_CAPTURE_MODE_RELAXED: what the thread does is not meant for a graph, and disturbs none.
inline constexpr int kCaptureModeRelaxed = 2;
/// CU_STREAM_CAPTURE_STATUS_NONE
inline constexpr int kCaptureNone = 0;

/// The functions, under the names that dlsym() needs: those with "_v2" exist without it, too, with 32-bit sizes.
struct Functions {
  Result (*cuInit)(unsigned flags);
  Result (*cuGetErrorName)(Result error, const char** name);
  Result (*cuDeviceGet)(DeviceNumber* device, int ordinal);
  Result (*cuDeviceGetUuid_v2)(Uuid* uuid, DeviceNumber device);  ///< tells the parts of a GPU apart (MIG)
  Result (*cuDeviceGetUuid)(Uuid* uuid, DeviceNumber device);
  Result (*cuDevicePrimaryCtxRetain)(Context* context, DeviceNumber device);
  Result (*cuCtxGetCurrent)(Context* context);
  Result (*cuCtxSetCurrent)(Context context);
  Result (*cuMemAlloc_v2)(Address* memory, std::size_t bytes);
  Result (*cuMemFree_v2)(Address memory);
  Result (*cuMemHostRegister_v2)(void* memory, std::size_t bytes, unsigned flags);
  Result (*cuMemHostUnregister)(void* memory);
  Result (*cuPointerGetAttributes)(unsigned count, int* attributes, void** data, Address address);
  Result (*cuMemcpyAsync)(Address to, Address from, std::size_t bytes, void* stream);
  Result (*cuStreamCreate)(void** stream, unsigned flags);
  Result (*cuStreamDestroy_v2)(void* stream);
  Result (*cuStreamWaitEvent)(void* stream, void* event, unsigned flags);
  Result (*cuStreamIsCapturing)(void* stream, int* status);
  Result (*cuThreadExchangeStreamCaptureMode)(int* mode);
  Result (*cuLaunchHostFunc)(void* stream, void (*function)(void*), void* argument);
  Result (*cuEventCreate)(void** event, unsigned flags);
  Result (*cuEventDestroy_v2)(void* event);
  Result (*cuEventRecord)(void* event, void* stream);
  Result (*cuEventQuery)(void* event);
  Result (*cuIpcGetMemHandle)(Ipc* handle, Address memory);
  Result (*cuIpcOpenMemHandle_v2)(Address* memory, Ipc handle, unsigned flags);
  Result (*cuIpcCloseMemHandle)(Address memory);
  Result (*cuIpcGetEventHandle)(Ipc* handle, void* event);
  Result (*cuIpcOpenEventHandle)(void** event, Ipc handle);
  Result (*cuDeviceGetAttribute)(int* value, int attribute, DeviceNumber device);
  Result (*cuModuleLoadData)(void** module, const void* image);
  Result (*cuModuleGetFunction)(void** function, void* module, const char* name);
  Result (*cuLaunchKernel)(void* function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                           unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                           void* stream, void** arguments, void** extra);
};

}  // namespace ddl::runtime::cuda
