#include "launcher/head/supervisor.h"

#include <csignal>
#include <memory>

#include "contract/ddlrun.h"
#include "support/catch.h"

using namespace ddl::launcher;
using Kind = RankOutcome::Kind;
namespace contract = ddl::contract;

namespace {

constexpr double kGrace = 5;

/// Records the actions: "end 15 5" is SIGTERM and a grace of 5 s.
class RecordingActions : public SupervisorActions {
 public:
  void end_ranks(int signal, double grace_seconds) override {
    add("end " + std::to_string(signal) + " " + std::to_string(static_cast<int>(grace_seconds)));
  }
  void forward_signal(int signal) override { add("forward " + std::to_string(signal)); }
  void finish() override { add("finish"); }
  void wait_for_root_cause() override { add("wait"); }
  void wait_for_clients() override { add("wait for clients"); }
  void stop_self() override { add("stop self"); }
  void done() override { add("done"); }
  void abandon_output() override { add("abandon output"); }
  void note(const std::string& sentence) override { notes.push_back(sentence); }

  /// All actions since the last call: "end 15 5, finish".
  std::string take() { return std::exchange(calls_, ""); }
  std::vector<std::string> notes;

 private:
  void add(const std::string& call) { calls_ += (calls_.empty() ? "" : ", ") + call; }
  std::string calls_;
};

/// A supervisor of ranks on nodes, the same number on each.
class Job {
 public:
  explicit Job(int num_ranks, int num_nodes = 1, std::vector<bool> serves = {}) {
    supervisor_.launch(description(num_ranks, num_nodes, std::move(serves)), actions_);
  }

  Supervisor* operator->() { return &supervisor_; }
  const JobReport& report() const { return supervisor_.report(); }
  const RankOutcome& rank(std::size_t rank) const { return report().ranks.at(rank); }
  std::string take() { return actions_.take(); }
  const std::vector<std::string>& notes() const { return actions_.notes; }

  void all_start() {
    for (const auto& rank : report().ranks) supervisor_.on_rank_started(rank.rank, 0, 100 + rank.rank);
  }
  void exits(int rank, int code) {
    RankOutcome outcome = ended(rank, Kind::kExited);
    outcome.exit_code = code;
    supervisor_.on_rank_ended(outcome);
  }
  /// Exits with an error after libddl has reported that the other rank is gone.
  void exits_without(int rank, int gone, int code = 8) {
    RankOutcome outcome = ended(rank, Kind::kExited);
    outcome.exit_code = code;
    outcome.gone_rank = gone;
    outcome.before_end = true;
    supervisor_.on_rank_ended(outcome);
  }
  void dies(int rank, int signal, bool by_us = false) {
    RankOutcome outcome = ended(rank, Kind::kSignalled);
    outcome.signal = signal;
    outcome.ended_by_us = by_us;
    supervisor_.on_rank_ended(outcome);
  }
  /// After libddl had told it that it gave up itself.
  void dies_told(int rank, int signal) {
    RankOutcome outcome = ended(rank, Kind::kSignalled);
    outcome.signal = signal;
    outcome.gone_rank = rank;
    supervisor_.on_rank_ended(outcome);
  }
  void dies_before_end(int rank, int signal) {
    RankOutcome outcome = ended(rank, Kind::kSignalled);
    outcome.signal = signal;
    outcome.before_end = true;
    supervisor_.on_rank_ended(outcome);
  }
  void fails_to_start(int rank, int code) {
    RankOutcome outcome = ended(rank, Kind::kStartFailed);
    outcome.exit_code = code;
    outcome.start_error = "command not found: trian";
    supervisor_.on_rank_ended(outcome);
  }

 private:
  static Supervisor::Job description(int num_ranks, int num_nodes, std::vector<bool> serves) {
    Supervisor::Job job;
    job.serves = std::move(serves);
    for (int rank = 0; rank < num_ranks; ++rank) {
      const int node = rank * num_nodes / num_ranks;
      job.rank_nodes.push_back(node);
      job.rank_hosts.push_back("node" + std::to_string(node));
    }
    job.kill_grace_seconds = kGrace;
    return job;
  }
  static RankOutcome ended(int rank, Kind kind) {
    RankOutcome outcome;
    outcome.kind = kind;
    outcome.rank = rank;
    outcome.pid = 100 + rank;
    return outcome;
  }

  RecordingActions actions_;
  Supervisor supervisor_;
};

}  // namespace

TEST_CASE("before any event the report has every rank with its host") {
  Job job(2, 2);
  CHECK(job.take().empty());
  CHECK(job.rank(0).kind == Kind::kNotStarted);
  CHECK(job.rank(0).host == "node0");
  CHECK(job.rank(1).host == "node1");
  CHECK(job.rank(1).rank == 1);
  CHECK_FALSE(job->is_done());
}

TEST_CASE("all ranks exit with 0: clean up, then done, and success") {
  Job job(2);
  job.all_start();
  CHECK(job.rank(1).kind == Kind::kRunning);
  CHECK(job.rank(1).pid == 101);
  job.exits(1, 0);
  CHECK(job.take().empty());
  job.exits(0, 0);
  CHECK(job.take() == "finish");
  CHECK_FALSE(job->is_done());
  job->on_finished(0, 0);
  CHECK(job.take() == "done");
  CHECK(job->is_done());
  CHECK(job.report().reason == EndReason::kSuccess);
  CHECK(job.report().exit_code == 0);
  CHECK_FALSE(job.report().first_failure);
}

