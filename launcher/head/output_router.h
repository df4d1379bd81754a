// Where the ranks' output goes on the head: the terminal and files, with ddlrun's own lines between.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/deadline.h"
#include "launcher/job/job_spec.h"
#include "launcher/loop/event_loop.h"
#include "launcher/output/blocking_writer.h"
#include "launcher/output/output_files.h"
#include "launcher/output/output_mux.h"

namespace ddl::launcher {

/// Wires mux, writers and files to an event loop. Starts threads. Lives on the loop's thread.
class OutputRouter {
 public:
  struct Handlers {
    std::function<void(int rank, OutputStream stream, std::size_t bytes)> on_consumed;
    std::function<void()> on_reader_gone;  ///< EPIPE on standard output
  };
  /// window: what each stream's agent may have under way. Error: an output file that cannot be made.
  static Result<std::unique_ptr<OutputRouter>> create(EventLoop& loop, const JobSpec& spec, bool raw,
                                                      std::size_t window, Handlers handlers);

  void accept(OutputChunk&& chunk) { mux_->accept(std::move(chunk)); }
  /// One line of ddlrun's own on standard error, never inside a rank's line.
  void print(const std::string& line) { mux_->print(OutputStream::kStderr, line); }
  void when_idle(std::function<void()> callback) { mux_->when_idle(std::move(callback)); }
  /// False if not everything was written in time.
  bool drain(Deadline deadline);
  /// The first thing that could not be written, and why; "" if there is none. Complete once drained.
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
