// What gpu_bench measures with: a GPU's stream and memory, times of runs of calls, and the lines that it prints.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <functional>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "runtime/src/device/device_runtimes.h"
#include "support/gpu_vendor.h"

namespace ddl::gpu_bench {

/// Throws std::runtime_error for an error.
inline void check(const Status& status) {
  if (!status) throw std::runtime_error(status.error().message());
}
template <class T>
T take(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().message());
  return std::move(*result);
}

using test::is_hip;

/// The first GPU, current on this thread as long as the object lives, and a stream.
class Gpu {
 public:
  Gpu()
      : runtime_(*take(runtime::load_runtime(runtime::device_vendors()[is_hip() ? 1 : 0]))),
        device_(*take(runtime_.device(0))),
        current_(std::make_unique<runtime::CurrentDevice>(device_)) {
    check(current_->status());
    stream_ = take(runtime::DeviceStream::make(device_));
    other_ = take(runtime::DeviceStream::make(device_));
    event_ = take(runtime::DeviceEvent::make(device_));
  }

  runtime::Device& device() { return device_; }
  void* stream() const { return stream_.get(); }
  void* other_stream() const { return other_.get(); }
  std::string uuid() { return take(runtime_.uuid(0)); }

  /// Waits for what is on the stream, without giving the CPU away: the driver could take longer than a call to wake.
  void synchronize() { synchronize(stream()); }
  void synchronize(void* stream) {
    check(device_.record(event_.get(), stream));
    while (!take(device_.is_done(event_.get()))) {
    }
  }
  void copy(void* to, const void* from, std::size_t bytes) { check(device_.copy(to, from, bytes, stream())); }

 private:
  runtime::DeviceRuntime& runtime_;
  runtime::Device& device_;
  std::unique_ptr<runtime::CurrentDevice> current_;
  runtime::DeviceStream stream_, other_;
  runtime::DeviceEvent event_;
};

class GpuMemory {
 public:
  GpuMemory(Gpu& gpu, std::size_t bytes) : gpu_(gpu), data_(take(gpu.device().allocate(bytes))) {}
  ~GpuMemory() { gpu_.device().release(data_); }
  GpuMemory(const GpuMemory&) = delete;
  GpuMemory& operator=(const GpuMemory&) = delete;

  float* data() const { return static_cast<float*>(data_); }

 private:
  Gpu& gpu_;
  void* data_;
};

/// Pinned memory of the host.
class PinnedMemory {
 public:
  PinnedMemory(Gpu& gpu, std::size_t bytes) : gpu_(gpu), pages_(bytes) {
    check(gpu.device().pin(pages_.data(), bytes));
  }
  ~PinnedMemory() { gpu_.device().unpin(pages_.data()); }
  PinnedMemory(const PinnedMemory&) = delete;
  PinnedMemory& operator=(const PinnedMemory&) = delete;

  void* data() { return pages_.data(); }

 private:
  Gpu& gpu_;
  std::vector<std::byte> pages_;
};

/// Of one call, in seconds.
struct CallTime {
  double whole = 0;    ///< of a run of calls until the last one has been done, divided by their number
  double on_host = 0;  ///< until the last one has been put on the stream, divided alike
};

inline double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// How long a measurement takes.
struct Effort {
  int rounds = 7;  ///< whose median counts
  int calls = 20;  ///< of a run, at most: so few fit into the queue of a stream
};

/// One run of calls, each of which is put on a stream, and then a wait for all.
inline CallTime time_run(int calls, const std::function<void()>& call, const std::function<void()>& wait) {
  using Clock = std::chrono::steady_clock;
  const auto begin = Clock::now();
  for (int i = 0; i < calls; ++i) call();
  const std::chrono::duration<double> on_host = Clock::now() - begin;
  wait();
  const std::chrono::duration<double> whole = Clock::now() - begin;
  return {whole.count() / calls, on_host.count() / calls};
}

inline CallTime median_of(const std::vector<CallTime>& runs) {
  std::vector<double> whole, on_host;
  for (const CallTime& run : runs) {
    whole.push_back(run.whole);
    on_host.push_back(run.on_host);
  }
  return {median(std::move(whole)), median(std::move(on_host))};
}

/// A number that has been measured, and what it is to be.
struct Measurement {
  std::string name{};
  double value = 0;
  std::string unit{};
  std::string compared_with{};  ///< "": nothing
  double reference = 0;         ///< the number that it is compared with
  std::string aim{};            ///< "": there is none
  bool is_met = false;
};

inline std::string quoted(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : text) quoted += c == '"' || c == '\\' || static_cast<unsigned char>(c) < ' ' ? '\'' : c;
  return quoted + "\"";
}

/// Prints a JSON object on a line. All values are texts, in this order, as scripts/test-gpu reads them.
inline void print(const Measurement& m) {
  char value[32], reference[32] = "";
  (void)std::snprintf(value, sizeof value, "%.4g", m.value);
  if (!m.compared_with.empty()) (void)std::snprintf(reference, sizeof reference, "%.4g", m.reference);
  const char* const verdict = m.aim.empty() ? "" : m.is_met ? "met" : "missed";
  std::printf(
      "{\"name\": %s, \"value\": \"%s\", \"unit\": %s, \"compared with\": %s, \"reference\": \"%s\", "
      "\"aim\": %s, \"verdict\": \"%s\"}\n",
      quoted(m.name).c_str(), value, quoted(m.unit).c_str(), quoted(m.compared_with).c_str(), reference,
      quoted(m.aim).c_str(), verdict);
  (void)std::fflush(stdout);
}

/// "4 B", "64 KiB", "256 MiB"
inline std::string size_text(std::size_t bytes) {
  if (bytes >= std::size_t{1} << 20) return std::to_string(bytes >> 20) + " MiB";
  if (bytes >= std::size_t{1} << 10) return std::to_string(bytes >> 10) + " KiB";
  return std::to_string(bytes) + " B";
}

}  // namespace ddl::gpu_bench
