// Which generations an elastic job has: pure, in a time of the test's own.
#include "launcher/elastic/generation_planner.h"

#include "support/catch.h"

using namespace ddl::launcher;
using namespace std::chrono_literals;
using Planner = GenerationPlanner;

namespace {

const HostPool::Time kBegin = HostPool::Time() + 1000h;

AllocatedNode elastic_host(const std::string& name, std::optional<int> slots = std::nullopt) {
  AllocatedNode node;
  node.name = name;
  node.slots = slots;
  return node;
}

/// With as many ranks as these hosts have slots, and one rank at least.
JobSpec elastic_spec(int max_restarts) {
  JobSpec spec;
  spec.elastic.mode = ElasticMode::kRestart;
  spec.elastic.max_restarts = max_restarts;
  spec.elastic.max_ranks = kMaxRanks;
  return spec;
}

JobReport ended_report(EndReason reason, std::vector<std::string> failed_hosts = {}) {
  JobReport report;
  report.reason = reason;
  report.failed_hosts = std::move(failed_hosts);
  return report;
}

/// "a b: 4 ranks, generation 1, restart 1", "wait 30 s: why", "end: why".
std::string decision_text(const Planner::Decision& decision, HostPool::Time now) {
  if (const auto* const wait = std::get_if<Planner::Wait>(&decision))
    return "wait " + std::to_string((wait->until - now) / 1s) + " s: " + wait->why;
  if (const auto* const end = std::get_if<Planner::End>(&decision)) return "end: " + end->why;
  const Generation& generation = std::get<Planner::Start>(decision).generation;
  std::string text;
  for (const AllocatedNode& one : generation.hosts) text += (text.empty() ? "" : " ") + one.name;
  return text + ": " + std::to_string(generation.num_ranks) + " ranks, generation " +
         std::to_string(generation.number.generation) + ", restart " +
         std::to_string(generation.number.restarts);
}

std::string host_names(const std::vector<AllocatedNode>& hosts) {
  std::string text;
  for (const AllocatedNode& one : hosts) text += (text.empty() ? "" : " ") + one.name;
  return text;
}

std::string joining(const std::optional<Planner::Growth>& growth) {
  return growth ? host_names(growth->hosts) : "";
}

}  // namespace

TEST_CASE("a generation has as many ranks as its hosts have slots, within the limits") {
  const std::vector<AllocatedNode> hosts = {elastic_host("a", 2), elastic_host("b", 2), elastic_host("c", 2)};
  JobSpec spec = elastic_spec(0);
  const auto ranks_of = [&](int required) {
    const auto planned = plan_generation(spec, hosts, required);
    return planned ? host_names(planned->hosts) + " " + std::to_string(planned->num_ranks) : "none";
  };
  CHECK(ranks_of(1) == "a b c 6");
  CHECK(ranks_of(7) == "none");
  spec.elastic.max_ranks = 3;
  CHECK(ranks_of(3) == "a b 3");
  spec.elastic.max_ranks = kMaxRanks;
  spec.elastic.max_hosts = 2;
  CHECK(ranks_of(1) == "a b 4");
  spec.elastic.min_hosts = 4;
  spec.elastic.max_hosts = 0;
  CHECK(ranks_of(1) == "none");
  spec.elastic.min_hosts = 1;
  spec.ranks_per_node = 4;
  CHECK(ranks_of(1) == "a b c 12");
  spec.ranks_per_node = 0;
  // More ranks than slots.
  spec.oversubscribe = true;
  spec.elastic.max_ranks = 8;
  CHECK(ranks_of(8) == "a b c 8");
}

TEST_CASE("hosts whose slots are not known, or that may have more ranks than slots, share the ranks out") {
  JobSpec spec = elastic_spec(0);
  spec.elastic.max_ranks = 4;
  const auto ranks_of = [&](const std::vector<AllocatedNode>& hosts) {
    const auto planned = plan_generation(spec, hosts, 4);
    return planned ? host_names(planned->hosts) + " " + std::to_string(planned->num_ranks) : "none";
  };
  CHECK(ranks_of({elastic_host("a"), elastic_host("b")}) == "a b 4");
  CHECK(ranks_of({elastic_host("a", 4), elastic_host("b")}) == "a 4");
  spec.oversubscribe = true;
  CHECK(ranks_of({elastic_host("a", 1), elastic_host("b", 1)}) == "a b 4");
  spec.elastic.max_hosts = 1;
  CHECK(ranks_of({elastic_host("a", 1), elastic_host("b", 1)}) == "a 4");
  AllocatedNode limited = elastic_host("a", 1);
  limited.max_slots = 3;
  CHECK(ranks_of({limited}) == "none");
}

