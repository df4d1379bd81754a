#include "launcher/head/output_router.h"

#include <unistd.h>

#include <cerrno>
#include <system_error>

#include "launcher/output/credit.h"

namespace ddl::launcher {

Result<std::unique_ptr<OutputRouter>> OutputRouter::create(EventLoop& loop, const JobSpec& spec, bool raw,
                                                           std::size_t window, Handlers handlers) {
  std::unique_ptr<OutputRouter> router(new OutputRouter(loop, std::move(handlers)));
  if (auto status = router->open(spec, raw, window); !status) return fail(status.error());
  return router;
}

Result<std::unique_ptr<BlockingWriter>> OutputRouter::open_writer(int fd) {
  return BlockingWriter::create(
      fd, [this](std::function<void()> call) { loop_.post(std::move(call)); },
      [this, fd](int errno_value) {
        if (errno_value == EPIPE && fd == STDOUT_FILENO) return handlers_.on_reader_gone();
        // Standard error may be what is broken; then there is nobody to tell.
        const char* name = fd == STDOUT_FILENO ? "standard output" : "standard error";
        const std::string what = std::string(name) + ": " + std::generic_category().message(errno_value);
        if (lost_.empty()) lost_ = what;
        print("ddlrun: writing to " + what + "; what follows is lost there");
      });
}

Status OutputRouter::open(const JobSpec& spec, bool raw, std::size_t window) {
  auto out = open_writer(STDOUT_FILENO);
  if (!out) return fail(std::move(out.error()).during("standard output"));
  out_ = std::move(*out);
  if (!is_same_file(STDOUT_FILENO, STDERR_FILENO)) {
    auto err = open_writer(STDERR_FILENO);
    if (!err) return fail(std::move(err.error()).during("standard error"));
    err_ = std::move(*err);
  }
  if (!spec.output_directory.empty()) {
    auto files = OutputFiles::create(
        spec.output_directory, spec.num_proc,
        [this](std::function<void()> call) { loop_.post(std::move(call)); },
        [this](const std::string& sentence) {
          if (lost_.empty()) lost_ = sentence.substr(0, sentence.find("; from here on"));
          print("ddlrun: " + sentence);
        });
    if (!files) return fail(std::move(files.error()).during("--output-filename " + spec.output_directory));
    files_ = std::move(*files);
  }

  OutputMuxOptions options;
  options.num_ranks = spec.num_proc;
  options.tag = spec.tag_output;
  options.timestamp = spec.timestamp_output;
  options.raw = raw;
  options.stdout_sink = out_.get();
  options.stderr_sink = err_ ? err_.get() : out_.get();
  options.stdout_is_terminal = ::isatty(STDOUT_FILENO) == 1;
  options.stderr_is_terminal = ::isatty(STDERR_FILENO) == 1;
  if (files_)
    options.file_sink = [this](int rank, OutputStream stream) { return files_->sink(rank, stream); };
  options.on_consumed = handlers_.on_consumed;
  options.refund_step = output_refund_step(window);
  options.on_deadline = [this](std::optional<OutputMux::TimePoint> when) {
    tick_.cancel();
    if (when) tick_ = loop_.after(*when - std::chrono::steady_clock::now(), [this] { mux_->on_tick(); });
  };
  mux_ = std::make_unique<OutputMux>(std::move(options));
  return {};
}

bool OutputRouter::drain(Deadline deadline) {
  bool complete = out_->drain(deadline);
  if (err_) complete = err_->drain(deadline) && complete;
  if (files_) complete = files_->drain(deadline) && complete;
  return complete;
}

}  // namespace ddl::launcher
