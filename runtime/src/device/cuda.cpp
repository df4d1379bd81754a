#include <array>
#include <bit>
#include <map>
#include <mutex>
#include <span>

#include "base/bytes.h"
#include "runtime/src/device/cuda_abi.h"
#include "runtime/src/device/vendor_library.h"

namespace ddl::runtime {
namespace {

using CudaFunctions = cuda::Functions;
using CudaAddress = cuda::Address;

CudaAddress cuda_address_of(const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer); }

Status load_cuda(void* library, CudaFunctions& cu) {
  const std::array symbols{
      needed("cuInit", cu.cuInit),
      needed("cuGetErrorName", cu.cuGetErrorName),
      needed("cuDeviceGet", cu.cuDeviceGet),
      optional("cuDeviceGetUuid_v2", cu.cuDeviceGetUuid_v2),
      optional("cuDeviceGetUuid", cu.cuDeviceGetUuid),
      needed("cuDevicePrimaryCtxRetain", cu.cuDevicePrimaryCtxRetain),
      needed("cuCtxGetCurrent", cu.cuCtxGetCurrent),
      needed("cuCtxSetCurrent", cu.cuCtxSetCurrent),
      needed("cuMemAlloc_v2", cu.cuMemAlloc_v2),
      needed("cuMemFree_v2", cu.cuMemFree_v2),
      needed("cuMemHostRegister_v2", cu.cuMemHostRegister_v2),
      needed("cuMemHostUnregister", cu.cuMemHostUnregister),
      needed("cuPointerGetAttributes", cu.cuPointerGetAttributes),
      needed("cuMemcpyAsync", cu.cuMemcpyAsync),
      needed("cuStreamCreate", cu.cuStreamCreate),
      needed("cuStreamDestroy_v2", cu.cuStreamDestroy_v2),
      needed("cuStreamWaitEvent", cu.cuStreamWaitEvent),
      needed("cuStreamIsCapturing", cu.cuStreamIsCapturing),
      needed("cuLaunchHostFunc", cu.cuLaunchHostFunc),
      needed("cuThreadExchangeStreamCaptureMode", cu.cuThreadExchangeStreamCaptureMode),
      needed("cuEventCreate", cu.cuEventCreate),
      needed("cuEventDestroy_v2", cu.cuEventDestroy_v2),
      needed("cuEventRecord", cu.cuEventRecord),
      needed("cuEventQuery", cu.cuEventQuery),
      needed("cuDeviceGetAttribute", cu.cuDeviceGetAttribute),
      needed("cuModuleLoadData", cu.cuModuleLoadData),
      needed("cuModuleGetFunction", cu.cuModuleGetFunction),
      needed("cuLaunchKernel", cu.cuLaunchKernel),
      needed("cuIpcGetMemHandle", cu.cuIpcGetMemHandle),
      needed("cuIpcOpenMemHandle_v2", cu.cuIpcOpenMemHandle_v2),
      needed("cuIpcCloseMemHandle", cu.cuIpcCloseMemHandle),
      needed("cuIpcGetEventHandle", cu.cuIpcGetEventHandle),
      needed("cuIpcOpenEventHandle", cu.cuIpcOpenEventHandle),
  };
  return load_symbols(library, symbols);
}

/// As nvidia-smi prints it.
std::string gpu_text(const cuda::Uuid& uuid) {
  return "GPU-" + uuid_text(std::as_bytes(std::span<const unsigned char, 16>(uuid.bytes)));
}

/// Ok, or the error of a function of the driver.
Status checked_cuda(const CudaFunctions& cu, const char* function, cuda::Result result) {
  if (result == cuda::kSuccess) return {};
  const char* name = nullptr;
  (void)cu.cuGetErrorName(result, &name);
  return fail(ErrorCode::kSystem,
              std::string(function) + ": " + (name == nullptr ? "error " + std::to_string(result) : name));
}

class CudaDevice final : public Device {
 public:
  CudaDevice(DeviceRuntime& runtime, const CudaFunctions& cu, int ordinal, cuda::DeviceNumber number,
             cuda::Context context)
      : runtime_(runtime), cu_(cu), ordinal_(ordinal), number_(number), context_(context) {}