TEST_CASE("the first failure ends the others and is the exit code; later failures are consequences") {
  Job job(3);
  job.all_start();
  job.exits(1, 7);
  CHECK(job.take() == "end 15 5");
  job.exits(2, 9);  // not a consequence, but later
  CHECK(job.take().empty());
  job.dies(0, SIGTERM, true);
  CHECK(job.take() == "finish");
  job->on_finished(0, 2);
  CHECK(job.take() == "done");
  CHECK(job.report().reason == EndReason::kRankFailed);
  CHECK(job.report().first_failure == 1);
  CHECK(job.report().exit_code == 7);
  CHECK(job.report().leftovers_ended == 2);
  CHECK(job.rank(0).ended_by_us);
  CHECK(job.rank(0).host == "node0");  // agents do not know the name of their node on the head
}

TEST_CASE("a rank that fails after others have succeeded") {
  Job job(2);
  job.all_start();
  job.exits(0, 0);
  job.exits(1, 3);
  CHECK(job.take() == "end 15 5, finish");  // no rank is left, but processes that they started may be
  CHECK(job.report().exit_code == 3);
  CHECK(job.report().first_failure == 1);
}

TEST_CASE("death by a signal is 128 + its number") {
  Job job(2);
  job.all_start();
  job.dies(1, SIGSEGV);
  CHECK(job.take() == "end 15 5");
  CHECK(job.report().reason == EndReason::kRankFailed);
  CHECK(job.report().exit_code == 128 + SIGSEGV);
  CHECK(job.report().first_failure == 1);
}

TEST_CASE("a rank that cannot be started ends the job with the shell's code") {
  Job job(2);
  job->on_rank_started(0, 0, 100);
  job.fails_to_start(1, contract::kNotFound);
  CHECK(job.take() == "end 15 5");
  job.dies(0, SIGTERM, true);
  CHECK(job.take() == "finish");
  CHECK(job.report().reason == EndReason::kStartFailed);
  CHECK(job.report().exit_code == 127);
  CHECK(job.report().first_failure == 1);
  CHECK(job.rank(1).start_error == "command not found: trian");
}

TEST_CASE("the same rank failing to start on every node is one failure, the first") {
  Job job(3);
  for (const int rank : {2, 0, 1}) job.fails_to_start(rank, contract::kNotExecutable);
  CHECK(job.take() == "end 15 5, finish");
  CHECK(job.report().first_failure == 2);
  CHECK(job.report().exit_code == 126);
}

TEST_CASE("an abort ends the job with its message and code; the aborting rank's exit is no second failure") {
  Job job(2);
  job.all_start();
  job->on_abort(1, 3, "loss is NaN");
  CHECK(job.take() == "end 15 5");
  job.exits(1, 3);
  job.dies(0, SIGTERM, true);
  CHECK(job.take() == "finish");
  job->on_finished(0, 0);
  CHECK(job.report().reason == EndReason::kAborted);
  CHECK(job.report().first_failure == 1);
  CHECK(job.report().abort_message == "loss is NaN");
  CHECK(job.report().exit_code == 3);
}

TEST_CASE("an abort's code is cut to an exit status and is never success") {
  const auto code_of = [](int status) {
    Job job(1);
    job->on_abort(0, status, "");
    return job.report().exit_code;
  };
  CHECK(code_of(0) == 1);
  CHECK(code_of(256) == 1);
  CHECK(code_of(-1) == 255);
  CHECK(code_of(259) == 3);
}

TEST_CASE("only the first of several aborts and failures counts") {
  Job job(3);
  job.all_start();
  job->on_abort(2, 4, "first");
  job->on_abort(1, 5, "second");
  job.exits(0, 6);
  CHECK(job.take() == "end 15 5");
  CHECK(job.report().first_failure == 2);
  CHECK(job.report().abort_message == "first");
  CHECK(job.report().exit_code == 4);

  Job other(2);
  other.all_start();
  other.exits(0, 6);
  other->on_abort(1, 5, "too late");
  CHECK(other.report().reason == EndReason::kRankFailed);
  CHECK(other.report().abort_message.empty());
  CHECK(other.report().first_failure == 0);
}

TEST_CASE("an abort that is reported after every rank has exited with 0 changes nothing") {
  Job job(1);
  job.all_start();
  job.exits(0, 0);
  CHECK(job.take() == "finish");
  job->on_abort(0, 3, "too late");
  CHECK(job.take().empty());
  CHECK(job.report().reason == EndReason::kSuccess);
  CHECK_FALSE(job.report().first_failure);
  CHECK(job.report().abort_message.empty());
}

