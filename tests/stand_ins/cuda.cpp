// The stand-in for libcuda.so.1: the functions that libddl and its tests use, over GPUs that exist in this process only
// (stand_ins/gpu.h). A broken rule of the driver is an error of the driver, or ends the program.
#include <atomic>
#include <cstring>
#include <memory>
#include <string>
#include <utility>

#include "stand_ins/gpu.h"
#include "stand_ins/ipc.h"
#include "stand_ins/kernels.h"
#include "stand_ins/private_entries.h"

namespace {

using namespace ddl::
    stand_ins;  // NOLINT(google-build-using-namespace): this file is the edge of that namespace

// CUresult
constexpr int kOk = 0, kInvalidValue = 1, kOutOfMemory = 2, kNotInitialised = 3, kInvalidDevice = 101,
              kInvalidContext = 201, kInvalidHandle = 400, kNotReady = 600, kAlreadyRegistered = 712,
              kNotRegistered = 713, kIllegalAddress = 700, kCaptureUnsupported = 900, kCaptureImplicit = 906;

std::atomic<bool> is_initialised{false};

/// A GPU's primary context is the address of its entry.
int contexts[64] = {};
thread_local void* current = nullptr;
thread_local bool fails_next_copy = false;
/// 0: the thread's functions belong to a capture that any thread has begun, and some of them spoil it.
thread_local int capture_mode = 0;

Gpus& gpus() {
  static Gpus& all = *new Gpus(std::getenv("CUDA_VISIBLE_DEVICES"));
  return all;
}

/// What every function but a few demands.
int entered() {
  if (is_in_operation()) broken_rule("a function that a stream calls must not call CUDA");
  return is_initialised ? kOk : kNotInitialised;
}
/// The same, and a current context.
int entered_with_context() {
  if (const int error = entered(); error != kOk) return error;
  return current == nullptr ? kInvalidContext : kOk;
}
int compute_capability() { return static_cast<int>(number_in("DDL_STAND_IN_CAPABILITY", 90)); }
int current_gpu() { return static_cast<int>(static_cast<int*>(current) - contexts); }

/// Gives the stream of a handle, or returns an error from the function.
Stream* stream_of(void* handle) { return gpus().stream_of(handle, current_gpu()); }

}  // namespace

#define DDL_ENTER \
  if (const int error = entered(); error != kOk) return error
#define DDL_ENTER_CONTEXT \
  if (const int error = entered_with_context(); error != kOk) return error

