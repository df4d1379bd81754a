// The interface to a vendor's GPU runtime: where memory lies, and copies, streams and events of one GPU.
//
// Each vendor's runtime is a library that the program has loaded, or that libddl loads on demand
// (device/device_runtimes.h); nothing is linked. A stream, an event and an address are what they are for the vendor:
// cudaStream_t and hipStream_t, and so on, which programs pass to libddl as void*.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "runtime/src/device/gpu_kernels.h"

namespace ddl::runtime {

/// Of the vendor. The default stream of a program is null.
using StreamHandle = void*;
using EventHandle = void*;

/// Where memory of a GPU lies.
struct DeviceMemory {
  int ordinal = 0;  ///< of the GPU, as this process counts them
};

/// Which 8-bit floats the vendor's collectives combine on a GPU.
enum class Float8Formats : std::uint8_t {
  kNone = 0,
  kOcp = 1,   ///< E4M3FN and E5M2
  kFnuz = 2,  ///< E4M3FNUZ and E5M2FNUZ
};

/// By which another process of the host finds memory or an event: cudaIpcMemHandle_t, hipIpcEventHandle_t, and so on.
using IpcHandle = std::array<std::byte, 64>;

/// What the vendor's runtime has allocated at once. Plain data.
struct DeviceAllocation {
  std::uint64_t id = 0;  ///< no other allocation of the process ever has it
  std::uint64_t begin = 0;
  std::uint64_t bytes = 0;
};

class DeviceRuntime;

/// One GPU. Functions may be called from any thread. All but those that say otherwise need it to be current on the
/// calling thread (CurrentDevice). An error names the vendor's function and its error.
class Device {
 public:
  Device() = default;
  virtual ~Device() = default;
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  virtual DeviceRuntime& runtime() const = 0;
  virtual int ordinal() const = 0;
  /// Given a library that is new enough. Needs nothing to be current.
  virtual Float8Formats float8_formats() = 0;

  /// What a thread had before.
  struct Previous {
    void* current = nullptr;
    int capture_mode = 0;
  };
  /// Makes this GPU current on the calling thread, and what the thread does no part of a graph that the program records.
  /// Needs nothing.
  virtual Status enter(Previous& previous) = 0;
  virtual void leave(Previous& previous) = 0;

  /// Memory of the GPU, aligned for every type. May wait for work of the GPU.
  virtual Result<void*> allocate(std::size_t bytes) = 0;
  virtual void release(void* memory) = 0;
  /// Makes copies from and to CPU memory asynchronous: its pages stay where they are. May wait for work of the GPU.
  virtual Status pin(void* memory, std::size_t bytes) = 0;
  virtual void unpin(void* memory) = 0;

  virtual Result<StreamHandle> make_stream() = 0;  ///< does not wait for the default stream
  virtual void destroy_stream(StreamHandle stream) = 0;
  virtual Result<EventHandle> make_event() = 0;
  virtual void destroy_event(EventHandle event) = 0;

  /// Copies between any two memories, in the order of the stream.
  virtual Status copy(void* to, const void* from, std::size_t bytes, StreamHandle stream) = 0;
  virtual Status record(EventHandle event, StreamHandle stream) = 0;
  /// What is put on the stream from now on waits for the event.
  virtual Status wait(StreamHandle stream, EventHandle event) = 0;
  /// Whether what was recorded has been done. An error of that work is an error here.
  virtual Result<bool> is_done(EventHandle event) = 0;
  /// Calls the function on some thread when the stream has come so far. It must not call the vendor's runtime.
  virtual Status notify(StreamHandle stream, void (*function)(void*), void* argument) = 0;
  /// Compiles and loads kernels of libddl's, unless this has been done; may take a second. kUnavailable: there is no
  /// compiler.
  virtual Status prepare_kernels(GpuProgram program) = 0;
  /// Puts a kernel on the stream, which works on this number of elements. After prepare_kernels().
  virtual Status launch(GpuKernel kernel, std::uint64_t elements, void** arguments, StreamHandle stream) = 0;
  /// Whether the program is recording a graph from the stream.
  virtual Result<bool> is_capturing(StreamHandle stream) = 0;

  // What other processes of the host use.

