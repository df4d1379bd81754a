#include <unistd.h>

#include <array>
#include <bit>
#include <cstring>
#include <map>
#include <mutex>

#include "runtime/src/device/hip_abi.h"
#include "runtime/src/device/vendor_library.h"

namespace ddl::runtime {
namespace {

using HipFunctions = hip::Functions;

Status load_hip(void* library, HipFunctions& hip) {
  const std::array symbols{
      needed("hipInit", hip.hipInit),
      needed("hipRuntimeGetVersion", hip.hipRuntimeGetVersion),
      needed("hipGetErrorName", hip.hipGetErrorName),
      needed("hipDeviceGet", hip.hipDeviceGet),
      optional("hipDeviceGetUuid", hip.hipDeviceGetUuid),
      needed("hipDeviceGetPCIBusId", hip.hipDeviceGetPCIBusId),
      needed("hipDeviceGetAttribute", hip.hipDeviceGetAttribute),
      needed("hipGetDevice", hip.hipGetDevice),
      needed("hipSetDevice", hip.hipSetDevice),
      needed("hipMalloc", hip.hipMalloc),
      needed("hipFree", hip.hipFree),
      needed("hipHostRegister", hip.hipHostRegister),
      needed("hipHostUnregister", hip.hipHostUnregister),
      needed("hipPointerGetAttributes", hip.hipPointerGetAttributes),
      needed("hipMemcpyAsync", hip.hipMemcpyAsync),
      needed("hipStreamCreateWithFlags", hip.hipStreamCreateWithFlags),
      needed("hipStreamDestroy", hip.hipStreamDestroy),
      needed("hipStreamWaitEvent", hip.hipStreamWaitEvent),
      needed("hipStreamIsCapturing", hip.hipStreamIsCapturing),
      needed("hipModuleLoadData", hip.hipModuleLoadData),
      needed("hipModuleGetFunction", hip.hipModuleGetFunction),
      needed("hipModuleLaunchKernel", hip.hipModuleLaunchKernel),
      optional("hipThreadExchangeStreamCaptureMode", hip.hipThreadExchangeStreamCaptureMode),
      optional("hipLaunchHostFunc", hip.hipLaunchHostFunc),
      needed("hipStreamAddCallback", hip.hipStreamAddCallback),
      needed("hipEventCreateWithFlags", hip.hipEventCreateWithFlags),
      needed("hipEventDestroy", hip.hipEventDestroy),
      needed("hipEventRecord", hip.hipEventRecord),
      needed("hipEventQuery", hip.hipEventQuery),
      needed("hipGetLastError", hip.hipGetLastError),
      optional("hipPointerGetAttribute", hip.hipPointerGetAttribute),
      optional("hipMemGetAddressRange", hip.hipMemGetAddressRange),
      optional("hipIpcGetMemHandle", hip.hipIpcGetMemHandle),
      optional("hipIpcOpenMemHandle", hip.hipIpcOpenMemHandle),
      optional("hipIpcCloseMemHandle", hip.hipIpcCloseMemHandle),
      optional("hipIpcGetEventHandle", hip.hipIpcGetEventHandle),
      optional("hipIpcOpenEventHandle", hip.hipIpcOpenEventHandle),
  };
  return load_symbols(library, symbols);
}

Status checked_hip(const HipFunctions& hip, const char* function, hip::Result result) {
  if (result == hip::kSuccess) return {};
  // HIP keeps an error for the program's next question, which is not about libddl's calls.
  (void)hip.hipGetLastError();
  const char* const name = hip.hipGetErrorName(result);
  return fail(ErrorCode::kSystem,
              std::string(function) + ": " + (name == nullptr ? "error " + std::to_string(result) : name));
}

/// What hipStreamAddCallback() calls: the function and its argument.
struct Callback {
  void (*function)(void*);
  void* argument;
};
void call_back(void*, hip::Result, void* callback) {
  const std::unique_ptr<Callback> owned(static_cast<Callback*>(callback));
  owned->function(owned->argument);
}

class HipDevice final : public Device {
 public:
  HipDevice(DeviceRuntime& runtime, const HipFunctions& hip, int ordinal)
      : runtime_(runtime), hip_(hip), ordinal_(ordinal) {}