TEST_CASE("spare slots are used by the ranks that are required, and not to grow") {
  JobSpec spec = elastic_spec(0);
  AllocatedNode node = elastic_host("a", 1);
  node.spare_slots = 8;
  CHECK(plan_generation(spec, {node}, 1)->num_ranks == 1);
  CHECK(plan_generation(spec, {node}, 4)->num_ranks == 4);
  CHECK_FALSE(plan_generation(spec, {node}, 9));
}

TEST_CASE("ranks are started again as often as --max-restarts allows") {
  const JobSpec spec = elastic_spec(2);
  Planner planner(spec, {elastic_host("a", 2)}, nullptr);
  CHECK(decision_text(planner.next(kBegin), kBegin) == "a: 2 ranks, generation 0, restart 0");
  planner.on_ended(ended_report(EndReason::kRankFailed), kBegin);
  CHECK(decision_text(planner.next(kBegin), kBegin) == "a: 2 ranks, generation 1, restart 1");
  planner.on_ended(ended_report(EndReason::kAborted), kBegin);
  CHECK(decision_text(planner.next(kBegin), kBegin) == "a: 2 ranks, generation 2, restart 2");
  planner.on_ended(ended_report(EndReason::kStalled), kBegin);
  CHECK(decision_text(planner.next(kBegin), kBegin) ==
        "end: the ranks were started again as often as --max-restarts 2 allows");
}

TEST_CASE("a job ends with success, a signal, a timeout, lost output, and a command that cannot be started") {
  for (const EndReason reason : {EndReason::kSuccess, EndReason::kSignal, EndReason::kTimeout,
                                 EndReason::kOutputLost, EndReason::kStartFailed}) {
    const JobSpec spec = elastic_spec(5);
    Planner planner(spec, {elastic_host("a", 2)}, nullptr);
    (void)planner.next(kBegin);
    planner.on_ended(ended_report(reason), kBegin);
    CHECK(decision_text(planner.next(kBegin), kBegin) == "end: ");
  }
}

TEST_CASE("a lost host is left out, costs no restart, and is used again after its time") {
  JobSpec spec = elastic_spec(0);
  spec.elastic.start_ranks = 4;
  Planner planner(spec, {elastic_host("a", 2), elastic_host("b", 2)}, nullptr);
  CHECK(decision_text(planner.next(kBegin), kBegin) == "a b: 4 ranks, generation 0, restart 0");
  planner.on_ended(ended_report(EndReason::kHostLost, {"A"}), kBegin);
  CHECK(decision_text(planner.next(kBegin), kBegin) == "b: 2 ranks, generation 1, restart 0");
  CHECK(joining(planner.growth(kBegin)).empty());
  CHECK(planner.next_return(kBegin) == kBegin + 30s);
  CHECK(joining(planner.growth(kBegin + 30s)) == "a");
  // Behind b, so that rank 0 is where the state is.
  planner.on_ended(ended_report(EndReason::kHostsChanged), kBegin + 31s);
  CHECK(decision_text(planner.next(kBegin + 31s), kBegin) == "b a: 4 ranks, generation 2, restart 0");
}

