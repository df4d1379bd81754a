#include "stand_ins/kernels.h"

#include <cstring>
#include <list>
#include <mutex>

#include "stand_ins/kernels_as_cpp.h"

namespace ddl::stand_ins {
namespace {

/// What one thread of a kernel does.
using ThreadBody = std::function<void()>;
/// The same with the arguments copied, before they are found in memory.
using Launch = std::function<ThreadBody(const GpuMemory&)>;

struct Kernel {
  const char* name;
  Launch (*bind)(void** arguments);
};

template <class T>
T argument(void** arguments, int index) {
  T value;
  // NOLINTNEXTLINE(bugprone-sizeof-expression): a pointer is meant where T is one
  std::memcpy(&value, arguments[index], sizeof value);
  return value;
}

template <auto kFunction, std::size_t kElement>
Launch scaling(void** arguments) {
  return [given = argument<DdlScaling>(arguments, 0)](const GpuMemory& memory) -> ThreadBody {
    DdlScaling call = given;
    call.in = memory.reach(given.in, call.count * kElement);
    call.out = memory.reach(given.out, call.count * kElement);
    return [call] { kFunction(call); };
  };
}

template <auto kFunction, std::size_t kElement>
Launch combination(void** arguments) {
  return [given = argument<DdlCombination>(arguments, 0)](const GpuMemory& memory) -> ThreadBody {
    DdlCombination call = given;
    const std::size_t bytes = call.count * kElement;
    for (unsigned i = 0; i < call.ins; ++i) call.in[i] = memory.reach(given.in[i], bytes);
    for (unsigned i = 0; i < call.outs; ++i) call.out[i] = memory.reach(given.out[i], bytes);
    return [call] { kFunction(call); };
  };
}

Launch copies(void** arguments) {
  return [given = argument<DdlCopies>(arguments, 0)](const GpuMemory& memory) -> ThreadBody {
    DdlCopies call = given;
    for (unsigned i = 0; i < call.copies; ++i) {
      call.from[i] = reinterpret_cast<const unsigned char*>(memory.reach(given.from[i], given.bytes[i]));
      call.to[i] = reinterpret_cast<unsigned char*>(memory.reach(given.to[i], given.bytes[i]));
    }
    return [call] { ddl_copies(call); };
  };
}

Kernel kernels[] = {
    {"ddl_scale_float8_e4m3fn", scaling<ddl_scale_float8_e4m3fn, 1>},
    {"ddl_scale_float8_e5m2", scaling<ddl_scale_float8_e5m2, 1>},
    {"ddl_scale_float8_e4m3fnuz", scaling<ddl_scale_float8_e4m3fnuz, 1>},
    {"ddl_scale_float8_e5m2fnuz", scaling<ddl_scale_float8_e5m2fnuz, 1>},
    {"ddl_scale_float16", scaling<ddl_scale_float16, 2>},
    {"ddl_scale_bfloat16", scaling<ddl_scale_bfloat16, 2>},
    {"ddl_scale_float32", scaling<ddl_scale_float32, 4>},
    {"ddl_scale_float64", scaling<ddl_scale_float64, 8>},
    {"ddl_copies", copies},
    {"ddl_combine_int8", combination<ddl_combine_int8, 1>},
    {"ddl_combine_int16", combination<ddl_combine_int16, 2>},
    {"ddl_combine_int32", combination<ddl_combine_int32, 4>},
    {"ddl_combine_int64", combination<ddl_combine_int64, 8>},
    {"ddl_combine_uint8", combination<ddl_combine_uint8, 1>},
    {"ddl_combine_uint16", combination<ddl_combine_uint16, 2>},
    {"ddl_combine_uint32", combination<ddl_combine_uint32, 4>},
    {"ddl_combine_uint64", combination<ddl_combine_uint64, 8>},
    {"ddl_combine_float8_e4m3fn", combination<ddl_combine_float8_e4m3fn, 1>},
    {"ddl_combine_float8_e5m2", combination<ddl_combine_float8_e5m2, 1>},
    {"ddl_combine_float8_e4m3fnuz", combination<ddl_combine_float8_e4m3fnuz, 1>},
    {"ddl_combine_float8_e5m2fnuz", combination<ddl_combine_float8_e5m2fnuz, 1>},
    {"ddl_combine_float16", combination<ddl_combine_float16, 2>},
    {"ddl_combine_bfloat16", combination<ddl_combine_bfloat16, 2>},
    {"ddl_combine_float32", combination<ddl_combine_float32, 4>},
    {"ddl_combine_float64", combination<ddl_combine_float64, 8>},
    {"ddl_combine_bool", combination<ddl_combine_bool, 1>},
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
  return [blocks, threads, launch = static_cast<const Kernel*>(kernel)->bind(arguments), &memory] {
    const ThreadBody body = launch(memory);
    gridDim.x = blocks;
    blockDim.x = threads;
    for (blockIdx.x = 0; blockIdx.x < blocks; ++blockIdx.x) {
      for (threadIdx.x = 0; threadIdx.x < threads; ++threadIdx.x) body();
    }
  };
}

}  // namespace ddl::stand_ins
