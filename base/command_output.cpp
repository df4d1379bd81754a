#include "base/command_output.h"

#include <poll.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>

#include "base/command.h"
#include "base/deadline.h"
#include "base/fd.h"
#include "base/printable_text.h"
#include "base/process.h"
#include "base/text.h"

namespace ddl {
namespace {

/// A file in memory: unlike a pipe it is written before the command starts, and no SIGPIPE comes of a command that
/// reads nothing.
Result<UniqueFd> input_file(std::string_view input) {
  UniqueFd fd(::memfd_create("ddlrun-input", MFD_CLOEXEC));
  if (!fd) return fail_errno("memfd_create");
  DDL_TRY(write_all(fd.get(), input.data(), input.size()));
  if (::lseek(fd.get(), 0, SEEK_SET) != 0) return fail_errno("lseek");
  return fd;
}

/// One of the command's streams, read without blocking.
struct Stream {
  UniqueFd fd;  ///< none once it has ended
  std::string& text;

  /// Reads what there is now.
  Status read_on() {
    std::array<char, 1 << 16> buffer;
    while (fd) {
      const ssize_t got = retry_eintr([&] { return ::read(fd.get(), buffer.data(), buffer.size()); });
      if (got < 0 && errno == EAGAIN) return {};
      if (got < 0) return fail_errno("read");
      if (got == 0) fd.reset();
      text.append(buffer.data(), static_cast<std::size_t>(got));
      if (text.size() > kMaxCommandOutput)
        return fail(ErrorCode::kProtocol,
                    "it prints more than " + counted(kMaxCommandOutput >> 20, "megabyte"));
    }
    return {};
  }
};

/// Reads both streams until the command has ended and everything that it has written is read.
Status read_until_end(pid_t pid, Stream& out, Stream& err, const Deadline& deadline) {
  const auto pidfd = open_pidfd(pid);
  for (;;) {
    std::array<pollfd, 3> waiting{
        {{pidfd ? pidfd->get() : -1, POLLIN, 0}, {out.fd.get(), POLLIN, 0}, {err.fd.get(), POLLIN, 0}}};
    const int patience = pidfd ? deadline.poll_milliseconds() : poll_period_milliseconds(deadline);
    const int ready = retry_eintr([&] { return ::poll(waiting.data(), waiting.size(), patience); });
    if (ready < 0) return fail_errno("poll");
    // Before the reads below, so that all that it wrote is read. Its children may hold the pipes open for longer: not
    // waited for.
    const bool has_ended = has_child_ended(pid);
    DDL_TRY(out.read_on());
    DDL_TRY(err.read_on());
    if (has_ended) return {};
    if (deadline.has_passed()) return fail(ErrorCode::kTimeout, "it did not end in time and was killed");
  }
}

Result<CommandOutput> run(const std::vector<std::string>& argv, std::string_view input,
                          const Deadline& deadline, const std::optional<Environment>& environment) {
  DDL_ASSIGN(in, input_file(input));
  DDL_ASSIGN(out, make_pipe());
  DDL_ASSIGN(err, make_pipe());
  DDL_TRY(set_nonblocking(out.first.get(), true));
  DDL_TRY(set_nonblocking(err.first.get(), true));

  Command command{.argv = argv, .streams = {in.get(), out.second.get(), err.second.get()}};
  if (environment) command.environment = environment_entries(*environment);
  auto child = Child::start(command);
  if (!child) return fail(errno_error("it cannot be started", child.error().system_errno()));
  out.second.reset();
  err.second.reset();

  CommandOutput output;
  Stream out_stream{std::move(out.first), output.out};
  Stream err_stream{std::move(err.first), output.err};
  DDL_TRY(read_until_end(child->pid(), out_stream, err_stream, deadline));
  child->kill();
  if (!child->knows_status())
    return fail(ErrorCode::kSystem, "its exit status is lost: another part of this process has reaped it");
  output.wait_status = child->wait_status();
  return output;
}

}  // namespace

std::string how_it_failed(const CommandOutput& output) {
  const std::string err = printable_line(trim(output.err.substr(0, output.err.find('\n'))));
  const std::string how = WIFSIGNALED(output.wait_status)
                              ? "was killed by " + signal_text(WTERMSIG(output.wait_status))
                              : "exits with " + std::to_string(WEXITSTATUS(output.wait_status));
  return how + (err.empty() ? "" : ": " + err);
}

Result<CommandOutput> command_output(const std::vector<std::string>& argv, std::string_view input,
                                     std::chrono::milliseconds patience,
                                     const std::optional<Environment>& environment) {
  if (argv.empty() || argv.front().empty())
    return fail(ErrorCode::kInvalidArgument, "there is no command to run");
  auto output = run(argv, input, Deadline::after(patience), environment);
  if (!output) return fail(std::move(output.error().during(argv.front())));
  return output;
}

}  // namespace ddl
