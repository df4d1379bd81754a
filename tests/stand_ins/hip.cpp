// The stand-in for libamdhip64.so.6 (or, by DDL_STAND_IN_HIP=5, of version 5): the functions that libddl and its tests
// use, over GPUs that exist in this process only (stand_ins/gpu.h).
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

// hipError_t
constexpr int kOk = 0, kInvalidValue = 1, kOutOfMemory = 2, kInvalidDevice = 101, kInvalidHandle = 400,
              kNotReady = 600, kAlreadyRegistered = 712, kNotRegistered = 713, kIllegalAddress = 700,
              kCaptureUnsupported = 900, kCaptureImplicit = 906;

thread_local int current = 0;
thread_local bool fails_next_copy = false;
/// 0: the thread's functions belong to a capture that any thread has begun, and some of them spoil it.
thread_local int capture_mode = 0;

Gpus& gpus() {
  static Gpus& all = *new Gpus(std::getenv("ROCR_VISIBLE_DEVICES"));
  return all;
}

int compute_capability() { return static_cast<int>(number_in("DDL_STAND_IN_CAPABILITY", 94)); }

int major_version() {
  const char* const text = std::getenv("DDL_STAND_IN_HIP");
  return text == nullptr ? 6 : static_cast<int>(std::strtol(text, nullptr, 10));
}

void enter() {
  if (is_in_operation()) broken_rule("a function that a stream calls must not call HIP");
}
Stream* stream_of(void* handle) {
  enter();
  return gpus().stream_of(handle, current);
}

struct PointerAttributes {
  int type, device;
  void *device_pointer, *host_pointer;
  int is_managed;
  unsigned flags;
};

}  // namespace

