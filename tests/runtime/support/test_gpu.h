// A GPU as a program uses it, by the vendor's library: the stand-in, or a real one.
#pragma once

#include <cstddef>

namespace ddl::runtime::test {

/// Of this process. Every function but count() needs use() before, on the same thread. A failure throws
/// std::runtime_error. Thread-safe.
class TestGpu {
 public:
  /// DDL_TEST_GPU says which vendor's: cuda (default) or hip. Loads its library.
  static TestGpu& get();

  virtual ~TestGpu() = default;
  virtual int count() = 0;
  /// Makes a GPU current on this thread.
  virtual void use(int gpu) = 0;
  virtual void* allocate(std::size_t bytes) = 0;
  virtual void free(void* memory) = 0;
  virtual void* make_stream() = 0;  ///< an ordinary one, which waits for the default stream
  virtual void destroy(void* stream) = 0;
  virtual void copy(void* to, const void* from, std::size_t bytes, void* stream) = 0;
  virtual void synchronize(void* stream) = 0;
  /// The stream calls the function, on some thread.
  virtual void call(void* stream, void (*function)(void*), void* argument) = 0;
  /// The GPU that is current on this thread.
  virtual int current() = 0;
  /// The next copy that this thread puts on a stream fails; only with a stand-in.
  void fail_next_copy();
  /// No other process can open what was allocated there; only with a stand-in.
  void keep_private(const void* memory);
  /// Waits until a thread has asked for an event while the program records a graph; only with a stand-in. False: not
  /// within this time.
  bool wait_for_query_in_capture(int milliseconds);
  virtual void begin_capture(void* stream) = 0;
  virtual void end_capture(void* stream) = 0;
};

/// Whether device_calls.cpp puts the buffers of all ranks on the first GPU. First what DDL_TEST_GPUS=shared says.
bool& all_ranks_share_a_gpu();

}  // namespace ddl::runtime::test
