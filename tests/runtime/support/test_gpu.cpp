#include "runtime/support/test_gpu.h"

#include <dlfcn.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <stdexcept>
#include <string>

#include "support/gpu_vendor.h"

namespace ddl::runtime::test {
namespace {

constexpr char kCuda[] = "libcuda.so.1";
constexpr char kHip[] = "libamdhip64.so.6";

using ddl::test::is_hip;

void* open_library(const char* name) {
  void* const library = ::dlopen(name, RTLD_NOW | RTLD_LOCAL | RTLD_NODELETE);
  if (library == nullptr) throw std::runtime_error(::dlerror());
  return library;
}

template <class Function>
void find(void* library, const char* name, Function*& function) {
  function = reinterpret_cast<Function*>(::dlsym(library, name));
  if (function == nullptr) throw std::runtime_error(std::string("there is no ") + name);
}

void check(int result, const char* what) {
  if (result != 0) throw std::runtime_error(std::string(what) + ": error " + std::to_string(result));
}

std::uint64_t address_of(const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer); }

class CudaGpu final : public TestGpu {
 public:
  CudaGpu() {
    void* const cuda = open_library(kCuda);
    find(cuda, "cuInit", init_);
    find(cuda, "cuDeviceGetCount", count_);
    find(cuda, "cuDevicePrimaryCtxRetain", retain_);
    find(cuda, "cuCtxSetCurrent", set_);
    find(cuda, "cuMemAlloc_v2", allocate_);
    find(cuda, "cuMemFree_v2", free_);
    find(cuda, "cuStreamCreate", make_stream_);
    find(cuda, "cuStreamDestroy_v2", destroy_);
    find(cuda, "cuMemcpyAsync", copy_);
    find(cuda, "cuStreamSynchronize", synchronize_);
    find(cuda, "cuLaunchHostFunc", call_);
    find(cuda, "cuCtxGetDevice", current_);
    find(cuda, "cuStreamBeginCapture_v2", begin_capture_);
    find(cuda, "cuStreamEndCapture", end_capture_);
    check(init_(0), "cuInit");
  }

  int count() override {
    int count = 0;
    check(count_(&count), "cuDeviceGetCount");
    return count;
  }
  void use(int gpu) override {
    void* context = nullptr;
    check(retain_(&context, gpu), "cuDevicePrimaryCtxRetain");
    check(set_(context), "cuCtxSetCurrent");
  }
  void* allocate(std::size_t bytes) override {
    std::uint64_t memory = 0;
    check(allocate_(&memory, bytes), "cuMemAlloc");
    // NOLINTNEXTLINE(performance-no-int-to-ptr): the driver's addresses are numbers
    return reinterpret_cast<void*>(memory);
  }
  void free(void* memory) override { check(free_(address_of(memory)), "cuMemFree"); }
  void* make_stream() override {
    void* stream = nullptr;
    check(make_stream_(&stream, 0), "cuStreamCreate");
    return stream;
  }
  void destroy(void* stream) override { check(destroy_(stream), "cuStreamDestroy"); }
  void copy(void* to, const void* from, std::size_t bytes, void* stream) override {
    check(copy_(address_of(to), address_of(from), bytes, stream), "cuMemcpyAsync");
  }
  void synchronize(void* stream) override { check(synchronize_(stream), "cuStreamSynchronize"); }
  void call(void* stream, void (*function)(void*), void* argument) override {
    check(call_(stream, function, argument), "cuLaunchHostFunc");
  }
  int current() override {
    int gpu = -1;
    check(current_(&gpu), "cuCtxGetDevice");
    return gpu;
  }
  void begin_capture(void* stream) override { check(begin_capture_(stream, 2), "cuStreamBeginCapture"); }
  void end_capture(void* stream) override {
    void* graph = nullptr;
    check(end_capture_(stream, &graph), "cuStreamEndCapture");
  }

