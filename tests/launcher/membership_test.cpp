// Which processes are the ranks of an elastic job that goes on: pure, in a time of the test's own.
#include "launcher/elastic/membership.h"

#include <numeric>
#include <random>

#include "contract/ddlrun.h"
#include "launcher/job/allocation.h"
#include "support/catch.h"

using namespace ddl::launcher;
using namespace std::chrono_literals;
using ddl::contract::JobChange;
using ddl::contract::JoinReason;

namespace {

using Time = Membership::Time;
const Time kStart = Time() + 1000h;

JobSpec continued_spec(int start, int min, int max = kMaxRanks) {
  JobSpec spec;
  spec.elastic.mode = ElasticMode::kContinue;
  spec.elastic.start_ranks = start;
  spec.elastic.min_ranks = min;
  spec.elastic.max_ranks = max;
  spec.elastic.settle_seconds = 2;
  spec.elastic.ready_timeout_seconds = 30;
  spec.elastic.timeout_seconds = 600;
  return spec;
}

/// A job with a process for each slot of some hosts.
struct TestJob {
  JobSpec spec;
  Membership membership;
  Time now = kStart;
  std::int64_t commits = 0;
  std::optional<Time> other_host;

  TestJob(const JobSpec& given, const std::vector<std::pair<std::string, int>>& hosts,
          const Cooldown& cooldown = {30, 300, nullptr})
      : spec(given), membership(spec, cooldown, kStart) {
    for (const auto& [host, slots] : hosts) {
      for (int slot = 0; slot < slots; ++slot) start(host, slot);
    }
  }

  int start(const std::string& host, int slot) {
    const int member = membership.add(host, slot);
    membership.on_started(member, 100 + member);
    return member;
  }
  void join(int member, JoinReason reason = JoinReason::kFirst) {
    membership.on_joined(member, reason, commits, now);
  }
  void join_all(const std::vector<int>& members, JoinReason reason) {
    for (const int member : members) join(member, reason);
  }
  void kill(int member, int signal = 9) {
    RankOutcome outcome;
    outcome.kind = RankOutcome::Kind::kSignalled;
    outcome.signal = signal;
    membership.on_ended(member, outcome, now);
  }
  void exit(int member, int code) {
    RankOutcome outcome;
    outcome.kind = RankOutcome::Kind::kExited;
    outcome.exit_code = code;
    membership.on_ended(member, outcome, now);
  }
  /// "1: a0 a1 b0" for the ranks of generation 1, "wait: why", "end 137: why".
  std::string next() {
    const auto decision = membership.next(now, other_host);
    if (const auto* const wait = std::get_if<Membership::Wait>(&decision)) return "wait: " + wait->why;
    if (const auto* const end = std::get_if<Membership::End>(&decision))
      return "end " + std::to_string(end->how.exit_code) + ": " + end->why;
    const auto& plan = std::get<Membership::Plan>(decision);
    std::string text = std::to_string(plan.generation) + ":";
    for (const int one : plan.members)
      text += " " + membership.member(one).host + std::to_string(membership.member(one).slot);
    return text;
  }
};

TestJob job_of_four(int min = 2) {
  TestJob job(continued_spec(4, min), {{"a", 2}, {"b", 2}});
  for (const int member : {0, 1, 2, 3}) job.join(member);
  REQUIRE(job.next() == "0: a0 a1 b0 b1");
  return job;
}

}  // namespace

TEST_CASE("the first generation begins when all processes have joined") {
  TestJob job(continued_spec(4, 2), {{"a", 2}, {"b", 2}});
  for (const int member : {3, 1, 0}) job.join(member);
  CHECK(job.next() == "wait: ");
  job.join(2);
  CHECK(job.next() == "0: a0 a1 b0 b1");
  CHECK(job.next() == "wait: ");
}

TEST_CASE("a generation is over when each of its ranks has ended or joins again") {
  TestJob job = job_of_four();
  job.kill(0);
  CHECK(job.membership.lost_rank() == 0);
  CHECK(job.next() == "wait: ");
  job.join(1, JoinReason::kLost);
  job.join(3, JoinReason::kLost);
  CHECK(job.next() == "wait: ");
  job.join(2, JoinReason::kLost);
  CHECK(job.next() == "1: a1 b0 b1");
  CHECK_FALSE(job.membership.lost_rank());
}