TEST_CASE(
    "^C is passed on as SIGINT and states how to kill at once; a second one kills, a third changes nothing") {
  Job job(2);
  job.all_start();
  job->on_signal(SIGINT);
  CHECK(job.take() == "end 2 5");
  CHECK(job.notes() == std::vector<std::string>{"ending 2 ranks; press ^C again to kill them now"});
  job->on_signal(SIGINT);
  CHECK(job.take() == "end 9 0");
  job->on_signal(SIGINT);
  CHECK(job.take().empty());
  CHECK(job.notes().size() == 1);
  job.dies(0, SIGKILL, true);
  job.exits(1, 1);
  CHECK(job.take() == "finish");
  CHECK(job.report().reason == EndReason::kSignal);
  CHECK(job.report().signal == SIGINT);
  CHECK(job.report().exit_code == 130);
  CHECK_FALSE(job.report().first_failure);
}

TEST_CASE("other signals that end a job are forwarded unchanged, without a note") {
  for (const int signal : {SIGTERM, SIGHUP, SIGQUIT}) {
    Job job(2);
    job.all_start();
    job->on_signal(signal);
    CHECK(job.take() == "end " + std::to_string(signal) + " 5");
    CHECK(job.notes().empty());
    CHECK(job.report().exit_code == 128 + signal);
    job->on_signal(SIGTERM);
    CHECK(job.take() == "end 9 0");
    CHECK(job.report().signal == signal);
  }
}

TEST_CASE("a signal while the job ends for another reason kills now and does not become the reason") {
  Job job(2);
  job.all_start();
  job.exits(0, 4);
  CHECK(job.take() == "end 15 5");
  job->on_signal(SIGINT);
  CHECK(job.take() == "end 9 0");
  CHECK(job.report().reason == EndReason::kRankFailed);
  CHECK(job.report().exit_code == 4);
  CHECK(job.report().signal == 0);
}

TEST_CASE("a signal while only leftovers are being ended kills those") {
  Job job(1);
  job.all_start();
  job.exits(0, 0);
  CHECK(job.take() == "finish");
  job->on_signal(SIGTERM);
  CHECK(job.take() == "end 9 0");
  job->on_finished(0, 1);
  CHECK(job.report().reason == EndReason::kSuccess);
  CHECK(job.report().exit_code == 0);
}

TEST_CASE("signals with a meaning for programs are forwarded and do not end the job") {
  Job job(2);
  job.all_start();
  job->on_signal(SIGUSR1);
  job->on_signal(SIGUSR2);
  CHECK(job.take() == "forward 10, forward 12");
  job->on_signal(SIGTSTP);
  CHECK(job.take() == "forward 20, stop self");  // in this order: a stopped ddlrun sends nothing
  job->on_signal(SIGCONT);
  CHECK(job.take() == "forward 18");
  job.exits(0, 0);
  job.exits(1, 0);
  CHECK(job.report().exit_code == 0);
}

TEST_CASE("the timeout ends the job with 124; only the first reason counts") {
  Job job(2);
  job.all_start();
  job->on_timeout();
  CHECK(job.take() == "end 15 5");
  job.exits(0, 1);
  job.dies(1, SIGTERM, true);
  CHECK(job.take() == "finish");
  CHECK(job.report().reason == EndReason::kTimeout);
  CHECK(job.report().exit_code == 124);
  CHECK_FALSE(job.report().first_failure);

  Job late(1);
  late.all_start();
  late.exits(0, 5);
  late.take();
  late->on_timeout();
  CHECK(late.take().empty());
  CHECK(late.report().reason == EndReason::kRankFailed);
  CHECK(late.report().exit_code == 5);
}

TEST_CASE("a reader of the output that closes it ends the job as SIGPIPE would") {
  Job job(1);
  job.all_start();
  job->on_output_broken();
  CHECK(job.take() == "end 15 5");
  job->on_output_broken();
  CHECK(job.take().empty());
  CHECK(job.report().reason == EndReason::kSignal);
  CHECK(job.report().signal == SIGPIPE);
  CHECK(job.report().exit_code == 141);
  CHECK(job.report().message == "nobody reads ddlrun's output any more");
}

TEST_CASE("the job ends with its caller, and a signal that both got does not kill") {
  Job job(1);
  job.all_start();
  job->on_caller_ended("process 7 has ended");
  CHECK(job.take() == "end 15 5");
  CHECK(job.report().reason == EndReason::kSignal);
  CHECK(job.report().exit_code == 143);
  CHECK(job.report().message == "process 7 has ended");
  job->on_signal(SIGTERM);
  CHECK(job.take().empty());
  job->on_signal(SIGTERM);
  CHECK(job.take() == "end 9 0");

  Job signalled(1);
  signalled.all_start();
  signalled->on_signal(SIGTERM);
  CHECK(signalled.take() == "end 15 5");
  signalled->on_caller_ended("process 7 has ended");
  CHECK(signalled.take().empty());
  CHECK(signalled.report().message.empty());
}

TEST_CASE("an output that breaks while the job ends does not become the reason") {
  Job job(2);
  job.all_start();
  job.exits(0, 5);
  job.take();
  job->on_output_broken();
  CHECK(job.take().empty());
  CHECK(job.report().signal == 0);
  CHECK(job.report().message.empty());
}

