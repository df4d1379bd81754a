// A rank dies or is stopped at every named point (runtime/src/common/fault.h) of every algorithm of every collective,
// on one host and on several, in the world and in a process set.
//
// A run without a fault finds out which points a call passes, and how often: so a new point is tested automatically.
// Two things cannot be found so and fail here: a collective without a row, and a point that no row passes.
#include <algorithm>
#include <filesystem>
#include <numeric>
#include <set>

#include "runtime/src/common/fault.h"
#include "runtime/support/fault_run.h"
#include "runtime/support/workers.h"
#include "support/catch.h"

using namespace ddl::runtime;
using namespace ddl::runtime::test;

#ifdef DDL_FAULT_INJECTION

namespace {

/// Runs at a time. They wait for the kernel to give them a turn; those that wait for a timeout do nothing meanwhile.
#ifdef DDL_TEST_SANITIZED
constexpr int kWorkers = 6, kWaitingWorkers = 6;
#else
constexpr int kWorkers = 10, kWaitingWorkers = 16;
#endif

/// A point of a scene: which ranks pass it in the call, and how often.
struct Moment {
  const FaultScene* scene = nullptr;
  std::string point;
  std::vector<std::pair<int, Passages>> ranks;
};

/// Before all ranks have put the data that the others need, only the launcher can notice anything.
bool is_the_launchers(const FaultScene& scene, const std::string& point) {
  return scene.joins() && point == "init.before_fence";
}

/// Where the others only sleep, they wait for a rank that is stopped as long as it takes.
bool has_timeout(const std::string& point) { return !point.ends_with(".before_sleep"); }

std::vector<Moment> moments_of(const std::vector<FaultScene>& scenes) {
  std::vector<Moment> moments;
  for (const FaultScene& scene : scenes) {
    const FaultTrace trace = trace_of(scene);
    std::map<std::string, Moment> by_point;
    for (std::size_t rank = 0; rank < trace.size(); ++rank) {
      for (const auto& [point, passages] : trace[rank]) {
        if (passages.during == 0 || is_the_launchers(scene, point)) continue;
        Moment& moment = by_point[point];
        moment.scene = &scene;
        moment.point = point;
        moment.ranks.emplace_back(static_cast<int>(rank), passages);
      }
    }
    for (auto& [point, moment] : by_point) moments.push_back(std::move(moment));
  }
  return moments;
}

/// Of all scenes, which run once for all tests.
const std::vector<Moment>& all_moments() {
  static const std::vector<FaultScene> scenes = fault_scenes();
  static const std::vector<Moment> moments = moments_of(scenes);
  return moments;
}

FaultRun run_of(const Moment& moment, Fault fault, std::size_t which_rank, std::int64_t which_passage) {
  const auto& [rank, passages] = moment.ranks[which_rank % moment.ranks.size()];
  FaultRun run;
  run.scene = moment.scene;
  run.fault = fault;
  run.point = moment.point;
  run.victim = rank;
  run.passage = passages.before + 1 + which_passage % passages.during;
  return run;
}

/// Every point of every scene once, cycling through faults, ranks, and first and later passages. A stop that the
/// others wait for takes as long as a timeout, so there is one of these for each scene.
std::vector<FaultRun> some_runs(const std::vector<Moment>& moments) {
  std::vector<FaultRun> runs;
  std::set<const FaultScene*> stopped;
  std::set<std::string> stopped_at;
  for (std::size_t i = 0; i < moments.size(); ++i) {
    const Moment& moment = moments[i];
    const std::size_t turn = i / 2;
    runs.push_back(
        run_of(moment, i % 2 == 0 ? Fault::kDeath : Fault::kGoingOn, turn, static_cast<std::int64_t>(turn)));
    runs.back().spins = turn % 2 == 0;
    if (!has_timeout(moment.point)) continue;
    const std::string place = moment.point.substr(moment.point.rfind('.'));
    const bool is_new = stopped_at.insert(place).second;
    // Not always the first point of a scene.
    const bool is_its_turn = i % 3 == 0 && stopped.insert(moment.scene).second;
    if (is_new || is_its_turn) runs.push_back(run_of(moment, Fault::kStop, i, static_cast<std::int64_t>(i)));
  }
  return runs;
}

/// Every rank at its first, last and middle passage of every point, with every fault.
std::vector<FaultRun> all_runs(const std::vector<Moment>& moments) {
  std::vector<FaultRun> runs;
  for (const Moment& moment : moments) {
    // Of many ranks, some: two that are neighbours in the tree, the last, and one in the middle.
    const std::size_t step = std::max<std::size_t>(moment.ranks.size() / 3, 1);
    for (std::size_t rank = 0; rank < moment.ranks.size(); rank += step) {
      const std::int64_t during = moment.ranks[rank].second.during;
      for (const std::int64_t passage : std::set<std::int64_t>{0, during / 2, during - 1}) {
        for (const Fault fault : {Fault::kDeath, Fault::kStop, Fault::kGoingOn}) {
          if (fault == Fault::kStop && !has_timeout(moment.point)) continue;
          runs.push_back(run_of(moment, fault, rank, passage));
          runs.back().spins = runs.size() % 2 == 0;
        }
      }
    }
  }
  return runs;
}

std::set<std::string> files_of_ours() {
  std::set<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator("/dev/shm")) {
    if (entry.path().filename().string().find("ddl") != std::string::npos) names.insert(entry.path());
  }
  return names;
}

