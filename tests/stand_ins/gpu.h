// GPUs that exist in this process only: memory that the host cannot touch, streams with threads of their own, and
// events. The stand-ins for the vendors' libraries are made of it, so that the real code of libddl that loads such a
// library runs on machines without a GPU. What it can show is whether the rules of these libraries are kept; it says
// nothing about speed, and little about the order in which real memory becomes visible.
//
// Environment
//   DDL_STAND_IN_GPUS       the number of GPUs of the host; 8 if it is not set
//   DDL_STAND_IN_DELAY_US   every operation of a stream begins up to so many microseconds late, at random, so that a
//                           missing wait becomes a wrong result
//   DDL_STAND_IN_CAPABILITY the compute capability of the GPUs, ten times: 90 with CUDA and 94 with HIP if it is not set
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

namespace ddl::stand_ins {

/// A rule that the program has broken: prints it and aborts, as the real library would fail in some worse way.
/// A variable of the environment.
unsigned number_in(const char* variable, unsigned otherwise);
[[noreturn]] void broken_rule(const std::string& rule);

/// Memory of all GPUs. Thread-safe.
class GpuMemory {
 public:
  GpuMemory();

  struct Allocation {
    std::uintptr_t begin = 0;
    std::size_t bytes = 0;
    int gpu = 0;
    std::uint64_t id = 0;
    bool is_managed = false;
    bool is_private = false;  ///< no other process may open it, as if it were of a pool
  };

  /// 0: there is no room.
  std::uintptr_t allocate(std::size_t bytes, int gpu);
  /// False: nothing begins there.
  bool release(std::uintptr_t begin);
  std::optional<Allocation> find(std::uintptr_t address) const;
  /// Where an operation of a GPU reaches these bytes. Memory of the host is itself. Bytes that reach over the end of an
  /// allocation break a rule.
  std::byte* reach(const void* address, std::size_t bytes) const;

  void keep_private(std::uintptr_t begin);
  /// The file that all memory is in, and where.
  int file() const { return file_; }
  std::uint64_t offset_of(const Allocation& allocation) const { return allocation.begin - seen_; }
  /// Memory of another process, which the program sees as it sees its own. 0: it is not there.
  std::uintptr_t open(int file, std::uint64_t offset, std::size_t bytes, int gpu);
  /// False: nothing has been opened there.
  bool close(std::uintptr_t begin);

 private:
  /// A file's pages, twice.
  struct Mapping {
    std::uintptr_t seen = 0;
    std::byte* reached = nullptr;
    std::size_t bytes = 0;
  };
  static Mapping map(int file, std::uint64_t offset, std::size_t bytes);
  static void unmap(const Mapping& mapping);
  struct Opened {
    Allocation allocation;
    Mapping mapping;
  };
  bool is_inside(std::uintptr_t address) const;

  int file_ = -1;
  std::map<std::uintptr_t, Opened> opened_;  ///< guarded by mutex_
  std::uintptr_t seen_ = 0;                  ///< where the program sees the memory, which faults
  std::byte* reached_ = nullptr;
  mutable std::mutex mutex_;
  std::map<std::uintptr_t, Allocation> taken_;
  std::uint64_t last_id_ = 0;
};

class Gpus;

/// What has been put on a stream so far.
struct Mark;

/// Executes its operations one after the other. Thread-safe.
class Stream {
 public:
  Stream(Gpus& gpus, int gpu, bool is_blocking);
  /// Waits for what has been put on it.
  ~Stream();
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  int gpu() const { return gpu_; }
  /// Whether it waits for the default stream, and that one for it.
  bool is_blocking() const { return is_blocking_; }
  void put(std::function<void()> operation);
  Mark mark() const;
  void synchronize() const;
  std::uint64_t queued() const;
  std::uint64_t done() const;
  void wait_done(std::uint64_t count) const;

  std::atomic<bool> is_capturing{false};

 private:
  void run();

  Gpus& gpus_;
  int gpu_;
  bool is_blocking_;
  struct State {
    std::mutex mutex;
    std::condition_variable changed;
    std::deque<std::function<void()>> operations;
    std::uint64_t queued = 0, done = 0;
    bool ends = false;
  };
  std::shared_ptr<State> state_ = std::make_shared<State>();
  std::thread thread_;

  friend struct Mark;
};

struct Mark {
  std::shared_ptr<Stream::State> state;  ///< null: nothing has been recorded
  std::uint64_t count = 0;

  bool is_done() const;
  void wait() const;
};

class SharedRecords;

struct Event {
  std::mutex mutex;
  Mark mark;                              ///< guarded by mutex
  std::shared_ptr<SharedRecords> shared;  ///< null: other processes do not see it

  /// What a stream that waits for the event has to do.
  std::function<void()> make_wait();
  bool is_done();
};

/// All that the process has of one vendor.
class Gpus {
 public:
  /// visible: the value of the vendor's variable, a list of numbers; null: all.
  explicit Gpus(const char* visible);

  int count() const { return static_cast<int>(numbers_.size()); }
  /// 16 bytes that differ between GPUs and between hosts.
  std::vector<unsigned char> uuid(int gpu) const;
  std::string pci_address(int gpu) const;
  GpuMemory& memory() { return memory_; }

  Stream* make_stream(int gpu, bool is_blocking);
  void destroy(Stream* stream);
  /// The stream for a handle: null and 1 are the default stream of the GPU. Null: there is none.
  Stream* stream_of(void* handle, int gpu);
  bool is_any_capturing() const;
  /// Puts an operation on the stream, with the waits that the default stream needs.
  void put(Stream& stream, std::function<void()> operation);
  void record(Event& event, Stream& stream);
  int number_of_host(int gpu) const { return numbers_[static_cast<std::size_t>(gpu)]; }
  /// Waits for everything on the GPU, as functions do that allocate or free.
  void synchronize(int gpu);
  /// Whether host memory from here on has been pinned; pins and unpins it. False: it was already (not).
  bool pin(void* memory);
  bool unpin(void* memory);

  unsigned max_delay_us() const { return max_delay_us_; }

 private:
  std::vector<int> numbers_;  ///< of the host, by those that the program has
  unsigned max_delay_us_ = 0;
  GpuMemory memory_;
  mutable std::mutex mutex_;
  std::map<Stream*, std::unique_ptr<Stream>> streams_;  ///< without the default ones
  std::map<int, std::unique_ptr<Stream>> defaults_;
  std::map<void*, bool> pinned_;
};

/// A thread asks for an event. Under capture_mode 0 (global) that spoils a graph that any thread records.
void note_query(const Gpus& gpus, int capture_mode);
bool wait_for_query_in_capture(int milliseconds);

/// True on a thread that runs an operation of a stream: there the program may call nothing of the vendor's.
bool is_in_operation();

}  // namespace ddl::stand_ins