TEST_CASE("an agent that is lost ends the job: the fate of its ranks is unknown") {
  Job job(2);
  job.all_start();
  job->on_agent_failed(0, "the agent (process 71) was killed by SIGKILL on node0", true);
  CHECK(job.take() == "end 15 5, done");
  CHECK(job->is_done());
  CHECK(job.report().reason == EndReason::kHostLost);
  CHECK(job.report().exit_code == contract::kLostHost);
  CHECK(job.report().message == "the agent (process 71) was killed by SIGKILL on node0");
  CHECK(job.rank(0).kind == Kind::kRunning);
  CHECK_FALSE(job.report().first_failure);
}

TEST_CASE("an agent that cannot start anything is a start failure") {
  Job job(2);
  job->on_agent_failed(0, "starting the PMIx server: no space", false);
  CHECK(job.take() == "end 9 0, done");
  CHECK(job.report().reason == EndReason::kStartFailed);
  CHECK(job.report().exit_code == contract::kStartFailure);
  CHECK(job.rank(0).kind == Kind::kNotStarted);
}

TEST_CASE("an agent that is lost while the job ends does not become the reason") {
  Job job(2);
  job.all_start();
  job.exits(1, 6);
  job.take();
  job->on_agent_failed(0, "gone", true);
  CHECK(job.take() == "done");
  CHECK(job.report().reason == EndReason::kRankFailed);
  CHECK(job.report().first_failure == 1);
  CHECK(job.report().exit_code == 6);
  CHECK(job.report().message.empty());
}

TEST_CASE("an agent that is lost after its last rank is not a success: output may be missing") {
  Job job(1);
  job.all_start();
  job.exits(0, 0);
  CHECK(job.take() == "finish");
  job->on_agent_failed(0, "gone", true);
  CHECK(job.take() == "end 15 5, done");
  CHECK(job.report().reason == EndReason::kHostLost);
  CHECK(job.report().exit_code == contract::kLostHost);
  CHECK(job.report().message == "gone");
}

TEST_CASE("with several nodes, done is when the last one has finished") {
  Job job(4, 2);
  job.all_start();
  for (const int rank : {0, 1, 2, 3}) job.exits(rank, 0);
  CHECK(job.take() == "finish");
  job->on_finished(1, 1);
  job->on_finished(1, 1);  // the same message again
  CHECK(job.take().empty());
  job->on_finished(0, 3);
  CHECK(job.take() == "done");
  CHECK(job.report().leftovers_ended == 4);
}

TEST_CASE("a lost node's ranks are not waited for, those of the other nodes are") {
  Job job(4, 2);
  job.all_start();
  job->on_agent_failed(1, "node1 lost", true);
  CHECK(job.take() == "end 15 5");
  job->on_agent_failed(1, "its link closed, too", true);  // AgentFailed, and then the link: one loss
  CHECK(job.take().empty());
  job.dies(0, SIGKILL, true);
  CHECK(job.take().empty());
  job.dies(1, SIGKILL, true);
  CHECK(job.take() == "finish");
  CHECK_FALSE(job->is_done());
  job->on_finished(0, 0);
  CHECK(job.take() == "done");
  CHECK(job.report().message == "node1 lost");
  CHECK(job.rank(2).kind == Kind::kRunning);
  CHECK(job.rank(0).kind == Kind::kSignalled);
}

TEST_CASE("the loss of a node whose ranks have all ended still finishes the others") {
  Job job(2, 2);
  job.all_start();
  job.exits(1, 0);
  job->on_agent_failed(1, "node1 lost", true);
  CHECK(job.take() == "end 15 5");
  job.dies(0, SIGKILL, true);
  CHECK(job.take() == "finish");
}

TEST_CASE("a rank that ends twice is counted once") {
  Job job(2);
  job.all_start();
  job.exits(0, 0);
  job.exits(0, 3);
  CHECK(job.take().empty());
  CHECK(job.rank(0).exit_code == 0);
  job->on_rank_started(0, 0, 999);  // a start that is reported late changes nothing
  CHECK(job.rank(0).kind == Kind::kExited);
  CHECK(job.rank(0).pid == 100);
}

TEST_CASE("after done, later events change neither the report nor anything else") {
  Job job(2);
  job.all_start();
  job->on_agent_failed(0, "lost", true);
  job.take();
  const int code = job.report().exit_code;
  job.exits(0, 9);
  job.dies(1, SIGSEGV);
  job->on_rank_started(1, 0, 5);
  job->on_abort(0, 3, "late");
  job->on_timeout();
  job->on_output_broken();
  job->on_finished(0, 7);
  job->on_agent_failed(0, "again", true);
  CHECK(job.take().empty());
  CHECK(job.report().exit_code == code);
  CHECK(job.report().reason == EndReason::kHostLost);
  CHECK(job.report().message == "lost");
  CHECK(job.report().leftovers_ended == 0);
  CHECK_FALSE(job.report().first_failure);
  CHECK(job.rank(0).kind == Kind::kRunning);
  CHECK(job.rank(1).pid == 101);
}

