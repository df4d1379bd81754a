// NVIDIA's driver, for the rules.
#include <array>
#include <bit>

#include "base/shared_library.h"
#include "gpu/driver.h"
#include "runtime/src/device/cuda_abi.h"

namespace ddl::gpu_rules {
namespace {

namespace cuda = ddl::runtime::cuda;

struct CudaFunctions : cuda::Functions {
  Code (*cuStreamSynchronize)(void* stream);
  Code (*cuStreamBeginCapture_v2)(void* stream, int mode);
  Code (*cuStreamEndCapture)(void* stream, void** graph);
  Code (*cuDriverGetVersion)(int* version);
  Code (*cuDeviceGetName)(char* name, int size, cuda::DeviceNumber device);
  // Null where the library is too old, or is a stand-in.
  Code (*cuMemAllocAsync)(cuda::Address* memory, std::size_t bytes, void* stream);
  // Null but in a stand-in.
  void (*ddl_stand_in_keep_private)(const void* memory);
};

CudaFunctions load_cuda() {
  const auto library = SharedLibrary::load("libcuda.so.1");
  if (!library) throw Skipped(library.error().message());
  CudaFunctions cu{};
  const auto find = [&](auto*& function, const char* name) {
    using Function = std::remove_reference_t<decltype(*function)>;
    function = library->template function<Function>(name);
  };
#define DDL_FIND(name) find(cu.name, #name)
  DDL_FIND(cuInit);
  DDL_FIND(cuGetErrorName);
  DDL_FIND(cuDeviceGet);
  DDL_FIND(cuDevicePrimaryCtxRetain);
  DDL_FIND(cuCtxGetCurrent);
  DDL_FIND(cuCtxSetCurrent);
  DDL_FIND(cuDriverGetVersion);
  DDL_FIND(cuDeviceGetName);
  DDL_FIND(cuMemAlloc_v2);
  DDL_FIND(cuMemFree_v2);
  DDL_FIND(cuMemHostRegister_v2);
  DDL_FIND(cuMemHostUnregister);
  DDL_FIND(cuPointerGetAttributes);
  DDL_FIND(cuMemcpyAsync);
  DDL_FIND(cuStreamCreate);
  DDL_FIND(cuStreamDestroy_v2);
  DDL_FIND(cuStreamSynchronize);
  DDL_FIND(cuStreamWaitEvent);
  DDL_FIND(cuStreamIsCapturing);
  DDL_FIND(cuStreamBeginCapture_v2);
  DDL_FIND(cuStreamEndCapture);
  DDL_FIND(cuThreadExchangeStreamCaptureMode);
  DDL_FIND(cuLaunchHostFunc);
  DDL_FIND(cuEventCreate);
  DDL_FIND(cuEventDestroy_v2);
  DDL_FIND(cuEventRecord);
  DDL_FIND(cuEventQuery);
  DDL_FIND(cuIpcGetMemHandle);
  DDL_FIND(cuIpcOpenMemHandle_v2);
  DDL_FIND(cuIpcCloseMemHandle);
  DDL_FIND(cuIpcGetEventHandle);
  DDL_FIND(cuIpcOpenEventHandle);
  DDL_FIND(cuMemAllocAsync);
  DDL_FIND(ddl_stand_in_keep_private);
#undef DDL_FIND
  if (const auto result = cu.cuInit(0); result != kSuccess)
    throw Skipped("cuInit: error " + std::to_string(result));
  return cu;
}

cuda::Address number(const void* address) { return reinterpret_cast<std::uintptr_t>(address); }
void* pointer(cuda::Address address) {
  // NOLINTNEXTLINE(performance-no-int-to-ptr): the driver's addresses are numbers
  return reinterpret_cast<void*>(address);
}

class CudaDriver final : public Driver {
 public:
  explicit CudaDriver(const CudaFunctions& cu) : cu_(cu) {
    cuda::DeviceNumber device = 0;
    if (cu_.cuDeviceGet(&device, 0) != kSuccess ||
        cu_.cuDevicePrimaryCtxRetain(&context_, device) != kSuccess)
      throw Skipped("the first GPU cannot be used");
  }

  std::string text_of(Code result) const override {
    const char* name = nullptr;
    (void)cu_.cuGetErrorName(result, &name);
    return std::string(name == nullptr ? "error" : name) + " (" + std::to_string(result) + ")";
  }
  std::vector<std::pair<std::string, std::string>> description() const override {
    char name[256] = "";
    int version = 0;
    check(cu_.cuDeviceGetName(name, sizeof name, 0), "cuDeviceGetName");
    check(cu_.cuDriverGetVersion(&version), "cuDriverGetVersion");
    return {
        {"GPU", name},
        {"CUDA of the driver", std::to_string(version / 1000) + "." + std::to_string(version / 10 % 100)}};
  }
  bool is_stand_in() const override { return cu_.ddl_stand_in_keep_private != nullptr; }

