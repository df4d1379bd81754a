// ddlrun at a terminal: ^C, ^Z, fg, and what it must not do in the background. Tests of job control use a real shell.
#include <csignal>

#include "e2e/harness/fifo.h"
#include "e2e/harness/job.h"
#include "support/catch.h"
#include "support/skip.h"

namespace ddl::e2e {
namespace {

using Catch::Matchers::Contains;

constexpr char kInterrupt[] = "\x03";  // ^C
constexpr char kSuspend[] = "\x1a";    // ^Z
constexpr char kEndOfFile[] = "\x04";  // ^D

Command on_terminal(Command command) {
  command.terminal = true;
  return command;
}

TEST_CASE("the first ^C sends SIGINT to the ranks, and they have --kill-grace to end", "[terminal]") {
  const Scratch scratch;
  Job job(scratch,
          on_terminal(ddlrun({"-np", "2", "--kill-grace", "1000", program("signal_echo"), "INT", "0"})));
  job.wait_for("ready", 2);
  job.write(kInterrupt);
  CHECK(job.wait_and_require_nothing_left() == 128 + SIGINT);
  CHECK_THAT(job.out(), Contains("[0]<stdout>:got SIGINT") && Contains("[1]<stdout>:got SIGINT") &&
                            !Contains("got SIGTERM"));
  CHECK_THAT(job.out(), Contains("press ^C again to kill them now"));
  CHECK_THAT(job.out(), Contains("ended by SIGINT"));
}

TEST_CASE("ranks that ignore ^C get SIGTERM after half of --kill-grace, and SIGKILL at its end",
          "[terminal]") {
  const Scratch scratch;
  // Rank 0 ends by the signals in turn, rank 1 by none but the last.
  Job job(scratch, on_terminal(ddlrun({"-np", "2", "--kill-grace", "1", "sh", "-c",
                                       "[ $RANK = 0 ] && exec " + program("signal_echo") + " TERM 0; exec " +
                                           program("signal_echo")})));
  job.wait_for("ready", 2);
  job.write(kInterrupt);
  CHECK(job.wait_and_require_nothing_left() == 128 + SIGINT);
  for (const std::string rank : {"[0]<stdout>:", "[1]<stdout>:"})
    CHECK(job.out().find(rank + "got SIGINT") < job.out().find(rank + "got SIGTERM"));
  CHECK_THAT(job.out(), Contains("rank 0 exited with 0; rank 1 was ended with SIGKILL"));
}

TEST_CASE("a second ^C kills ranks that ignore the first", "[terminal]") {
  const Scratch scratch;
  Job job(scratch, on_terminal(ddlrun({"-np", "2", "--kill-grace", "1000", program("signal_echo")})));
  job.wait_for("ready", 2);
  job.write(kInterrupt);
  job.wait_for("press ^C again to kill");
  job.wait_for("got SIGINT", 2);
  job.write(kInterrupt);
  CHECK(job.wait_and_require_nothing_left() == 128 + SIGINT);
  CHECK_THAT(job.out(), Contains("ranks 0, 1 were ended with SIGKILL"));
}

TEST_CASE("^C ends a rank that waits for input", "[terminal]") {
  const Scratch scratch;
  Job job(scratch, on_terminal(ddlrun({"-np", "1", "sh", "-c", "echo ready; exec cat"})));
  job.wait_for("ready");
  job.write(kInterrupt);
  CHECK(job.wait_and_require_nothing_left() == 128 + SIGINT);
}

TEST_CASE("rank 0 reads what is typed, and ^D is its end of file", "[terminal]") {
  const Scratch scratch;
  Job job(scratch,
          on_terminal(ddlrun({"-np", "2", "sh", "-c", "echo ready; sed -u 's/^/heard: /'; echo end"})));
  job.wait_for("ready", 2);
  job.write("hello\n");
  job.wait_for("[0]<stdout>:heard: hello");
  job.write(kEndOfFile);
  CHECK(job.wait_and_require_nothing_left() == 0);
  CHECK_THAT(job.out(),
             Contains("[0]<stdout>:end") && Contains("[1]<stdout>:end") && !Contains("[1]<stdout>:heard"));
}

TEST_CASE("a prompt without a newline is shown while the rank waits for the answer", "[terminal]") {
  const Scratch scratch;
  Job job(scratch, on_terminal(ddlrun({"-np", "2", "sh", "-c",
                                       "[ $RANK = 1 ] && exit 0; printf 'name? '; read name; "
                                       "echo \"hello $name\""})));
  job.wait_for("[0]<stdout>:name? ");
  job.write("ada\n");
  CHECK(job.wait_and_require_nothing_left() == 0);
  CHECK_THAT(job.out(), Contains("hello ada"));
}

TEST_CASE("closing the terminal ends the job", "[terminal]") {
  const Scratch scratch;
  Fifo fifo(scratch, "from-ranks");
  Job job(scratch, on_terminal(ddlrun({"-np", "2", "sh", "-c",
                                       "trap 'echo asked > " + fifo.path() +
                                           "; exit 0' HUP TERM; echo ready; "
                                           "while :; do sleep 0.05; done"})));
  job.wait_for("ready", 2);
  job.close_output();  // the master side: the kernel sends SIGHUP
  CHECK(fifo.wait_for("asked\n", 2));
  CHECK(job.wait_and_require_nothing_left() == 128 + SIGHUP);
}

/// An interactive shell on a new terminal; prompts are "$ ".
class Shell {
 public:
  Shell() : job_(scratch_, command()) {
    job_.write("stty -echo -onlcr; echo shell-$((1+1))\n");
    job_.wait_for("shell-2\n");
  }
  const Scratch& scratch() const { return scratch_; }
  Job& job() { return job_; }
  /// Types a line: ddlrun with these words, and the rest of the line.
  void type_ddlrun(const std::string& words, const std::string& after = "") {
    job_.write(ddlrun({}).argv.front() + " " + words + after + "\n");
  }
  /// Waits until the shell has shown this and then a prompt: input that is typed earlier may be discarded by a ^C or
  /// ^Z.
  void wait_for_prompt_after(const std::string& text) {
    job_.wait_until("for a prompt after " + text, [&] {
      const std::size_t at = job_.out().rfind(text);
      return at != std::string::npos && job_.out().find("\n$ ", at) != std::string::npos;
    });
  }
  void type(const std::string& line) { job_.write(line + "\n"); }
  void exit() {
    type("exit 0");
    CHECK(job_.wait_and_require_nothing_left() == 0);
  }

