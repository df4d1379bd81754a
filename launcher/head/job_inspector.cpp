#include "launcher/head/job_inspector.h"

#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "base/process.h"
#include "base/text.h"
#include "contract/version.h"
#include "launcher/head/stall_report.h"
#include "launcher/node/node_probe.h"
#include "launcher/protocol/codec.h"

namespace ddl::launcher {
namespace {

constexpr std::size_t kMaxWaits = 256;
constexpr std::size_t kRanksAtOnce = 64;  // in one message
/// Tensors of all ranks of a job that the head reads for one answer; each rank shows at least a few.
constexpr int kMaxTensorsOfJob = 1 << 14, kMinTensorsOfRank = 4, kMaxTensorsOfRank = 256;

std::string shown_command(const JobSpec& spec) {
  constexpr std::size_t kMaxBytes = 1000, kEngineWords = 4;
  std::string text;
  // The one rank of --launcher mpirun is started by words of ddlrun's own, and then mpirun's command line.
  for (std::size_t i = spec.starts_mpirun ? kEngineWords : 0; i < spec.command.size(); ++i) {
    text += (text.empty() ? "" : " ") + shell_quote(spec.command[i]);
    if (text.size() > kMaxBytes) return text.substr(0, kMaxBytes) + "...";
  }
  return text;
}

InspectedWait inspected(const Stall& stall) {
  InspectedWait wait;
  wait.what = stall.what;
  wait.sentence = stall.sentence;
  wait.seconds = stall.seconds;
  wait.num_waiting = std::ssize(stall.waiting);
  wait.num_missing = std::ssize(stall.missing);
  wait.num_unknown = std::ssize(stall.unknown);
  wait.missing = stall.missing;
  wait.unknown = stall.unknown;
  for (std::vector<int>* const ranks : {&wait.missing, &wait.unknown})
    ranks->resize(std::min(ranks->size(), InspectedWait::kMaxMissing));
  return wait;
}

void take_activity(InspectedRank& rank, const RankActivity& activity) {
  if (activity.pid == 0) {
    rank.state = InspectedRank::State::kEnded;
    return;
  }
  rank.pid = activity.pid;
  rank.process = activity.process;
  rank.work = current_work(activity);
  rank.open_tensors = activity.open_tensors;
  if (!activity.tensors.empty()) {
    rank.oldest_tensor = activity.tensors.front().name;
    rank.oldest_tensor_seconds = activity.tensors.front().seconds;
  }
  rank.last_event = activity.last_event;
  rank.steps_per_second = activity.steps_per_second;
  rank.calls = activity.calls;
}

void take_outcome(InspectedRank& rank, const RankOutcome& outcome, bool is_silent) {
  using enum RankOutcome::Kind;
  rank.pid = outcome.pid;
  if (outcome.kind == kNotStarted) return;
  const bool has_ended =
      outcome.kind == kExited || outcome.kind == kSignalled || outcome.kind == kStartFailed;
  rank.state = has_ended   ? InspectedRank::State::kEnded
               : is_silent ? InspectedRank::State::kNoAnswer
                           : InspectedRank::State::kRunning;
  if (!has_ended) return;
  rank.calls = outcome.calls;
  if (outcome.usage.user_seconds.value >= 0)
    rank.process.cpu_seconds = outcome.usage.user_seconds.value + outcome.usage.system_seconds.value;
}

}  // namespace

JobDescription describe_job(const JobSpec& spec, const std::string& job_id) {
  JobDescription job;
  job.id = job_id;
  job.name = spec.name;
  job.command = shown_command(spec);
  job.head_host = hostname();
  job.head_pid = ::getpid();
  if (spec.elastic.mode != ElasticMode::kOff) job.generation = spec.generation.generation;
  job.began =
      std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch())
          .count();
  return job;
}

JobInspection planned_job(const JobSpec& spec, const LaunchPlan& plan,
                          const std::vector<NodeBinding>& bindings) {
  JobInspection job;
  job.job = describe_job(spec, plan.job.job_id);
  job.job.num_ranks = plan.job.num_ranks;
  job.job.hosts = plan.job.node_names;
  job.ranks.resize(job.job.num_ranks);
  for (const std::string& name : job.job.hosts) job.nodes.push_back({name, ""});
  for (int node = 0; node < std::ssize(plan.nodes); ++node) {
    for (const RankLaunch& launch : plan.nodes[node].ranks) {
      InspectedRank& rank = job.ranks.at(launch.rank);
      rank.rank = launch.rank;
      rank.node = node;
      rank.cpus = launch.cpus.list();
      const int local = launch.local_rank;
      if (node >= std::ssize(bindings) || local >= std::ssize(bindings[node].plan.ranks)) continue;
      for (const affinity::AssignedGpu& gpu : bindings[node].plan.ranks[local].gpus)
        rank.gpus.push_back(gpu.index);
    }
  }
  return job;
}