void check_runs(std::vector<FaultRun> runs) {
  const auto files = files_of_ours();
  const auto waiting = std::stable_partition(runs.begin(), runs.end(),
                                             [](const FaultRun& run) { return run.fault != Fault::kStop; });
  // Many ranks wait longest.
  std::stable_sort(waiting, runs.end(),
                   [](const FaultRun& a, const FaultRun& b) { return a.scene->ranks > b.scene->ranks; });
  std::size_t not_reached = 0;
  // Returns the runs with a complaint, and the complaints.
  const auto try_runs = [&](int workers, const std::vector<std::size_t>& some) {
    std::vector<std::pair<std::size_t, std::string>> failed;
    for (const std::string& result : run_in_workers(workers, some.size(), [&](std::size_t i) {
           const std::string complaint = complaints_of(runs[some[i]]);
           return complaint.empty() ? complaint : '#' + std::to_string(some[i]) + ' ' + complaint;
         })) {
      const std::string complaint = result.substr(result.find(' ') + 1);
      if (result.front() != '#') {
        FAIL_CHECK(result);  // of a worker
      } else if (complaint == kNotReached) {
        ++not_reached;
      } else {
        failed.emplace_back(std::stoul(result.substr(1)), complaint);
      }
    }
    return failed;
  };
  const auto check = [&](int workers, std::size_t begin, std::size_t end) {
    std::vector<std::size_t> some(end - begin);
    std::iota(some.begin(), some.end(), begin);
    // While many ranks share few CPUs, one that is not stopped may be late for a timeout as well, and is rightly named
    // as missing. So a run that fails is repeated with no other beside it.
    for (const auto& [run, complaint] : try_runs(workers, some)) {
      for (const auto& again : try_runs(1, {run}))
        FAIL_CHECK(again.second << "\nbefore, beside other runs: " << complaint);
    }
  };
  const auto first_waiting = static_cast<std::size_t>(waiting - runs.begin());
  check(kWorkers, 0, first_waiting);
  check(kWaitingWorkers, first_waiting, runs.size());
  CHECK(files_of_ours() == files);
  WARN(runs.size() << " runs, of them " << runs.end() - waiting << " that wait for a timeout, and "
                   << not_reached << " that did not reach their fault");
  CHECK(not_reached * 50 <= runs.size());
}

}  // namespace

TEST_CASE("every collective has a row in the table of faults") {
  for (int number = 1; number <= UINT8_MAX; ++number) {
    const auto kind = static_cast<CallKind>(number);
    if (call_kind_name(kind) == std::string("unknown collective")) break;
    CAPTURE(call_kind_name(kind));
    const auto& rows = fault_rows();
    CHECK(std::any_of(rows.begin(), rows.end(), [kind](const FaultRow& row) { return row.kind == kind; }));
  }
}

TEST_CASE("every algorithm and every fault point is passed by some row") {
  const auto scenes = fault_scenes();
  for (int number = 1; number <= UINT8_MAX; ++number) {
    const auto algorithm = static_cast<Algorithm>(number);
    if (algorithm_name(algorithm) == std::string("unknown algorithm")) break;
    CAPTURE(algorithm_name(algorithm));
    CHECK(std::any_of(scenes.begin(), scenes.end(),
                      [=](const FaultScene& scene) { return scene.algorithm == algorithm; }));
  }
  std::set<std::string> passed;
  for (const Moment& moment : all_moments()) passed.insert(moment.point.substr(moment.point.rfind('.') + 1));
  for (int number = 0; const char* name = fault_point_name(static_cast<FaultPoint>(number)); ++number) {
    CAPTURE(name);
    CHECK(passed.count(name) == 1);
  }
}

TEST_CASE("a rank dies or is stopped at every point of every algorithm") {
  check_runs(some_runs(all_moments()));
}

TEST_CASE("every rank dies and is stopped at every passage of every point", "[.full]") {
  check_runs(all_runs(all_moments()));
}

#endif  // DDL_FAULT_INJECTION
