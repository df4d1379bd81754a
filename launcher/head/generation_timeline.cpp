#include "launcher/head/generation_timeline.h"

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "base/text.h"
#include "contract/ddlrun.h"

namespace ddl::launcher {

Result<GenerationTimeline> GenerationTimeline::create(const std::string& path, std::uint64_t max_bytes) {
  DDL_ASSIGN(file, timeline::TraceFile::create(path));
  return GenerationTimeline(std::move(file), max_bytes);
}

void GenerationTimeline::add(int launch, int slot, const std::string& host) {
  members_[{launch, slot}] = static_cast<int>(std::ssize(processes_));
  processes_.emplace_back().host = host;
}

void GenerationTimeline::begin(const std::vector<int>& members) {
  std::set<std::string> hosts;
  for (const int member : members) hosts.insert(processes_.at(member).host);
  for (int rank = 0; rank < std::ssize(members); ++rank) {
    Process& process = processes_.at(members[rank]);
    if (process.ranks.empty() || process.ranks.back() != rank) process.ranks.push_back(rank);
    if (hosts.size() > 1) process.last_generation = members;
  }
}

void GenerationTimeline::on_events(int launch, const message::Events& piece) {
  const auto member = members_.find({launch, piece.rank});
  if (member == members_.end()) return;
  Process& process = processes_[member->second];
  const std::size_t before = process.ring.events.size();
  process.has_answered = message::add_piece(piece, process.ring);
  process.read_at = piece.now;
  kept_bytes_ += (process.ring.events.size() - before) * sizeof(contract::Event);
  forget_oldest();
}

void GenerationTimeline::forget_oldest() {
  for (Process& process : processes_) {
    if (kept_bytes_ <= max_bytes_) return;
    kept_bytes_ -= std::exchange(process.ring.events, {}).size() * sizeof(contract::Event);
  }
}

/// By host. What a process says of another's clock names that by its rank of then.
std::vector<timeline::HostClock> GenerationTimeline::clocks(const std::vector<std::string>& hosts) const {
  std::vector<timeline::HostClock> clocks(hosts.size());
  for (int member = 0; member < std::ssize(processes_); ++member) {
    const Process& process = processes_[member];
    timeline::RingSnapshot ring = process.ring;
    const auto& ranks = process.last_generation;
    ring.clock_peer =
        ring.clock_peer >= 0 && ring.clock_peer < std::ssize(ranks) ? ranks[ring.clock_peer] : -1;
    if (ring.clock_peer < 0) ring.samples.clear();
    const auto host = std::find(hosts.begin(), hosts.end(), process.host);
    clocks[host - hosts.begin()].add(member, ring);
  }
  return clocks;
}

Result<std::vector<std::string>> GenerationTimeline::write_file(
    const std::function<std::pair<std::int64_t, std::string>(int member)>& fate_of) {
  std::vector<std::string> hosts;
  bool has_events = false;
  for (const Process& process : processes_) {
    if (std::find(hosts.begin(), hosts.end(), process.host) == hosts.end()) hosts.push_back(process.host);
    has_events = has_events || !process.ring.events.empty();
  }
  // A program that writes a timeline of its own under this name keeps it.
  if (!has_events) return fail(ErrorCode::kUnavailable, "no rank has begun a call of libddl");
  const timeline::JobClocks aligned = timeline::align_clocks(clocks(hosts));
  timeline::TraceJob job;
  for (std::size_t host = 0; host < hosts.size(); ++host)
    job.hosts.push_back({hosts[host], aligned.hosts[host]});
  job.ranks = processes_.size();
  job.origin = aligned.origin;
  job.max_bytes = max_bytes_;
  DDL_TRY(file_.begin(job));
  for (int member = 0; member < std::ssize(processes_); ++member) {
    Process& process = processes_[member];
    timeline::RankTrace trace;
    trace.rank = member;
    std::vector<std::string> ranks;
    for (const int rank : process.ranks) ranks.push_back(std::to_string(rank));
    trace.name =
        ranks.empty() ? "never a rank" : (ranks.size() == 1 ? "rank " : "ranks ") + join(ranks, ", ");
    trace.host = process.host;
    std::tie(trace.pid, trace.fate) = fate_of(member);
    if (!process.has_answered) trace.missing = "its host, or its agent, was lost";
    trace.ring = std::move(process.ring);
    trace.read_at = process.read_at;
    const auto host = std::find(hosts.begin(), hosts.end(), process.host);
    trace.clock = aligned.hosts[host - hosts.begin()];
    DDL_TRY(file_.add(trace));
  }
  return file_.finish();
}

void GenerationTimeline::write(const std::function<std::pair<std::int64_t, std::string>(int member)>& fate_of,
                               const std::function<void(const std::string&)>& note, JobReport& report) {
  const auto written = write_file(fate_of);
  if (written) {
    for (const std::string& sentence : *written) note(sentence);
    report.timeline = file_.path();
    return note("the timeline is in " + file_.path() + ": open it at ui.perfetto.dev");
  }
  const std::string& why = written.error().message();
  note("no timeline was written: " + why);
  if (written.error().code() == ErrorCode::kUnavailable) return;  // there was nothing to write
  report.timeline_lost = why;
  if (report.reason == EndReason::kSuccess)
    static_cast<JobEnd&>(report) =
        end_with(EndReason::kOutputLost, contract::kOutputLost, "the timeline: " + why);
}

}  // namespace ddl::launcher