TEST_CASE("a stopped rank is named, and ends the job unless it is continued") {
  Job job(2);
  job.all_start();
  CHECK(job->on_rank_stopped(1, SIGSTOP, 5));
  REQUIRE(job.notes().size() == 1);
  CHECK_THAT(job.notes()[0], Catch::Contains("rank 1 on ") && Catch::Contains("(pid 101)") &&
                                 Catch::Contains("kill -CONT 101") && Catch::Contains("5 s"));
  CHECK(job.take().empty());
  job->on_rank_stayed_stopped(1, SIGSTOP);
  CHECK(job.take() == "end 15 5");
  CHECK(job.report().reason == EndReason::kRankStopped);
  CHECK(job.report().exit_code == contract::kSignalBase + SIGSTOP);
  CHECK(job.report().first_failure == 1);
}

TEST_CASE("the failure of a rank that waited for a stopped rank is blamed on the stopped rank") {
  for (const bool exits : {true, false}) {
    Job job(3);
    job.all_start();
    CHECK(job->on_rank_stopped(1, SIGSTOP, 5));
    if (exits) {
      job.exits(2, 8);
    } else {
      job.dies_told(2, SIGABRT);  // an exception of libddl: it gave up
    }
    CHECK(job.take() == "end 15 5");
    CHECK(job.report().reason == EndReason::kRankStopped);
    CHECK(job.report().exit_code == contract::kSignalBase + SIGSTOP);
    CHECK(job.report().first_failure == 1);
  }
  Job crashed(3);
  crashed.all_start();
  CHECK(crashed->on_rank_stopped(1, SIGSTOP, 5));
  crashed.dies(2, SIGSEGV);
  CHECK(crashed.report().first_failure == 2);
  Job continued(3);
  continued.all_start();
  CHECK(continued->on_rank_stopped(1, SIGSTOP, 5));
  continued->on_rank_continued(1);
  continued.exits(2, 8);
  CHECK(continued.report().first_failure == 2);
}

TEST_CASE("a rank that left with 0 stays the first failure if a host is lost while the job ends") {
  Job job(4, 2);
  job.all_start();
  job.exits(0, 0);
  job.exits_without(1, 0);
  CHECK(job.report().first_failure == 0);
  job->on_agent_failed(1, "node1 lost", true);
  CHECK(job.report().reason == EndReason::kRankFailed);
  CHECK(job.report().first_failure == 0);
}

TEST_CASE("a stall ends the job as a timeout does") {
  Job job(2);
  job.all_start();
  job->on_stall("rank 0 waits for rank 1");
  CHECK(job.take() == "end 15 5");
  job.exits(0, 1);
  job.exits(1, 1);
  CHECK(job.report().reason == EndReason::kStalled);
  CHECK(job.report().exit_code == contract::kTimeout);
  CHECK(job.report().message == "rank 0 waits for rank 1");
}

TEST_CASE("ranks have no time to trust a stranger on a port of theirs") {
  Job job(2);
  job.all_start();
  job->on_port_taken("a: port 40000");
  CHECK(job.take() == "end 9 0");
  CHECK(job.report().reason == EndReason::kPortTaken);
  CHECK(job.report().exit_code == contract::kStartFailure);
  CHECK(job.report().message == "a: port 40000");
}

TEST_CASE("ranks that are stopped because the user has stopped ddlrun do not end the job") {
  Job job(2);
  job.all_start();
  job->on_signal(SIGTSTP);
  job.take();
  CHECK_FALSE(job->on_rank_stopped(0, SIGTSTP, 5));
  job->on_rank_stayed_stopped(1, SIGTSTP);
  CHECK(job.take().empty());
  CHECK(job.notes().empty());
  job->on_signal(SIGCONT);
  job.take();
  CHECK(job->on_rank_stopped(0, SIGSTOP, 5));
}

TEST_CASE("a rank that has ended cannot be stopped") {
  Job job(2);
  job.all_start();
  job.exits(0, 0);
  CHECK_FALSE(job->on_rank_stopped(0, SIGSTOP, 5));
}

TEST_CASE("a rank that was killed is the first failure, even if the exit of an observer is reported before") {
  Job job(3);
  job.all_start();
  job.exits(0, 1);
  CHECK(job.report().first_failure == 0);
  job.dies_before_end(2, SIGKILL);
  CHECK(job.report().first_failure == 2);
  CHECK(job.report().exit_code == contract::kSignalBase + SIGKILL);
  job.dies_before_end(1, SIGSEGV);  // of several killed ranks the first one counts
  CHECK(job.report().first_failure == 2);
}

TEST_CASE("a rank that dies because the job is ended is not the first failure") {
  Job job(2);
  job.all_start();
  job.exits(0, 3);
  job.dies(1, SIGSEGV);  // for example in its handler of SIGTERM
  CHECK(job.report().first_failure == 0);
  CHECK(job.report().exit_code == 3);
}

TEST_CASE("a survivor's exit is reported before the loss of the host that caused it") {
  Job job(4, 4);
  job.all_start();
  job.exits_without(0, 3);
  CHECK(job.take() == "wait");
  job.exits_without(1, 3);
  job.exits_without(2, 3);
  CHECK(job.take().empty());
  job->on_agent_failed(3, "node3: its agent was killed", true);
  CHECK(job.take() == "end 15 5, finish");
  for (const int node : {0, 1, 2}) job->on_finished(node, 0);
  CHECK(job.report().reason == EndReason::kHostLost);
  CHECK(job.report().exit_code == contract::kLostHost);
  CHECK(job.report().message == "node3: its agent was killed");
  CHECK_FALSE(job.report().first_failure);
  job->on_root_cause_timeout();  // too late
  CHECK(job.report().reason == EndReason::kHostLost);
}

