#include "runtime/support/fault_run.h"

#include <signal.h>

#include <algorithm>
#include <chrono>
#include <sstream>

#include "runtime/support/expect.h"
#include "runtime/support/process_job.h"

namespace ddl::runtime::test {
namespace {

using conformance::expect;
using conformance::expect_contains;
using conformance::expect_ok;
using conformance::expect_status;

/// The time limit for a rank to learn of a death, and beyond its deadline to give up. Tests of one job at a time
/// require one second; here twenty processes and more share the CPUs with other tests. Waits for the wrong event last
/// 10 s or 60.
constexpr double kNotifiedWithinSeconds = 8.0;
/// The time limit for connecting if ranks die or stop during it.
constexpr double kWireUpSeconds = 1.0;
/// The calls of named tensors in which the victim may pass its point, and the runs. How often it does depends on time:
/// once all ranks know what to expect, they agree no more. The calls are few enough for a busy machine.
constexpr int kMostCalls = 60;
constexpr int kMostRuns = 8;

bool makes_sets(const FaultScene& scene) { return scene.row->kind == CallKind::kMakeSets; }

/// The call under test makes connections first.
bool connects(const FaultScene& scene) { return scene.joins() || (scene.submits() && scene.is_first); }

/// Its calls have no timeout of their own.
bool has_default_timeout(const FaultScene& scene) {
  return makes_sets(scene) || scene.row->kind == CallKind::kTimeline || scene.submits() ||
         scene.row->name == kRepeated;
}

/// A pair of ranks that send to each other is a set, too.
bool waits_in_several_sets(const FaultScene& scene) {
  return makes_sets(scene) || scene.row->kind == CallKind::kTransfer;
}

/// Longer where connections are made within it.
double timeout_of(const FaultScene& scene) {
  return scene.ranks > 3 ? 3.0 : has_default_timeout(scene) && !scene.hosts.empty() ? 1.5 : 0.5;
}

ProcessJob job_of(const FaultScene& scene) {
  ProcessJob job;
  job.ranks = scene.ranks;
  job.hosts = scene.hosts;
  job.deadline_seconds = 20;
  // Several chunks, also of what is cut into slices.
  job.settings.staging_bytes = 4096;
  if (scene.algorithm != Algorithm::kAuto) {
    auto overrides = AlgorithmOverrides::parse(std::string(call_kind_name(scene.row->kind)) + "=" +
                                               algorithm_name(scene.algorithm));
    DDL_CHECK(overrides.has_value(), overrides.error().message());
    job.settings.algorithms = *overrides;
  }
  return job;
}

FaultArguments desk_of(ddl_context* context, const FaultScene& scene, PassedPoints& passed) {
  std::uint64_t set = DDL_WORLD;
  if (scene.in_set) {
    expect_ok(ddl_process_set_split(context, DDL_WORLD, 0, -ddl_rank(context), &set), "split");
  }
  return FaultArguments(context, set, scene.ranks > 3 ? 300 : 5000, scene.in_heap, passed);
}

ddl_status call_once(const FaultScene& scene, FaultArguments& desk) {
  std::fill_n(desk.recv, desk.count * static_cast<std::uint64_t>(desk.size), -1.0f);
  const ddl_status status = scene.row->call(desk);
  if (status == DDL_OK) expect(scene.row->is_right(desk), "wrong values");
  return status;
}

/// What comes before the call under test.
ddl_status call_before(const FaultScene& scene, FaultArguments& desk) {
  if (scene.joins()) return DDL_OK;
  // A rank waits until all have joined, however long that takes.
  ddl_call_options patiently = desk.options;
  patiently.timeout_seconds = 20;
  const ddl_status status = ddl_barrier(desk.context, &patiently);
  if (status != DDL_OK) return status;
  if (scene.is_first) return ddl_barrier(desk.context, &desk.options);
  return call_once(scene, desk);
}

double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Whether the victim has passed the point of the fault. How often named tensors pass one depends on time, such as
/// how many rounds the ranks need.
bool is_over(const FaultRun& run, FaultArguments& desk) {
  const std::int32_t own =
      ddl_rank(desk.context) == run.victim && desk.passed.times(run.point) >= run.passage ? 1 : 0;
  std::vector<std::int32_t> all(static_cast<std::size_t>(desk.size));
  expect_ok(ddl_allgather(desk.context, &own, all.data(), 1, DDL_INT32, &desk.options), "allgather");
  return std::count(all.begin(), all.end(), 1) > 0;
}

/// A rank's report: "notified", its status, the seconds until then, and the message, each on a line of its own.
std::string fare(RankPlace& place, const FaultRun& run, double timeout, PassedPoints& passed) {
  const FaultScene& scene = *run.scene;
  if (scene.submits()) place.watch_faults(&passed);
  ddl_context* context = nullptr;
  const double began_joining = now();
  try {
    context = place.join();
  } catch (const std::exception& error) {
    return "not joined\n0\n" + std::to_string(now() - began_joining) + "\n" + error.what();
  }
  FaultArguments desk = desk_of(context, scene, passed);
  desk.one_by_one = run.fault == Fault::kStop;
  double begin = now();
  ddl_status status = call_before(scene, desk);
  desk.options.timeout_seconds = timeout;
  const auto has_succeeded = [&](int made) {
    return run.fault == Fault::kGoingOn && made >= 3 && (!scene.submits() || is_over(run, desk));
  };
  for (int made = 0; status == DDL_OK && !has_succeeded(made); ++made) {
    if (scene.submits() && made == kMostCalls) {
      expect_ok(ddl_finalize(context), "finalize");
      return "not reached\n0\n0\n";
    }
    begin = now();
    status = call_once(scene, desk);
  }
  const double seconds = now() - begin;
  if (status == DDL_OK) {
    expect_ok(ddl_finalize(context), "finalize");
    return "succeeded\n0\n0\n";
  }
  std::string sentence = ddl_last_error();
  // An ordered call after named tensors is the first of its kind that fails, unless one before them has failed.
  const bool is_named = scene.submits();
  const ddl_status next = ddl_barrier(context, &desk.options);
  if (!is_named || next != status) expect_status(next, DDL_ERROR_ABORTED, "the next call");
  // Except for the ranks that this rank waited for meanwhile, this is the same for all calls.
  std::string cause = sentence.substr(0, sentence.find("; this rank was "));
  // Nor does it name the call that failed.
  for (const char* const call : {" during ", " before "}) {
    if (is_named) cause = cause.substr(0, cause.find(call));
  }
  expect_contains(ddl_last_error(), cause);
  // Some leave in order, others just exit: the reported cause must not change.
  if (place.rank() % 2 == 0) expect_ok(ddl_finalize(context), "finalize after an abort");
  return "notified\n" + std::to_string(status) + "\n" + std::to_string(seconds) + "\n" + sentence;
}

struct Fared {
  std::string how;
  ddl_status status = DDL_OK;
  double seconds = 0;
  std::string sentence;