TEST_CASE("ranks that do not come are hung, and are not waited for once they have ended") {
  TestJob job = job_of_four();
  job.kill(0);
  job.join_all({1, 2}, JoinReason::kLost);
  job.now += 29s;
  CHECK(job.membership.hung(job.now).empty());
  job.now += 1s;
  CHECK(job.membership.hung(job.now) == std::vector<int>{3});
  job.kill(3);
  CHECK(job.next() == "1: a1 b0");
}

TEST_CASE("a process in the place of one that has failed gets its rank, when the others ask") {
  TestJob job = job_of_four();
  job.kill(1);
  job.join_all({0, 2, 3}, JoinReason::kLost);
  REQUIRE(job.next() == "1: a0 b0 b1");
  CHECK(job.membership.free_slots("a", 2, job.now).empty());
  job.now = *job.membership.next_rest_end(job.now);
  CHECK(job.now == kStart + 30s);
  REQUIRE(job.membership.free_slots("a", 2, job.now) == std::vector<int>{1});
  const int late = job.start("a", 1);
  CHECK(job.membership.free_slots("a", 2, job.now).empty());
  CHECK(job.membership.pending_change(job.now) == JobChange::kNone);
  job.join(late);
  CHECK(job.membership.pending_change(job.now) == JobChange::kMembers);
  // It is gone before the ranks have asked: nothing changes.
  job.kill(late);
  CHECK(job.membership.pending_change(job.now) == JobChange::kNone);
  CHECK(job.next() == "wait: ");
  CHECK(*job.membership.next_rest_end(job.now) == job.now + 60s);
  const int later = job.start("a", 1);
  job.join(later);
  job.join_all({0, 2, 3}, JoinReason::kChanged);
  CHECK(job.next() == "2: a0 a1 b0 b1");
}

TEST_CASE("rank 0 is on the oldest host that has a rank, and new hosts come behind it") {
  TestJob job = job_of_four();
  const int c = job.start("c", 0);
  job.join(c);
  job.kill(0);
  job.kill(1);
  job.join_all({2, 3}, JoinReason::kLost);
  REQUIRE(job.next() == "1: b0 b1 c0");
  job.now += 1min;
  const int a = job.start("a", 0);
  job.join(a);
  job.join_all({2, 3, c}, JoinReason::kChanged);
  CHECK(job.next() == "2: b0 b1 c0 a0");
}

TEST_CASE("a job has never more ranks than its most") {
  TestJob job(continued_spec(2, 1, 2), {{"a", 2}});
  CHECK(job.membership.room() == 0);
  job.join_all({0, 1}, JoinReason::kFirst);
  REQUIRE(job.next() == "0: a0 a1");
  const int spare = job.start("b", 0);
  job.join(spare);
  CHECK(job.membership.pending_change(job.now) == JobChange::kNone);
  job.kill(0);
  job.join(1, JoinReason::kLost);
  CHECK(job.next() == "1: a1 b0");
}

TEST_CASE("spares wait until a rank is lost") {
  JobSpec spec = continued_spec(2, 2, 2);
  spec.elastic.spares = 1;
  TestJob job(spec, {{"a", 2}});
  CHECK(job.membership.room() == 1);
  job.join_all({0, 1}, JoinReason::kFirst);
  REQUIRE(job.next() == "0: a0 a1");
  const int spare = job.start("b", 0);
  job.join(spare);
  CHECK(job.membership.room() == 0);
  CHECK(job.membership.pending_change(job.now + 1h) == JobChange::kNone);
  job.kill(1);
  CHECK(job.membership.room() == 1);
  job.join(0, JoinReason::kLost);
  CHECK(job.next() == "1: a0 b0");
}