extern "C" {

int cuInit(unsigned flags) {
  if (is_in_operation()) broken_rule("a function that a stream calls must not call CUDA");
  if (flags != 0) return kInvalidValue;
  is_initialised = true;
  return gpus().count() == 0 ? 100 : kOk;
}
int cuDriverGetVersion(int* version) {
  *version = 13000;
  return kOk;
}
int cuGetErrorName(int error, const char** name) {
  switch (error) {
    case kOk: *name = "CUDA_SUCCESS"; return kOk;
    case kInvalidValue: *name = "CUDA_ERROR_INVALID_VALUE"; return kOk;
    case kOutOfMemory: *name = "CUDA_ERROR_OUT_OF_MEMORY"; return kOk;
    case kNotInitialised: *name = "CUDA_ERROR_NOT_INITIALIZED"; return kOk;
    case 100: *name = "CUDA_ERROR_NO_DEVICE"; return kOk;
    case kInvalidDevice: *name = "CUDA_ERROR_INVALID_DEVICE"; return kOk;
    case kInvalidContext: *name = "CUDA_ERROR_INVALID_CONTEXT"; return kOk;
    case kInvalidHandle: *name = "CUDA_ERROR_INVALID_HANDLE"; return kOk;
    case kIllegalAddress: *name = "CUDA_ERROR_ILLEGAL_ADDRESS"; return kOk;
    case kCaptureUnsupported: *name = "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED"; return kOk;
    default: return kInvalidValue;
  }
}
int cuDeviceGetCount(int* count) {
  DDL_ENTER;
  *count = gpus().count();
  return kOk;
}
int cuDeviceGet(int* device, int ordinal) {
  DDL_ENTER;
  if (ordinal < 0 || ordinal >= gpus().count()) return kInvalidDevice;
  *device = ordinal;
  return kOk;
}
int cuDeviceGetName(char* name, int size, int) {
  DDL_ENTER;
  std::strncpy(name, "stand-in GPU", static_cast<std::size_t>(size));
  return kOk;
}
int cuDeviceGetUuid_v2(unsigned char* uuid, int device) {
  DDL_ENTER;
  const auto bytes = gpus().uuid(device);
  std::memcpy(uuid, bytes.data(), bytes.size());
  return kOk;
}
int cuDeviceGetUuid(unsigned char* uuid, int device) { return cuDeviceGetUuid_v2(uuid, device); }
int cuDeviceGetPCIBusId(char* name, int size, int device) {
  DDL_ENTER;
  std::strncpy(name, gpus().pci_address(device).c_str(), static_cast<std::size_t>(size));
  return kOk;
}
int cuDevicePrimaryCtxRetain(void** context, int device) {
  DDL_ENTER;
  if (device < 0 || device >= gpus().count()) return kInvalidDevice;
  *context = &contexts[device];
  return kOk;
}
int cuCtxGetCurrent(void** context) {
  DDL_ENTER;
  *context = current;
  return kOk;
}
int cuCtxSetCurrent(void* context) {
  DDL_ENTER;
  current = context;
  return kOk;
}
int cuCtxGetDevice(int* device) {
  DDL_ENTER_CONTEXT;
  *device = current_gpu();
  return kOk;
}

// Those without "_v2" take sizes of 32 bits: a program that calls them has a defect.
int cuMemAlloc() { broken_rule("cuMemAlloc is the function of CUDA 3.1"); }
int cuMemFree() { broken_rule("cuMemFree is the function of CUDA 3.1"); }
int cuMemHostRegister() { broken_rule("cuMemHostRegister is the function of CUDA 6.0"); }
int cuStreamDestroy() { broken_rule("cuStreamDestroy is the function of CUDA 3.1"); }
int cuEventDestroy() { broken_rule("cuEventDestroy is the function of CUDA 3.1"); }

int cuMemAlloc_v2(std::uint64_t* memory, std::size_t bytes) {
  DDL_ENTER_CONTEXT;
  if (bytes == 0) return kInvalidValue;
  if (capture_mode == 0 && gpus().is_any_capturing()) return kCaptureUnsupported;
  gpus().synchronize(current_gpu());
  *memory = gpus().memory().allocate(bytes, current_gpu());
  return *memory == 0 ? kOutOfMemory : kOk;
}
int cuMemFree_v2(std::uint64_t memory) {
  DDL_ENTER_CONTEXT;
  if (const auto found = gpus().memory().find(memory)) gpus().synchronize(found->gpu);
  return memory == 0 || gpus().memory().release(memory) ? kOk : kInvalidValue;
}
int cuMemHostRegister_v2(void* memory, std::size_t bytes, unsigned) {
  DDL_ENTER_CONTEXT;
  if (bytes == 0) return kInvalidValue;
  gpus().synchronize(current_gpu());
  return gpus().pin(memory) ? kOk : kAlreadyRegistered;
}
int cuMemHostUnregister(void* memory) {
  DDL_ENTER_CONTEXT;
  return gpus().unpin(memory) ? kOk : kNotRegistered;
}
int cuPointerGetAttributes(unsigned count, int* attributes, void** data, std::uint64_t address) {
  DDL_ENTER;
  const auto found = gpus().memory().find(address);
  for (unsigned i = 0; i < count; ++i) {
    void* const value = data[i];
    const auto store = [&](auto number) { std::memcpy(value, &number, sizeof number); };
    switch (attributes[i]) {
      case 2: store(found ? 2u : 0u); break;
      case 7: store(found ? found->id : std::uint64_t{0}); break;
      case 8: store(found && found->is_managed ? 1u : 0u); break;
      case 9: store(found ? found->gpu : -2); break;
      case 10: store(found && !found->is_private ? 1 : 0); break;
      case 11: store(found ? std::uint64_t{found->begin} : std::uint64_t{0}); break;
      case 12: store(found ? found->bytes : std::size_t{0}); break;
      default: return kInvalidValue;
    }
  }
  return kOk;
}

int cuMemcpyAsync(std::uint64_t to, std::uint64_t from, std::size_t bytes, void* handle) {
  DDL_ENTER_CONTEXT;
  Stream* const stream = stream_of(handle);
  if (stream == nullptr) return kInvalidHandle;
  if (stream->is_capturing) return kCaptureUnsupported;
  if (std::exchange(fails_next_copy, false)) return kIllegalAddress;
  // NOLINTBEGIN(performance-no-int-to-ptr): the driver's addresses are numbers
  gpus().put(*stream, [to = reinterpret_cast<void*>(to), from = reinterpret_cast<void*>(from), bytes] {
    std::memmove(gpus().memory().reach(to, bytes), gpus().memory().reach(from, bytes), bytes);
  });
  // NOLINTEND(performance-no-int-to-ptr)
  return kOk;
}
int cuMemcpyHtoD_v2(std::uint64_t to, const void* from, std::size_t bytes) {
  if (const int error = cuMemcpyAsync(to, reinterpret_cast<std::uintptr_t>(from), bytes, nullptr);
      error != kOk)
    return error;
  stream_of(nullptr)->synchronize();
  return kOk;
}
int cuMemcpyDtoH_v2(void* to, std::uint64_t from, std::size_t bytes) {
  if (const int error = cuMemcpyAsync(reinterpret_cast<std::uintptr_t>(to), from, bytes, nullptr);
      error != kOk)
    return error;
  stream_of(nullptr)->synchronize();
  return kOk;
}

int cuStreamCreate(void** stream, unsigned flags) {
  DDL_ENTER_CONTEXT;
  *stream = gpus().make_stream(current_gpu(), (flags & 1u) == 0);
  return kOk;
}
int cuStreamDestroy_v2(void* stream) {
  DDL_ENTER_CONTEXT;
  gpus().destroy(static_cast<Stream*>(stream));
  return kOk;
}
int cuStreamSynchronize(void* handle) {
  DDL_ENTER_CONTEXT;
  Stream* const stream = stream_of(handle);
  if (stream == nullptr) return kInvalidHandle;
  if (stream->is_capturing) return kCaptureUnsupported;
  // The default stream waits for the others.
  gpus().put(*stream, [] {});
  stream->synchronize();
  return kOk;
}
int cuStreamWaitEvent(void* handle, void* event, unsigned) {
  DDL_ENTER_CONTEXT;
  Stream* const stream = stream_of(handle);
  if (stream == nullptr || event == nullptr) return kInvalidHandle;
  gpus().put(*stream, static_cast<Event*>(event)->make_wait());
  return kOk;
}
int cuStreamBeginCapture_v2(void* handle, int) {
  DDL_ENTER_CONTEXT;
  Stream* const stream = stream_of(handle);
  if (stream == nullptr || handle == nullptr) return kInvalidHandle;
  stream->is_capturing = true;
  return kOk;
}
int cuStreamEndCapture(void* handle, void** graph) {
  DDL_ENTER_CONTEXT;
  Stream* const stream = stream_of(handle);
  if (stream == nullptr) return kInvalidHandle;
  stream->is_capturing = false;
  *graph = nullptr;
  return kOk;
}
int cuStreamIsCapturing(void* handle, int* status) {
  DDL_ENTER_CONTEXT;
  if (handle == nullptr && gpus().is_any_capturing()) return kCaptureImplicit;
  Stream* const stream = stream_of(handle);
  if (stream == nullptr) return kInvalidHandle;
  *status = stream->is_capturing ? 1 : 0;
  return kOk;
}
int cuThreadExchangeStreamCaptureMode(int* mode) {
  DDL_ENTER;
  std::swap(*mode, capture_mode);
  return kOk;
}
int cuLaunchHostFunc(void* handle, void (*function)(void*), void* argument) {
  DDL_ENTER_CONTEXT;
  Stream* const stream = stream_of(handle);
  if (stream == nullptr) return kInvalidHandle;
  gpus().put(*stream, [function, argument] { function(argument); });
  return kOk;
}

int cuModuleLoadData(void** module, const void* image) {
  DDL_ENTER_CONTEXT;
  gpus().synchronize(current_gpu());
  *module = const_cast<std::string*>(keep_module(static_cast<const char*>(image)));
  return kOk;
}
int cuModuleGetFunction(void** function, void* module, const char* name) {
  DDL_ENTER_CONTEXT;
  const auto& text = *static_cast<const std::string*>(module);
  *function = text.find(name) == std::string::npos ? nullptr : kernel_named(name);
  return *function == nullptr ? 500 : kOk;
}
int cuLaunchKernel(void* function, unsigned blocks, unsigned, unsigned, unsigned threads, unsigned, unsigned,
                   unsigned, void* handle, void** arguments, void**) {
  DDL_ENTER_CONTEXT;
  Stream* const stream = stream_of(handle);
  if (stream == nullptr || function == nullptr) return kInvalidHandle;
  gpus().put(*stream, kernel_call(function, blocks, threads, arguments, gpus().memory()));
  return kOk;
}

int cuDeviceGetAttribute(int* value, int attribute, int) {
  DDL_ENTER;
  *value = attribute == 75    ? compute_capability() / 10
           : attribute == 76  ? compute_capability() % 10
           : attribute == 125 ? 1
                              : 0;
  return kOk;
}

int cuEventCreate(void** event, unsigned flags) {
  DDL_ENTER_CONTEXT;
  if ((flags & 4u) != 0 && (flags & 2u) == 0) return kInvalidValue;
  auto made = std::make_unique<Event>();
  if ((flags & 4u) != 0) made->shared = SharedRecords::make();
  *event = made.release();
  return kOk;
}
int cuEventDestroy_v2(void* event) {
  DDL_ENTER_CONTEXT;
  delete static_cast<Event*>(event);
  return kOk;
}
int cuEventRecord(void* event, void* handle) {
  DDL_ENTER_CONTEXT;
  Stream* const stream = stream_of(handle);
  if (stream == nullptr || event == nullptr) return kInvalidHandle;
  gpus().record(*static_cast<Event*>(event), *stream);
  return kOk;
}
int cuEventQuery(void* event) {
  DDL_ENTER_CONTEXT;
  note_query(gpus(), capture_mode);
  return static_cast<Event*>(event)->is_done() ? kOk : kNotReady;
}

int cuIpcGetMemHandle(IpcHandle* handle, std::uint64_t memory) {
  DDL_ENTER_CONTEXT;
  const auto found = gpus().memory().find(memory);
  if (!found || found->is_private || found->begin != memory) return kInvalidValue;
  *handle = handle_of(gpus().memory(), *found, gpus().number_of_host(found->gpu));
  return kOk;
}
int cuIpcOpenMemHandle(IpcHandle, unsigned) { broken_rule("cuIpcOpenMemHandle is the function of CUDA 4.1"); }
int cuIpcOpenMemHandle_v2(std::uint64_t* memory, IpcHandle handle, unsigned flags) {
  DDL_ENTER_CONTEXT;
  if (flags != 1) return kInvalidValue;
  if (handle.gpu != gpus().number_of_host(current_gpu())) broken_rule("memory of another GPU is opened");
  *memory = open_memory(gpus().memory(), handle, current_gpu());
  return *memory == 0 ? kInvalidContext : kOk;
}
int cuIpcCloseMemHandle(std::uint64_t memory) {
  DDL_ENTER_CONTEXT;
  gpus().synchronize(current_gpu());
  return gpus().memory().close(memory) ? kOk : kInvalidValue;
}
int cuIpcGetEventHandle(IpcHandle* handle, void* event) {
  DDL_ENTER_CONTEXT;
  const auto& shared = static_cast<Event*>(event)->shared;
  if (!shared || shared->is_opened()) return kInvalidHandle;
  *handle = shared->handle();
  return kOk;
}
int cuIpcOpenEventHandle(void** event, IpcHandle handle) {
  DDL_ENTER_CONTEXT;
  auto opened = std::make_unique<Event>();
  opened->shared = SharedRecords::open(handle);
  if (!opened->shared) return kInvalidContext;
  *event = opened.release();
  return kOk;
}

void ddl_stand_in_put(void* stream, int gpu, void (*operation)(void*), void* argument) {
  Stream* const found = gpus().stream_of(stream, gpu);
  if (found == nullptr) broken_rule("a stream that does not exist");
  gpus().put(*found, [operation, argument] { operation(argument); });
}
void* ddl_stand_in_reach(const void* address, std::size_t bytes) {
  return gpus().memory().reach(address, bytes);
}
bool ddl_stand_in_wait_for_query_in_capture(int milliseconds) {
  return wait_for_query_in_capture(milliseconds);
}
void ddl_stand_in_keep_private(const void* memory) {
  gpus().memory().keep_private(reinterpret_cast<std::uintptr_t>(memory));
}
void ddl_stand_in_fail_next_copy() { fails_next_copy = true; }
int ddl_stand_in_current_gpu() { return current == nullptr ? -1 : current_gpu(); }
int ddl_stand_in_gpu_of(const void* address) {
  const auto found = gpus().memory().find(reinterpret_cast<std::uintptr_t>(address));
  return found ? found->gpu : -1;
}
int ddl_stand_in_float8() { return compute_capability() >= 90 ? 1 : 0; }
void ddl_stand_in_uuid(int gpu, unsigned char* uuid) {
  const auto bytes = gpus().uuid(gpu);
  std::memcpy(uuid, bytes.data(), bytes.size());
}

}  // extern "C"