  DeviceRuntime& runtime() const override { return runtime_; }
  int ordinal() const override { return ordinal_; }
  Float8Formats float8_formats() override {
    int major = 0;
    const auto asked = cu_.cuDeviceGetAttribute(&major, cuda::kComputeCapabilityMajor, number_);
    return asked == cuda::kSuccess && major >= 9 ? Float8Formats::kOcp : Float8Formats::kNone;
  }

  Status enter(Previous& previous) override {
    DDL_TRY(check("cuCtxGetCurrent", cu_.cuCtxGetCurrent(&previous.current)));
    if (previous.current != context_) DDL_TRY(check("cuCtxSetCurrent", cu_.cuCtxSetCurrent(context_)));
    previous.capture_mode = cuda::kCaptureModeRelaxed;
    (void)cu_.cuThreadExchangeStreamCaptureMode(&previous.capture_mode);
    return {};
  }
  void leave(Previous& previous) override {
    (void)cu_.cuThreadExchangeStreamCaptureMode(&previous.capture_mode);
    if (previous.current != context_) (void)cu_.cuCtxSetCurrent(previous.current);
  }

  Result<void*> allocate(std::size_t bytes) override {
    CudaAddress memory = 0;
    DDL_TRY(check("cuMemAlloc", cu_.cuMemAlloc_v2(&memory, bytes)));
    return reinterpret_cast<void*>(memory);  // NOLINT(performance-no-int-to-ptr): unified addresses
  }
  void release(void* memory) override { (void)cu_.cuMemFree_v2(cuda_address_of(memory)); }
  Status pin(void* memory, std::size_t bytes) override {
    const auto result = cu_.cuMemHostRegister_v2(memory, bytes, cuda::kHostRegisterPortable);
    return result == cuda::kErrorAlreadyRegistered ? Status() : check("cuMemHostRegister", result);
  }
  void unpin(void* memory) override { (void)cu_.cuMemHostUnregister(memory); }

  Result<StreamHandle> make_stream() override {
    StreamHandle stream = nullptr;
    DDL_TRY(check("cuStreamCreate", cu_.cuStreamCreate(&stream, cuda::kStreamNonBlocking)));
    return stream;
  }
  void destroy_stream(StreamHandle stream) override { (void)cu_.cuStreamDestroy_v2(stream); }
  Result<EventHandle> make_event() override {
    EventHandle event = nullptr;
    DDL_TRY(check("cuEventCreate", cu_.cuEventCreate(&event, cuda::kEventDisableTiming)));
    return event;
  }
  void destroy_event(EventHandle event) override { (void)cu_.cuEventDestroy_v2(event); }

  Status copy(void* to, const void* from, std::size_t bytes, StreamHandle stream) override {
    return check("cuMemcpyAsync",
                 cu_.cuMemcpyAsync(cuda_address_of(to), cuda_address_of(from), bytes, stream));
  }
  Status record(EventHandle event, StreamHandle stream) override {
    return check("cuEventRecord", cu_.cuEventRecord(event, stream));
  }
  Status wait(StreamHandle stream, EventHandle event) override {
    return check("cuStreamWaitEvent", cu_.cuStreamWaitEvent(stream, event, 0));
  }
  Result<bool> is_done(EventHandle event) override {
    const auto result = cu_.cuEventQuery(event);
    if (result == cuda::kErrorNotReady) return false;
    DDL_TRY(check("cuEventQuery", result));
    return true;
  }
  Status notify(StreamHandle stream, void (*function)(void*), void* argument) override {
    return check("cuLaunchHostFunc", cu_.cuLaunchHostFunc(stream, function, argument));
  }
  Status prepare_kernels(GpuProgram program) override {
    const auto load = [&]() -> Result<void*> {
      int major = 0, minor = 0;
      DDL_TRY(check("cuDeviceGetAttribute",
                    cu_.cuDeviceGetAttribute(&major, cuda::kComputeCapabilityMajor, number_)));
      DDL_TRY(check("cuDeviceGetAttribute",
                    cu_.cuDeviceGetAttribute(&minor, cuda::kComputeCapabilityMinor, number_)));
      DDL_ASSIGN(compiled, compile_gpu_kernels(
                               nvrtc(), program,
                               {"--gpu-architecture=sm_" + std::to_string(major) + std::to_string(minor)}));
      void* module = nullptr;
      DDL_TRY(check("cuModuleLoadData", cu_.cuModuleLoadData(&module, compiled.code.data())));
      return module;
    };
    return kernels_.prepare(program, load, [this](void* module, void*& function, const char* name) {
      return check("cuModuleGetFunction", cu_.cuModuleGetFunction(&function, module, name));
    });
  }
  Status launch(GpuKernel kernel, std::uint64_t elements, void** arguments, StreamHandle stream) override {
    const auto grid = KernelGrid::for_elements(elements);
    return check("cuLaunchKernel", cu_.cuLaunchKernel(kernels_.function(kernel), grid.blocks, 1, 1,
                                                      grid.threads, 1, 1, 0, stream, arguments, nullptr));
  }
  Result<bool> is_capturing(StreamHandle stream) override {
    int status = cuda::kCaptureNone;
    const auto result = cu_.cuStreamIsCapturing(stream, &status);
    // The answer for the default stream while another one is captured.
    if (result == cuda::kErrorCaptureImplicit) return true;
    DDL_TRY(check("cuStreamIsCapturing", result));
    return status != cuda::kCaptureNone;
  }