TEST_CASE("below the least number of ranks the job waits, and ends with the failure") {
  TestJob job = job_of_four(3);
  job.kill(0);
  job.kill(1, 11);
  job.join_all({2, 3}, JoinReason::kLost);
  CHECK(job.next() == "wait: 2 ranks of at least 3 can run");
  job.now += 599s;
  const int late = job.start("a", 0);
  CHECK(job.next() == "wait: 2 ranks of at least 3 can run, and 1 process has not joined yet");
  job.now += 1s;
  CHECK(job.next() ==
        "end 137: 2 ranks of at least 3 can run, and 1 process has not joined yet; that was waited for 600 s "
        "(--elastic-timeout)");
  job.join(late);
  CHECK(job.next() == "1: b0 b1 a0");
}

TEST_CASE("a job does not wait if no other process can come in time") {
  const auto end = "end 137: 2 ranks of at least 3 can run, and no others can come";
  const auto is_waiting = [](TestJob& job) { return job.next() == "wait: 2 ranks of at least 3 can run"; };
  for (const auto rest : {599s, 601s}) {
    TestJob job(continued_spec(3, 3), {{"a", 3}}, {double(rest.count()), double(rest.count()), nullptr});
    for (const int member : {0, 1, 2}) job.join(member);
    REQUIRE(job.next() == "0: a0 a1 a2");
    job.kill(1);
    job.join_all({0, 2}, JoinReason::kLost);
    CHECK(is_waiting(job) == (rest < 600s));
    job.other_host = job.now + 599s;
    CHECK(is_waiting(job));
    job.other_host = job.now + 601s;
    CHECK(is_waiting(job) == (rest < 600s));
    if (rest > 600s) CHECK(job.next() == end);
    // A discovery script may name others at any time.
    job.now += 600s;
    job.other_host = job.now;
    if (rest > 600s)
      CHECK(job.next() ==
            "end 137: 2 ranks of at least 3 can run; that was waited for 600 s (--elastic-timeout)");
  }
}

TEST_CASE("too few hosts at the start end the job as one that could not be started") {
  TestJob job(continued_spec(4, 3), {{"a", 2}});
  job.join_all({0, 1}, JoinReason::kFirst);
  const auto decision = job.membership.next(job.now, job.other_host);
  REQUIRE(std::holds_alternative<Membership::End>(decision));
  CHECK(std::get<Membership::End>(decision).how.reason == EndReason::kStartFailed);
}

TEST_CASE("a member that leaves is not a rank of the next generation, and does not rest") {
  TestJob job = job_of_four();
  job.membership.set_leaving(2);
  job.membership.set_leaving(3);
  CHECK(job.membership.pending_change(job.now) == JobChange::kMembers);
  job.join_all({0, 1, 2, 3}, JoinReason::kChanged);
  CHECK(job.next() == "1: a0 a1");
  job.kill(2, 15);
  CHECK(job.next() == "wait: ");
  CHECK_FALSE(job.membership.next_rest_end(job.now));
}

TEST_CASE("when all hosts are replaced, the ranks stay until the new ones have the state") {
  TestJob job = job_of_four(1);
  for (const int member : {0, 1, 2, 3}) job.membership.set_leaving(member);
  const std::vector<int> others = {job.start("c", 0), job.start("c", 1)};
  for (const int member : others) job.join(member);
  job.now += 3s;
  CHECK(job.membership.pending_change(job.now) == JobChange::kMembers);
  job.join_all({0, 1, 2, 3}, JoinReason::kChanged);
  for (const int member : {0, 1, 2, 3}) CHECK_FALSE(job.membership.may_end(member));
  CHECK(job.next() == "1: a0 a1 b0 b1 c0 c1");
  CHECK(job.membership.pending_change(job.now) == JobChange::kMembers);
  job.join_all({0, 1, 2, 3, 4, 5}, JoinReason::kChanged);
  CHECK(job.next() == "2: c0 c1");
  for (const int member : {0, 1, 2, 3}) CHECK(job.membership.may_end(member));
}

