#include "stand_ins/kernels.h"

#include <cstring>
#include <list>
#include <mutex>

#include "stand_ins/kernels_as_cpp.h"

namespace ddl::stand_ins {
namespace {

struct Kernel {
  const char* name;
  std::size_t element_bytes;
  void (*run)(const void* in, void* out, unsigned long long count, double divisor, double factor);
};

template <auto kFunction, class T>
void run_as(const void* in, void* out, unsigned long long count, double divisor, double factor) {
  kFunction(static_cast<const T*>(in), static_cast<T*>(out), count, divisor, factor);
}

Kernel kernels[] = {
    {"ddl_scale_float16", 2, run_as<ddl_scale_float16, unsigned short>},
    {"ddl_scale_bfloat16", 2, run_as<ddl_scale_bfloat16, unsigned short>},
    {"ddl_scale_float32", 4, run_as<ddl_scale_float32, float>},
    {"ddl_scale_float64", 8, run_as<ddl_scale_float64, double>},
};

}  // namespace

const std::string* keep_module(const char* text) {
  static auto& mutex = *new std::mutex;
  static auto& all = *new std::list<std::string>;
  const std::lock_guard lock(mutex);
  return &all.emplace_back(text);
}

void* kernel_named(const char* name) {
  for (Kernel& kernel : kernels) {
    if (std::strcmp(kernel.name, name) == 0) return &kernel;
  }
  return nullptr;
}

std::function<void()> kernel_call(void* kernel, unsigned blocks, unsigned threads, void** arguments,
                                  const GpuMemory& memory) {
  const void* in = nullptr;
  void* out = nullptr;
  unsigned long long count = 0;
  double divisor = 0, factor = 0;
  std::memcpy(&in, arguments[0], sizeof in);
  std::memcpy(&out, arguments[1], sizeof out);
  std::memcpy(&count, arguments[2], sizeof count);
  std::memcpy(&divisor, arguments[3], sizeof divisor);
  std::memcpy(&factor, arguments[4], sizeof factor);
  return [=, called = static_cast<const Kernel*>(kernel), &memory] {
    const std::size_t bytes = count * called->element_bytes;
    gridDim.x = blocks;
    blockDim.x = threads;
    for (blockIdx.x = 0; blockIdx.x < blocks; ++blockIdx.x) {
      for (threadIdx.x = 0; threadIdx.x < threads; ++threadIdx.x)
        called->run(memory.reach(in, bytes), memory.reach(out, bytes), count, divisor, factor);
    }
  };
}

}  // namespace ddl::stand_ins