TEST_CASE(
    "each loss of a host doubles the time for which it is not used, up to the limit; an hour halves it") {
  HostPool pool({.min_seconds = 10, .max_seconds = 35, .random = nullptr});
  HostPool::Time now = kBegin;
  pool.update({elastic_host("a", 1)}, now);
  const auto fail = [&] {
    pool.on_failed("a", now);
    return *pool.next_return(now) - now;
  };
  CHECK(fail() == 10s);
  CHECK(fail() == 20s);
  CHECK(fail() == 35s);
  now += 2h;
  CHECK(fail() == 20s);
  // Being out of the list for a while makes no host better.
  pool.update({}, now);
  CHECK(pool.listed().empty());
  pool.update({elastic_host("a", 1)}, now);
  CHECK(fail() == 35s);

  // Nor is one that comes and goes: from its second return on.
  pool.update({}, now);
  pool.update({elastic_host("b", 1)}, now);
  for (const auto rest : {0s, 10s, 20s, 35s}) {
    pool.update({}, now);
    pool.update({elastic_host("b", 1)}, now);
    CHECK(pool.usable(now).size() == (rest == 0s ? 1 : 0));
    CHECK(pool.next_return(now).value_or(now) - now == rest);
  }

  // Each second, for a minute, with what the options have if they are not given.
  HostPool flapping({.min_seconds = 30, .max_seconds = 300, .random = [] { return 0.0; }});
  int comes = 0;
  for (int second = 0; second < 60; ++second) {
    const bool is_there = second % 2 == 0;
    flapping.update(is_there ? std::vector{elastic_host("b", 1)} : std::vector<AllocatedNode>(),
                    now + std::chrono::seconds(second));
    if (is_there && !flapping.usable(now + std::chrono::seconds(second)).empty()) ++comes;
  }
  CHECK(comes < 5);

  HostPool random({.min_seconds = 10, .max_seconds = 100, .random = [] { return 1.0; }});
  random.update({elastic_host("a", 1)}, kBegin);
  random.on_failed("a", now);
  CHECK(*random.next_return(now) - now == 15s);
}

TEST_CASE("below the minimum the job waits for hosts that return, as long as --elastic-timeout") {
  JobSpec spec = elastic_spec(0);
  spec.elastic.start_ranks = spec.elastic.min_ranks = 3;
  spec.elastic.timeout_seconds = 50;
  Planner planner(spec, {elastic_host("a", 2), elastic_host("b", 2)}, nullptr);
  (void)planner.next(kBegin);
  planner.on_ended(ended_report(EndReason::kHostLost, {"b"}), kBegin);
  CHECK(decision_text(planner.next(kBegin), kBegin) ==
        "wait 30 s: 1 host can be used now, and 3 ranks are needed");
  CHECK(decision_text(planner.next(kBegin + 30s), kBegin) == "a b: 4 ranks, generation 1, restart 0");
}

TEST_CASE("the job ends at once if no host can return in time") {
  JobSpec spec = elastic_spec(0);
  spec.elastic.timeout_seconds = 20;
  Planner planner(spec, {elastic_host("a", 2)}, nullptr);
  (void)planner.next(kBegin);
  planner.on_ended(ended_report(EndReason::kHostLost, {"a"}), kBegin);
  CHECK(decision_text(planner.next(kBegin), kBegin) == "end: no host can be used now, and 1 rank is needed");
}

TEST_CASE("a host that does not come up at first is not waited for") {
  JobSpec spec = elastic_spec(3);
  spec.elastic.start_ranks = 4;
  Planner planner(spec, {elastic_host("a", 2), elastic_host("typo", 2)}, nullptr);
  (void)planner.next(kBegin);
  planner.on_ended(ended_report(EndReason::kStartFailed, {"typo"}), kBegin);
  spec.elastic.min_ranks = 3;
  CHECK(decision_text(planner.next(kBegin), kBegin) == "end: 1 host can be used now, and 3 ranks are needed");
  spec.elastic.min_ranks = 2;
  CHECK(decision_text(planner.next(kBegin), kBegin) == "a: 2 ranks, generation 1, restart 0");
}