  DeviceRuntime& runtime() const override { return runtime_; }
  int ordinal() const override { return ordinal_; }
  Float8Formats float8_formats() override {
    int major = 0, minor = 0;
    if (hip_.hipDeviceGetAttribute(&major, hip::kComputeCapabilityMajor, ordinal_) != hip::kSuccess ||
        hip_.hipDeviceGetAttribute(&minor, hip::kComputeCapabilityMinor, ordinal_) != hip::kSuccess)
      return Float8Formats::kNone;
    // gfx94x; gfx950 and gfx12.
    if (major == 9 && minor == 4) return Float8Formats::kFnuz;
    return major >= 12 || (major == 9 && minor >= 5) ? Float8Formats::kOcp : Float8Formats::kNone;
  }

  /// What was current is the number of a GPU, of which there are few.
  Status enter(Previous& previous) override {
    int before = 0;
    DDL_TRY(check("hipGetDevice", hip_.hipGetDevice(&before)));
    // NOLINTNEXTLINE(performance-no-int-to-ptr): a number in the place of a pointer
    previous.current = reinterpret_cast<void*>(static_cast<std::intptr_t>(before));
    if (before != ordinal_) DDL_TRY(check("hipSetDevice", hip_.hipSetDevice(ordinal_)));
    previous.capture_mode = hip::kCaptureModeRelaxed;
    exchange_capture_mode(previous);
    return {};
  }
  void leave(Previous& previous) override {
    exchange_capture_mode(previous);
    const auto before = static_cast<int>(reinterpret_cast<std::intptr_t>(previous.current));
    if (before != ordinal_) (void)hip_.hipSetDevice(before);
  }

  Result<void*> allocate(std::size_t bytes) override {
    void* memory = nullptr;
    DDL_TRY(check("hipMalloc", hip_.hipMalloc(&memory, bytes)));
    return memory;
  }
  void release(void* memory) override { (void)hip_.hipFree(memory); }
  Status pin(void* memory, std::size_t bytes) override {
    const auto result = hip_.hipHostRegister(memory, bytes, hip::kHostRegisterPortable);
    if (result != hip::kErrorAlreadyRegistered) return check("hipHostRegister", result);
    (void)hip_.hipGetLastError();
    return {};
  }
  void unpin(void* memory) override { (void)hip_.hipHostUnregister(memory); }

  Result<StreamHandle> make_stream() override {
    StreamHandle stream = nullptr;
    DDL_TRY(
        check("hipStreamCreateWithFlags", hip_.hipStreamCreateWithFlags(&stream, hip::kStreamNonBlocking)));
    return stream;
  }
  void destroy_stream(StreamHandle stream) override { (void)hip_.hipStreamDestroy(stream); }
  Result<EventHandle> make_event() override {
    EventHandle event = nullptr;
    DDL_TRY(check("hipEventCreateWithFlags", hip_.hipEventCreateWithFlags(&event, hip::kEventDisableTiming)));
    return event;
  }
  void destroy_event(EventHandle event) override { (void)hip_.hipEventDestroy(event); }

