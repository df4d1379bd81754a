// HIP, for the rules.
#include <bit>
#include <optional>

#include "base/shared_library.h"
#include "gpu/driver.h"
#include "runtime/src/device/hip_abi.h"

namespace ddl::gpu_rules {
namespace {

namespace hip = ddl::runtime::hip;

struct HipFunctions : hip::Functions {
  Code (*hipStreamSynchronize)(void* stream);
  Code (*hipStreamBeginCapture)(void* stream, int mode);
  Code (*hipStreamEndCapture)(void* stream, void** graph);
  Code (*hipDeviceGetName)(char* name, int size, int device);
  // Null where the library is too old, or is a stand-in.
  Code (*hipMallocAsync)(void** memory, std::size_t bytes, void* stream);
  // Null but in a stand-in.
  void (*ddl_stand_in_keep_private)(const void* memory);
};

HipFunctions load_hip() {
  std::optional<SharedLibrary> library;
  std::string error;
  for (const char* const name : {"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5"}) {
    auto loaded = SharedLibrary::load(name);
    if (loaded) {
      library.emplace(*std::move(loaded));
      break;
    }
    error = loaded.error().message();
  }
  if (!library) throw Skipped(error);
  HipFunctions hip{};
  const auto find = [&](auto*& function, const char* name) {
    using Function = std::remove_reference_t<decltype(*function)>;
    function = library->template function<Function>(name);
  };
#define DDL_FIND(name) find(hip.name, #name)
  DDL_FIND(hipInit);
  DDL_FIND(hipRuntimeGetVersion);
  DDL_FIND(hipGetErrorName);
  DDL_FIND(hipGetLastError);
  DDL_FIND(hipDeviceGetName);
  DDL_FIND(hipGetDevice);
  DDL_FIND(hipSetDevice);
  DDL_FIND(hipMalloc);
  DDL_FIND(hipFree);
  DDL_FIND(hipMallocAsync);
  DDL_FIND(hipHostRegister);
  DDL_FIND(hipHostUnregister);
  DDL_FIND(hipPointerGetAttributes);
  DDL_FIND(hipPointerGetAttribute);
  DDL_FIND(hipMemGetAddressRange);
  DDL_FIND(hipMemcpyAsync);
  DDL_FIND(hipStreamCreateWithFlags);
  DDL_FIND(hipStreamDestroy);
  DDL_FIND(hipStreamSynchronize);
  DDL_FIND(hipStreamWaitEvent);
  DDL_FIND(hipStreamIsCapturing);
  DDL_FIND(hipStreamBeginCapture);
  DDL_FIND(hipStreamEndCapture);
  DDL_FIND(hipThreadExchangeStreamCaptureMode);
  DDL_FIND(hipStreamAddCallback);
  DDL_FIND(hipLaunchHostFunc);
  DDL_FIND(hipEventCreateWithFlags);
  DDL_FIND(hipEventDestroy);
  DDL_FIND(hipEventRecord);
  DDL_FIND(hipEventQuery);
  DDL_FIND(hipIpcGetMemHandle);
  DDL_FIND(hipIpcOpenMemHandle);
  DDL_FIND(hipIpcCloseMemHandle);
  DDL_FIND(hipIpcGetEventHandle);
  DDL_FIND(hipIpcOpenEventHandle);
  DDL_FIND(ddl_stand_in_keep_private);
#undef DDL_FIND
  if (const auto result = hip.hipInit(0); result != kSuccess)
    throw Skipped("hipInit: error " + std::to_string(result));
  return hip;
}

/// What hipStreamAddCallback() calls, where there is no hipLaunchHostFunc().
struct Callback {
  void (*function)(void*);
  void* argument;
};
void call_back(void*, Code, void* given) {
  const std::unique_ptr<Callback> callback(static_cast<Callback*>(given));
  callback->function(callback->argument);
}

class HipDriver final : public Driver {
 public:
  explicit HipDriver(const HipFunctions& hip) : hip_(hip) {
    int version = 0;
    (void)hip_.hipRuntimeGetVersion(&version);
    major_ = version / 10'000'000;
  }