TEST_CASE("a survivor's exit is reported before the end of the rank that caused it") {
  Job killed(3, 3);
  killed.all_start();
  killed.exits_without(0, 2);
  killed.exits_without(1, 0);  // it has observed the end of another rank itself
  CHECK(killed.take() == "wait");
  killed.dies(2, SIGTERM);  // not by ddlrun
  CHECK(killed.take() == "end 15 5, finish");
  CHECK(killed.report().first_failure == 2);
  CHECK(killed.report().exit_code == 128 + SIGTERM);

  Job failed(2, 2);
  failed.all_start();
  failed.dies(0, SIGABRT);
  CHECK(failed.take() == "end 15 5");  // without a record of libddl it counts as the first failure
  Job exited(2, 2);
  exited.all_start();
  exited.exits_without(0, 1);
  exited.exits(1, 5);
  CHECK(exited.report().first_failure == 1);
  CHECK(exited.report().exit_code == 5);
}

TEST_CASE("a survivor's exit without a known cause is the first failure") {
  Job alone(2, 2);
  alone.all_start();
  alone.exits_without(0, 1);
  CHECK(alone.take() == "wait");
  alone->on_root_cause_timeout();
  CHECK(alone.take() == "end 15 5");
  CHECK(alone.report().first_failure == 0);
  CHECK(alone.report().exit_code == 8);
  alone.exits(1, 5);  // at last the rank whose end it has observed
  CHECK(alone.report().first_failure == 1);
  CHECK(alone.report().exit_code == 5);

  Job left(2, 2);
  left.all_start();
  left.exits(1, 0);  // it has not notified the others
  left.exits_without(0, 1);
  CHECK(left.take() == "wait, end 15 5, finish");  // nothing more to wait for
  CHECK(left.report().first_failure == 1);
  CHECK(left.report().exit_code == 8);

  Job circle(2, 2);
  circle.all_start();
  circle.exits_without(0, 1);
  circle.exits_without(1, 0);
  CHECK(circle.take() == "wait, end 15 5, finish");
  CHECK(circle.report().first_failure == 0);
}

TEST_CASE("while the cause of a survivor's exit is awaited, other reasons to end the job are accepted") {
  Job interrupted(3, 3);
  interrupted.all_start();
  interrupted.exits_without(0, 2);
  interrupted->on_signal(SIGINT);
  CHECK(interrupted.take() == "wait, end 15 5");
  interrupted->on_signal(SIGINT);
  CHECK(interrupted.take() == "end 9 0");
  CHECK(interrupted.report().exit_code == 8);

  Job aborted(3, 3);
  aborted.all_start();
  aborted.exits_without(0, 2);
  aborted->on_abort(1, 3, "loss is NaN");
  CHECK(aborted.take() == "wait, end 15 5");
  CHECK(aborted.report().reason == EndReason::kAborted);
  CHECK(aborted.report().first_failure == 1);

  Job late(3, 3);
  late.all_start();
  late.exits_without(0, 2);
  late->on_timeout();
  CHECK(late.report().reason == EndReason::kRankFailed);
  CHECK(late.report().exit_code == 8);
}

TEST_CASE("a rank cannot have observed its own end, or that of a rank outside the job") {
  for (const int nobody : {1, 2, -7}) {
    Job job(2);
    job.all_start();
    job.exits_without(1, nobody);
    CHECK(job.take() == "end 15 5");
    CHECK(job.rank(1).gone_rank < 0);
  }
}

TEST_CASE("the loss of a host precedes the exit of another host's rank that is reported at the same time") {
  Job job(4, 2);
  job.all_start();
  job.exits(0, 1);  // of a program without libddl
  CHECK(job.take() == "end 15 5");
  job->on_agent_failed(1, "node1 lost", true);
  CHECK(job.take() == "end 15 5");
  CHECK(job.report().reason == EndReason::kHostLost);
  CHECK(job.report().exit_code == contract::kLostHost);
  CHECK_FALSE(job.report().first_failure);

  Job ended(4, 2);
  ended.all_start();
  ended.exits(0, 5);
  ended.dies(2, SIGTERM, true);  // its agent had ended it: the loss came later
  ended->on_agent_failed(1, "node1 lost", true);
  CHECK(ended.report().reason == EndReason::kRankFailed);
  CHECK(ended.report().exit_code == 5);
}

TEST_CASE("a job that a resource manager cancels has lost no host: its ranks are reported until the end") {
  Job job(4, 2);
  job.all_start();
  job.exits_without(2, 0);  // reported before the agent of the rank whose end it has observed
  CHECK(job.take() == "wait");
  job->on_agent_termination_requested(0, "node0: its agent received SIGTERM", SIGTERM);
  CHECK(job.take() == "end 15 5");
  job->on_agent_termination_requested(1, "node1: its agent received SIGTERM", SIGTERM);
  CHECK(job.take().empty());
  for (const int rank : {0, 1, 3}) job.dies(rank, SIGTERM);
  CHECK(job.take() == "finish");
  job->on_finished(0, 0);
  job->on_agent_failed(1, "node1: Slurm has ended the agent", true);
  CHECK(job.take() == "done");
  CHECK(job.report().reason == EndReason::kSignal);
  CHECK(job.report().signal == SIGTERM);
  CHECK(job.report().exit_code == 128 + SIGTERM);
  CHECK(job.report().message == "node0: its agent received SIGTERM");
  CHECK_FALSE(job.report().first_failure);

  Job failed(2);
  failed.all_start();
  failed.exits(0, 5);
  failed->on_agent_termination_requested(0, "node0: too late", SIGTERM);
  CHECK(failed.report().exit_code == 5);
}

