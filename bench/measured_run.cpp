#include "bench/measured_run.h"

#include <poll.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>

#include <fmt/format.h>

#include "base/process.h"
#include "base/process_tree.h"
#include "base/text.h"
#include "bench/process_table.h"

namespace ddl::bench {
namespace {

constexpr auto kStragglerGrace = std::chrono::seconds(2);
constexpr std::size_t kQuotedOutput = 2000;

double now_seconds() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

double to_seconds(const timeval& time) {
  return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) * 1e-6;
}

double cpu_of_reaped_children() {
  rusage usage{};
  ::getrusage(RUSAGE_CHILDREN, &usage);
  return to_seconds(usage.ru_utime) + to_seconds(usage.ru_stime);
}

// A program's output as one line: its lines without the empty ones and rules, separated by " | ".
std::string join_lines(std::string_view text) {
  std::vector<std::string> lines;
  for (const std::string_view line : split(text, '\n')) {
    if (line.find_first_not_of(" \t\r-=") != std::string_view::npos) lines.emplace_back(trim(line));
  }
  return join(lines, " | ");
}

// Waits for the processes that the contender has left behind. Those that run at the deadline are killed, and the
// names of their programs returned.
std::string reap_orphans(Deadline deadline) {
  if (wait_for_descendants(deadline)) return {};
  std::vector<std::string> programs;
  for (const ProcessId& process : descendants_of(::getpid())) programs.push_back(program_of(process.pid));
  kill_descendants(Deadline::never());
  return join(programs, ", ");
}

}  // namespace

std::string command_text(const Command& command) {
  std::vector<std::string> words;
  for (const auto& [name, value] : command.variables) words.push_back(name + "=" + shell_quote(value));
  for (const std::string& word : command.argv) words.push_back(shell_quote(word));
  return join(words, " ");
}

MeasuredRun::MeasuredRun(Child child, UniqueFd pidfd, UniqueFd output, double started, double cpu_before)
    : child_(std::move(child)),
      pidfd_(std::move(pidfd)),
      output_fd_(std::move(output)),
      started_(started),
      cpu_before_(cpu_before) {}

MeasuredRun::~MeasuredRun() {
  if (pidfd_) kill_descendants(Deadline::never());
}

Result<MeasuredRun> MeasuredRun::start(Command command) {
  DDL_ASSIGN(pipe, make_pipe());
  DDL_TRY(set_nonblocking(pipe.first.get(), true));
  command.streams = {kNullStream, pipe.second.get(), pipe.second.get()};
  const double cpu_before = cpu_of_reaped_children();
  const double started = now_seconds();
  DDL_ASSIGN(child, Child::start(command));
  DDL_ASSIGN(pidfd, open_pidfd(child.pid()));
  return MeasuredRun(std::move(child), std::move(pidfd), std::move(pipe.first), started, cpu_before);
}

// Reads what is available without blocking; closes the pipe at its end.
Status MeasuredRun::read_output() {
  std::array<char, 16384> buffer;
  while (output_fd_) {
    const ssize_t size = retry_eintr([&] { return ::read(output_fd_.get(), buffer.data(), buffer.size()); });
    if (size < 0 && errno == EAGAIN) break;
    if (size < 0) return fail_errno("read the program's output");
    if (size == 0) output_fd_.reset();
    output_.append(buffer.data(), size);
  }
  return {};
}

Result<MeasuredRun::Event> MeasuredRun::next_event(Deadline deadline) {
  std::array<pollfd, 2> watched{pollfd{output_fd_ ? output_fd_.get() : -1, POLLIN, 0},
                                pollfd{pidfd_.get(), POLLIN, 0}};
  const int ready =
      retry_eintr([&] { return ::poll(watched.data(), watched.size(), deadline.poll_milliseconds()); });
  if (ready < 0) return fail_errno("poll");
  if (watched[0].revents != 0) DDL_TRY(read_output());
  if (watched[1].revents != 0) return Event::kEnded;
  return ready == 0 ? Event::kTimeout : Event::kOutput;
}

Error MeasuredRun::failure(const std::string& what) const {
  const bool is_long = output_.size() > kQuotedOutput;
  const std::string_view end =
      is_long ? std::string_view(output_).substr(output_.size() - kQuotedOutput) : output_;
  const std::string tail = join_lines(end);
  return Error(ErrorCode::kSystem,
               tail.empty() ? what + ", without any output" : what + "; its output ends: " + tail);
}

Status MeasuredRun::wait_for_output(const std::string& word, int count, Deadline deadline) {
  for (;;) {
    int found = 0;
    for (std::size_t at = output_.find(word); at != std::string::npos;
         at = output_.find(word, at + word.size()))
      ++found;
    if (found >= count) return {};
    DDL_ASSIGN(event, next_event(deadline));
    if (event == Event::kEnded) return fail(failure(fmt::format("ended before it printed \"{}\"", word)));
    if (event == Event::kTimeout) return fail(failure(fmt::format("did not print \"{}\" in time", word)));
  }
}

Status MeasuredRun::stay_running(Deadline deadline) {
  for (;;) {
    DDL_ASSIGN(event, next_event(deadline));
    if (event == Event::kEnded) return fail(failure("ended by itself"));
    if (event == Event::kTimeout) return {};
  }
}

Result<RunCost> MeasuredRun::finish(Deadline deadline) {
  for (;;) {
    DDL_ASSIGN(event, next_event(deadline));
    if (event == Event::kTimeout) return fail(failure("did not end in time"));
    if (event == Event::kEnded) break;
  }
  child_.wait(Deadline::never());
  RunCost cost;
  cost.wall_seconds = now_seconds() - started_;
  const int status = child_.wait_status();
  pidfd_.reset();

  const std::string stragglers = reap_orphans(Deadline::after(kStragglerGrace));
  DDL_TRY(read_output());
  if (!stragglers.empty()) return fail(failure("left running: " + stragglers));
  if (WIFSIGNALED(status)) return fail(failure("died of " + signal_text(WTERMSIG(status))));
  if (WEXITSTATUS(status) != 0) return fail(failure(fmt::format("exited with {}", WEXITSTATUS(status))));
  cost.cpu_seconds = cpu_of_reaped_children() - cpu_before_;
  return cost;
}

}  // namespace ddl::bench