JobInspection inspection(JobInspection job, std::vector<RankActivity> activities,
                         const std::vector<RankOutcome>& outcomes, const std::vector<std::string>& silences) {
  std::sort(activities.begin(), activities.end(),
            [](const RankActivity& a, const RankActivity& b) { return a.rank < b.rank; });
  std::vector<std::string> hosts;
  for (const InspectedRank& rank : job.ranks) hosts.push_back(job.nodes[rank.node].name);
  for (int node = 0; node < std::ssize(job.nodes); ++node) job.nodes[node].silence = silences[node];
  for (InspectedRank& rank : job.ranks) {
    const bool is_silent = !silences[rank.node].empty();
    if (rank.rank < std::ssize(outcomes)) take_outcome(rank, outcomes[rank.rank], is_silent);
  }
  for (const RankActivity& one : activities) {
    InspectedRank& rank = job.ranks[one.rank];
    if (rank.state == InspectedRank::State::kRunning) take_activity(rank, one);
  }
  // Shorter than the pause by the resolution of timers.
  auto stalls = find_stalls(activities, hosts, JobInspector::kPauseSeconds * 0.9);
  std::stable_sort(stalls.begin(), stalls.end(),
                   [](const Stall& a, const Stall& b) { return a.seconds > b.seconds; });
  for (const Stall& stall : stalls) {
    if (job.waits.size() == kMaxWaits) break;
    for (const int rank : stall.waiting) {
      // A rank that is stopped in a call keeps the others waiting, and waits for nobody.
      if (std::binary_search(stall.missing.begin(), stall.missing.end(), rank)) continue;
      int& wait = job.ranks[rank].wait;
      if (wait < 0) wait = std::ssize(job.waits);
    }
    job.waits.push_back(inspected(stall));
  }
  return job;
}

JobInspector::JobInspector(EventLoop& loop, JobInspection plan, Actions actions)
    : loop_(loop), plan_(std::move(plan)), actions_(std::move(actions)) {}

Status JobInspector::listen() {
  const JobSocket socket{JobSocket::Role::kHead, ::getuid(), ::getpid(), plan_.job.id};
  auto server =
      JobServer::open(loop_, socket, [this](JobServer::Client client, message::ClientToJob&& request) {
        std::visit([&](const auto& one) { on({std::nullopt, client}, one); }, request);
      });
  if (!server) return fail(std::move(server.error()));
  server_ = *std::move(server);
  return {};
}

void JobInspector::set_plan(JobInspection plan, std::vector<std::int64_t> processes) {
  limit_.cancel();
  answers_.clear();
  clocks_.clear();
  lost_.clear();
  plan_ = std::move(plan);
  processes_ = std::move(processes);
  waiting_.insert(waiting_.begin(), std::make_move_iterator(askers_.begin()),
                  std::make_move_iterator(askers_.end()));
  askers_.clear();
  begin_question();
}

void JobInspector::on_request(int node, const message::ForwardedRequest& forwarded) {
  const Asker asker{node, forwarded.client};
  const auto request = message::decode<message::ClientToJob>({forwarded.type, forwarded.payload});
  if (!request) return answer(asker, message::Refused{"the job was sent " + request.error().message()});
  std::visit([&](const auto& one) { on(asker, one); }, *request);
}

void JobInspector::on(const Asker& asker, const message::DescribeJob& request) {
  if (is_same_version(asker, request.version)) answer(asker, message::JobDescribed{description()});
}

void JobInspector::on(const Asker& asker, const message::InspectJob& request) {
  if (!is_same_version(asker, request.version)) return;
  add({asker.node, asker.client, request.counts});
}

JobInspection JobInspector::concluded(const std::vector<HostUsage>& hosts) {
  JobInspection job =
      inspection(plan_, {}, actions_.outcomes(), std::vector<std::string>(plan_.nodes.size()));
  for (InspectedNode& node : job.nodes) {
    const auto used = std::ranges::find(hosts, node.name, &HostUsage::host);
    if (used != hosts.end()) node.usage = used->usage;
  }
  totals_.apply(job, processes_);
  job.job = description();
  return job;
}

void JobInspector::add(const Asker& asker) {
  const bool is_asked_now = !askers_.empty() && askers_.front().counts == asker.counts;
  (is_asked_now ? askers_ : waiting_).push_back(asker);
  if (askers_.empty()) begin_question();
}

void JobInspector::ask(std::function<void(const JobInspection&)> tell) {
  add({std::nullopt, 0, true, std::move(tell)});
}

