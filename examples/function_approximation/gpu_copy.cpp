#include "gpu_copy.h"

#include <dlfcn.h>

#include <stdexcept>
#include <string>

namespace fit {

/// What is used of CUDA's driver or of HIP.
class GpuCopy::Vendor {
 public:
  Vendor() = default;
  virtual ~Vendor() = default;
  Vendor(const Vendor&) = delete;
  Vendor& operator=(const Vendor&) = delete;

  virtual void use(int gpu) = 0;
  virtual void* allocate(std::size_t bytes) = 0;
  virtual void free(void* memory) = 0;
  virtual void upload(void* to, const void* from, std::size_t bytes) = 0;
  virtual void download(void* to, const void* from, std::size_t bytes) = 0;
};

namespace {

/// Calls a function of a library, which returns 0 if it succeeds.
template <class... Arguments>
void call(void* library, const char* name, Arguments... arguments) {
  auto* const function = reinterpret_cast<int (*)(Arguments...)>(::dlsym(library, name));
  if (function == nullptr) throw std::runtime_error(std::string("the GPU's library has no ") + name);
  if (const int error = function(arguments...); error != 0)
    throw std::runtime_error(std::string(name) + " fails with error " + std::to_string(error));
}

/// "cuInit" or "hipInit": fails where the library is, but no GPU.
void start(void* library, const char* name) {
  try {
    call(library, name, 0u);
  } catch (const std::runtime_error& error) {
    throw std::runtime_error(std::string("--device gpu: no GPU can be used here: ") + error.what());
  }
}

class Cuda final : public GpuCopy::Vendor {
 public:
  explicit Cuda(void* library) : library_(library) {}

  void use(int gpu) override {
    int count = 0, device = 0;
    void* context = nullptr;
    start(library_, "cuInit");
    call(library_, "cuDeviceGetCount", &count);
    call(library_, "cuDeviceGet", &device, count > 0 ? gpu % count : 0);
    call(library_, "cuDevicePrimaryCtxRetain", &context, device);
    call(library_, "cuCtxSetCurrent", context);
  }
  void* allocate(std::size_t bytes) override {
    unsigned long long memory = 0;
    call(library_, "cuMemAlloc_v2", &memory, bytes);
    // NOLINTNEXTLINE(performance-no-int-to-ptr): CUDA's addresses are numbers
    return reinterpret_cast<void*>(memory);
  }
  void free(void* memory) override { call(library_, "cuMemFree_v2", address(memory)); }
  void upload(void* to, const void* from, std::size_t bytes) override {
    call(library_, "cuMemcpyHtoD_v2", address(to), from, bytes);
  }
  void download(void* to, const void* from, std::size_t bytes) override {
    call(library_, "cuMemcpyDtoH_v2", to, address(from), bytes);
  }

 private:
  static unsigned long long address(const void* memory) {
    return reinterpret_cast<unsigned long long>(memory);
  }

  void* library_;
};

class Hip final : public GpuCopy::Vendor {
 public:
  explicit Hip(void* library) : library_(library) {}

  void use(int gpu) override {
    int count = 0;
    start(library_, "hipInit");
    call(library_, "hipGetDeviceCount", &count);
    call(library_, "hipSetDevice", count > 0 ? gpu % count : 0);
  }
  void* allocate(std::size_t bytes) override {
    void* memory = nullptr;
    call(library_, "hipMalloc", &memory, bytes);
    return memory;
  }
  void free(void* memory) override { call(library_, "hipFree", memory); }
  void upload(void* to, const void* from, std::size_t bytes) override {
    constexpr int kHostToDevice = 1;
    call(library_, "hipMemcpy", to, from, bytes, kHostToDevice);
  }
  void download(void* to, const void* from, std::size_t bytes) override {
    constexpr int kDeviceToHost = 2;
    call(library_, "hipMemcpy", to, from, bytes, kDeviceToHost);
  }

 private:
  void* library_;
};

std::unique_ptr<GpuCopy::Vendor> load() {
  if (void* const library = ::dlopen("libcuda.so.1", RTLD_NOW)) return std::make_unique<Cuda>(library);
  const std::string reason = ::dlerror();
  for (const char* const name : {"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5"}) {
    if (void* const library = ::dlopen(name, RTLD_NOW)) return std::make_unique<Hip>(library);
  }
  throw std::runtime_error("--device gpu: there is neither CUDA (" + reason + ") nor HIP (" + ::dlerror() +
                           ")");
}

}  // namespace

GpuCopy::GpuCopy(std::size_t count, int gpu) : vendor_(load()), bytes_(count * sizeof(double)) {
  vendor_->use(gpu);
  data_ = static_cast<double*>(vendor_->allocate(bytes_));
}

GpuCopy::~GpuCopy() {
  try {
    vendor_->free(data_);
  } catch (const std::exception&) {  // the GPU has failed, and its memory is gone
  }
}

void GpuCopy::upload(const double* numbers) { vendor_->upload(data_, numbers, bytes_); }

void GpuCopy::download(double* numbers) const { vendor_->download(numbers, data_, bytes_); }

}  // namespace fit
