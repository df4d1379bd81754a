// ddlrun (or anything else) under test: started, listened to, and looked for when it should be gone.
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

/// How long a test waits for what must happen: no promise about time, just the end of hope on a loaded machine.
inline constexpr auto kPatience = std::chrono::seconds(60);

/// What to start and how its standard streams are wired.
struct Command {
  enum class Input { kNull, kPipe, kClosed, kFile };
  enum class Output { kTwoPipes, kOnePipe };

  std::vector<std::string> argv;
  ddl::Environment environment;  ///< added to the test's own
  std::string directory;         ///< "": the scratch directory
  Input input = Input::kNull;
  std::string input_file;  ///< of kFile
  Output output = Output::kTwoPipes;
  bool terminal =
      false;  ///< all three are a new terminal, which controls the new session; input, output: unused
  std::vector<int> ignored_signals;  ///< as nohup leaves SIGHUP
};

/// ddlrun of this build with these arguments.
Command ddlrun(std::vector<std::string> arguments);
/// A program of this build's tests (tests/e2e/programs).
std::string program(const std::string& name);

/// A command and everything that it starts. All of it bears an environment entry of its own, by which the destructor
/// finds and kills what a failed test left behind. The process is a child of the caller; one thread.
///
/// Whatever waits here reads the streams meanwhile, and fails the test case when kPatience is over.
class Job {
 public:
  /// TMPDIR and the working directory are inside scratch, which must outlive the job.
  Job(const Scratch& scratch, const Command& command);
  ~Job();
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;

  pid_t pid() const { return child_->pid(); }
  /// The processes that ddlrun is made of, and which must exist: only once a rank has been heard.
  pid_t agent() const;
  pid_t spawner() const;
  /// Everything alive that the command started, itself too.
  std::vector<Process> processes() const { return processes_with(mark_); }

  const std::string& out() const { return out_.bytes; }  ///< standard output so far; of a terminal all
  const std::string& err() const { return err_.bytes; }  ///< standard error so far

  /// Waits until the text has been written so many times, to either stream.
  void wait_for(std::string_view text, int times = 1);
  /// Waits until the condition holds; looked at whenever something was written. what is for the message.
  void wait_until(const std::string& what, const std::function<bool()>& condition);

  /// True if nothing is written and the command does not end for so long.
  bool is_silent_for(std::chrono::milliseconds duration);

  /// Waits until there is something on standard output, and reads once, at most so much. 0 at its end.
  std::size_t read_some(std::size_t most);
  /// Drops what was read from standard output so far.
  void forget_output() { out_.bytes.clear(); }
  /// How many bytes may wait in the pipe that is its standard output.
  void resize_output_pipe(std::size_t bytes);
  /// Closes the reading end of standard output, as `| head -1` does.
  void close_output();

  /// Writes to its standard input or terminal; waits until it is written.
  void write(std::string_view bytes);
  void close_input();
  void send(int signal) const;

  /// Waits until the process itself has been stopped, as a shell does; returns the signal that did it.
  int wait_until_stopped();

  /// Waits for the end of the command itself, at most so long. False if it goes on.
  bool ends_within(std::chrono::milliseconds duration);
  /// Waits until the command itself has ended; returns its exit code, or 128+N for death by signal N.
  int wait_for_exit();
  /// The same, and until nobody holds its output any more.
  int wait();
  /// The same, and requires that no process and no file of the job is left at that moment.
  int wait_and_require_nothing_left();
  /// Requires that all processes of the job, and its session directory, go away.
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