TEST_CASE("with a discovery script the job waits for hosts that nobody has named yet") {
  JobSpec spec = elastic_spec(0);
  spec.elastic.discovery = "/hosts";
  spec.elastic.timeout_seconds = 60;
  spec.elastic.start_ranks = 4;
  Planner planner(spec, {}, nullptr);
  CHECK(decision_text(planner.next(kBegin), kBegin) ==
        "wait 60 s: no host can be used now, and 4 ranks are needed");
  planner.on_hosts({elastic_host("a", 2)}, kBegin);
  CHECK(decision_text(planner.next(kBegin + 20s), kBegin + 20s) ==
        "wait 40 s: 1 host can be used now, and 4 ranks are needed");
  planner.on_hosts({elastic_host("a", 2), elastic_host("b", 2)}, kBegin);
  CHECK(decision_text(planner.next(kBegin + 30s), kBegin) == "a b: 4 ranks, generation 0, restart 0");
  CHECK(planner.reason_to_leave().empty());
  planner.on_hosts({elastic_host("b", 2)}, kBegin);
  CHECK(planner.reason_to_leave() == "a is not a host of the job any more");
  planner.on_ended(ended_report(EndReason::kHostsChanged), kBegin + 40s);
  CHECK(decision_text(planner.next(kBegin + 40s), kBegin) == "b: 2 ranks, generation 1, restart 0");
  planner.on_hosts({elastic_host("c", 2), elastic_host("b", 4), elastic_host("d", 2)}, kBegin);
  CHECK(joining(planner.growth(kBegin + 41s)) == "c d");
  // A host that does not answer is not asked for a while.
  planner.on_host_failed("c", kBegin + 41s);
  CHECK(joining(planner.growth(kBegin + 42s)) == "d");
}

TEST_CASE("--reset-limit counts new generations, whatever their reason") {
  JobSpec spec = elastic_spec(9);
  spec.elastic.reset_limit = 1;
  Planner planner(spec, {elastic_host("a", 1), elastic_host("b", 1)}, nullptr);
  (void)planner.next(kBegin);
  planner.on_ended(ended_report(EndReason::kHostLost, {"b"}), kBegin);
  CHECK(decision_text(planner.next(kBegin), kBegin) == "a: 1 ranks, generation 1, restart 0");
  planner.on_ended(ended_report(EndReason::kRankFailed), kBegin);
  CHECK(decision_text(planner.next(kBegin), kBegin) ==
        "end: the ranks were started again as often as --reset-limit 1 allows");
}

TEST_CASE("more hosts than --max-np needs are spares: they join nothing, and replace a lost one") {
  JobSpec spec = elastic_spec(0);
  spec.elastic.max_ranks = spec.elastic.start_ranks = 4;
  Planner planner(spec, {elastic_host("a", 2), elastic_host("b", 2), elastic_host("c", 2)}, nullptr);
  CHECK(decision_text(planner.next(kBegin), kBegin) == "a b: 4 ranks, generation 0, restart 0");
  CHECK(joining(planner.growth(kBegin)).empty());
  planner.on_ended(ended_report(EndReason::kHostLost, {"a"}), kBegin);
  CHECK(decision_text(planner.next(kBegin), kBegin) == "b c: 4 ranks, generation 1, restart 0");
}

TEST_CASE("a host that has fewer slots than ranks is left, and one that has more is grown into") {
  JobSpec spec = elastic_spec(0);
  spec.elastic.discovery = "/hosts";
  spec.elastic.max_ranks = 5;
  Planner planner(spec, {elastic_host("a", 4), elastic_host("b", 2)}, nullptr);
  CHECK(decision_text(planner.next(kBegin), kBegin) == "a b: 5 ranks, generation 0, restart 0");
  planner.on_hosts({elastic_host("a", 4), elastic_host("b", 1)}, kBegin);
  CHECK(planner.reason_to_leave().empty());
  planner.on_hosts({elastic_host("a", 3), elastic_host("b", 1)}, kBegin);
  CHECK(planner.reason_to_leave() == "a has fewer slots now, and 4 ranks run there");
  planner.on_ended(ended_report(EndReason::kHostsChanged), kBegin);
  CHECK(decision_text(planner.next(kBegin), kBegin) == "a b: 4 ranks, generation 1, restart 0");
  CHECK_FALSE(planner.growth(kBegin));
  planner.on_hosts({elastic_host("a", 8), elastic_host("b", 1)}, kBegin);
  REQUIRE(planner.growth(kBegin));
  CHECK(planner.growth(kBegin)->hosts.empty());
  CHECK(planner.growth(kBegin)->why == "there are more slots now");
}
