// NVIDIA's driver as a program calls it, without libddl in between: its functions, and what a rule has on a GPU.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "gpu/rules.h"
#include "runtime/src/device/cuda_abi.h"

namespace ddl::gpu_rules {

namespace cuda = ddl::runtime::cuda;

/// The functions that libddl uses, and those that only its tests do.
struct Driver : cuda::Functions {
  cuda::Result (*cuStreamSynchronize)(void* stream);
  cuda::Result (*cuStreamBeginCapture_v2)(void* stream, int mode);
  cuda::Result (*cuStreamEndCapture)(void* stream, void** graph);
  cuda::Result (*cuDriverGetVersion)(int* version);
  cuda::Result (*cuDeviceGetName)(char* name, int size, cuda::DeviceNumber device);
  // Null where the library is too old, or is a stand-in.
  cuda::Result (*cuMemAllocAsync)(cuda::Address* memory, std::size_t bytes, void* stream);
  void (*ddl_stand_in_keep_private)(const void* memory);
};

/// Loaded and initialised in the first call. Throws Skipped if there is none.
const Driver& driver();
/// Makes the first GPU current on this thread.
void use_gpu();

/// "CUDA_ERROR_INVALID_VALUE (1)"
std::string text_of(cuda::Result result);
/// Throws Broken for every result but success.
void check(cuda::Result result, const char* function);
/// Throws Broken for every other result.
void expect_result(cuda::Result result, cuda::Result wanted, const char* function);

/// How much a rule has in memory.
inline constexpr std::size_t kInts = 1024, kBytes = kInts * sizeof(int);

class Memory {
 public:
  explicit Memory(std::size_t bytes);
  ~Memory() { free(); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  cuda::Address address() const { return address_; }
  void free();
  cuda::Ipc handle() const;

 private:
  cuda::Address address_ = 0;
};

class Stream {
 public:
  explicit Stream(unsigned flags = cuda::kStreamNonBlocking);
  ~Stream() { (void)driver().cuStreamDestroy_v2(handle_); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  void* get() const { return handle_; }

 private:
  void* handle_ = nullptr;
};

/// Waits for what is on the stream. A stream that does not go on ends the rule at its deadline.
void synchronize(void* stream);

class Event {
 public:
  explicit Event(unsigned flags = cuda::kEventDisableTiming);
  explicit Event(const cuda::Ipc& handle) {
    check(driver().cuIpcOpenEventHandle(&handle_, handle), "cuIpcOpenEventHandle");
  }
  ~Event() { (void)driver().cuEventDestroy_v2(handle_); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  void* get() const { return handle_; }
  void record(const void* stream) {
    check(driver().cuEventRecord(handle_, const_cast<void*>(stream)), "cuEventRecord");
  }
  void hold(void* stream) const {
    check(driver().cuStreamWaitEvent(stream, handle_, 0), "cuStreamWaitEvent");
  }
  bool is_done() const;
  cuda::Ipc handle() const;

 private:
  void* handle_ = nullptr;
};

/// Whether all that is on the stream has been done. Does not wait.
bool is_idle(void* stream);

/// Holds a stream by a function of the host until it is opened, which the destructor does, too.
class Gate {
 public:
  explicit Gate(void* stream);
  ~Gate();
  Gate(const Gate&) = delete;
  Gate& operator=(const Gate&) = delete;

  void open();

 private:
  void pass();

  void* stream_;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_open_ = false;
};

/// Copies to and from the GPU on the stream, and waits for it.
void write(cuda::Address to, const std::vector<int>& values, void* stream);
std::vector<int> read(cuda::Address from, std::size_t count, void* stream);

/// What the driver knows of an address: the values of its attributes.
struct Known {
  unsigned type = 99;
  std::uint64_t id = 99;
  std::uint64_t begin = 99;
  std::uint64_t bytes = 99;
  int can_be_shared = 99;
};
Known known(cuda::Address address);

}  // namespace ddl::gpu_rules
