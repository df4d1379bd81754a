// ddlrun's own standard streams: its input on the way to the ranks that read it, and the ranks' output on the way
// to the terminal and files.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/deadline.h"
#include "launcher/job/job_spec.h"
#include "launcher/loop/event_loop.h"
#include "launcher/output/blocking_writer.h"
#include "launcher/output/output_files.h"
#include "launcher/output/output_mux.h"

namespace ddl::launcher {

/// How much of ddlrun's standard input each node with reading ranks has consumed: the slowest node counts. Pure.
class StdinTakers {
 public:
  StdinTakers() = default;
  explicit StdinTakers(const std::vector<int>& nodes) {
    for (const int node : nodes) taken_[node] = 0;
  }

  /// The nodes that still read, ascending.
  std::vector<int> nodes() const;
  /// A node has consumed this number of further bytes. Returns by how many bytes the slowest node has advanced.
  std::int64_t take(int node, std::int64_t bytes);
  /// None of the node's ranks reads any more. Returns by how many bytes the slowest remaining node is further.
  std::int64_t close(int node);
  bool is_empty() const { return taken_.empty(); }

 private:
  std::int64_t newly_taken();

  std::map<int, std::int64_t> taken_;
  std::int64_t reported_ = 0;
};

/// Reads ddlrun's own standard input (a borrowed descriptor) and delivers the bytes, never more than kWindow ahead
/// of what the ranks have consumed. A terminal is read only while ddlrun is in its foreground: a background job
/// must not be stopped for reading it, nor consume the shell's input. Lives on the loop's thread.
class StdinReader {
 public:
  static constexpr std::int64_t kWindow = 256 * 1024;

  struct Handlers {
    std::function<void(std::string&&)> on_bytes;
    std::function<void()> on_end;  ///< end of file, or an error: once
  };
  StdinReader(EventLoop& loop, int fd, Handlers handlers);

  /// The ranks have consumed this number of bytes.
  void refund(std::int64_t bytes);
  /// ddlrun has been continued, perhaps in the foreground.
  void recheck_terminal();
  /// No rank reads any more.
  void stop() {
    ended_ = true;
    recheck_timer_.cancel();
    watch_.reset();
  }

 private:
  bool is_in_background() const;
  /// Watches the descriptor if it may be read now; in the background, checks again later.
  void update_watch();
  void on_readable();

  EventLoop& loop_;
  int fd_;
  Handlers handlers_;
  bool is_terminal_;
  bool ended_ = false;
  std::int64_t under_way_ = 0;
  EventLoop::FdWatch watch_;
  EventLoop::Timer recheck_timer_;
};

/// Writes the ranks' output to the terminal and to files, with ddlrun's own lines between them: connects mux,
/// writers and files to an event loop. Starts threads. Lives on the loop's thread.
class OutputRouter {
 public:
  struct Handlers {
    std::function<void(int rank, OutputStream stream, std::size_t bytes)> on_consumed;
    std::function<void()> on_reader_gone;  ///< EPIPE on standard output
  };
  /// window: how many bytes of each stream may be in flight from its agent. Error: an output file cannot be created.
  static Result<std::unique_ptr<OutputRouter>> create(EventLoop& loop, const JobSpec& spec, bool raw,
                                                      std::size_t window, Handlers handlers);

  void accept(OutputChunk&& chunk) { mux_->accept(std::move(chunk)); }
  /// One line of ddlrun's own on standard error, never inside a rank's line.
  void print(const std::string& line) { mux_->print(OutputStream::kStderr, line); }
  void when_idle(std::function<void()> callback) { mux_->when_idle(std::move(callback)); }
  /// False if not everything was written in time.
  bool drain(Deadline deadline);
  /// The first stream or file that could not be written, and why; "" if there is none. Final after drain().
  const std::string& lost() const { return lost_; }

 private:
  OutputRouter(EventLoop& loop, Handlers handlers) : loop_(loop), handlers_(std::move(handlers)) {}
  Status open(const JobSpec& spec, bool raw, std::size_t window);
  Result<std::unique_ptr<BlockingWriter>> open_writer(int fd);

  EventLoop& loop_;
  Handlers handlers_;
  std::unique_ptr<BlockingWriter> out_;
  std::unique_ptr<BlockingWriter> err_;
  std::unique_ptr<OutputFiles> files_;
  std::unique_ptr<OutputMux> mux_;
  EventLoop::Timer tick_;
  std::string lost_;
};

}  // namespace ddl::launcher
