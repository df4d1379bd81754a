#include "launcher/node/local_ranks.h"

#include <utility>

#include "base/command.h"
#include "base/deadline.h"
#include "contract/environment.h"
#include "contract/rank_process.h"
#include "launcher/node/node_probe.h"

namespace ddl::launcher {
namespace {

// For the shutdown of libpmix: it needs milliseconds, unless it is in a deadlock with itself.
constexpr auto kPmixDeadline = std::chrono::seconds(1);

}  // namespace

LocalRanks::LocalRanks(EventLoop& loop, Report report, std::function<void(int)> on_joined,
                       std::function<void()> on_sent)
    : loop_(loop),
      report_(std::move(report)),
      on_joined_(std::move(on_joined)),
      on_sent_(std::move(on_sent)),
      pmi_(loop, report_, on_joined_),
      stdin_feed_(loop, {[this](std::int64_t bytes) { report_(message::StdinCredit{bytes}); },
                         [this] { report_(message::StdinClosed{}); }}),
      gpu_questions_(loop, [this](message::VisibleGpus&& answer) {
        report_(std::move(answer));
        loop_.post(on_sent_);  // one answer may be for several ranks: after all of them
      }) {}

Status LocalRanks::start_pmix(const std::string& directory) {
  DDL_ASSIGN(pmix, PmixServer::start(loop_, directory, hostname(), [this](const message::AgentToHead& m) {
               report_(m);
               const auto* const progress = std::get_if<message::RankProgress>(&m);
               if (progress != nullptr && progress->step == message::RankProgress::Step::kInitialised)
                 on_joined_(progress->rank);
             }));
  pmix_ = std::move(pmix);
  return {};
}

void LocalRanks::shut_down_pmix() {
  if (pmix_ && !pmix_->shut_down(Deadline::after(kPmixDeadline))) (void)pmix_.release();
}

Status LocalRanks::register_job(const JobLaunch& job, int node_index) {
  pmi_.register_job(job, node_index);
  DDL_TRY(pmix_->register_job(job, node_index));
  if (!job.serves_gloo) return {};
  auto service = GlooService::open(loop_, report_);
  if (!service) return fail(std::move(service.error()).during("the rendezvous for Gloo"));
  gloo_ = *std::move(service);
  return {};
}

Status LocalRanks::start(const JobLaunch& job, const NodeLaunch& node, const RankLaunch& launch,
                         const RankWatch& watch, SpawnerChannel& spawner) {
  DDL_ASSIGN(environment, pmix_->client_environment(launch.rank));
  environment.merge(pmi_.client_environment(launch.rank));
  if (gloo_) environment.merge(gloo_->client_environment());
  DDL_ASSIGN(pmi, pmi_.connect(launch.rank));
  DDL_ASSIGN(streams, make_rank_streams(launch.reads_stdin));
  if (streams.in) stdin_feed_.add(std::move(streams.in));
  outputs_[launch.rank] = {node.incarnation,
                           make_output(job, launch.rank, OutputStream::kStdout, std::move(streams.out)),
                           make_output(job, launch.rank, OutputStream::kStderr, std::move(streams.err))};
  std::vector<int> fds = {streams.rank_in.get(), streams.rank_out.get(), streams.rank_err.get(), pmi.get()};
  std::vector<int> numbers = {contract::kPmiFd};
  const auto inherit = [&](int fd, int number) {
    fds.push_back(fd);
    numbers.push_back(number);
  };
  if (const RankRecords* const records = watch.records()) {
    inherit(records->fd(), contract::kRankRecordFd);
    inherit(records->doorbell(), contract::kDoorbellFd);
    environment[contract::env::kRankRecord] = records->place_of(watch.local_rank(launch.rank));
  }
  if (job_key_) {
    inherit(job_key_.get(), contract::kJobKeyFd);
    environment[contract::env::kJobKeyFd] = std::to_string(contract::kJobKeyFd);
  }
  const ChildSpec child = rank_child(job, node, launch, environment, std::move(numbers));
  command_ = {job.command.at(0), job.workdir, search_path(child.environment)};
  spawner.spawn(child, fds);
  if (job.report_bindings) gpu_questions_.ask(launch, child.environment);
  return {};
}

std::unique_ptr<RankOutput> LocalRanks::make_output(const JobLaunch& job, int rank, OutputStream stream,
                                                    UniqueFd pipe) {
  return std::make_unique<RankOutput>(
      loop_,
      RankOutput::Settings{rank, stream, job.split_lines, job.flush_idle_lines,
                           static_cast<std::size_t>(job.output_window)},
      std::move(pipe), [this](OutputChunk&& chunk) {
        const bool is_last = chunk.end == ChunkEnd::kEof;
        report_(std::move(chunk));
        if (is_last) loop_.post(on_sent_);
      });
}

void LocalRanks::drain(int rank) {
  outputs_.at(rank).out->drain();
  outputs_.at(rank).err->drain();
}

bool LocalRanks::is_all_sent() const {
  for (const auto& [rank, output] : outputs_) {
    if (!output.out->is_closed() || !output.err->is_closed()) return false;
  }
  return !gpu_questions_.is_open();
}

void LocalRanks::on(const message::OutputCredit& message) {
  const auto output = outputs_.find(message.rank);
  if (output == outputs_.end() || message.bytes < 0) return;
  auto& stream = message.stream == OutputStream::kStdout ? output->second.out : output->second.err;
  stream->refund(message.bytes);
}

void LocalRanks::on(const message::GlooStoreAnswered& message) {
  if (gloo_) gloo_->on(message);
}

void LocalRanks::on(const message::PmixAnswer& answer) {
  if (pmix_) pmix_->take(answer);
}

}  // namespace ddl::launcher