TEST_CASE("ranks that are all to leave are not asked to before others have come") {
  TestJob job = job_of_four(1);
  for (const int member : {0, 1, 2, 3}) job.membership.set_leaving(member);
  CHECK(job.membership.pending_change(job.now) == JobChange::kNone);
  const int other = job.start("c", 0);
  CHECK(job.membership.pending_change(job.now) == JobChange::kNone);
  job.join(other);
  CHECK(job.membership.pending_change(job.now) == JobChange::kMembers);
  // Another one of them fails, and the one that has come is gone, too.
  job.kill(other);
  CHECK(job.membership.pending_change(job.now) == JobChange::kNone);
}

TEST_CASE("a change that is withdrawn before the ranks ask changes nothing") {
  TestJob job = job_of_four();
  job.membership.set_leaving(3);
  CHECK(job.membership.pending_change(job.now) == JobChange::kMembers);
  job.membership.set_staying(3);
  CHECK(job.membership.pending_change(job.now) == JobChange::kNone);
}

TEST_CASE("a job whose ranks have all ended goes on only if its state is in a file") {
  for (const bool is_kept : {false, true}) {
    CAPTURE(is_kept);
    JobSpec spec = continued_spec(2, 1);
    spec.elastic.state_directory = "/state";
    spec.elastic.state_interval = is_kept ? 10 : 0;
    TestJob job(spec, {{"a", 2}});
    job.join_all({0, 1}, JoinReason::kFirst);
    REQUIRE(job.next() == "0: a0 a1");
    job.kill(0);
    job.commits = 20;
    job.join(1, JoinReason::kLost);
    REQUIRE(job.next() == "1: a1");
    job.kill(1);
    job.now += 31s;
    if (is_kept) {
      const int again = job.start("a", 0);
      CHECK(job.next().starts_with("wait: 0 ranks of at least 1"));
      job.commits = 0;
      job.join(again);
      CHECK(job.next() == "2: a0");
    } else {
      CHECK(job.next().starts_with("end 137: all ranks have ended, and with them the state"));
    }
    // One that is to end is not waited for.
    TestJob ending(spec, {{"a", 1}});
    ending.spec.elastic.start_ranks = 1;
    ending.join(0);
    REQUIRE(ending.next() == "0: a0");
    ending.kill(0);
    ending.membership.drain("asked");
    CHECK(ending.next().starts_with(is_kept ? "end 119" : "end 137"));
  }
}

TEST_CASE("a rank that has not got as far as to take over the state has none") {
  // The only one that had it is lost while a new one joins.
  TestJob job(continued_spec(2, 1), {{"a", 1}, {"b", 1}});
  job.join_all({0, 1}, JoinReason::kFirst);
  REQUIRE(job.next() == "0: a0 b0");
  job.commits = 20;
  job.kill(0);
  job.join(1, JoinReason::kLost);
  REQUIRE(job.next() == "1: b0");
  job.now += 30s;
  job.commits = 0;
  const int other = job.start("a", 0);
  job.join(other);
  job.commits = 30;
  job.join(1, JoinReason::kChanged);
  REQUIRE(job.next() == "2: b0 a0");
  job.kill(1);
  job.commits = 0;
  job.join(other, JoinReason::kLost);
  CHECK(job.next().starts_with("end 137: all ranks have ended, and with them the state"));
}

TEST_CASE("the job succeeds when all ranks have done their work, and does not change any more then") {
  TestJob job = job_of_four();
  const int late = job.start("c", 0);
  job.membership.on_finished(0);
  job.join(late);
  CHECK(job.membership.room() == 0);
  CHECK(job.membership.pending_change(job.now) == JobChange::kNone);
  for (const int member : {0, 1, 2}) {
    job.membership.on_finished(member);
    job.exit(member, 0);
  }
  CHECK(job.next() == "wait: ");
  job.exit(3, 0);
  CHECK(job.next() == "end 0: ");
}

