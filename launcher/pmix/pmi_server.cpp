#include "launcher/pmix/pmi_server.h"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <span>

#include "base/bytes.h"
#include "base/text.h"
#include "contract/elastic.h"
#include "contract/environment.h"
#include "contract/rank_process.h"
#include "net/pmi_line.h"

namespace ddl::launcher {
namespace {

/// MPICH puts a few pairs for each rank; a program that puts millions is not an MPI program.
constexpr std::size_t kMaxPairs = std::size_t{1} << 20;

}  // namespace

bool PmiSpace::put(std::string_view key, std::string_view value) {
  if (key.empty() || key.size() >= net::kMaxPmiKey || value.size() >= net::kMaxPmiValue ||
      new_.size() >= kMaxPairs)
    return false;
  keep(std::string(key), std::string(value));
  new_.push_back({std::string(key), std::string(value)});
  return true;
}

const std::string* PmiSpace::get(std::string_view key) const {
  const auto found = pairs_.find(key);
  return found == pairs_.end() ? nullptr : &found->second;
}

void PmiSpace::add(const std::vector<message::PmiPair>& pairs) {
  for (const message::PmiPair& pair : pairs) keep(pair.key, pair.value);
}

using net::PmiLine;

namespace {

const PmiLine kFailedBarrier{"barrier_out", {{"rc", "-1"}, {"msg", "a_rank_was_lost"}}};

}  // namespace

/// One rank's connection.
class PmiServer::Client {
 public:
  Client(PmiServer& server, int rank, UniqueFd fd) : server_(server), rank_(rank), fd_(std::move(fd)) {
    (void)set_nonblocking(fd_.get(), true);
    watch_ = server_.loop_.watch(fd_.get(), [this] { on_bytes(); });
  }

  void end_barrier() {
    if (std::exchange(is_waiting_, false)) answer({"barrier_out", {}});
  }

  void give_up_barrier() {
    if (std::exchange(is_waiting_, false)) answer(kFailedBarrier);
  }

  /// In the generation of the plan.
  void take_rank(const message::ElasticPlan& plan, int rank) {
    if (!std::exchange(is_joining_, false)) return;
    answer({contract::kElasticPlan,
            {{"rc", "0"},
             {"generation", std::to_string(plan.generation)},
             {"rank", std::to_string(rank)},
             {"size", std::to_string(plan.size)},
             {"hosts", plan.hosts}}});
  }

 private:
  void on_bytes() {
    std::array<char, 4096> buffer;
    const ssize_t got = retry_eintr([&] { return ::read(fd_.get(), buffer.data(), buffer.size()); });
    if (got < 0 && errno == EAGAIN) return;
    if (got <= 0) return close();
    lines_.append({buffer.data(), static_cast<std::size_t>(got)});
    while (fd_) {
      const auto line = lines_.next();
      if (!line) return close();
      if (!*line) return;
      on_line(**line);
    }
  }

  void on_line(const std::string& text) {
    if (spawn_) return on_spawn_line(trim(text));
    const auto line = PmiLine::parse(text);
    if (!line) return close();
    if (line->command == "spawn") {
      spawn_.emplace();
    } else if (line->command == "barrier_in") {
      if (server_.has_lost_rank_) return answer(kFailedBarrier);
      if (!std::exchange(is_waiting_, true)) server_.on_barrier();
    } else if (line->command == contract::kElasticJoin && server_.is_elastic_) {
      is_joining_ = true;
      server_.on_joined_(rank_);
      server_.report_(
          message::ElasticJoin{rank_, static_cast<int>(number(*line, "reason")), number(*line, "commits")});
    } else if (line->command == contract::kElasticFinished && server_.is_elastic_) {
      server_.report_(message::ElasticFinished{rank_});
      answer({contract::kElasticFinishedAck, {}});
    } else if (line->command == "abort") {
      const auto code = parse_integer((*line)["exitcode"]);
      server_.report_(
          message::AbortRequested{rank_, static_cast<int>(code.value_or(1) & 0xff), abort_text(*line)});
    } else if (const auto response = answer_to(*line)) {
      answer(*response);
    } else {
      close();  // a client would wait for ever for the answer to a command that is not known
    }
  }

  static std::string abort_text(const PmiLine& line) {
    const std::string_view digits = line[contract::kAbortText];
    std::string text(digits.size() / 2, '\0');
    const bool is_text = !text.empty() && from_hex(digits, std::as_writable_bytes(std::span(text)));
    return is_text ? text : "by PMI-1, without a text";
  }

  static std::int64_t number(const PmiLine& line, const char* word) {
    return parse_integer(line[word]).value_or(0);
  }

  /// A command of MPI_Comm_spawn has many lines. MPI_Comm_spawn_multiple sends several of these, and reads one answer.
  void on_spawn_line(std::string_view line) {
    const std::size_t equals = line.find('=');
    const std::string_view name = line.substr(0, equals);
    if (name == "totspawns") spawn_->commands = line.substr(equals + 1);
    if (name == "spawnssofar") spawn_->number = line.substr(equals + 1);
    if (line != "endcmd") return;
    const bool is_last = spawn_->number == spawn_->commands;
    spawn_.reset();
    if (!is_last) return;
    answer({"spawn_result", {{"rc", "-1"}, {"msg", "ddlrun_does_not_spawn"}}});
    server_.report_(message::SpawnRefused{rank_});
  }