  Status can_share() override {
    int events = 0;
    // Drivers that do not know the question share events.
    if (cu_.cuDeviceGetAttribute(&events, cuda::kIpcEventSupported, number_) == cuda::kSuccess && events == 0)
      return fail(ErrorCode::kUnavailable, "the GPU's events cannot be shared");
    cuda::Uuid whole{}, part{};
    if (cu_.cuDeviceGetUuid == nullptr || cu_.cuDeviceGetUuid_v2 == nullptr) return {};
    DDL_TRY(check("cuDeviceGetUuid", cu_.cuDeviceGetUuid(&whole, number_)));
    DDL_TRY(check("cuDeviceGetUuid", cu_.cuDeviceGetUuid_v2(&part, number_)));
    if (gpu_text(whole) != gpu_text(part))
      return fail(ErrorCode::kUnavailable, "the GPU is a part of one (MIG), whose memory cannot be shared");
    return {};
  }
  Result<DeviceAllocation> allocation_of(const void* address) override {
    std::array attributes{cuda::kBufferId, cuda::kRangeStart, cuda::kRangeSize};
    DeviceAllocation allocation;
    std::array<void*, attributes.size()> values{&allocation.id, &allocation.begin, &allocation.bytes};
    DDL_TRY(ask(attributes, values, cuda_address_of(address)));
    return allocation;
  }
  Result<IpcHandle> share_memory(const DeviceAllocation& allocation) override {
    std::array attributes{cuda::kLegacyIpcCapable};
    int can_be_shared = 0;
    std::array<void*, attributes.size()> values{&can_be_shared};
    DDL_TRY(ask(attributes, values, allocation.begin));
    if (can_be_shared == 0)
      return fail(ErrorCode::kUnavailable, "the memory is of a pool, or was mapped in pieces");
    cuda::Ipc handle{};
    if (const auto got = check("cuIpcGetMemHandle", cu_.cuIpcGetMemHandle(&handle, allocation.begin)); !got)
      return fail(ErrorCode::kUnavailable, got.error().message());
    return std::bit_cast<IpcHandle>(handle);
  }
  Result<void*> open_memory(const IpcHandle& handle) override {
    CudaAddress memory = 0;
    DDL_TRY(check("cuIpcOpenMemHandle", cu_.cuIpcOpenMemHandle_v2(&memory, std::bit_cast<cuda::Ipc>(handle),
                                                                  cuda::kIpcLazyPeerAccess)));
    return reinterpret_cast<void*>(memory);  // NOLINT(performance-no-int-to-ptr): unified addresses
  }
  void close_memory(void* memory) override { (void)cu_.cuIpcCloseMemHandle(cuda_address_of(memory)); }
  Result<EventHandle> make_shared_event() override {
    EventHandle event = nullptr;
    DDL_TRY(check("cuEventCreate",
                  cu_.cuEventCreate(&event, cuda::kEventDisableTiming | cuda::kEventInterprocess)));
    return event;
  }
  Result<IpcHandle> share_event(EventHandle event) override {
    cuda::Ipc handle{};
    DDL_TRY(check("cuIpcGetEventHandle", cu_.cuIpcGetEventHandle(&handle, event)));
    return std::bit_cast<IpcHandle>(handle);
  }
  Result<EventHandle> open_event(const IpcHandle& handle) override {
    EventHandle event = nullptr;
    DDL_TRY(
        check("cuIpcOpenEventHandle", cu_.cuIpcOpenEventHandle(&event, std::bit_cast<cuda::Ipc>(handle))));
    return event;
  }

