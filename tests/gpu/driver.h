// A vendor's runtime as a program calls it, without libddl in between: NVIDIA's driver, or HIP. And what a rule has on
// a GPU.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "gpu/rules.h"
#include "runtime/src/device/device.h"
#include "support/gpu_vendor.h"

namespace ddl::gpu_rules {

using runtime::IpcHandle;

/// Of the vendor. These numbers are the same for both.
using Code = int;
inline constexpr Code kSuccess = 0, kInvalidValue = 1, kNotReady = 600, kAlreadyPinned = 712,
                      kCaptureImplicit = 906;
// Flags of streams and events.
inline constexpr unsigned kOrdinary = 0, kDoesNotBlock = 1;
inline constexpr unsigned kWithoutTimes = 2, kForProcesses = 4;

/// What the runtime knows of an address. Of memory of the host: nothing.
struct Known {
  bool is_on_gpu = false;
  std::uint64_t id = 0;
  std::uint64_t begin = 0;
  std::uint64_t bytes = 0;
  bool can_be_shared = false;  ///< HIP says it with the handle only
};

/// The functions that libddl uses, and those that only its tests do. A GPU has to be current.
class Driver {
 public:
  Driver() = default;
  virtual ~Driver() = default;
  Driver(const Driver&) = delete;
  Driver& operator=(const Driver&) = delete;

  virtual std::string text_of(Code result) const = 0;  ///< "CUDA_ERROR_INVALID_VALUE (1)"
  /// What the machine has: "GPU", "an H100", and so on.
  virtual std::vector<std::pair<std::string, std::string>> description() const = 0;
  virtual bool is_stand_in() const = 0;

  /// Makes the first GPU current on this thread. Throws.
  virtual void use_gpu() const = 0;
  /// What is current on this thread.
  virtual std::uintptr_t current() const = 0;

  virtual Code allocate(void** memory, std::size_t bytes) const = 0;
  virtual Code release(void* memory) const = 0;
  /// From a pool, which cannot be shared. Throws Skipped if there are none.
  virtual Code allocate_from_pool(void** memory, std::size_t bytes, void* stream) const = 0;
  virtual Code find(Known& known, const void* address) const = 0;
  virtual Code pin(void* memory, std::size_t bytes) const = 0;
  virtual Code unpin(void* memory) const = 0;
  virtual Code copy(void* to, const void* from, std::size_t bytes, void* stream) const = 0;

  virtual Code make_stream(void** stream, unsigned flags) const = 0;
  virtual Code destroy_stream(void* stream) const = 0;
  virtual Code synchronize(void* stream) const = 0;
  virtual Code wait(void* stream, void* event) const = 0;
  virtual Code call(void* stream, void (*function)(void*), void* argument) const = 0;

  virtual Code make_event(void** event, unsigned flags) const = 0;
  virtual Code destroy_event(void* event) const = 0;
  virtual Code record(void* event, void* stream) const = 0;
  virtual Code query(void* event) const = 0;

  /// In the mode that forbids most to all threads.
  virtual Code begin_capture(void* stream) const = 0;
  virtual Code end_capture(void* stream) const = 0;
  virtual Code is_capturing(void* stream, int* status) const = 0;
  /// This thread's functions belong to no capture.
  virtual Code relax_captures() const = 0;

  virtual Code share_memory(IpcHandle& handle, void* memory) const = 0;
  virtual Code open_memory(void** memory, const IpcHandle& handle) const = 0;
  virtual Code close_memory(void* memory) const = 0;
  virtual Code share_event(IpcHandle& handle, void* event) const = 0;
  virtual Code open_event(void** event, const IpcHandle& handle) const = 0;
};

using test::is_hip;
/// Loaded and initialised in the first call. Throws Skipped if there is none.
const Driver& driver();
/// What makes them.
const Driver& cuda_driver();
const Driver& hip_driver();

/// Throws Broken for every result but success. what: "the copy"
void check(Code result, const char* what);
/// Throws Broken for every other result.
void expect_result(Code result, Code wanted, const char* what);

/// How much a rule has in memory.
inline constexpr std::size_t kInts = 1024, kBytes = kInts * sizeof(int);

class Memory {
 public:
  explicit Memory(std::size_t bytes) { check(driver().allocate(&address_, bytes), "an allocation"); }
  ~Memory() { free(); }
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  void* address() const { return address_; }
  void free() {
    if (address_ != nullptr) (void)driver().release(std::exchange(address_, nullptr));
  }
  IpcHandle handle() const;

 private:
  void* address_ = nullptr;
};

class Stream {
 public:
  explicit Stream(unsigned flags = kDoesNotBlock) {
    check(driver().make_stream(&handle_, flags), "a new stream");
  }
  ~Stream() { (void)driver().destroy_stream(handle_); }
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
  explicit Event(unsigned flags = kWithoutTimes) {
    check(driver().make_event(&handle_, flags), "a new event");
  }
  explicit Event(const IpcHandle& handle) {
    check(driver().open_event(&handle_, handle), "the event of another process");
  }
  ~Event() { (void)driver().destroy_event(handle_); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  void* get() const { return handle_; }
  void record(void* stream) { check(driver().record(handle_, stream), "the record of an event"); }
  void hold(void* stream) const { check(driver().wait(stream, handle_), "the wait for an event"); }
  bool is_done() const;
  IpcHandle handle() const;

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
void write(void* to, const std::vector<int>& values, void* stream);
std::vector<int> read(const void* from, std::size_t count, void* stream);

/// Of an address on a GPU. Throws for others.
Known known(const void* address);

}  // namespace ddl::gpu_rules
