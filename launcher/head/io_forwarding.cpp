#include "launcher/head/io_forwarding.h"

#include <poll.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <system_error>

#include "base/error.h"
#include "launcher/output/output_stream.h"

namespace ddl::launcher {

std::vector<int> StdinTakers::nodes() const {
  std::vector<int> nodes;
  for (const auto& [node, bytes] : taken_) nodes.push_back(node);
  return nodes;
}

std::int64_t StdinTakers::take(int node, std::int64_t bytes) {
  const auto found = taken_.find(node);
  if (found == taken_.end()) return 0;
  found->second += bytes;
  return newly_taken();
}

std::int64_t StdinTakers::close(int node) {
  taken_.erase(node);
  return newly_taken();
}

std::int64_t StdinTakers::newly_taken() {
  if (taken_.empty()) return 0;
  const auto slowest = std::min_element(taken_.begin(), taken_.end(),
                                        [](const auto& a, const auto& b) { return a.second < b.second; });
  const std::int64_t more = slowest->second - reported_;
  reported_ = slowest->second;
  return more;
}

namespace {

// While ddlrun is in the background it has to poll: a shell's fg sends SIGCONT only to a job that was stopped, and
// the kernel does not report that the terminal has another foreground process group.
constexpr auto kRecheckInterval = std::chrono::milliseconds(500);

}  // namespace

StdinReader::StdinReader(EventLoop& loop, int fd, Handlers handlers)
    : loop_(loop), fd_(fd), handlers_(std::move(handlers)), is_terminal_(::isatty(fd) == 1) {
  watch_ = loop_.watch(fd_, [this] { on_readable(); });
  update_watch();
}

bool StdinReader::is_in_background() const { return is_terminal_ && ::tcgetpgrp(fd_) != ::getpgrp(); }

void StdinReader::update_watch() {
  recheck_timer_.cancel();
  if (ended_) return;
  const bool in_background = is_in_background();
  watch_.want_read(!in_background && under_way_ < kWindow);
  if (in_background) recheck_timer_ = loop_.after(kRecheckInterval, [this] { update_watch(); });
}

void StdinReader::on_readable() {
  if (is_in_background()) return update_watch();
  // The descriptor may be blocking, and another reader of it may have been faster.
  pollfd entry{fd_, POLLIN, 0};
  if (::poll(&entry, 1, 0) == 0) return;
  std::array<char, 65536> buffer;
  const auto limit = std::min<std::size_t>(buffer.size(), kWindow - under_way_);
  const ssize_t got = retry_eintr([&] { return ::read(fd_, buffer.data(), limit); });
  if (got < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
  // EIO: moved to the background between the check and the read.
  if (got < 0 && errno == EIO && is_in_background()) return update_watch();
  if (got <= 0) {
    stop();
    return handlers_.on_end();
  }
  under_way_ += got;
  update_watch();
  handlers_.on_bytes(std::string(buffer.data(), got));
}

void StdinReader::refund(std::int64_t bytes) {
  under_way_ = std::max<std::int64_t>(0, under_way_ - bytes);
  update_watch();
}

void StdinReader::recheck_terminal() { update_watch(); }

Result<std::unique_ptr<OutputRouter>> OutputRouter::create(EventLoop& loop, const JobSpec& spec, bool raw,
                                                           std::size_t window, Handlers handlers) {
  std::unique_ptr<OutputRouter> router(new OutputRouter(loop, std::move(handlers)));
  DDL_TRY(router->open(spec, raw, window));
  return router;
}

Result<std::unique_ptr<BlockingWriter>> OutputRouter::open_writer(int fd) {
  return BlockingWriter::create(
      fd, [this](std::function<void()> call) { loop_.post(std::move(call)); },
      [this, fd](int errno_value) {
        if (errno_value == EPIPE && fd == STDOUT_FILENO) return handlers_.on_reader_gone();
        // If it is standard error that is broken, this line is lost as well.
        const char* name = fd == STDOUT_FILENO ? "standard output" : "standard error";
        const std::string what = std::string(name) + ": " + std::generic_category().message(errno_value);
        if (lost_.empty()) lost_ = what;
        print("ddlrun: writing to " + what + "; its further output is lost");
      });
}

namespace {

std::vector<std::string> directory_names(const JobSpec& spec) {
  if (spec.output_labels.empty()) return rank_directory_names(spec.num_ranks);
  std::vector<std::string> names;
  for (const int label : spec.output_labels)
    names.push_back(rank_directory_name(label, std::max(spec.elastic.start_ranks, 1)));
  return names;
}

}  // namespace

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
        spec.output_directory, directory_names(spec),
        [this](std::function<void()> call) { loop_.post(std::move(call)); },
        [this](const std::string& sentence) {
          if (lost_.empty()) lost_ = sentence.substr(0, sentence.find("; from here on"));
          print("ddlrun: " + sentence);
        });
    if (!files) return fail(std::move(files.error()).during("--output-filename " + spec.output_directory));
    files_ = std::move(*files);
  }

  OutputMuxOptions options;
  options.num_ranks = spec.num_ranks;
  options.labels = spec.output_labels;
  options.tag = spec.tag_output;
  options.timestamp = spec.timestamp_output;
  options.merges_stderr = spec.merges_stderr;
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