 private:
  Status check(const char* function, cuda::Result result) const {
    return checked_cuda(cu_, function, result);
  }
  template <std::size_t kCount>
  Status ask(std::array<int, kCount>& attributes, std::array<void*, kCount>& values,
             CudaAddress address) const {
    return check(
        "cuPointerGetAttributes",
        cu_.cuPointerGetAttributes(static_cast<unsigned>(kCount), attributes.data(), values.data(), address));
  }

  DeviceRuntime& runtime_;
  const CudaFunctions& cu_;
  int ordinal_;
  cuda::DeviceNumber number_;
  cuda::Context context_;
  LoadedKernels kernels_;
};

class Cuda final : public DeviceRuntime {
 public:
  explicit Cuda(const CudaFunctions& functions) : cu_(functions) {}

  const char* name() const override { return "CUDA"; }
  const char* collectives_library() const override { return "libnccl.so.2"; }

  Result<std::string> uuid(int ordinal) override {
    DDL_TRY(initialise());
    cuda::DeviceNumber number = 0;
    DDL_TRY(checked_cuda(cu_, "cuDeviceGet", cu_.cuDeviceGet(&number, ordinal)));
    // The older function does not tell the parts of a GPU apart (MIG), and nor does NCCL.
    cuda::Uuid uuid{};
    const auto get_uuid = cu_.cuDeviceGetUuid != nullptr ? cu_.cuDeviceGetUuid : cu_.cuDeviceGetUuid_v2;
    if (get_uuid == nullptr) return fail(ErrorCode::kUnavailable, "libcuda.so.1 has no cuDeviceGetUuid");
    DDL_TRY(checked_cuda(cu_, "cuDeviceGetUuid", get_uuid(&uuid, number)));
    return gpu_text(uuid);
  }

  std::optional<DeviceMemory> find(const void* address) override {
    std::array attributes{cuda::kMemoryType, cuda::kDeviceOrdinal};
    unsigned type = 0;
    int ordinal = 0;
    std::array<void*, attributes.size()> values{&type, &ordinal};
    // Unknown memory is no error: everything becomes 0. An error: nothing has been initialised.
    const auto result = cu_.cuPointerGetAttributes(
        static_cast<unsigned>(attributes.size()), attributes.data(), values.data(), cuda_address_of(address));
    if (result != cuda::kSuccess || type != cuda::kDeviceMemory) return std::nullopt;
    return DeviceMemory{ordinal};
  }

  Result<Device*> device(int ordinal) override {
    const std::lock_guard lock(mutex_);
    std::unique_ptr<Device>& known = devices_[ordinal];
    if (known) return known.get();
    DDL_TRY(initialise());
    cuda::DeviceNumber number = 0;
    DDL_TRY(checked_cuda(cu_, "cuDeviceGet", cu_.cuDeviceGet(&number, ordinal)));
    // Kept, as the program's own use of it is.
    cuda::Context context = nullptr;
    DDL_TRY(checked_cuda(cu_, "cuDevicePrimaryCtxRetain", cu_.cuDevicePrimaryCtxRetain(&context, number)));
    known = std::make_unique<CudaDevice>(*this, cu_, ordinal, number, context);
    return known.get();
  }

 private:
  Status initialise() const { return checked_cuda(cu_, "cuInit", cu_.cuInit(0)); }

  CudaFunctions cu_;
  std::mutex mutex_;
  std::map<int, std::unique_ptr<Device>> devices_;  ///< guarded by mutex_
};

}  // namespace

Result<std::unique_ptr<DeviceRuntime>> make_cuda(void* library) {
  CudaFunctions functions{};
  DDL_TRY(load_cuda(library, functions));
  return std::make_unique<Cuda>(functions);
}

}  // namespace ddl::runtime