  std::string text_of(Code result) const override {
    (void)hip_.hipGetLastError();  // which HIP would keep for a later call
    const char* const name = hip_.hipGetErrorName(result);
    return std::string(name == nullptr ? "error" : name) + " (" + std::to_string(result) + ")";
  }
  std::vector<std::pair<std::string, std::string>> description() const override {
    char name[256] = "";
    int version = 0;
    check(hip_.hipDeviceGetName(name, sizeof name, 0), "hipDeviceGetName");
    check(hip_.hipRuntimeGetVersion(&version), "hipRuntimeGetVersion");
    return {{"GPU", name},
            {"HIP", std::to_string(version / 10'000'000) + "." + std::to_string(version / 100'000 % 100)}};
  }
  bool is_stand_in() const override { return hip_.ddl_stand_in_keep_private != nullptr; }

  void use_gpu() const override { check(hip_.hipSetDevice(0), "hipSetDevice"); }
  std::uintptr_t current() const override {
    int device = -1;
    check(hip_.hipGetDevice(&device), "hipGetDevice");
    return static_cast<std::uintptr_t>(device);
  }

  Code allocate(void** memory, std::size_t bytes) const override { return hip_.hipMalloc(memory, bytes); }
  Code release(void* memory) const override { return hip_.hipFree(memory); }
  Code allocate_from_pool(void** memory, std::size_t bytes, void* stream) const override {
    if (is_stand_in()) {
      const Code result = allocate(memory, bytes);
      hip_.ddl_stand_in_keep_private(*memory);
      return result;
    }
    if (hip_.hipMallocAsync == nullptr) throw Skipped("HIP has no hipMallocAsync");
    return hip_.hipMallocAsync(memory, bytes, stream);
  }
  Code find(Known& known, const void* address) const override {
    hip::PointerAttributes attributes{};
    const Code result = hip_.hipPointerGetAttributes(&attributes, address);
    if (result == kInvalidValue) (void)hip_.hipGetLastError();
    if (result != kSuccess) return result == kInvalidValue ? kSuccess : result;
    const int type = attributes.type;
    known.is_on_gpu = major_ < 6 ? type == hip::kDeviceMemoryOf5
                                 : type == hip::kDeviceMemory || type == hip::kManagedMemory;
    if (!known.is_on_gpu) return kSuccess;
    if (const Code asked = hip_.hipPointerGetAttribute(&known.id, hip::kBufferId, const_cast<void*>(address));
        asked != kSuccess)
      return asked;
    void* begin = nullptr;
    const Code asked = hip_.hipMemGetAddressRange(&begin, &known.bytes, const_cast<void*>(address));
    known.begin = reinterpret_cast<std::uintptr_t>(begin);
    return asked;
  }
  Code pin(void* memory, std::size_t bytes) const override {
    return hip_.hipHostRegister(memory, bytes, hip::kHostRegisterPortable);
  }
  Code unpin(void* memory) const override { return hip_.hipHostUnregister(memory); }
  Code copy(void* to, const void* from, std::size_t bytes, void* stream) const override {
    return hip_.hipMemcpyAsync(to, from, bytes, hip::kCopyDefault, stream);
  }

  Code make_stream(void** stream, unsigned flags) const override {
    return hip_.hipStreamCreateWithFlags(stream, flags);
  }
  Code destroy_stream(void* stream) const override { return hip_.hipStreamDestroy(stream); }
  Code synchronize(void* stream) const override { return hip_.hipStreamSynchronize(stream); }
  Code wait(void* stream, void* event) const override { return hip_.hipStreamWaitEvent(stream, event, 0); }
  Code call(void* stream, void (*function)(void*), void* argument) const override {
    if (hip_.hipLaunchHostFunc != nullptr) return hip_.hipLaunchHostFunc(stream, function, argument);
    auto callback = std::make_unique<Callback>(Callback{function, argument});
    const Code result = hip_.hipStreamAddCallback(stream, call_back, callback.get(), 0);
    if (result == kSuccess) (void)callback.release();  // call_back() owns it
    return result;
  }

  Code make_event(void** event, unsigned flags) const override {
    return hip_.hipEventCreateWithFlags(event, flags);
  }
  Code destroy_event(void* event) const override { return hip_.hipEventDestroy(event); }
  Code record(void* event, void* stream) const override { return hip_.hipEventRecord(event, stream); }
  Code query(void* event) const override {
    const Code result = hip_.hipEventQuery(event);
    if (result == kNotReady) (void)hip_.hipGetLastError();
    return result;
  }

  Code begin_capture(void* stream) const override { return hip_.hipStreamBeginCapture(stream, 0); }
  Code end_capture(void* stream) const override {
    void* graph = nullptr;
    return hip_.hipStreamEndCapture(stream, &graph);
  }
  Code is_capturing(void* stream, int* status) const override {
    return hip_.hipStreamIsCapturing(stream, status);
  }
  Code relax_captures() const override {
    int mode = hip::kCaptureModeRelaxed;
    if (hip_.hipThreadExchangeStreamCaptureMode == nullptr)
      throw Skipped("HIP has no hipThreadExchangeStreamCaptureMode");
    return hip_.hipThreadExchangeStreamCaptureMode(&mode);
  }

  Code share_memory(IpcHandle& handle, void* memory) const override {
    hip::Ipc given{};
    const Code result = hip_.hipIpcGetMemHandle(&given, memory);
    handle = std::bit_cast<IpcHandle>(given);
    return result;
  }
  /// As libddl does: some versions have another number for the flag.
  Code open_memory(void** memory, const IpcHandle& handle) const override {
    const auto given = std::bit_cast<hip::Ipc>(handle);
    const Code result = hip_.hipIpcOpenMemHandle(memory, given, hip::kIpcLazyPeerAccess);
    return result == kInvalidValue ? hip_.hipIpcOpenMemHandle(memory, given, 0) : result;
  }
  Code close_memory(void* memory) const override { return hip_.hipIpcCloseMemHandle(memory); }
  Code share_event(IpcHandle& handle, void* event) const override {
    hip::Ipc given{};
    const Code result = hip_.hipIpcGetEventHandle(&given, event);
    handle = std::bit_cast<IpcHandle>(given);
    return result;
  }
  Code open_event(void** event, const IpcHandle& handle) const override {
    return hip_.hipIpcOpenEventHandle(event, std::bit_cast<hip::Ipc>(handle));
  }

 private:
  HipFunctions hip_;
  int major_ = 0;
};

}  // namespace

const Driver& hip_driver() {
  static const Driver& loaded = *new HipDriver(load_hip());
  return loaded;
}

}  // namespace ddl::gpu_rules
