// The part of AMD's runtime (libamdhip64.so) that libddl uses, declared here so that nothing of AMD's is needed to build
// it. tests/gpu/hip_abi_test.cpp compares it with hip_runtime_api.h where that is installed.
#pragma once

#include <cstddef>

namespace ddl::runtime::hip {

using Result = int;  ///< hipError_t

struct Uuid {
  char bytes[16];
};

/// hipIpcMemHandle_t and hipIpcEventHandle_t, which functions take by value.
struct Ipc {
  char bytes[64];
};

/// hipPointerAttribute_t: the number for a type of memory depends on the version.
struct PointerAttributes {
  int type;
  int device;
  void* device_pointer;
  void* host_pointer;
  int is_managed;
  unsigned flags;
};

// hipError_t
inline constexpr Result kSuccess = 0;
/// hipStreamCaptureModeRelaxed
inline constexpr int kCaptureModeRelaxed = 2;
inline constexpr Result kErrorNotReady = 600;
inline constexpr Result kErrorAlreadyRegistered = 712;
inline constexpr Result kErrorCaptureImplicit = 906;

// hipMemoryType
inline constexpr int kDeviceMemoryOf5 = 1;
inline constexpr int kDeviceMemory = 2;   ///< since 6
inline constexpr int kManagedMemory = 3;  ///< since 6

/// HIP_POINTER_ATTRIBUTE_BUFFER_ID
inline constexpr int kBufferId = 7;

// hipDeviceAttribute_t
inline constexpr int kComputeCapabilityMajor = 23;
inline constexpr int kComputeCapabilityMinor = 61;

inline constexpr unsigned kStreamNonBlocking = 1;
inline constexpr unsigned kEventDisableTiming = 2;
inline constexpr unsigned kEventInterprocess = 4;
/// hipIpcMemLazyEnablePeerAccess; some headers of version 5 have 0.
inline constexpr unsigned kIpcLazyPeerAccess = 1;
inline constexpr Result kErrorInvalidValue = 1;
inline constexpr unsigned kHostRegisterPortable = 1;
inline constexpr int kCopyDefault = 4;  ///< hipMemcpyDefault
inline constexpr int kCaptureNone = 0;

struct Functions {
  Result (*hipInit)(unsigned flags);
  Result (*hipRuntimeGetVersion)(int* version);
  const char* (*hipGetErrorName)(Result error);
  Result (*hipDeviceGet)(int* device, int ordinal);
  Result (*hipDeviceGetUuid)(Uuid* uuid, int device);
  Result (*hipDeviceGetPCIBusId)(char* name, int size, int device);
  Result (*hipDeviceGetAttribute)(int* value, int attribute, int device);
  Result (*hipGetDevice)(int* device);
  Result (*hipSetDevice)(int device);
  Result (*hipMalloc)(void** memory, std::size_t bytes);
  Result (*hipFree)(void* memory);
  Result (*hipHostRegister)(void* memory, std::size_t bytes, unsigned flags);
  Result (*hipHostUnregister)(void* memory);
  Result (*hipPointerGetAttributes)(PointerAttributes* attributes, const void* address);
  Result (*hipMemcpyAsync)(void* to, const void* from, std::size_t bytes, int kind, void* stream);
  Result (*hipStreamCreateWithFlags)(void** stream, unsigned flags);
  Result (*hipStreamDestroy)(void* stream);
  Result (*hipStreamWaitEvent)(void* stream, void* event, unsigned flags);
  Result (*hipStreamIsCapturing)(void* stream, int* status);
  /// Not in all versions since 5; hipStreamAddCallback() is.
  Result (*hipModuleLoadData)(void** module, const void* image);
  Result (*hipModuleGetFunction)(void** function, void* module, const char* name);
  Result (*hipModuleLaunchKernel)(void* function, unsigned grid_x, unsigned grid_y, unsigned grid_z,
                                  unsigned block_x, unsigned block_y, unsigned block_z, unsigned shared_bytes,
                                  void* stream, void** arguments, void** extra);
  Result (*hipThreadExchangeStreamCaptureMode)(int* mode);
  Result (*hipLaunchHostFunc)(void* stream, void (*function)(void*), void* argument);
  Result (*hipStreamAddCallback)(void* stream, void (*function)(void*, Result, void*), void* argument,
                                 unsigned flags);
  Result (*hipEventCreateWithFlags)(void** event, unsigned flags);
  Result (*hipEventDestroy)(void* event);
  Result (*hipEventRecord)(void* event, void* stream);
  Result (*hipEventQuery)(void* event);
  Result (*hipGetLastError)();
  // Optional: what ranks on one GPU need.
  Result (*hipPointerGetAttribute)(void* value, int attribute, void* address);
  Result (*hipMemGetAddressRange)(void** begin, std::size_t* bytes, void* address);
  Result (*hipIpcGetMemHandle)(Ipc* handle, void* memory);
  Result (*hipIpcOpenMemHandle)(void** memory, Ipc handle, unsigned flags);
  Result (*hipIpcCloseMemHandle)(void* memory);
  Result (*hipIpcGetEventHandle)(Ipc* handle, void* event);
  Result (*hipIpcOpenEventHandle)(void** event, Ipc handle);
};

}  // namespace ddl::runtime::hip
