// What the output tests share: a sink that records, a queue in place of an event loop, chunks in short.
#pragma once

#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <functional>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/deadline.h"
#include "launcher/output/output_stream.h"
#include "launcher/output/sink.h"
#include "support/catch.h"
#include "support/temporary_directory.h"

namespace ddl::test {

inline constexpr auto kStdout = launcher::OutputStream::kStdout;
inline constexpr auto kStderr = launcher::OutputStream::kStderr;
inline constexpr auto kLine = launcher::ChunkEnd::kLine;
inline constexpr auto kReturn = launcher::ChunkEnd::kCarriageReturn;
inline constexpr auto kOpen = launcher::ChunkEnd::kOpen;
inline constexpr auto kIdle = launcher::ChunkEnd::kIdle;
inline constexpr auto kEof = launcher::ChunkEnd::kEof;

/// Stores everything that it is given; a write is done when the test completes it.
class RecordingSink : public launcher::Sink {
 public:
  void write(std::string bytes, std::function<void()> done) override {
    text += bytes;
    writes.push_back(bytes);
    pending_.push_back(std::move(done));
  }
  std::size_t num_pending() const { return pending_.size(); }
  void complete_one() {
    REQUIRE_FALSE(pending_.empty());
    auto done = std::move(pending_.front());
    pending_.pop_front();
    done();
  }
  /// Until there is nothing more to complete.
  void complete_all() {
    while (!pending_.empty()) complete_one();
  }

  std::string text;
  std::vector<std::string> writes;

 private:
  std::deque<std::function<void()>> pending_;
};

/// An event loop with nothing but posted functions: post() from any thread, run_until() on the test's.
class PostQueue {
 public:
  launcher::Post post() {
    return [this](std::function<void()> function) {
      {
        const std::lock_guard lock(mutex_);
        functions_.push_back(std::move(function));
      }
      wake_.notify_one();
    };
  }
  /// Runs what is posted until is_done(); false if that takes more than a minute.
  bool run_until(const std::function<bool()>& is_done) {
    const auto deadline = Deadline::after(std::chrono::minutes(1));
    while (!is_done()) {
      std::unique_lock lock(mutex_);
      if (!wake_.wait_until(lock, deadline.when(), [this] { return !functions_.empty(); })) return false;
      auto function = std::move(functions_.front());
      functions_.pop_front();
      lock.unlock();
      function();
    }
    return true;
  }
  /// Runs what has been posted so far.
  void run_posted() {
    for (;;) {
      std::unique_lock lock(mutex_);
      if (functions_.empty()) return;
      auto function = std::move(functions_.front());
      functions_.pop_front();
      lock.unlock();
      function();
    }
  }

 private:
  std::mutex mutex_;
  std::condition_variable wake_;
  std::deque<std::function<void()>> functions_;
};

inline launcher::OutputChunk chunk(int rank, launcher::OutputStream stream, launcher::ChunkEnd end,
                                   std::string_view bytes, std::int64_t time_ns = 0) {
  return {rank, stream, end, time_ns, std::string(bytes)};
}

/// text with every `from` replaced.
inline std::string replaced(std::string text, std::string_view from, std::string_view to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size()) {
    text.replace(at, from.size(), to);
  }
  return text;
}

}  // namespace ddl::test