 private:
  int (*init_)(unsigned);
  int (*count_)(int*);
  int (*retain_)(void**, int);
  int (*set_)(void*);
  int (*allocate_)(std::uint64_t*, std::size_t);
  int (*free_)(std::uint64_t);
  int (*make_stream_)(void**, unsigned);
  int (*destroy_)(void*);
  int (*copy_)(std::uint64_t, std::uint64_t, std::size_t, void*);
  int (*synchronize_)(void*);
  int (*call_)(void*, void (*)(void*), void*);
  int (*current_)(int*);
  int (*begin_capture_)(void*, int);
  int (*end_capture_)(void*, void**);
};

class HipGpu final : public TestGpu {
 public:
  HipGpu() {
    void* const hip = open_library(kHip);
    find(hip, "hipGetDeviceCount", count_);
    find(hip, "hipSetDevice", set_);
    find(hip, "hipMalloc", allocate_);
    find(hip, "hipFree", free_);
    find(hip, "hipStreamCreateWithFlags", make_stream_);
    find(hip, "hipStreamDestroy", destroy_);
    find(hip, "hipMemcpyAsync", copy_);
    find(hip, "hipStreamSynchronize", synchronize_);
    find(hip, "hipStreamAddCallback", call_);
    find(hip, "hipGetDevice", current_);
    find(hip, "hipStreamBeginCapture", begin_capture_);
    find(hip, "hipStreamEndCapture", end_capture_);
  }

  int count() override {
    int count = 0;
    check(count_(&count), "hipGetDeviceCount");
    return count;
  }
  void use(int gpu) override { check(set_(gpu), "hipSetDevice"); }
  void* allocate(std::size_t bytes) override {
    void* memory = nullptr;
    check(allocate_(&memory, bytes), "hipMalloc");
    return memory;
  }
  void free(void* memory) override { check(free_(memory), "hipFree"); }
  void* make_stream() override {
    void* stream = nullptr;
    check(make_stream_(&stream, 0), "hipStreamCreateWithFlags");
    return stream;
  }
  void destroy(void* stream) override { check(destroy_(stream), "hipStreamDestroy"); }
  void copy(void* to, const void* from, std::size_t bytes, void* stream) override {
    constexpr int kDefault = 4;
    check(copy_(to, from, bytes, kDefault, stream), "hipMemcpyAsync");
  }
  void synchronize(void* stream) override { check(synchronize_(stream), "hipStreamSynchronize"); }
  void call(void* stream, void (*function)(void*), void* argument) override {
    auto callback = std::make_unique<Callback>(Callback{function, argument});
    check(call_(stream, call_back, callback.release(), 0), "hipStreamAddCallback");
  }
  int current() override {
    int gpu = -1;
    check(current_(&gpu), "hipGetDevice");
    return gpu;
  }
  void begin_capture(void* stream) override { check(begin_capture_(stream, 2), "hipStreamBeginCapture"); }
  void end_capture(void* stream) override {
    void* graph = nullptr;
    check(end_capture_(stream, &graph), "hipStreamEndCapture");
  }

 private:
  struct Callback {
    void (*function)(void*);
    void* argument;
  };
  static void call_back(void*, int, void* callback) {
    const std::unique_ptr<Callback> owned(static_cast<Callback*>(callback));
    owned->function(owned->argument);
  }

  int (*call_)(void*, void (*)(void*, int, void*), void*, unsigned);
  int (*current_)(int*);
  int (*count_)(int*);
  int (*set_)(int);
  int (*allocate_)(void**, std::size_t);
  int (*free_)(void*);
  int (*make_stream_)(void**, unsigned);
  int (*destroy_)(void*);
  int (*copy_)(void*, const void*, std::size_t, int, void*);
  int (*synchronize_)(void*);
  int (*begin_capture_)(void*, int);
  int (*end_capture_)(void*, void**);
};

}  // namespace

void TestGpu::fail_next_copy() {
  void (*fail)();
  find(open_library(is_hip() ? kHip : kCuda), "ddl_stand_in_fail_next_copy", fail);
  fail();
}

void TestGpu::keep_private(const void* memory) {
  void (*keep)(const void*);
  find(open_library(is_hip() ? kHip : kCuda), "ddl_stand_in_keep_private", keep);
  keep(memory);
}

bool& all_ranks_share_a_gpu() {
  static bool is_shared = [] {
    const char* const mode = std::getenv("DDL_TEST_GPUS");
    return mode != nullptr && std::strcmp(mode, "shared") == 0;
  }();
  return is_shared;
}

bool TestGpu::wait_for_query_in_capture(int milliseconds) {
  bool (*wait)(int);
  find(open_library(is_hip() ? kHip : kCuda), "ddl_stand_in_wait_for_query_in_capture", wait);
  return wait(milliseconds);
}

TestGpu& TestGpu::get() {
  static TestGpu& gpu = *[]() -> TestGpu* {
    if (is_hip()) return new HipGpu;
    return new CudaGpu;
  }();
  return gpu;
}

}  // namespace ddl::runtime::test