TEST_CASE("a resource manager's SIGTERM to ddlrun and to its agents is one request, in any order") {
  for (const bool agent_is_first : {true, false}) {
    CAPTURE(agent_is_first);
    Job job(4, 2);
    job.all_start();
    if (!agent_is_first) job->on_signal(SIGTERM);
    job->on_agent_termination_requested(0, "node0: its agent received SIGTERM", SIGTERM);
    if (agent_is_first) job->on_signal(SIGTERM);
    job->on_agent_termination_requested(1, "node1: its agent received SIGTERM", SIGTERM);
    CHECK(job.take() == "end 15 5");
    job->on_signal(SIGTERM);
    CHECK(job.take() == "end 9 0");
    CHECK(job.report().reason == EndReason::kSignal);
    CHECK(job.report().exit_code == 128 + SIGTERM);
  }
  Job interrupted(2);
  interrupted.all_start();
  interrupted->on_agent_termination_requested(0, "node0: its agent received SIGTERM", SIGTERM);
  interrupted->on_signal(SIGINT);
  CHECK(interrupted.take() == "end 15 5, end 9 0");

  // Ranks that Slurm has asked to end may fail before their agents have received the same.
  Job failed(2);
  failed.all_start();
  failed.exits(0, 5);
  failed->on_agent_termination_requested(0, "node0: its agent received SIGTERM", SIGTERM);
  failed->on_signal(SIGTERM);
  CHECK(failed.take() == "end 15 5");
}

TEST_CASE("ranks that serve end with the others, and that is a success") {
  Job job(4, 1, {false, false, true, true});
  job.all_start();
  job.exits(0, 0);
  job.exits(3, 0);  // it may end by itself
  CHECK(job.take().empty());
  job.exits(1, 0);
  CHECK(job.take() == "end 15 5");
  job.dies(2, SIGTERM, true);
  CHECK(job.take() == "finish");
  job->on_finished(0, 0);
  CHECK(job.take() == "done");
  CHECK(job.report().reason == EndReason::kSuccess);
  CHECK(job.report().exit_code == 0);
  CHECK_FALSE(job.report().first_failure);
}

TEST_CASE("how a rank ends that has served all others to their ends does not matter") {
  Job job(3, 1, {false, true, true});
  job.all_start();
  job.exits(0, 0);
  CHECK(job.take() == "end 15 5");
  job.exits(1, 143);
  job.exits(2, 1);
  CHECK(job.take() == "finish");
  CHECK(job.report().exit_code == 0);
  CHECK_FALSE(job.report().first_failure);

  Job others(2, 1, {false, true});
  others.all_start();
  others.exits(0, 0);
  others->on_abort(1, 7, "no more clients");
  CHECK_FALSE(others->on_rank_stopped(1, SIGSTOP, 4));
  others->on_rank_stayed_stopped(1, SIGSTOP);
  CHECK(others.take() == "end 15 5");
  CHECK(others.report().reason == EndReason::kSuccess);

  // Its end is reported before those that it has seen.
  Job early(3, 1, {false, true, true});
  early.all_start();
  early.exits(1, 1);
  CHECK(early.take() == "wait for clients");
  early.exits(2, 1);
  early.exits(0, 0);
  CHECK(early.take() == "finish");
  CHECK(early.report().reason == EndReason::kSuccess);
  CHECK_FALSE(early.report().first_failure);

  Job slow(2, 1, {false, true});
  slow.all_start();
  slow.exits(0, 0);
  CHECK(slow.take() == "end 15 5");
  slow->on_timeout();
  CHECK(slow.take() == "end 9 0");
  slow.dies(1, SIGKILL, true);
  CHECK(slow.report().exit_code == 0);
}

TEST_CASE("a rank that serves may fail like any other") {
  Job job(2, 1, {false, true});
  job.all_start();
  job.exits(1, 3);
  CHECK(job.take() == "wait for clients");
  job->on_root_cause_timeout();
  CHECK(job.take() == "end 15 5");
  job.exits(0, 0);
  CHECK(job.take() == "finish");
  CHECK(job.report().exit_code == 3);
  CHECK(job.report().first_failure == 1);

  Job killed(2, 1, {false, true});
  killed.all_start();
  killed.dies(1, SIGSEGV);
  CHECK(killed.take() == "end 15 5");

  Job both(3, 1, {false, false, true});
  both.all_start();
  both.exits(2, 3);
  both.exits(0, 4);
  CHECK(both.take() == "wait for clients, end 15 5");
  CHECK(both.report().first_failure == 0);

  Job late(2, 1, {false, true});
  late.all_start();
  late.exits(0, 3);
  CHECK(late.take() == "end 15 5");
  late.dies(1, SIGTERM, true);
  CHECK(late.take() == "finish");
  CHECK(late.report().first_failure == 0);
}

