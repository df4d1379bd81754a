// What a program has on a GPU in tests: a stream, numbers, and a gate that holds a stream.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <utility>
#include <vector>

#include "ddl/ddl.h"
#include "runtime/support/test_gpu.h"

namespace ddl::runtime::test {

/// A program's stream on the GPU of its rank, and what it does there.
class OnGpu {
 public:
  explicit OnGpu(const ddl_context* context) : OnGpu(ddl_rank(context) % TestGpu::get().count()) {}
  explicit OnGpu(int gpu) : gpu_(gpu) {
    TestGpu::get().use(gpu);
    stream_ = TestGpu::get().make_stream();
    options.stream = stream_;
  }
  ~OnGpu() { TestGpu::get().destroy(stream_); }
  OnGpu(const OnGpu&) = delete;
  OnGpu& operator=(const OnGpu&) = delete;

  int gpu() const { return gpu_; }
  void* stream() const { return stream_; }
  ddl_call_options options = DDL_CALL_OPTIONS_INIT;

 private:
  int gpu_;
  void* stream_ = nullptr;
};

/// Floats on a GPU.
class Floats {
 public:
  Floats(const OnGpu& on, std::vector<float> values) : on_(on), values_(std::move(values)) {
    data_ = static_cast<float*>(TestGpu::get().allocate(bytes()));
    TestGpu::get().copy(data_, values_.data(), bytes(), on.stream());
  }
  ~Floats() { TestGpu::get().free(data_); }
  Floats(const Floats&) = delete;
  Floats& operator=(const Floats&) = delete;

  float* data() { return data_; }
  std::uint64_t size() const { return values_.size(); }
  std::vector<float> values() {
    TestGpu::get().copy(values_.data(), data_, bytes(), on_.stream());
    TestGpu::get().synchronize(on_.stream());
    return values_;
  }

 private:
  std::size_t bytes() const { return values_.size() * sizeof(float); }

  const OnGpu& on_;
  std::vector<float> values_;
  float* data_ = nullptr;
};

/// Holds a stream until it is opened.
class Gate {
 public:
  void hold(void* stream) {
    TestGpu::get().call(
        stream, [](void* self) { static_cast<Gate*>(self)->pass(); }, this);
  }
  void open() {
    {
      const std::lock_guard lock(mutex_);
      is_open_ = true;
    }
    changed_.notify_all();
  }

 private:
  void pass() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [&] { return is_open_; });
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  bool is_open_ = false;
};

inline ddl_status sum(ddl_context* context, Floats& floats, const OnGpu& on) {
  return ddl_allreduce(context, floats.data(), floats.data(), floats.size(), DDL_FLOAT32, DDL_SUM,
                       &on.options);
}

}  // namespace ddl::runtime::test