  void use_gpu() const override { check(cu_.cuCtxSetCurrent(context_), "cuCtxSetCurrent"); }
  std::uintptr_t current() const override {
    cuda::Context context = nullptr;
    check(cu_.cuCtxGetCurrent(&context), "cuCtxGetCurrent");
    return reinterpret_cast<std::uintptr_t>(context);
  }

  Code allocate(void** memory, std::size_t bytes) const override {
    cuda::Address address = 0;
    const Code result = cu_.cuMemAlloc_v2(&address, bytes);
    *memory = pointer(address);
    return result;
  }
  Code release(void* memory) const override { return cu_.cuMemFree_v2(number(memory)); }
  Code allocate_from_pool(void** memory, std::size_t bytes, void* stream) const override {
    if (is_stand_in()) {
      const Code result = allocate(memory, bytes);
      cu_.ddl_stand_in_keep_private(*memory);
      return result;
    }
    if (cu_.cuMemAllocAsync == nullptr) throw Skipped("the driver has no cuMemAllocAsync");
    cuda::Address address = 0;
    const Code result = cu_.cuMemAllocAsync(&address, bytes, stream);
    *memory = pointer(address);
    return result;
  }
  Code find(Known& known, const void* address) const override {
    unsigned type = 99;
    int can_be_shared = 0;
    std::array attributes{cuda::kMemoryType, cuda::kBufferId, cuda::kRangeStart, cuda::kRangeSize,
                          cuda::kLegacyIpcCapable};
    std::array<void*, attributes.size()> places{&type, &known.id, &known.begin, &known.bytes, &can_be_shared};
    const Code result = cu_.cuPointerGetAttributes(static_cast<unsigned>(attributes.size()),
                                                   attributes.data(), places.data(), number(address));
    known.is_on_gpu = type == cuda::kDeviceMemory;
    known.can_be_shared = can_be_shared != 0;
    return result;
  }
  Code pin(void* memory, std::size_t bytes) const override {
    return cu_.cuMemHostRegister_v2(memory, bytes, cuda::kHostRegisterPortable);
  }
  Code unpin(void* memory) const override { return cu_.cuMemHostUnregister(memory); }
  Code copy(void* to, const void* from, std::size_t bytes, void* stream) const override {
    return cu_.cuMemcpyAsync(number(to), number(from), bytes, stream);
  }

  Code make_stream(void** stream, unsigned flags) const override { return cu_.cuStreamCreate(stream, flags); }
  Code destroy_stream(void* stream) const override { return cu_.cuStreamDestroy_v2(stream); }
  Code synchronize(void* stream) const override { return cu_.cuStreamSynchronize(stream); }
  Code wait(void* stream, void* event) const override { return cu_.cuStreamWaitEvent(stream, event, 0); }
  Code call(void* stream, void (*function)(void*), void* argument) const override {
    return cu_.cuLaunchHostFunc(stream, function, argument);
  }

  Code make_event(void** event, unsigned flags) const override { return cu_.cuEventCreate(event, flags); }
  Code destroy_event(void* event) const override { return cu_.cuEventDestroy_v2(event); }
  Code record(void* event, void* stream) const override { return cu_.cuEventRecord(event, stream); }
  Code query(void* event) const override { return cu_.cuEventQuery(event); }

  Code begin_capture(void* stream) const override { return cu_.cuStreamBeginCapture_v2(stream, 0); }
  Code end_capture(void* stream) const override {
    void* graph = nullptr;
    return cu_.cuStreamEndCapture(stream, &graph);
  }
  Code is_capturing(void* stream, int* status) const override {
    return cu_.cuStreamIsCapturing(stream, status);
  }
  Code relax_captures() const override {
    int mode = cuda::kCaptureModeRelaxed;
    return cu_.cuThreadExchangeStreamCaptureMode(&mode);
  }

  Code share_memory(IpcHandle& handle, void* memory) const override {
    cuda::Ipc given{};
    const Code result = cu_.cuIpcGetMemHandle(&given, number(memory));
    handle = std::bit_cast<IpcHandle>(given);
    return result;
  }
  Code open_memory(void** memory, const IpcHandle& handle) const override {
    cuda::Address address = 0;
    const Code result =
        cu_.cuIpcOpenMemHandle_v2(&address, std::bit_cast<cuda::Ipc>(handle), cuda::kIpcLazyPeerAccess);
    *memory = pointer(address);
    return result;
  }
  Code close_memory(void* memory) const override { return cu_.cuIpcCloseMemHandle(number(memory)); }
  Code share_event(IpcHandle& handle, void* event) const override {
    cuda::Ipc given{};
    const Code result = cu_.cuIpcGetEventHandle(&given, event);
    handle = std::bit_cast<IpcHandle>(given);
    return result;
  }
  Code open_event(void** event, const IpcHandle& handle) const override {
    return cu_.cuIpcOpenEventHandle(event, std::bit_cast<cuda::Ipc>(handle));
  }

 private:
  CudaFunctions cu_;
  cuda::Context context_ = nullptr;
};

}  // namespace

const Driver& cuda_driver() {
  static const Driver& loaded = *new CudaDriver(load_cuda());
  return loaded;
}

}  // namespace ddl::gpu_rules