  static Fared read(const std::string& report) {
    Fared fared;
    std::istringstream lines(report);
    std::getline(lines, fared.how);
    lines >> fared.status >> fared.seconds;
    lines.ignore();
    std::getline(lines, fared.sentence, '\0');
    return fared;
  }
};

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// What is wrong with the report of a rank that was not stopped; "" if nothing is.
std::string judge(const FaultRun& run, const Fared& fared, const std::string& victim) {
  const FaultScene& scene = *run.scene;
  if (run.fault == Fault::kGoingOn) return fared.how == "succeeded" ? "" : "did not succeed";
  if (fared.how == "not joined" && scene.joins()) {
    if (fared.seconds > kWireUpSeconds + kNotifiedWithinSeconds) return "gave up joining too late";
    return "";
  }
  if (fared.how != "notified") return "was not notified";
  const bool died = run.fault == Fault::kDeath;
  if (scene.joins() && fared.status == DDL_ERROR_PEER_LOST &&
      contains(fared.sentence, "not connected in time: rank " + std::to_string(run.victim)))
    return "";  // of a rank that could not join
  if (fared.status != (died ? DDL_ERROR_PEER_LOST : DDL_ERROR_TIMEOUT)) return "was given another status";
  if (fared.seconds > (died ? 0 : timeout_of(scene) * 1.5) + kNotifiedWithinSeconds)
    return "was notified too late";
  // All ranks report the rank that the first one to give up missed. If all connect with all, that may be one that
  // waits for others.
  const bool could_not_connect =
      contains(fared.sentence, "not connected in time: rank " + std::to_string(run.victim)) ||
      (!died && scene.ranks > 3 && contains(fared.sentence, "not connected in time: rank "));
  if (died && scene.joins() && could_not_connect) return "";
  // Not the step that it was in.
  if (died && scene.row->name == kAdasum && !contains(fared.sentence, "(adasum, "))
    return "did not report the program's call";
  if (died) return contains(fared.sentence, victim + " died ") ? "" : "did not report who died";
  // A rank that has joined knows which ranks have not, but not for which rank of another host these wait.
  if (scene.joins() && !scene.hosts.empty() && contains(fared.sentence, "not arrived: rank ")) return "";
  // A rank that waits for one that waits in another set knows no more. complaints_of() checks that some rank does.
  if (waits_in_several_sets(scene) && contains(fared.sentence, ": not arrived: rank ")) return "";
  // Of a process set, the connections name ranks of the set.
  if (connects(scene) && scene.in_set && contains(fared.sentence, "not connected in time: rank ")) return "";
  // Between hosts, a rank that waits for a waiting rank knows no more.
  const bool names = contains(fared.sentence, victim) || could_not_connect ||
                     (!scene.hosts.empty() && contains(fared.sentence, ", or a rank that it waits for"));
  return names ? "" : "did not report who is missing";
}

const char* fault_name(Fault fault) {
  switch (fault) {
    case Fault::kDeath: return "death";
    case Fault::kStop: return "stop";
    case Fault::kGoingOn: return "stop and going on";
  }
  return "";
}

}  // namespace

FaultTrace trace_of(const FaultScene& scene) {
  PassedPoints passed;  // of each rank, which is a process, its own
  const auto ends = job_of(scene).run([&](RankPlace& place) {
    place.watch_faults(&passed);
    if (scene.joins()) passed.begin();
    ddl_context* context = place.join();
    FaultArguments desk = desk_of(context, scene, passed);
    expect_ok(call_before(scene, desk), "the call before");
    if (!scene.joins()) {
      passed.begin();
      expect_ok(call_once(scene, desk), "the call");
    }
    passed.end();
    expect_ok(ddl_finalize(context), "finalize");
    std::ostringstream text;
    for (const auto& [point, passages] : passed.points()) {
      text << point << " " << passages.before << " " << passages.during << "\n";
    }
    return text.str();
  });
  FaultTrace trace;
  for (const RankEnd& end : ends) {
    DDL_CHECK(end.exit_code == 0, scene.name() + ": " + end.report);
    std::istringstream lines(end.report);
    auto& points = trace.emplace_back();
    Passages passages;
    for (std::string point; lines >> point >> passages.before >> passages.during;) points[point] = passages;
  }
  return trace;
}

std::string FaultRun::name() const {
  return std::string(fault_name(fault)) + " at " + point + ":" + std::to_string(victim) + ":" +
         std::to_string(passage) + (spins ? " (spinning), " : ", ") + scene->name();
}

std::string complaints_of(const FaultRun& run) {
  ProcessJob job = job_of(*run.scene);
  job.settings.spin = std::chrono::microseconds(run.spins ? 200 : 0);
  job.settings.fault = FaultPlan{run.point, run.victim, run.passage, run.fault != Fault::kDeath};
  if (run.fault != Fault::kDeath) job.stopped_rank = run.victim;
  const double timeout = run.fault == Fault::kStop ? timeout_of(*run.scene) : 0.0;
  if (run.fault == Fault::kStop) {
    if (has_default_timeout(*run.scene)) job.settings.timeout_seconds = timeout;
    job.goes_on_last = true;
  }
  job.goes_on = run.fault == Fault::kGoingOn;
  if (run.scene->joins() && run.fault != Fault::kGoingOn) job.wire_up_seconds = kWireUpSeconds;
  PassedPoints passed;  // of each rank, which is a process, its own
  std::vector<RankEnd> ends;
  for (int runs = 0; runs < kMostRuns; ++runs) {
    ends = job.run([&](RankPlace& place) { return fare(place, run, timeout, passed); });
    if (Fared::read(ends.front().report).how != "not reached") break;
  }
  const bool is_reached = std::any_of(ends.begin(), ends.end(), [](const RankEnd& end) {
    return Fared::read(end.report).how != "not reached";
  });
  if (!is_reached) return kNotReached;

  const RankEnd& victim_end = ends[static_cast<std::size_t>(run.victim)];
  const std::string victim = "rank " + std::to_string(run.victim) + " on host" + std::to_string(run.victim) +
                             " (pid " + std::to_string(victim_end.pid) + ")";
  std::ostringstream complaints;
  bool names_victim = false;
  for (int rank = 0; rank < static_cast<int>(ends.size()); ++rank) {
    const RankEnd& end = ends[static_cast<std::size_t>(rank)];
    const Fared fared = Fared::read(end.report);
    std::string complaint;
    if (rank == run.victim && run.fault == Fault::kDeath) {
      if (end.signal != SIGKILL) complaint = "did not die";
    } else if (rank == run.victim && !end.was_stopped) {
      complaint = "was not stopped";
    } else if (end.exit_code != 0) {
      complaint = end.signal != 0 ? "hung" : "failed";
    } else if (rank == run.victim && run.fault == Fault::kStop) {
      const bool is_notified =
          fared.how == "not joined" ||
          (fared.how == "notified" && (fared.status == DDL_ERROR_TIMEOUT ||
                                       // Connections of ranks that had given up connecting, and ended.
                                       (connects(*run.scene) && fared.status == DDL_ERROR_PEER_LOST)));
      if (!is_notified) complaint = "was not notified when it went on";
    } else {
      complaint = judge(run, fared, victim);
    }
    names_victim = names_victim ||
                   (rank != run.victim && contains(fared.sentence, "rank " + std::to_string(run.victim)));
    if (complaint.empty()) continue;
    complaints << "rank " << rank << " " << complaint << ": [" << end.report << "]; ";
  }
  // A rank that only waits for others to free a set has no call that fails.
  if (run.fault == Fault::kStop && run.scene->row->kind == CallKind::kTransfer && !names_victim) {
    complaints << "no rank reported who is missing:";
    for (const RankEnd& end : ends) complaints << " [" << end.report << "]";
  }
  const std::string text = complaints.str();
  return text.empty() ? "" : run.name() + ": " + text;
}

}  // namespace ddl::runtime::test
