// A rank of gpu_bench: libddl as a program uses it.
#pragma once

#include <cstddef>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "ddl/ddl.h"
#include "gpu/measurement.h"

namespace ddl::gpu_bench {

/// Errors are thrown as std::runtime_error.
class Rank {
 public:
  Rank() {
    ddl_init_options options = DDL_INIT_OPTIONS_INIT;
    options.timeout_seconds = 60;
    check(ddl_init(&options, &context_));
  }
  ~Rank() { (void)ddl_finalize(context_); }
  Rank(const Rank&) = delete;
  Rank& operator=(const Rank&) = delete;

  static void check(ddl_status status) {
    if (status != DDL_OK) throw std::runtime_error(ddl_last_error());
  }

  ddl_context* context() const { return context_; }
  int number() const { return ddl_rank(context_); }
  int size() const { return ddl_size(context_); }

  /// stream: null, on the host.
  void allreduce(const float* from, float* to, std::size_t count, void* stream) {
    ddl_call_options options = DDL_CALL_OPTIONS_INIT;
    options.stream = stream;
    check(ddl_allreduce(context_, from, to, count, DDL_FLOAT32, DDL_SUM, &options));
  }
  void barrier() const { check(ddl_barrier(context_, nullptr)); }
  /// The largest of all ranks.
  double largest(double value) const {
    check(ddl_allreduce(context_, &value, &value, 1, DDL_FLOAT64, DDL_MAX, nullptr));
    return value;
  }
  void expect_one_gpu(const std::string& uuid) const {
    std::vector<char> all(uuid.size() * static_cast<std::size_t>(size()));
    check(ddl_allgather(context_, uuid.data(), all.data(), uuid.size(), DDL_UINT8, nullptr));
    for (std::size_t at = 0; at < all.size(); at += uuid.size()) {
      if (uuid.compare(0, uuid.size(), all.data() + at, uuid.size()) != 0)
        throw std::runtime_error("the ranks use several GPUs; let them see one, by CUDA_VISIBLE_DEVICES");
    }
  }
  void print_if_first(const Measurement& measurement) const {
    if (number() == 0) print(measurement);
  }

 private:
  ddl_context* context_ = nullptr;
};

/// Ranks that begin each run of calls at the same time. The time of the slowest one counts.
struct Together {
  Rank& rank;
};

/// The median of the rounds, after one that warms up.
inline CallTime measure(const Effort& effort, const std::function<void()>& call,
                        const std::function<void()>& wait, const Together* together = nullptr) {
  std::vector<CallTime> runs;
  for (int round = -1; round < effort.rounds; ++round) {
    if (together != nullptr) together->rank.barrier();
    CallTime run = time_run(effort.calls, call, wait);
    if (together != nullptr) run = {together->rank.largest(run.whole), together->rank.largest(run.on_host)};
    if (round >= 0) runs.push_back(run);
  }
  return median_of(runs);
}

/// Named tensors on a GPU.
class Gradients {
 public:
  Gradients(Rank& rank, Gpu& gpu, const std::vector<std::size_t>& counts) : rank_(rank) {
    options_.stream = gpu.stream();
    for (std::size_t i = 0; i < counts.size(); ++i) {
      buffers_.push_back(std::make_unique<GpuMemory>(gpu, counts[i] * sizeof(float)));
      names_.push_back("gradient " + std::to_string(i));
    }
    for (std::size_t i = 0; i < counts.size(); ++i) {
      float* const data = buffers_[i]->data();
      tensors_.push_back({names_[i].c_str(), data, data, counts[i]});
    }
  }

  void reduce_one_by_one() {
    for (const ddl_tensor& tensor : tensors_) {
      ddl_handle* handle = nullptr;
      Rank::check(ddl_allreduce_async(rank_.context(), tensor.name, tensor.send, tensor.recv, tensor.count,
                                      DDL_FLOAT32, DDL_SUM, &options_, &handle));
      Rank::check(ddl_wait(handle));
    }
  }
  void reduce_all() {
    std::vector<ddl_handle*> handles(tensors_.size());
    Rank::check(ddl_grouped_allreduce_async(rank_.context(), tensors_.data(), tensors_.size(), DDL_FLOAT32,
                                            DDL_SUM, &options_, handles.data()));
    Rank::check(ddl_wait_all(handles.data(), handles.size()));
  }

 private:
  Rank& rank_;
  ddl_async_options options_ = DDL_ASYNC_OPTIONS_INIT;
  std::vector<std::unique_ptr<GpuMemory>> buffers_;
  std::vector<std::string> names_;
  std::vector<ddl_tensor> tensors_;
};

}  // namespace ddl::gpu_bench