  std::optional<PmiLine> answer_to(const PmiLine& line) {
    const std::string& command = line.command;
    if (command == "init") {
      server_.on_joined_(rank_);
      const bool is_known = line["pmi_version"] == "1";
      return PmiLine{"response_to_init",
                     {{"pmi_version", "1"}, {"pmi_subversion", "1"}, {"rc", is_known ? "0" : "-1"}}};
    }
    if (command == "get_maxes") {
      return PmiLine{"maxes",
                     {{"kvsname_max", std::to_string(net::kMaxPmiName)},
                      {"keylen_max", std::to_string(net::kMaxPmiKey)},
                      {"vallen_max", std::to_string(net::kMaxPmiValue)}}};
    }
    if (command == "get_appnum") return PmiLine{"appnum", {{"appnum", "0"}}};
    if (command == "get_universe_size")
      return PmiLine{"universe_size", {{"size", std::to_string(server_.num_ranks_)}}};
    if (command == "get_my_kvsname") return PmiLine{"my_kvsname", {{"kvsname", server_.job_id_}}};
    if (command == "put") {
      if (server_.space_.put(line["key"], line["value"]))
        return PmiLine{"put_result", {{"rc", "0"}, {"msg", "success"}}};
      return PmiLine{"put_result", {{"rc", "-1"}, {"msg", "key_or_value_is_too_long"}}};
    }
    if (command == "get") {
      if (const std::string* value = server_.space_.get(line["key"]))
        return PmiLine{"get_result", {{"rc", "0"}, {"msg", "success"}, {"value", *value}}};
      return PmiLine{"get_result", {{"rc", "-1"}, {"msg", "nobody_has_put_it"}, {"value", "unknown"}}};
    }
    if (command == "finalize") return PmiLine{"finalize_ack", {}};
    for (const auto& [question, answer] :
         {std::pair("publish_name", "publish_result"), std::pair("unpublish_name", "unpublish_result"),
          std::pair("lookup_name", "lookup_result")}) {
      if (command == question) return PmiLine{answer, {{"rc", "-1"}, {"msg", "ddlrun_keeps_no_names"}}};
    }
    return std::nullopt;
  }

  void answer(const PmiLine& line) {
    const std::string text = line.text();
    // Each request has one short answer: if the socket has no space for it, the client does not read.
    const ssize_t sent =
        retry_eintr([&] { return ::send(fd_.get(), text.data(), text.size(), MSG_NOSIGNAL | MSG_DONTWAIT); });
    if (sent != std::ssize(text)) close();
  }

  void close() {
    watch_.reset();
    fd_.reset();
  }

  PmiServer& server_;
  int rank_;
  UniqueFd fd_;
  net::PmiLineReader lines_;
  EventLoop::FdWatch watch_;
  bool is_waiting_ = false;
  bool is_joining_ = false;  // until there is a plan
  struct SpawnCommand {
    std::string number;    // 1, 2, ...
    std::string commands;  // in the whole request
  };
  std::optional<SpawnCommand> spawn_;  // of which not all lines have come
};

PmiServer::PmiServer(EventLoop& loop, Report report, std::function<void(int)> on_joined)
    : loop_(loop), report_(std::move(report)), on_joined_(std::move(on_joined)) {}
PmiServer::~PmiServer() = default;

void PmiServer::register_job(const JobLaunch& job, int node_index) {
  job_id_ = job.job_id;
  is_elastic_ = job.environment.contains(contract::env::kElastic);
  num_ranks_ = job.num_ranks;
  local_size_ = job.node_ranks.at(node_index).size();
  is_alone_ = std::ssize(job.node_ranks[node_index]) == num_ranks_;
  // If it is too long, it is omitted, and MPICH's processes exchange their hosts themselves.
  if (std::string mapping = net::process_mapping(job.node_ranks); mapping.size() < net::kMaxPmiValue)
    space_.keep(net::kPmiProcessMapping, std::move(mapping));
}

Result<UniqueFd> PmiServer::connect(int rank) {
  DDL_ASSIGN(ends, make_socket_pair(SOCK_STREAM));
  clients_[rank] = std::make_unique<Client>(*this, rank, std::move(ends.first));
  return std::move(ends.second);
}

Environment PmiServer::client_environment(int rank) const {
  namespace env = contract::env;
  return {{env::kPmiFd, std::to_string(contract::kPmiFd)},
          {env::kPmiRank, std::to_string(rank)},
          {env::kPmiSize, std::to_string(num_ranks_)}};
}

void PmiServer::on_barrier() {
  if (++waiting_ < local_size_) return;
  auto pairs = space_.take_new();
  if (is_alone_) return end_barrier(pairs);
  report_(message::PmiBarrier{std::move(pairs)});
}

void PmiServer::take(const message::PmiBarrierDone& done) { end_barrier(done.pairs); }

void PmiServer::take(const message::ElasticPlan& plan) {
  space_ = {};
  waiting_ = 0;
  local_size_ = plan.members.size();
  is_alone_ = std::ssize(plan.members) == plan.size;
  has_lost_rank_ = false;
  for (std::size_t i = 0; i < std::min(plan.members.size(), plan.ranks.size()); ++i) {
    const auto client = clients_.find(plan.members[i]);
    if (client != clients_.end()) client->second->take_rank(plan, plan.ranks[i]);
  }
}

void PmiServer::give_up_barriers() {
  if (!is_elastic_) return;
  has_lost_rank_ = true;
  waiting_ = 0;
  for (auto& [rank, client] : clients_) client->give_up_barrier();
}

void PmiServer::end_barrier(const std::vector<message::PmiPair>& pairs) {
  space_.add(pairs);
  waiting_ = 0;
  for (auto& [rank, client] : clients_) client->end_barrier();
}

}  // namespace ddl::launcher
