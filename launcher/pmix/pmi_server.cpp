#include "launcher/pmix/pmi_server.h"

#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstddef>
#include <optional>

#include "base/text.h"
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
      if (!std::exchange(is_waiting_, true)) server_.on_barrier();
    } else if (line->command == "abort") {
      const auto code = parse_integer((*line)["exitcode"]);
      server_.report_(message::AbortRequested{rank_, static_cast<int>(code.value_or(1) & 0xff),
                                              "by PMI-1, without a text"});
    } else if (const auto response = answer_to(*line)) {
      answer(*response);
    } else {
      close();  // a client would wait for ever for the answer to a command that is not known
    }
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

void PmiServer::end_barrier(const std::vector<message::PmiPair>& pairs) {
  space_.add(pairs);
  waiting_ = 0;
  for (auto& [rank, client] : clients_) client->end_barrier();
}

}  // namespace ddl::launcher