  /// kUnavailable: memory and events cannot be shared; why.
  virtual Status can_share() = 0;
  /// The allocation around an address.
  virtual Result<DeviceAllocation> allocation_of(const void* address) = 0;
  /// kUnavailable: no other process can open it, because it comes from a pool or was mapped in pieces.
  virtual Result<IpcHandle> share_memory(const DeviceAllocation& allocation) = 0;
  /// Where this process finds the allocation of another one, until close_memory(). Not the process's own.
  virtual Result<void*> open_memory(const IpcHandle& handle) = 0;
  virtual void close_memory(void* memory) = 0;
  /// An event that other processes can open.
  virtual Result<EventHandle> make_shared_event() = 0;
  virtual Result<IpcHandle> share_event(EventHandle event) = 0;
  /// Another process's event, until destroy_event(). A wait for it is a wait for its last record before the wait.
  virtual Result<EventHandle> open_event(const IpcHandle& handle) = 0;
};

/// A vendor's runtime. Functions may be called from any thread, and need nothing to be current.
class DeviceRuntime {
 public:
  DeviceRuntime() = default;
  virtual ~DeviceRuntime() = default;
  DeviceRuntime(const DeviceRuntime&) = delete;
  DeviceRuntime& operator=(const DeviceRuntime&) = delete;

  virtual const char* name() const = 0;  ///< "CUDA"; static storage
  /// The vendor's collectives work on its GPUs: "libnccl.so.2".
  virtual const char* collectives_library() const = 0;
  /// "GPU-5a8c...": different for each GPU of all hosts, and the same for the parts of one. As nvidia-smi prints it; a vendor that gives
  /// none: "host:0000:c1:00.0".
  virtual Result<std::string> uuid(int ordinal) = 0;
  /// Where an address lies; nullopt: not in memory of a GPU. Memory that GPU and host share lies on the GPU.
  virtual std::optional<DeviceMemory> find(const void* address) = 0;
  /// The GPU of this number, which lives as long as the process.
  virtual Result<Device*> device(int ordinal) = 0;
};

/// Makes a GPU current on this thread, until the end of the scope.
class CurrentDevice {
 public:
  explicit CurrentDevice(Device& device) : device_(device), status_(device.enter(previous_)) {}
  ~CurrentDevice() {
    if (status_) device_.leave(previous_);
  }
  CurrentDevice(const CurrentDevice&) = delete;
  CurrentDevice& operator=(const CurrentDevice&) = delete;

  const Status& status() const { return status_; }

 private:
  Device& device_;
  Device::Previous previous_;
  Status status_;
};

/// Owns a stream or an event of a GPU, which these two functions of Device make and destroy.
template <Result<void*> (Device::*kMake)(), void (Device::*kDestroy)(void*)>
class OwnedHandle {
 public:
  OwnedHandle() = default;
  static Result<OwnedHandle> make(Device& device) {
    DDL_ASSIGN(handle, (device.*kMake)());
    return OwnedHandle(device, handle);
  }
  static OwnedHandle own(Device& device, void* handle) { return OwnedHandle(device, handle); }
  ~OwnedHandle() { reset(); }
  OwnedHandle(OwnedHandle&& other) noexcept
      : device_(std::exchange(other.device_, nullptr)), handle_(other.handle_) {}
  OwnedHandle& operator=(OwnedHandle&& other) noexcept {
    if (this != &other) {
      reset();
      device_ = std::exchange(other.device_, nullptr);
      handle_ = other.handle_;
    }
    return *this;
  }
  OwnedHandle(const OwnedHandle&) = delete;
  OwnedHandle& operator=(const OwnedHandle&) = delete;

  void* get() const { return handle_; }

 private:
  OwnedHandle(Device& device, void* handle) : device_(&device), handle_(handle) {}
  void reset() {
    if (device_ == nullptr) return;
    const CurrentDevice current(*device_);
    (device_->*kDestroy)(handle_);
    device_ = nullptr;
  }

  Device* device_ = nullptr;
  void* handle_ = nullptr;
};
using DeviceStream = OwnedHandle<&Device::make_stream, &Device::destroy_stream>;
using DeviceEvent = OwnedHandle<&Device::make_event, &Device::destroy_event>;

}  // namespace ddl::runtime