TEST_CASE("a job that is to end is over when rank 0 has saved its state") {
  TestJob job(continued_spec(3, 2, 3), {{"a", 4}});
  for (const int member : {0, 1, 2, 3}) job.join(member);
  REQUIRE(job.next() == "0: a0 a1 a2");
  job.membership.drain("asked");
  CHECK(job.membership.pending_change(job.now) == JobChange::kDrain);
  CHECK(job.membership.is_leaving(3));
  CHECK(job.membership.room() == 0);
  // A rank is lost, and the others save the state together in the next generation.
  job.kill(1);
  job.join_all({0, 2}, JoinReason::kLost);
  CHECK(job.next() == "1: a0 a2");
  CHECK(job.membership.pending_change(job.now) == JobChange::kDrain);
  job.exit(2, ddl::contract::kDrained);
  CHECK(job.next() == "wait: ");
  job.exit(0, ddl::contract::kDrained);
  CHECK(job.next() == "end 119: ");
}

TEST_CASE("ranks that were to leave stay until the state of a job that is to end is saved") {
  TestJob job = job_of_four();
  for (const int member : {0, 1, 2, 3}) job.membership.set_leaving(member);
  CHECK_FALSE(job.membership.has_staying());
  job.membership.drain("asked");
  job.kill(0);
  job.join_all({1, 2, 3}, JoinReason::kLost);
  CHECK(job.next() == "1: a1 b0 b1");
}

TEST_CASE("a job that is to end fails if rank 0 does, and succeeds if its work is done before") {
  TestJob bad = job_of_four();
  bad.membership.drain("asked");
  bad.exit(0, 9);
  for (const int member : {1, 2, 3}) bad.exit(member, ddl::contract::kDrained);
  CHECK(bad.next().starts_with("end 9: "));
  TestJob done = job_of_four();
  done.membership.drain("asked");
  for (const int member : {0, 1, 2, 3}) {
    done.membership.on_finished(member);
    done.exit(member, 0);
  }
  CHECK(done.next() == "end 0: ");
}

TEST_CASE("a failure after a rank has done its work ends the job") {
  TestJob job = job_of_four();
  job.membership.on_finished(0);
  job.exit(2, 4);
  CHECK(job.next() == "end 4: ");
  TestJob other = job_of_four();
  other.membership.on_finished(0);
  other.exit(0, 0);
  other.join(1, JoinReason::kLost);
  CHECK(other.next() == "end 1: ");
}

TEST_CASE("a program that never joins again ends with its first failure") {
  TestJob job = job_of_four();
  job.exit(1, 7);
  for (const int member : {0, 2, 3}) job.exit(member, 1);
  CHECK(job.next().starts_with(
      "end 7: all ranks have ended, and none has joined again; a program that goes on calls"));
}

TEST_CASE("the first failure is no rank that had observed the end of another") {
  TestJob job = job_of_four();
  RankOutcome observer;
  observer.kind = RankOutcome::Kind::kExited;
  observer.exit_code = 1;
  observer.gone_rank = 2;
  job.membership.on_ended(0, observer, job.now);
  CHECK(job.membership.lost_rank() == 0);
  job.kill(2, 15);
  CHECK(job.membership.lost_rank() == 2);
  for (const int member : {1, 3}) job.membership.on_ended(member, observer, job.now);
  CHECK(job.next().starts_with("end 143: all ranks have ended"));
}

TEST_CASE("losses without a commit between them, and too many generations, end the job") {
  for (const bool has_limit : {false, true}) {
    CAPTURE(has_limit);
    JobSpec spec = continued_spec(8, 1);
    spec.elastic.reset_limit = has_limit ? 1 : 0;
    TestJob job(spec, {{"a", 8}});
    std::vector<int> ranks = {0, 1, 2, 3, 4, 5, 6, 7};
    job.join_all(ranks, JoinReason::kFirst);
    REQUIRE(job.next().starts_with("0: "));
    std::string last;
    // Those that are killed from outside are not counted.
    for (int fault = 0; fault <= 3 && !last.starts_with("end"); ++fault) {
      fault == 0 ? job.kill(ranks.back()) : job.exit(ranks.back(), 5);
      ranks.pop_back();
      job.join_all(ranks, JoinReason::kLost);
      last = job.next();
    }
    CHECK(last == (has_limit ? "end 5: there were as many new generations as --reset-limit 1 allows"
                             : "end 5: ranks have failed 3 times without a commit between them"));
  }
}