TEST_CASE("what happens before the launch ends the job at once") {
  Supervisor signalled;
  signalled.on_signal(SIGINT);
  CHECK(signalled.is_done());
  CHECK(signalled.report().reason == EndReason::kSignal);
  CHECK(signalled.report().exit_code == 130);
  CHECK(signalled.report().message == "no rank had been started");
  signalled.on_signal(SIGTERM);
  CHECK(signalled.report().exit_code == 130);

  Supervisor lost;
  lost.on_agent_failed(1, "node1: its agent was killed", true);
  CHECK(lost.is_done());
  CHECK(lost.report().reason == EndReason::kHostLost);
  CHECK(lost.report().exit_code == contract::kLostHost);

  Supervisor failed;
  failed.on_agent_failed(0, "node0: no PMIx server", false);
  CHECK(failed.report().reason == EndReason::kStartFailed);
  CHECK(failed.report().exit_code == contract::kStartFailure);

  Supervisor cancelled;
  cancelled.on_agent_termination_requested(0, "node0: its agent received SIGTERM", SIGTERM);
  CHECK(cancelled.report().exit_code == 143);

  Supervisor left;
  left.on_caller_ended("process 7 has ended");
  CHECK(left.report().exit_code == 143);
}

TEST_CASE("the report is a success only if all output could be written") {
  const auto succeeded = [] {
    auto job = std::make_unique<Job>(1);
    job->all_start();
    job->exits(0, 0);
    (*job)->on_finished(0, 0);
    CHECK(job->take() == "finish, done");
    return job;
  };
  auto lost = succeeded();
  (*lost)->on_output_lost("the disk is full");
  (*lost)->on_output_lost("another reason");
  CHECK(lost->report().reason == EndReason::kOutputLost);
  CHECK(lost->report().exit_code == contract::kOutputLost);
  CHECK(lost->report().message == "the disk is full");

  auto unread = succeeded();
  (*unread)->on_signal(SIGTERM);
  CHECK(unread->take() == "abandon output");
  CHECK(unread->report().reason == EndReason::kOutputLost);

  auto broken = succeeded();
  (*broken)->on_output_broken();
  CHECK(broken->report().exit_code == 141);

  Job failed(1);
  failed.all_start();
  failed.exits(0, 5);
  failed->on_finished(0, 0);
  failed->on_output_lost("the disk is full");
  CHECK(failed.report().exit_code == 5);
}

TEST_CASE("a job that its scheduler has cancelled does not end for the failure that follows from that") {
  Job job(1);
  job.all_start();
  job.exits(0, 1);
  job->on_finished(0, 0);
  job->on_job_cancelled("Slurm has ended job 7");
  CHECK(job.report().reason == EndReason::kSignal);
  CHECK(job.report().exit_code == 143);
  CHECK(job.report().message == "Slurm has ended job 7");

  Job good(1);
  good.all_start();
  good.exits(0, 0);
  good->on_finished(0, 0);
  good->on_job_cancelled("Slurm has ended job 7");
  CHECK(good.report().exit_code == 0);
}

TEST_CASE("a rank is on its node only, whatever number a message has") {
  Job job(4, 2);
  CHECK(job->is_rank_on(0, 1));
  CHECK(job->is_rank_on(1, 2));
  CHECK_FALSE(job->is_rank_on(0, 2));
  CHECK_FALSE(job->is_rank_on(1, -1));
  CHECK_FALSE(job->is_rank_on(1, 4));
  CHECK_FALSE(Supervisor().is_rank_on(0, 0));
}

TEST_CASE("what is reported of another incarnation of a rank does not count") {
  Job job(2);
  job.all_start();
  job->on_rank_started(0, 1, 999);
  CHECK(job.rank(0).pid == 100);
  RankOutcome other;
  other.kind = Kind::kSignalled;
  other.rank = 0;
  other.signal = SIGKILL;
  other.incarnation = 1;
  job->on_rank_ended(other);
  CHECK(job.take().empty());
  CHECK(job.rank(0).kind == Kind::kRunning);
}

TEST_CASE("a generation ends for other hosts while all its ranks run") {
  Job job(2);
  job.all_start();
  CHECK(job->on_hosts_changed("node3 joins the job"));
  CHECK(job.take() == "end 15 5");
  job.dies(0, SIGTERM, true);
  job.dies(1, SIGTERM, true);
  CHECK(job.take() == "finish");
  CHECK(job.report().reason == EndReason::kHostsChanged);
  CHECK(job.report().message == "node3 joins the job");
}

TEST_CASE("a generation whose ranks have begun to end does not end for other hosts") {
  Supervisor not_launched;
  CHECK_FALSE(not_launched.on_hosts_changed("node3 joins the job"));
  Job job(2);
  job.all_start();
  job.exits(0, 0);
  CHECK_FALSE(job->on_hosts_changed("node3 joins the job"));
  CHECK(job.take().empty());
  job.exits(1, 0);
  CHECK(job.report().reason == EndReason::kSuccess);
}