  Status copy(void* to, const void* from, std::size_t bytes, StreamHandle stream) override {
    return check("hipMemcpyAsync", hip_.hipMemcpyAsync(to, from, bytes, hip::kCopyDefault, stream));
  }
  Status record(EventHandle event, StreamHandle stream) override {
    return check("hipEventRecord", hip_.hipEventRecord(event, stream));
  }
  Status wait(StreamHandle stream, EventHandle event) override {
    return check("hipStreamWaitEvent", hip_.hipStreamWaitEvent(stream, event, 0));
  }
  Result<bool> is_done(EventHandle event) override {
    const auto result = hip_.hipEventQuery(event);
    if (result == hip::kErrorNotReady) {
      (void)hip_.hipGetLastError();
      return false;
    }
    DDL_TRY(check("hipEventQuery", result));
    return true;
  }
  Status notify(StreamHandle stream, void (*function)(void*), void* argument) override {
    if (hip_.hipLaunchHostFunc != nullptr)
      return check("hipLaunchHostFunc", hip_.hipLaunchHostFunc(stream, function, argument));
    auto callback = std::make_unique<Callback>(Callback{function, argument});
    DDL_TRY(check("hipStreamAddCallback", hip_.hipStreamAddCallback(stream, call_back, callback.get(), 0)));
    (void)callback.release();  // call_back() owns it
    return {};
  }
  Status prepare_kernels(GpuProgram program) override {
    const auto load = [&]() -> Result<void*> {
      // For the GPU that is current, unless an option says otherwise.
      DDL_ASSIGN(compiled, compile_gpu_kernels(hiprtc(), program, {}));
      void* module = nullptr;
      DDL_TRY(check("hipModuleLoadData", hip_.hipModuleLoadData(&module, compiled.code.data())));
      return module;
    };
    return kernels_.prepare(program, load, [this](void* module, void*& function, const char* name) {
      return check("hipModuleGetFunction", hip_.hipModuleGetFunction(&function, module, name));
    });
  }
  Status launch(GpuKernel kernel, std::uint64_t elements, void** arguments, StreamHandle stream) override {
    const auto grid = KernelGrid::for_elements(elements);
    return check("hipModuleLaunchKernel",
                 hip_.hipModuleLaunchKernel(kernels_.function(kernel), grid.blocks, 1, 1, grid.threads, 1, 1,
                                            0, stream, arguments, nullptr));
  }
  Result<bool> is_capturing(StreamHandle stream) override {
    int status = hip::kCaptureNone;
    const auto result = hip_.hipStreamIsCapturing(stream, &status);
    if (result == hip::kErrorCaptureImplicit) {
      (void)hip_.hipGetLastError();
      return true;
    }
    DDL_TRY(check("hipStreamIsCapturing", result));
    return status != hip::kCaptureNone;
  }

  Status can_share() override {
    const bool has_all = hip_.hipPointerGetAttribute != nullptr && hip_.hipMemGetAddressRange != nullptr &&
                         hip_.hipIpcGetMemHandle != nullptr && hip_.hipIpcOpenMemHandle != nullptr &&
                         hip_.hipIpcCloseMemHandle != nullptr && hip_.hipIpcGetEventHandle != nullptr &&
                         hip_.hipIpcOpenEventHandle != nullptr;
    return has_all ? Status()
                   : fail(ErrorCode::kUnavailable, "this version of HIP lacks functions to share memory");
  }
  Result<DeviceAllocation> allocation_of(const void* address) override {
    void* const within = const_cast<void*>(address);
    DeviceAllocation allocation;
    DDL_TRY(
        check("hipPointerGetAttribute", hip_.hipPointerGetAttribute(&allocation.id, hip::kBufferId, within)));
    void* begin = nullptr;
    std::size_t bytes = 0;
    DDL_TRY(check("hipMemGetAddressRange", hip_.hipMemGetAddressRange(&begin, &bytes, within)));
    allocation.begin = reinterpret_cast<std::uintptr_t>(begin);
    allocation.bytes = bytes;
    return allocation;
  }
  Result<IpcHandle> share_memory(const DeviceAllocation& allocation) override {
    hip::Ipc handle{};
    // NOLINTNEXTLINE(performance-no-int-to-ptr): what HIP gave
    void* const begin = reinterpret_cast<void*>(allocation.begin);
    if (const auto got = check("hipIpcGetMemHandle", hip_.hipIpcGetMemHandle(&handle, begin)); !got)
      return fail(ErrorCode::kUnavailable, got.error().message());
    return std::bit_cast<IpcHandle>(handle);
  }
  Result<void*> open_memory(const IpcHandle& handle) override {
    const auto given = std::bit_cast<hip::Ipc>(handle);
    void* memory = nullptr;
    auto opened = hip_.hipIpcOpenMemHandle(&memory, given, hip::kIpcLazyPeerAccess);
    if (opened != hip::kSuccess) (void)hip_.hipGetLastError();
    if (opened == hip::kErrorInvalidValue) opened = hip_.hipIpcOpenMemHandle(&memory, given, 0);
    DDL_TRY(check("hipIpcOpenMemHandle", opened));
    return memory;
  }
  void close_memory(void* memory) override { (void)hip_.hipIpcCloseMemHandle(memory); }
  Result<EventHandle> make_shared_event() override {
    EventHandle event = nullptr;
    DDL_TRY(check("hipEventCreateWithFlags",
                  hip_.hipEventCreateWithFlags(&event, hip::kEventDisableTiming | hip::kEventInterprocess)));
    return event;
  }
  Result<IpcHandle> share_event(EventHandle event) override {
    hip::Ipc handle{};
    DDL_TRY(check("hipIpcGetEventHandle", hip_.hipIpcGetEventHandle(&handle, event)));
    return std::bit_cast<IpcHandle>(handle);
  }
  Result<EventHandle> open_event(const IpcHandle& handle) override {
    EventHandle event = nullptr;
    DDL_TRY(
        check("hipIpcOpenEventHandle", hip_.hipIpcOpenEventHandle(&event, std::bit_cast<hip::Ipc>(handle))));
    return event;
  }