TEST_CASE("a job that loses ranks again and again without a commit ends, whatever ends them") {
  TestJob job(continued_spec(12, 1), {{"a", 12}});
  std::vector<int> ranks(12);
  std::iota(ranks.begin(), ranks.end(), 0);
  job.join_all(ranks, JoinReason::kFirst);
  REQUIRE(job.next().starts_with("0: "));
  for (int loss = 1; loss <= 10; ++loss) {
    job.kill(ranks.back());
    ranks.pop_back();
    job.join_all(ranks, JoinReason::kLost);
    if (loss < 10) CHECK(job.next().starts_with(std::to_string(loss) + ": "));
  }
  CHECK(job.next() == "end 137: ranks have been lost 10 times without a commit between them");
}

TEST_CASE("processes that never join end the job as an ordinary one") {
  TestJob good(continued_spec(4, 2), {{"a", 4}});
  for (const int member : {0, 1, 2, 3}) good.exit(member, 0);
  CHECK(good.next() == "end 0: ");
  TestJob bad(continued_spec(4, 2), {{"a", 4}});
  bad.exit(1, 6);
  CHECK(bad.next() == "end 6: ");
  TestJob without_host(continued_spec(2, 2), {{"a", 2}, {"b", 2}});
  without_host.join_all({0, 1}, JoinReason::kFirst);
  for (const int member : {2, 3}) without_host.membership.on_lost(member, "b: no answer", without_host.now);
  CHECK(without_host.next() == "0: a0 a1");
}

TEST_CASE("an hour of random events: generations have living ranks, and rank 0 is on a host that had one") {
  std::mt19937 random(46);
  const auto pick = [&](int below) { return static_cast<int>(random() % below); };
  JobSpec spec = continued_spec(8, 1);
  spec.elastic.state_directory = "/state";
  spec.elastic.state_interval = 1;
  TestJob job(spec, {{"a", 4}, {"b", 4}});
  for (int member = 0; member < 8; ++member) job.join(member);
  std::set<int> living = {0, 1, 2, 3, 4, 5, 6, 7};
  std::set<int> ranks;
  int generations = 0;
  const auto check_plan = [&] {
    const auto decision = job.membership.next(job.now, job.other_host);
    REQUIRE_FALSE(std::holds_alternative<Membership::End>(decision));
    const auto* const plan = std::get_if<Membership::Plan>(&decision);
    if (plan == nullptr) return;
    REQUIRE(plan->generation == generations++);
    for (const int member : plan->members) REQUIRE(living.contains(member));
    const std::string& first_host = job.membership.member(plan->members.front()).host;
    REQUIRE((ranks.empty() || std::any_of(ranks.begin(), ranks.end(), [&](int rank) {
               return job.membership.member(rank).host == first_host;
             })));
    ranks = {plan->members.begin(), plan->members.end()};
  };
  check_plan();
  while (job.now < kStart + 1h) {
    job.now += std::chrono::seconds(1 + pick(60));
    ++job.commits;
    if (living.size() > 1 && pick(3) > 0) {
      // One of them fails, and perhaps another while they recover.
      for (int failures = 1 + (pick(4) == 0 ? 1 : 0); failures > 0 && living.size() > 1; --failures) {
        const int victim = *std::next(living.begin(), pick(static_cast<int>(living.size())));
        living.erase(victim);
        ranks.erase(victim);
        job.kill(victim);
        check_plan();
      }
      if (job.membership.lost_rank()) {
        for (const int member : std::set<int>(ranks)) job.join(member, JoinReason::kLost);
      }
      check_plan();
    }
    for (const char* const host : {"a", "b"}) {
      for (const int slot : job.membership.free_slots(host, 4, job.now)) {
        living.insert(job.start(host, slot));
        if (pick(4) > 0) job.join(*living.rbegin());
      }
    }
    if (job.membership.pending_change(job.now) == JobChange::kMembers) {
      for (const int member : std::set<int>(ranks)) job.join(member, JoinReason::kChanged);
    }
    check_plan();
  }
  CHECK(generations > 50);
}

