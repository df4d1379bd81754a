#include "gpu/driver.h"

#include <array>

#include "base/shared_library.h"

namespace ddl::gpu_rules {
namespace {

Driver load() {
  const auto library = SharedLibrary::load("libcuda.so.1");
  if (!library) throw Skipped(library.error().message());
  Driver cu{};
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
  if (const auto result = cu.cuInit(0); result != cuda::kSuccess)
    throw Skipped("cuInit: error " + std::to_string(result));
  return cu;
}

cuda::Context first_context() {
  static const cuda::Context context = [] {
    cuda::DeviceNumber device = 0;
    check(driver().cuDeviceGet(&device, 0), "cuDeviceGet");
    cuda::Context retained = nullptr;
    check(driver().cuDevicePrimaryCtxRetain(&retained, device), "cuDevicePrimaryCtxRetain");
    return retained;
  }();
  return context;
}

}  // namespace

const Driver& driver() {
  static const Driver& loaded = *new Driver(load());
  return loaded;
}

void use_gpu() { check(driver().cuCtxSetCurrent(first_context()), "cuCtxSetCurrent"); }

std::string text_of(cuda::Result result) {
  const char* name = nullptr;
  (void)driver().cuGetErrorName(result, &name);
  return std::string(name == nullptr ? "error" : name) + " (" + std::to_string(result) + ")";
}

void check(cuda::Result result, const char* function) { expect_result(result, cuda::kSuccess, function); }

void expect_result(cuda::Result result, cuda::Result wanted, const char* function) {
  expect(result == wanted, std::string(function) + ": " + text_of(result));
}

Memory::Memory(std::size_t bytes) { check(driver().cuMemAlloc_v2(&address_, bytes), "cuMemAlloc"); }

void Memory::free() {
  if (address_ != 0) (void)driver().cuMemFree_v2(std::exchange(address_, 0));
}

cuda::Ipc Memory::handle() const {
  cuda::Ipc handle{};
  check(driver().cuIpcGetMemHandle(&handle, address_), "cuIpcGetMemHandle");
  return handle;
}

Stream::Stream(unsigned flags) { check(driver().cuStreamCreate(&handle_, flags), "cuStreamCreate"); }

void synchronize(void* stream) { check(driver().cuStreamSynchronize(stream), "cuStreamSynchronize"); }

Event::Event(unsigned flags) { check(driver().cuEventCreate(&handle_, flags), "cuEventCreate"); }

bool Event::is_done() const {
  const auto result = driver().cuEventQuery(handle_);
  if (result == cuda::kErrorNotReady) return false;
  check(result, "cuEventQuery");
  return true;
}

cuda::Ipc Event::handle() const {
  cuda::Ipc handle{};
  check(driver().cuIpcGetEventHandle(&handle, handle_), "cuIpcGetEventHandle");
  return handle;
}

bool is_idle(void* stream) {
  Event event;
  event.record(stream);
  return event.is_done();
}

Gate::Gate(void* stream) : stream_(stream) {
  check(driver().cuLaunchHostFunc(
            stream, [](void* self) { static_cast<Gate*>(self)->pass(); }, this),
        "cuLaunchHostFunc");
}

Gate::~Gate() {
  open();
  // The function uses this object.
  (void)driver().cuStreamSynchronize(stream_);
}

void Gate::open() {
  {
    const std::lock_guard lock(mutex_);
    is_open_ = true;
  }
  changed_.notify_all();
}

void Gate::pass() {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return is_open_; });
}

void write(cuda::Address to, const std::vector<int>& values, void* stream) {
  check(driver().cuMemcpyAsync(to, reinterpret_cast<std::uintptr_t>(values.data()),
                               values.size() * sizeof(int), stream),
        "cuMemcpyAsync");
  synchronize(stream);
}

std::vector<int> read(cuda::Address from, std::size_t count, void* stream) {
  std::vector<int> values(count);
  check(driver().cuMemcpyAsync(reinterpret_cast<std::uintptr_t>(values.data()), from, count * sizeof(int),
                               stream),
        "cuMemcpyAsync");
  synchronize(stream);
  return values;
}

Known known(cuda::Address address) {
  Known values;
  std::array attributes{cuda::kMemoryType, cuda::kBufferId, cuda::kRangeStart, cuda::kRangeSize,
                        cuda::kLegacyIpcCapable};
  std::array<void*, attributes.size()> places{&values.type, &values.id, &values.begin, &values.bytes,
                                              &values.can_be_shared};
  check(driver().cuPointerGetAttributes(static_cast<unsigned>(attributes.size()), attributes.data(),
                                        places.data(), address),
        "cuPointerGetAttributes");
  return values;
}

}  // namespace ddl::gpu_rules