void JobInspector::begin_question() {
  if (waiting_.empty() || !askers_.empty()) return;
  const bool counts = waiting_.front().counts;
  std::erase_if(waiting_, [&](const Asker& one) {
    const bool wants_this = one.counts == counts;
    if (wants_this) askers_.push_back(one);
    return wants_this;
  });
  limit_ = loop_.after(kAnswerTime, [this] { conclude(); });
  const int share = kMaxTensorsOfJob / std::max(plan_.job.num_ranks, 1);
  ++question_;
  asked_ns_ = wall_time_ns();
  actions_.ask(counts ? message::AskActivity{question_, 0, 0, true}
                      : message::AskActivity{question_, kPauseSeconds,
                                             std::clamp(share, kMinTensorsOfRank, kMaxTensorsOfRank), false});
  conclude_if_complete();
}

void JobInspector::on(const Asker& asker, const message::ChangeTimeline& request) {
  if (!is_same_version(asker, request.version)) return;
  const auto path = actions_.change_timeline(request);
  if (path) return answer(asker, message::TimelineChanged{*path});
  answer(asker, message::Refused{path.error().message()});
}

bool JobInspector::is_same_version(const Asker& asker, const std::string& version) {
  if (version == contract::kVersion) return true;
  answer(asker, message::Refused{"the job runs under ddlrun " + std::string(contract::kVersion) +
                                 ", and you ask with another version; ask with the one that started it"});
  return false;
}

void JobInspector::answer(const Asker& asker, const message::JobToClient& message) {
  answer(asker, message::encode(message));
}

void JobInspector::answer(const Asker& asker, const net::Frame& frame) {
  if (asker.tell) return;
  if (asker.node) {
    actions_.forward(*asker.node, {asker.client, frame.type, frame.payload});
  } else if (server_) {
    server_->answer(asker.client, frame);
  }
}

JobDescription JobInspector::description() const {
  JobDescription job = plan_.job;
  job.age = std::chrono::duration<double>(std::chrono::steady_clock::now() - began_).count();
  actions_.describe(job);
  if (const auto stat = read_process_stat(::getpid())) {
    job.head_cpu_seconds = stat->cpu_seconds;
    job.head_resident_bytes = stat->resident_bytes;
  }
  return job;
}

void JobInspector::on_activity(int node, message::Activity&& activity) {
  if (askers_.empty() || activity.id != question_) return;
  std::erase_if(activity.ranks, [&](const RankActivity& one) {
    return one.rank < 0 || one.rank >= std::ssize(plan_.ranks) || plan_.ranks[one.rank].node != node;
  });
  clocks_[node] = clock_offset(asked_ns_, activity.times, wall_time_ns());
  answers_[node] = std::move(activity);
  conclude_if_complete();
}

void JobInspector::on_lost(int node, const std::string& why) {
  lost_.try_emplace(node, why);
  if (!askers_.empty()) conclude_if_complete();
}

void JobInspector::conclude_if_complete() {
  std::size_t known = lost_.size();
  for (const auto& [node, activity] : answers_) known += lost_.contains(node) ? 0 : 1;
  if (known >= plan_.nodes.size()) conclude();
}

void JobInspector::conclude() {
  limit_.cancel();
  std::vector<RankActivity> activities;
  std::vector<std::string> silences(plan_.nodes.size(),
                                    fmt::format("its agent has not answered within {} s",
                                                std::chrono::duration<double>(kAnswerTime).count()));
  for (const auto& [node, why] : lost_) silences.at(node) = why;
  std::map<int, message::Activity> answers = std::exchange(answers_, {});
  for (auto& [node, activity] : answers) {
    silences.at(node).clear();
    for (RankActivity& one : activity.ranks) activities.push_back(std::move(one));
  }
  JobInspection job = inspection(plan_, std::move(activities), actions_.outcomes(), silences);
  for (auto& [node, activity] : answers) job.nodes.at(node).usage = std::move(activity.usage);
  for (const auto& [node, clock] : std::exchange(clocks_, {})) job.nodes.at(node).clock = clock;
  job.job = description();
  const auto askers = std::exchange(askers_, {});
  if (!askers.empty() && askers.front().counts) totals_.apply(job, processes_);
  for (const Asker& asker : askers)
    if (asker.tell) asker.tell(job);
  const auto answer_all = [&](const message::JobToClient& message) {
    const net::Frame frame = message::encode(message);
    for (const Asker& asker : askers) answer(asker, frame);
  };
  answer_all(message::JobOverview{job.job, job.nodes, job.waits});
  for (auto next = job.ranks.begin(); next != job.ranks.end();) {
    const auto end = next + std::min<std::ptrdiff_t>(kRanksAtOnce, job.ranks.end() - next);
    answer_all(message::InspectedRanks{{std::make_move_iterator(next), std::make_move_iterator(end)}});
    next = end;
  }
  answer_all(message::InspectionEnd{});
  begin_question();
}

}  // namespace ddl::launcher