namespace {

/// Four ranks of Horovod, which join when they are started.
TestJob job_of_horovod(int min, bool have_met = true) {
  JobSpec spec = continued_spec(4, min);
  spec.serves_gloo = true;
  TestJob job(spec, {{"a", 2}, {"b", 2}});
  for (const int member : {0, 1, 2, 3}) job.join(member);
  REQUIRE(job.next() == "0: a0 a1 b0 b1");
  if (have_met) job.membership.on_met();
  return job;
}

}  // namespace

TEST_CASE("ranks of Horovod go on, and nobody takes the place of one that is lost") {
  TestJob job = job_of_horovod(2);
  CHECK(job.membership.has_formed());
  job.kill(0);
  job.join_all({1, 2, 3}, JoinReason::kLost);
  CHECK(job.next() == "1: a1 b0 b1");
  CHECK_FALSE(job.membership.has_formed());
  job.membership.on_met();
  job.now += 1h;
  CHECK(job.membership.room() == 0);
  job.other_host = job.now;
  job.kill(1);
  job.kill(2);
  job.join(3);
  CHECK(job.next() == "end 137: 1 rank of at least 2 can run, and no others can come");
}

TEST_CASE("ranks of Horovod do not tell of commits, so losses are not counted by them") {
  TestJob job(continued_spec(30, 1), {{"a", 30}});
  job.spec.serves_gloo = true;
  for (int member = 0; member < 30; ++member) job.join(member);
  job.next();
  for (int lost = 0; lost < 20; ++lost) {
    job.membership.on_met();
    job.exit(lost, 1);
    for (int member = lost + 1; member < 30; ++member) job.join(member, JoinReason::kLost);
    CHECK_THAT(job.next(), Catch::StartsWith(std::to_string(lost + 1) + ":"));
  }
}

TEST_CASE("a rank of Horovod that exits with 0 has done its work, and the job ends with the others") {
  TestJob job = job_of_horovod(2);
  job.exit(2, 0);
  CHECK(job.membership.is_finishing());
  CHECK(job.next() == "wait: ");
  for (const int member : {0, 1, 3}) job.exit(member, 0);
  CHECK(job.next() == "end 0: ");

  TestJob failed = job_of_horovod(2);
  failed.exit(2, 0);
  failed.exit(1, 5);
  CHECK(failed.next() == "end 5: ");
}

TEST_CASE("ranks of Horovod that have not met do not survive the loss of one") {
  TestJob job = job_of_horovod(2, false);
  job.exit(1, 3);
  CHECK(job.next() == "wait: ");
  job.now += 1s;
  CHECK_THAT(job.next(), Catch::StartsWith("end 3: a rank has ended while the ranks connected"));

  TestJob missing = job_of_horovod(2, false);
  missing.membership.on_lost(2, "b: no answer", missing.now);
  missing.now += 1s;
  CHECK(missing.next() == "end 121: with --gloo a job begins with all ranks, or not at all");

  // They have met, and that is heard of a little later.
  TestJob late = job_of_horovod(2, false);
  late.kill(1);
  CHECK(late.next() == "wait: ");
  late.membership.on_met();
  late.now += 1s;
  late.join_all({0, 2, 3}, JoinReason::kLost);
  CHECK(late.next() == "1: a0 b0 b1");
}

TEST_CASE("if all ranks of Horovod end, what is said depends on whether one had joined again") {
  TestJob job = job_of_horovod(1);
  for (const int member : {0, 1, 2, 3}) job.kill(member);
  CHECK_THAT(job.next(), Catch::Contains("none has joined again") && Catch::Contains("hvd.elastic.run"));

  TestJob later = job_of_horovod(1);
  later.kill(0);
  later.join_all({1, 2, 3}, JoinReason::kLost);
  later.next();
  later.membership.on_met();
  for (const int member : {1, 2, 3}) later.kill(member);
  CHECK_THAT(later.next(), Catch::Contains("with them the state") && Catch::Contains("write checkpoints"));
}
