#include "launcher/process/watched_command.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <optional>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "base/fd.h"
#include "launcher/process/end_watch.h"

namespace ddl::launcher {

struct WatchedCommand::Run {
  struct Stream {
    UniqueFd fd;
    std::string text;
    EventLoop::FdWatch watch;
  };

  Run(EventLoop& loop, Command command, std::optional<std::chrono::milliseconds> patience,
      std::size_t max_output, OnEnd on_end)
      : name_(command.argv.front()), max_output_(max_output), on_end_(std::move(on_end)) {
    command.parent_death_signal = SIGKILL;
    auto started = start_piped(std::move(command));
    if (!started) {
      timer_ = loop.after({}, [this, error = started.error()] { end(fail(error)); });
      return;
    }
    child_.emplace(std::move(started->child));
    watch(loop, out_, std::move(started->out));
    watch(loop, err_, std::move(started->err));
    if (patience)
      timer_ = loop.after(*patience, [this, limit = *patience] {
        end(fail(ErrorCode::kTimeout, name_ + " has not ended after " +
                                          fmt::format("{} s", std::chrono::duration<double>(limit).count())));
      });
    end_watch_.emplace(loop, child_->pid(), [this] { on_exit(); });
  }

  void watch(EventLoop& loop, Stream& stream, UniqueFd fd) {
    stream.fd = std::move(fd);
    ::fcntl(stream.fd.get(), F_SETFL, ::fcntl(stream.fd.get(), F_GETFL) | O_NONBLOCK);
    stream.watch = loop.watch(stream.fd.get(), [this, &stream] { read(stream); });
  }

  void read(Stream& stream) {
    std::array<char, 16384> piece{};
    while (true) {
      const ssize_t count = retry_eintr([&] { return ::read(stream.fd.get(), piece.data(), piece.size()); });
      if (count < 0 && errno == EAGAIN) return;
      if (count <= 0) return stream.watch.reset();
      stream.text.append(piece.data(), static_cast<std::size_t>(count));
      if (stream.text.size() > max_output_)
        return end(fail(ErrorCode::kProtocol,
                        name_ + " prints more than " + std::to_string(max_output_) + " bytes"));
    }
  }

  /// A process that it has left behind may hold the pipes: what has come by now is all.
  void on_exit() {
    if (!on_end_) return;
    // read() may end the run.
    const std::weak_ptr<int> alive = alive_;
    for (Stream* const stream : {&out_, &err_}) {
      read(*stream);
      if (alive.expired() || !on_end_) return;
    }
    child_->kill();
    end(CommandOutput{child_->wait_status(), std::move(out_.text), std::move(err_.text)});
  }

  /// Destroys this, perhaps.
  void end(const Result<CommandOutput>& result) {
    if (!on_end_) return;
    if (child_) child_->kill();
    out_.watch.reset();
    err_.watch.reset();
    timer_.cancel();
    const OnEnd on_end = std::exchange(on_end_, nullptr);
    on_end(result);
  }

  std::string name_;
  std::size_t max_output_;
  OnEnd on_end_;
  std::shared_ptr<int> alive_ = std::make_shared<int>();
  std::optional<Child> child_;
  Stream out_;
  Stream err_;
  EventLoop::Timer timer_;
  std::optional<EndWatch> end_watch_;
};

WatchedCommand::WatchedCommand(EventLoop& loop, const Command& command,
                               std::optional<std::chrono::milliseconds> patience, std::size_t max_output,
                               OnEnd on_end)
    : run_(std::make_unique<Run>(loop, command, patience, max_output, std::move(on_end))) {}

WatchedCommand::~WatchedCommand() = default;

}  // namespace ddl::launcher