 private:
  static Command command() {
    Command command;
    command.argv = {"bash", "--norc", "--noprofile", "-i"};
    command.environment = {{"PS1", "$ "}, {"TERM", "dumb"}, {"HISTFILE", ""}};
    command.terminal = true;
    return command;
  }
  Scratch scratch_;
  Job job_;
};

TEST_CASE("^Z stops the ranks and the shell sees a stopped job; fg continues it", "[terminal]") {
  Shell shell;
  Fifo fifo(shell.scratch(), "stops");
  shell.type_ddlrun("--oversubscribe -np 2 " + program("stop_watcher") + " " + fifo.path());
  shell.job().wait_for("ready", 2);
  shell.job().write(kSuspend);
  CHECK(fifo.wait_for("stopped\n", 2));
  shell.wait_for_prompt_after("Stopped");
  shell.type("echo the shell-$((2+2)) is back");
  shell.job().wait_for("the shell-4 is back");
  CHECK_THAT(fifo.read_now(), !Contains("continued"));
  shell.type("fg; echo code=$?");
  CHECK(fifo.wait_for("continued\n", 2));
  shell.job().wait_for("code=0");
  shell.exit();
}

TEST_CASE("bg continues a stopped job in the background", "[terminal]") {
  Shell shell;
  Fifo fifo(shell.scratch(), "stops");
  shell.type_ddlrun("--oversubscribe -np 2 " + program("stop_watcher") + " " + fifo.path());
  shell.job().wait_for("ready", 2);
  shell.job().write(kSuspend);
  CHECK(fifo.wait_for("stopped\n", 2));
  shell.wait_for_prompt_after("Stopped");
  shell.type("bg; wait %1; echo code=$?");
  CHECK(fifo.wait_for("continued\n", 2));
  shell.job().wait_for("code=0");
  shell.exit();
}

TEST_CASE("a background ddlrun is not stopped and does not read the terminal", "[terminal]") {
  Shell shell;
  Fifo fifo(shell.scratch(), "from-ranks");
  Fifo go(shell.scratch(), "go");
  // Rank 0 copies all of its input to the FIFO.
  shell.type_ddlrun("--oversubscribe -np 2 sh -c '[ $RANK = 0 ] && { exec 3<&0; cat <&3 > " + fifo.path() +
                        " & }; echo ready; read go < " + go.path() + "'",
                    " &");
  shell.job().wait_for("ready", 2);
  shell.type("head -n 1 | sed 's/^/foreground got: /'");
  shell.type("this line");
  shell.job().wait_for("foreground got: this line\n");
  shell.type("echo go > " + go.path() + "; echo go > " + go.path() + "; wait %1; echo code=$?");
  shell.job().wait_for("code=0");
  shell.exit();
  CHECK(fifo.read_now() == "");
  CHECK_THAT(shell.job().out(), !Contains("Stopped"));
}

TEST_CASE("a background ddlrun that is brought to the foreground reads the terminal", "[terminal]") {
  Shell shell;
  shell.type_ddlrun("-np 1 sh -c 'echo ready; read line; echo heard: $line'", " &");
  shell.job().wait_for("ready");
  shell.type("fg; echo code=$?");
  shell.job().wait_for("sh -c 'echo ready; read line; echo heard: $line'\n", 1);
  shell.type("from the terminal");
  shell.job().wait_for("heard: from the terminal");
  shell.job().wait_for("code=0");
  shell.exit();
}

TEST_CASE("^C in the shell does not reach a background ddlrun", "[terminal]") {
  Shell shell;
  Fifo go(shell.scratch(), "go");
  shell.type_ddlrun("-np 1 sh -c 'echo ready; read go < " + go.path() + "; echo done'", " &");
  shell.job().wait_for("ready");
  shell.job().write(kInterrupt);
  shell.wait_for_prompt_after("^C");
  shell.type("echo go > " + go.path() + "; wait %1; echo code=$?");
  shell.job().wait_for("code=0");
  shell.exit();
}

}  // namespace
}  // namespace ddl::e2e
