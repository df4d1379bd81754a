#include "e2e/harness/job.h"

#include <fcntl.h>
#include <poll.h>
#include <pty.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <random>
#include <stdexcept>

#include "base/cpu_set.h"
#include "base/process.h"
#include "base/text.h"
#include "e2e/harness/fifo.h"
#include "support/catch.h"

namespace ddl::e2e {
namespace {

template <class T>
T value_of(Result<T> result) {
  if (!result) throw std::runtime_error(result.error().message());
  return std::move(*result);
}

std::string new_mark() {
  std::random_device random;
  return "DDL_E2E_MARK=" + std::to_string(::getpid()) + "-" + std::to_string(random()) + "-" +
         std::to_string(random());
}

UniqueFd open_or_throw(const std::string& path, int flags) {
  UniqueFd fd(::open(path.c_str(), flags | O_CLOEXEC, 0644));
  if (!fd) throw std::runtime_error(errno_error("open " + path, errno).message());
  return fd;
}

std::string last_part(const std::string& text) {
  constexpr std::size_t kShown = 4000;
  return text.size() <= kShown ? text : "[...]" + text.substr(text.size() - kShown);
}

/// On a machine with one CPU, which is one slot, a job of several ranks that names no hosts is allowed to share it. A
/// job of Slurm has the slots that Slurm gave it.
void allow_sharing_one_cpu(std::vector<std::string>& argv) {
  const auto ddlrun = std::find(argv.begin(), argv.end(), DDL_E2E_DDLRUN);
  const bool is_in_job = std::find(argv.begin(), ddlrun, "salloc") != ddlrun;
  if (CpuSet::allowed().count() != 1 || ddlrun == argv.end() || is_in_job) return;
  for (const char* const other : {"-H", "--hosts", "--hostfile", "--host-discovery-script", "-hostfile",
                                  "--config-file", "--slurm", "--oversubscribe"}) {
    if (std::find(ddlrun, argv.end(), other) != argv.end()) return;
  }
  const auto np = std::find(ddlrun, argv.end(), "-np");
  constexpr int kMaxRanks = 16;  // tests about the default slots ask for more
  const bool is_small =
      np != argv.end() && np + 1 != argv.end() && parse_integer(np[1]).value_or(1) <= kMaxRanks;
  if (!is_small && std::find(ddlrun, argv.end(), "--scaling") == argv.end()) return;
  argv.insert(ddlrun + 1, "--oversubscribe");
}

/// What a script of tests/e2e/programs finds wrong; "": nothing, or the module that it needs is not there.
std::string errors_by(const Scratch& scratch, const std::string& script,
                      const std::vector<std::string>& words) {
  constexpr int kNoModule = 77;
  Job check(scratch,
            {std::vector<std::string>{"/usr/bin/python3", DDL_E2E_SOURCES "/programs/" + script} + words});
  const int status = check.wait();
  return status == 0 || status == kNoModule ? "" : check.out() + check.err();
}

}  // namespace

std::string report_schema_errors(const Scratch& scratch, const std::string& path) {
  return errors_by(scratch, "check_schema.py",
                   {DDL_E2E_SOURCES "/../../docs/reference/ddl.report-1.schema.json", path});
}

void check_report_schema(const Scratch& scratch, const std::string& path) {
  CHECK(report_schema_errors(scratch, path) == "");
}

std::string page_errors(const Scratch& scratch, const std::string& path, bool has_script) {
  return errors_by(scratch, "check_page.py",
                   has_script ? std::vector<std::string>{"--script", path} : std::vector<std::string>{path});
}

bool is_in_path(const std::string& program) {
  return std::system(("command -v " + program + " >/dev/null 2>&1").c_str()) == 0;
}

Command ddlrun(std::vector<std::string> arguments) {
  Command command;
  command.argv = std::move(arguments);
  command.argv.insert(command.argv.begin(), DDL_E2E_DDLRUN);
  return command;
}

std::string program(const std::string& name) { return std::string(DDL_E2E_PROGRAMS) + "/" + name; }

Job::Job(const Scratch& scratch, const Command& command)
    : scratch_(scratch),
      temporary_(scratch.make_directory("tmp")),
      mark_(new_mark()),
      patience_(command.patience) {
  start(command);
}

Job::~Job() { kill_processes_with(mark_, Deadline::after(std::chrono::seconds(10))); }

void Job::start(const Command& command) {
  ddl::Command described{.argv = command.argv,
                         .variables = command.environment,
                         .directory = command.directory.empty() ? scratch_.path() : command.directory,
                         .ignored_signals = command.ignored_signals,
                         .group = ddl::Command::Group::kOwnSession,
                         .has_terminal = command.terminal};
  allow_sharing_one_cpu(described.argv);
  described.variables["TMPDIR"] = temporary_;
  described.variables[mark_.substr(0, mark_.find('='))] = mark_.substr(mark_.find('=') + 1);

  UniqueFd in, out, err;  // of the child; closed here after it has started
  if (command.terminal) {
    int master = -1, slave = -1;
    if (::openpty(&master, &slave, nullptr, nullptr, nullptr) != 0) throw std::runtime_error("openpty");
    for (const int fd : {master, slave}) ::fcntl(fd, F_SETFD, FD_CLOEXEC);
    out_.fd = UniqueFd(master);
    in = UniqueFd(slave);
    terminal_ = master;
    described.streams = {slave, slave, slave};
  } else {
    if (command.input == Command::Input::kPipe) {
      auto pipe = value_of(make_pipe());
      in = std::move(pipe.first);
      input_ = std::move(pipe.second);
      (void)set_nonblocking(input_.get(), true);
    } else if (command.input == Command::Input::kFile) {
      in = open_or_throw(command.input_file, O_RDONLY);
    }
    auto pipe = value_of(make_pipe());
    out_.fd = std::move(pipe.first);
    out = std::move(pipe.second);
    if (command.output == Command::Output::kTwoPipes) {
      pipe = value_of(make_pipe());
      err_.fd = std::move(pipe.first);
      err = std::move(pipe.second);
    }
    described.streams = {in.get(), out.get(), err ? err.get() : out.get()};
    if (!in) described.streams.in = command.input == Command::Input::kClosed ? kClosedStream : kNullStream;
  }

  std::signal(SIGPIPE, SIG_IGN);  // a command may end without reading its input
  child_.emplace(value_of(Child::start(described)));
  pidfd_ = value_of(open_pidfd(pid()));
}

pid_t Job::agent() const {
  const auto found = child_named(pid(), "ddl-agent");
  if (!found) give_up("finding the agent");
  return *found;
}

pid_t Job::spawner() const {
  const auto found = child_named(agent(), "ddl-spawner");
  if (!found) give_up("finding the spawner");
  return *found;
}

void Job::wait_for(std::string_view text, int times) {
  wait_until("for \"" + std::string(text) + "\" " + counted(times, "time"),
             [&] { return occurrences(out(), text) + occurrences(err(), text) >= times; });
}

void Job::wait_until(const std::string& what, const std::function<bool()>& condition) {
  const auto deadline = Deadline::after(patience_);
  while (!condition()) {
    if (!out_.fd && !err_.fd) give_up("waiting " + what + ", when its output ended");
    if (!pump(deadline)) give_up("waiting " + what);
  }
}

bool Job::is_silent_for(std::chrono::milliseconds duration) { return !pump(Deadline::after(duration)); }

std::size_t Job::read_some(std::size_t max) {
  const auto deadline = Deadline::after(patience_);
  pollfd entry{out_.fd.get(), POLLIN, 0};
  if (retry_eintr([&] { return ::poll(&entry, 1, deadline.poll_milliseconds()); }) == 0)
    give_up("waiting for output");
  const std::size_t before = out_.bytes.size();
  out_.bytes.resize(before + max);
  const ssize_t got = retry_eintr([&] { return ::read(out_.fd.get(), out_.bytes.data() + before, max); });
  out_.bytes.resize(before + static_cast<std::size_t>(std::max<ssize_t>(got, 0)));
  if (got <= 0) out_.fd.reset();
  return static_cast<std::size_t>(std::max<ssize_t>(got, 0));
}

void Job::resize_output_pipe(std::size_t bytes) {
  if (::fcntl(out_.fd.get(), F_SETPIPE_SZ, static_cast<int>(bytes)) < 0)
    throw std::runtime_error("F_SETPIPE_SZ");
}

void Job::close_output() { out_.fd.reset(); }

void Job::write(std::string_view bytes) {
  to_write_ = bytes;
  const auto deadline = Deadline::after(patience_);
  while (!to_write_.empty()) {
    if (!pump(deadline)) give_up("writing to its standard input");
  }
}

void Job::close_input() { input_.reset(); }

void Job::send(int signal) const {
  if (auto status = send_signal(pidfd_.get(), signal); !status)
    throw std::runtime_error(status.error().message());
}

int Job::wait_until_stopped() {
  // A stop is not visible through a pidfd, but through a pending SIGCHLD.
  sigset_t child, before;
  sigemptyset(&child);
  sigaddset(&child, SIGCHLD);
  ::sigprocmask(SIG_BLOCK, &child, &before);
  const auto deadline = Deadline::after(patience_);
  siginfo_t info{};
  for (;;) {
    ::waitid(P_PID, static_cast<id_t>(pid()), &info, WSTOPPED | WNOHANG);
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(deadline.remaining()).count();
    const timespec time{left / 1000, left % 1000 * 1000000};
    if (info.si_pid == pid() || deadline.has_passed()) break;
    ::sigtimedwait(&child, nullptr, &time);
  }
  ::sigprocmask(SIG_SETMASK, &before, nullptr);
  if (info.si_pid != pid()) give_up("waiting until it has stopped");
  return info.si_status;
}

bool Job::ends_within(std::chrono::milliseconds duration) {
  const auto deadline = Deadline::after(duration);
  while (!ended_ && pump(deadline)) {
  }
  return ended_;
}

int Job::wait_for_exit() {
  const auto deadline = Deadline::after(patience_);
  while (!ended_) {
    if (!pump(deadline)) give_up("waiting for its end");
  }
  return child_->exit_code();
}

int Job::wait() {
  const auto deadline = Deadline::after(patience_);
  while (!ended_ || out_.fd || err_.fd) {
    if (!pump(deadline)) give_up(ended_ ? "waiting for the end of its output" : "waiting for its end");
  }
  return wait_for_exit();
}

int Job::wait_and_require_nothing_left() {
  const int status = wait();
  INFO("exit code " << status << ", standard error:\n" << last_part(err()));
  REQUIRE(describe(processes()) == "");
  REQUIRE(names_in(temporary_) == std::vector<std::string>{});
  return status;
}

void Job::require_all_gone() {
  INFO("standard error:\n" << last_part(err()));
  if (!wait_until_gone(mark_, Deadline::after(patience_))) FAIL("still there: " << describe(processes()));
  REQUIRE(names_in(temporary_) == std::vector<std::string>{});
}

// Waits for the next event and handles it: reads, writes, reaps. False if the deadline passed first.
bool Job::pump(Deadline deadline) {
  std::array<pollfd, 4> entries;
  entries.fill({-1, 0, 0});  // poll() passes over negative descriptors
  if (out_.fd) entries[0] = {out_.fd.get(), POLLIN, 0};
  if (err_.fd) entries[1] = {err_.fd.get(), POLLIN, 0};
  if (!to_write_.empty()) entries[2] = {input_ ? input_.get() : terminal_, POLLOUT, 0};
  if (!ended_) entries[3] = {pidfd_.get(), POLLIN, 0};
  if (retry_eintr([&] { return ::poll(entries.data(), entries.size(), deadline.poll_milliseconds()); }) == 0)
    return false;
  if (entries[0].revents != 0) read_stream(out_);
  if (entries[1].revents != 0) read_stream(err_);
  if (entries[2].revents != 0) {
    const ssize_t written = ::write(entries[2].fd, to_write_.data(), to_write_.size());
    if (written < 0 && errno != EAGAIN) {
      to_write_ = {};  // the command has closed its input: the test decides whether this is an error
    } else if (written > 0) {
      to_write_.remove_prefix(static_cast<std::size_t>(written));
    }
  }
  if (entries[3].revents != 0) ended_ = child_->wait(Deadline::never());
  return true;
}

void Job::read_stream(Stream& stream) {
  std::array<char, 65536> buffer;
  const ssize_t got = retry_eintr([&] { return ::read(stream.fd.get(), buffer.data(), buffer.size()); });
  if (got > 0) {
    stream.bytes.append(buffer.data(), static_cast<std::size_t>(got));
  } else {
    stream.fd.reset();  // EIO of a terminal is the end: no process has its other side open
  }
}

void Job::give_up(const std::string& what) const {
  FAIL(what << " took too long or failed\nprocesses: " << describe(processes()) << "\nstandard output:\n"
            << last_part(out()) << "\nstandard error:\n"
            << last_part(err()));
  throw std::logic_error("FAIL throws");
}

}  // namespace ddl::e2e
