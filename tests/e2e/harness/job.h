// ddlrun or another command under test: starts it, reads its output, and checks that all of its processes have ended.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/command.h"
#include "base/deadline.h"
#include "base/fd.h"
#include "e2e/harness/processes.h"
#include "e2e/harness/scratch.h"

namespace ddl::e2e {

/// How long a test waits for an event that must happen. It is no requirement on speed: long enough for a loaded
/// machine.
inline constexpr auto kTestTimeout = std::chrono::seconds(60);

/// What to start and how its standard streams are wired.
struct Command {
  enum class Input { kNull, kPipe, kClosed, kFile };
  enum class Output { kTwoPipes, kOnePipe };

  std::vector<std::string> argv;
  ddl::Environment environment;  ///< added to the test's own
  std::string directory;         ///< "": the scratch directory
  Input input = Input::kNull;
  std::string input_file;  ///< for kFile
  Output output = Output::kTwoPipes;
  bool terminal =
      false;  ///< the three streams are a new terminal, which controls a new session; input, output: unused
  std::vector<int> ignored_signals;              ///< ignored at the start, as SIGHUP under nohup
  std::chrono::seconds patience = kTestTimeout;  ///< how long each wait for it lasts
};

/// The words of both, for command lines.
inline std::vector<std::string> operator+(std::vector<std::string> first,
                                          const std::vector<std::string>& second) {
  first.insert(first.end(), second.begin(), second.end());
  return first;
}

/// Whether the PATH of this process has such a program.
bool is_in_path(const std::string& program);

/// ddlrun of this build with these arguments.
Command ddlrun(std::vector<std::string> arguments);
/// A program of this build's tests (tests/e2e/programs).
std::string program(const std::string& name);

class Scratch;
/// How a file of --report-json differs from the published schema; "": it does not, or there is no python3-jsonschema.
std::string report_schema_errors(const Scratch& scratch, const std::string& path);
void check_report_schema(const Scratch& scratch, const std::string& path);
/// What is wrong with a page as HTML, and what it would load or run; "": nothing, or there is no python3-html5lib.
/// has_script: it may have one of its own.
std::string page_errors(const Scratch& scratch, const std::string& path, bool has_script = false);

/// A command and all processes that it starts. They have a unique environment entry, by which the destructor finds
/// and kills those that a failed test has left behind. The command is a child of the caller. For one thread.
///
/// Every function that waits also reads the streams, and fails the test case when the command's
/// patience is over.
class Job {
 public:
  /// TMPDIR and the working directory are inside scratch, which must outlive the job.
  Job(const Scratch& scratch, const Command& command);
  ~Job();
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  pid_t pid() const { return child_->pid(); }
  /// The agent and the spawner of ddlrun, which must exist: to be called after the first output of a rank.
  pid_t agent() const;
  pid_t spawner() const;
  /// All living processes that the command has started, and the command.
  std::vector<Process> processes() const { return processes_with(mark_); }

  /// Standard output so far; with a terminal, all output.
  const std::string& out() const { return out_.bytes; }
  const std::string& err() const { return err_.bytes; }  ///< standard error so far

  /// Waits until the text has been written this number of times, to both streams together.
  void wait_for(std::string_view text, int times = 1);
  /// Waits until the condition holds; it is checked after each output. what: for the message of a failure.
  void wait_until(const std::string& what, const std::function<bool()>& condition);

  /// True if the command writes nothing and does not end during this time.
  bool is_silent_for(std::chrono::milliseconds duration);

  /// Waits until there are bytes on standard output, and reads once, at most max bytes. 0 at its end.
  std::size_t read_some(std::size_t max);
  /// Drops the bytes that were read from standard output so far.
  void forget_output() { out_.bytes.clear(); }
  /// Sets the capacity of the pipe that is its standard output.
  void resize_output_pipe(std::size_t bytes);
  /// Closes the reading end of standard output, as `| head -1` does.
  void close_output();

  /// Writes to its standard input or terminal; waits until all is written.
  void write(std::string_view bytes);
  void close_input();
  void send(int signal) const;

  /// Waits until the process itself has been stopped, as a shell does; returns the signal that did it.
  int wait_until_stopped();

  /// Waits for the end of the command itself, at most this time. False if it is still running.
  bool ends_within(std::chrono::milliseconds duration);
  /// Waits until the command itself has ended; returns its exit code, or 128+N for death by signal N.
  int wait_for_exit();
  /// The same, and until no process has its output open.
  int wait();
  /// The same, and requires that no process and no file of the job is left at that moment.
  int wait_and_require_nothing_left();
  /// Requires that all processes of the job end, and that its session directory is removed.
  void require_all_gone();

 private:
  struct Stream {
    UniqueFd fd;
    std::string bytes;
  };

  void start(const Command& command);
  bool pump(Deadline deadline);
  void read_stream(Stream& stream);
  [[noreturn]] void give_up(const std::string& what) const;

  const Scratch& scratch_;
  std::string temporary_;
  std::string mark_;
  std::chrono::seconds patience_;
  std::optional<Child> child_;
  UniqueFd pidfd_;
  UniqueFd input_;
  Stream out_;
  Stream err_;
  int terminal_ = -1;   // borrowed from out_: input goes there too
  bool ended_ = false;  // and reaped
  std::string_view to_write_;
};

}  // namespace ddl::e2e