extern "C" {

int hipInit(unsigned) { return gpus().count() == 0 ? 100 : kOk; }
int hipRuntimeGetVersion(int* version) {
  *version = major_version() * 10'000'000 + 221'153;
  return kOk;
}
const char* hipGetErrorName(int error) {
  switch (error) {
    case kOk: return "hipSuccess";
    case kInvalidValue: return "hipErrorInvalidValue";
    case kOutOfMemory: return "hipErrorOutOfMemory";
    case kInvalidDevice: return "hipErrorInvalidDevice";
    case kInvalidHandle: return "hipErrorInvalidHandle";
    case kIllegalAddress: return "hipErrorIllegalAddress";
    case 100: return "hipErrorNoDevice";
    default: return "hipErrorUnknown";
  }
}
int hipGetLastError() { return kOk; }
int hipGetDeviceCount(int* count) {
  *count = gpus().count();
  return *count == 0 ? 100 : kOk;
}
int hipDeviceGet(int* device, int ordinal) {
  if (ordinal < 0 || ordinal >= gpus().count()) return kInvalidDevice;
  *device = ordinal;
  return kOk;
}
int hipDeviceGetName(char* name, int size, int) {
  std::strncpy(name, "stand-in GCD", static_cast<std::size_t>(size));
  return kOk;
}
int hipDeviceGetUuid(char* uuid, int device) {
  const auto bytes = gpus().uuid(device);
  constexpr char kDigits[] = "0123456789abcdef";
  for (std::size_t i = 0; i < bytes.size() / 2; ++i) {
    uuid[2 * i] = kDigits[bytes[i + bytes.size() / 2] >> 4];
    uuid[2 * i + 1] = kDigits[bytes[i + bytes.size() / 2] & 0xF];
  }
  return kOk;
}
int hipDeviceGetPCIBusId(char* name, int size, int device) {
  std::strncpy(name, gpus().pci_address(device).c_str(), static_cast<std::size_t>(size));
  return kOk;
}
int hipGetDevice(int* device) {
  enter();
  *device = current;
  return kOk;
}
int hipSetDevice(int device) {
  enter();
  if (device < 0 || device >= gpus().count()) return kInvalidDevice;
  current = device;
  return kOk;
}

int hipMalloc(void** memory, std::size_t bytes) {
  enter();
  if (capture_mode == 0 && gpus().is_any_capturing()) return kCaptureUnsupported;
  gpus().synchronize(current);
  // NOLINTNEXTLINE(performance-no-int-to-ptr): addresses are numbers in the stand-in
  *memory = bytes == 0 ? nullptr : reinterpret_cast<void*>(gpus().memory().allocate(bytes, current));
  return bytes > 0 && *memory == nullptr ? kOutOfMemory : kOk;
}
int hipFree(void* memory) {
  enter();
  if (const auto found = gpus().memory().find(reinterpret_cast<std::uintptr_t>(memory)))
    gpus().synchronize(found->gpu);
  return memory == nullptr || gpus().memory().release(reinterpret_cast<std::uintptr_t>(memory))
             ? kOk
             : kInvalidValue;
}
int hipHostRegister(void* memory, std::size_t, unsigned) {
  enter();
  gpus().synchronize(current);
  return gpus().pin(memory) ? kOk : kAlreadyRegistered;
}
int hipHostUnregister(void* memory) { return gpus().unpin(memory) ? kOk : kNotRegistered; }
int hipPointerGetAttributes(PointerAttributes* attributes, const void* address) {
  enter();
  *attributes = {};
  const auto found = gpus().memory().find(reinterpret_cast<std::uintptr_t>(address));
  if (!found) {
    // Version 6 answers for memory of the host, too.
    return major_version() < 6 ? kInvalidValue : kOk;
  }
  attributes->type = major_version() < 6 ? 1 : 2;
  attributes->device = found->gpu;
  attributes->device_pointer = const_cast<void*>(address);
  return kOk;
}
int hipMemGetAddressRange(void** begin, std::size_t* bytes, void* address) {
  const auto found = gpus().memory().find(reinterpret_cast<std::uintptr_t>(address));
  if (!found) return kInvalidValue;
  *begin = reinterpret_cast<void*>(found->begin);  // NOLINT(performance-no-int-to-ptr): as above
  *bytes = found->bytes;
  return kOk;
}

int hipMemcpyAsync(void* to, const void* from, std::size_t bytes, int, void* handle) {
  Stream* const stream = stream_of(handle);
  if (stream == nullptr) return kInvalidHandle;
  if (stream->is_capturing) return kCaptureUnsupported;
  if (std::exchange(fails_next_copy, false)) return kIllegalAddress;
  gpus().put(*stream, [to, from, bytes] {
    std::memmove(gpus().memory().reach(to, bytes), gpus().memory().reach(from, bytes), bytes);
  });
  return kOk;
}
int hipMemcpy(void* to, const void* from, std::size_t bytes, int kind) {
  if (const int error = hipMemcpyAsync(to, from, bytes, kind, nullptr); error != kOk) return error;
  stream_of(nullptr)->synchronize();
  return kOk;
}

int hipStreamCreateWithFlags(void** stream, unsigned flags) {
  enter();
  *stream = gpus().make_stream(current, (flags & 1u) == 0);
  return kOk;
}
int hipStreamDestroy(void* stream) {
  enter();
  gpus().destroy(static_cast<Stream*>(stream));
  return kOk;
}
int hipStreamSynchronize(void* handle) {
  Stream* const stream = stream_of(handle);
  if (stream == nullptr) return kInvalidHandle;
  gpus().put(*stream, [] {});
  stream->synchronize();
  return kOk;
}
int hipStreamWaitEvent(void* handle, void* event, unsigned) {
  Stream* const stream = stream_of(handle);
  if (stream == nullptr || event == nullptr) return kInvalidHandle;
  gpus().put(*stream, static_cast<Event*>(event)->make_wait());
  return kOk;
}
int hipStreamBeginCapture(void* handle, int) {
  Stream* const stream = stream_of(handle);
  if (stream == nullptr || handle == nullptr) return kInvalidHandle;
  stream->is_capturing = true;
  return kOk;
}
int hipStreamEndCapture(void* handle, void** graph) {
  Stream* const stream = stream_of(handle);
  if (stream == nullptr) return kInvalidHandle;
  stream->is_capturing = false;
  *graph = nullptr;
  return kOk;
}
int hipStreamIsCapturing(void* handle, int* status) {
  if (handle == nullptr && gpus().is_any_capturing()) return kCaptureImplicit;
  Stream* const stream = stream_of(handle);
  if (stream == nullptr) return kInvalidHandle;
  *status = stream->is_capturing ? 1 : 0;
  return kOk;
}
int hipStreamAddCallback(void* handle, void (*function)(void*, int, void*), void* argument, unsigned) {
  Stream* const stream = stream_of(handle);
  if (stream == nullptr) return kInvalidHandle;
  gpus().put(*stream, [=] { function(handle, kOk, argument); });
  return kOk;
}

int hipModuleLoadData(void** module, const void* image) {
  enter();
  gpus().synchronize(current);
  *module = const_cast<std::string*>(keep_module(static_cast<const char*>(image)));
  return kOk;
}
int hipModuleGetFunction(void** function, void* module, const char* name) {
  enter();
  const auto& text = *static_cast<const std::string*>(module);
  *function = text.find(name) == std::string::npos ? nullptr : kernel_named(name);
  return *function == nullptr ? 500 : kOk;
}
int hipModuleLaunchKernel(void* function, unsigned blocks, unsigned, unsigned, unsigned threads, unsigned,
                          unsigned, unsigned, void* handle, void** arguments, void**) {
  Stream* const stream = stream_of(handle);
  if (stream == nullptr || function == nullptr) return kInvalidHandle;
  gpus().put(*stream, kernel_call(function, blocks, threads, arguments, gpus().memory()));
  return kOk;
}

int hipEventCreateWithFlags(void** event, unsigned flags) {
  enter();
  if ((flags & 4u) != 0 && (flags & 2u) == 0) return kInvalidValue;
  auto made = std::make_unique<Event>();
  if ((flags & 4u) != 0) made->shared = SharedRecords::make();
  *event = made.release();
  return kOk;
}
int hipEventDestroy(void* event) {
  enter();
  delete static_cast<Event*>(event);
  return kOk;
}
int hipEventRecord(void* event, void* handle) {
  Stream* const stream = stream_of(handle);
  if (stream == nullptr || event == nullptr) return kInvalidHandle;
  gpus().record(*static_cast<Event*>(event), *stream);
  return kOk;
}
int hipThreadExchangeStreamCaptureMode(int* mode) {
  enter();
  std::swap(*mode, capture_mode);
  return kOk;
}
int hipEventQuery(void* event) {
  enter();
  note_query(gpus(), capture_mode);
  return static_cast<Event*>(event)->is_done() ? kOk : kNotReady;
}

int hipDeviceGetAttribute(int* value, int attribute, int device) {
  enter();
  if (device < 0 || device >= gpus().count()) return kInvalidValue;
  if (attribute != 23 && attribute != 61) broken_rule("an attribute that libddl does not use");
  *value = attribute == 23 ? compute_capability() / 10 : compute_capability() % 10;
  return kOk;
}
int hipPointerGetAttribute(void* value, int attribute, void* address) {
  enter();
  const auto found = gpus().memory().find(reinterpret_cast<std::uintptr_t>(address));
  if (!found || attribute != 7) return kInvalidValue;
  std::memcpy(value, &found->id, sizeof found->id);
  return kOk;
}
int hipIpcGetMemHandle(IpcHandle* handle, void* memory) {
  enter();
  const auto found = gpus().memory().find(reinterpret_cast<std::uintptr_t>(memory));
  if (!found || found->is_private || found->begin != reinterpret_cast<std::uintptr_t>(memory))
    return kInvalidValue;
  *handle = handle_of(gpus().memory(), *found, gpus().number_of_host(found->gpu));
  return kOk;
}
int hipIpcOpenMemHandle(void** memory, IpcHandle handle, unsigned flags) {
  enter();
  if (flags != (major_version() < 6 ? 0u : 1u)) return kInvalidValue;
  if (handle.gpu != gpus().number_of_host(current)) broken_rule("memory of another GPU is opened");
  // NOLINTNEXTLINE(performance-no-int-to-ptr): as above
  *memory = reinterpret_cast<void*>(open_memory(gpus().memory(), handle, current));
  return *memory == nullptr ? kInvalidDevice : kOk;
}
int hipIpcCloseMemHandle(void* memory) {
  enter();
  gpus().synchronize(current);
  return gpus().memory().close(reinterpret_cast<std::uintptr_t>(memory)) ? kOk : kInvalidValue;
}
int hipIpcGetEventHandle(IpcHandle* handle, void* event) {
  enter();
  const auto& shared = static_cast<Event*>(event)->shared;
  if (!shared || shared->is_opened()) return kInvalidHandle;
  *handle = shared->handle();
  return kOk;
}
int hipIpcOpenEventHandle(void** event, IpcHandle handle) {
  enter();
  auto opened = std::make_unique<Event>();
  opened->shared = SharedRecords::open(handle);
  if (!opened->shared) return kInvalidDevice;
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
int ddl_stand_in_current_gpu() { return current; }
int ddl_stand_in_gpu_of(const void* address) {
  const auto found = gpus().memory().find(reinterpret_cast<std::uintptr_t>(address));
  return found ? found->gpu : -1;
}
int ddl_stand_in_float8() { return compute_capability() >= 95 ? 1 : compute_capability() == 94 ? 2 : 0; }
void ddl_stand_in_uuid(int gpu, unsigned char* uuid) {
  const auto bytes = gpus().uuid(gpu);
  std::memcpy(uuid, bytes.data(), bytes.size());
}

}  // extern "C"