 private:
  Status check(const char* function, hip::Result result) const { return checked_hip(hip_, function, result); }
  void exchange_capture_mode(Previous& previous) const {
    if (hip_.hipThreadExchangeStreamCaptureMode == nullptr) return;
    if (hip_.hipThreadExchangeStreamCaptureMode(&previous.capture_mode) != hip::kSuccess)
      (void)hip_.hipGetLastError();
  }

  DeviceRuntime& runtime_;
  const HipFunctions& hip_;
  int ordinal_;
  LoadedKernels kernels_;
};

class Hip final : public DeviceRuntime {
 public:
  Hip(const HipFunctions& functions, int version) : hip_(functions), version_(version) {}

  const char* name() const override { return "HIP"; }
  const char* collectives_library() const override { return "librccl.so.1"; }

  Result<std::string> uuid(int ordinal) override {
    DDL_TRY(check("hipInit", hip_.hipInit(0)));
    int number = 0;
    DDL_TRY(check("hipDeviceGet", hip_.hipDeviceGet(&number, ordinal)));
    hip::Uuid uuid{};
    // 16 hexadecimal digits, as ROCm's tools print them; older GPUs have none.
    if (hip_.hipDeviceGetUuid != nullptr && hip_.hipDeviceGetUuid(&uuid, number) == hip::kSuccess) {
      const std::string digits(uuid.bytes, ::strnlen(uuid.bytes, sizeof uuid.bytes));
      if (digits.find_first_not_of('0') != std::string::npos) return "GPU-" + digits;
    }
    std::array<char, 64> pci{}, host{};
    DDL_TRY(check("hipDeviceGetPCIBusId",
                  hip_.hipDeviceGetPCIBusId(pci.data(), static_cast<int>(pci.size() - 1), ordinal)));
    (void)::gethostname(host.data(), host.size() - 1);
    return std::string(host.data()) + ":" + pci.data();
  }

  std::optional<DeviceMemory> find(const void* address) override {
    hip::PointerAttributes attributes{};
    if (hip_.hipPointerGetAttributes(&attributes, address) != hip::kSuccess) {
      (void)hip_.hipGetLastError();
      return std::nullopt;
    }
    const bool is_device =
        major() < 6 ? attributes.type == hip::kDeviceMemoryOf5
                    : attributes.type == hip::kDeviceMemory || attributes.type == hip::kManagedMemory;
    if (!is_device && attributes.is_managed == 0) return std::nullopt;
    return DeviceMemory{attributes.device};
  }

  Result<Device*> device(int ordinal) override {
    const std::lock_guard lock(mutex_);
    std::unique_ptr<Device>& known = devices_[ordinal];
    if (!known) {
      DDL_TRY(check("hipInit", hip_.hipInit(0)));
      known = std::make_unique<HipDevice>(*this, hip_, ordinal);
    }
    return known.get();
  }

 private:
  static constexpr int kVersionsOfMajor = 10'000'000;
  int major() const { return version_ / kVersionsOfMajor; }
  Status check(const char* function, hip::Result result) const { return checked_hip(hip_, function, result); }

  HipFunctions hip_;
  int version_;
  std::mutex mutex_;
  std::map<int, std::unique_ptr<Device>> devices_;  ///< guarded by mutex_
};

}  // namespace

Result<std::unique_ptr<DeviceRuntime>> make_hip(void* library) {
  HipFunctions functions{};
  DDL_TRY(load_hip(library, functions));
  int version = 0;
  DDL_TRY(checked_hip(functions, "hipRuntimeGetVersion", functions.hipRuntimeGetVersion(&version)));
  return std::make_unique<Hip>(functions, version);
}

}  // namespace ddl::runtime
