#include "runtime/src/bootstrap/pmi_bootstrap.h"

#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/fd.h"
#include "base/text.h"
#include "contract/elastic.h"
#include "contract/environment.h"
#include "contract/rank_process.h"
#include "runtime/src/bootstrap/bootstrap.h"
#include "runtime/src/bootstrap/bootstrap_list.h"
#include "runtime/src/bootstrap/host_layout.h"
#include "runtime/src/common/interruption.h"

namespace ddl::runtime {
namespace {

/// An exiting process must not wait long for the reply to its goodbye.
constexpr std::chrono::seconds kGoodbyePatience{2};

}  // namespace

PmiSession& PmiSession::instance() {
  static PmiSession session;
  return session;
}

PmiSession::~PmiSession() {
  // A forked child that calls exit() has inherited this.
  if (owner_ != ::getpid() || users_ != 0 || is_broken_) return;
  (void)exchange({"finalize", {}}, "finalize_ack", Deadline::after(kGoodbyePatience));
}

bool PmiSession::is_inherited() const { return owner_ != 0 && owner_ != ::getpid(); }

Status PmiSession::open(int fd) {
  if (owner_ != 0) return {};
  fd_ = fd;
  if (auto status = greet(); !status) {
    is_broken_ = true;
    return status;
  }
  owner_ = ::getpid();
  return {};
}

Status PmiSession::greet() {
  const Deadline deadline = Deadline::after(kAnswerPatience);
  DDL_TRY(ask({"init", {{"pmi_version", "1"}, {"pmi_subversion", "1"}}}, "response_to_init", deadline));
  DDL_ASSIGN(maxes, ask({"get_maxes", {}}, "maxes", deadline));
  const auto limited = [&maxes](std::string_view name, std::size_t limit) {
    const auto number = parse_integer(maxes[name]);
    return number && *number > 0 ? std::min(static_cast<std::size_t>(*number), limit) : limit;
  };
  max_key_ = limited("keylen_max", net::kMaxPmiKey);
  max_value_ = limited("vallen_max", net::kMaxPmiValue);
  DDL_ASSIGN(space, ask({"get_my_kvsname", {}}, "my_kvsname", deadline));
  space_ = space["kvsname"];
  return {};
}

Result<net::PmiLine> PmiSession::ask(const net::PmiLine& line, std::string_view answer, Deadline deadline) {
  if (is_broken_) return fail(ErrorCode::kClosed, "PMI-1: the connection to the launcher is lost");
  auto reply = exchange(line, answer, deadline);
  if (!reply) {
    is_broken_ = true;
    return reply;
  }
  const std::string_view code = (*reply)["rc"];
  if (!code.empty() && code != "0") {
    return fail(ErrorCode::kNotFound, "PMI-1: " + line.command + ": the launcher answers rc=" +
                                          std::string(code) + " " + std::string((*reply)["msg"]));
  }
  return reply;
}

void PmiSession::abort_job(int code, std::string text) const {
  net::PmiLine line{"abort", {{"exitcode", std::to_string(code)}}};
  text.resize(std::min(text.size(), contract::kMaxAbortText));
  if (!text.empty()) line.words.emplace_back(contract::kAbortText, to_hex(std::as_bytes(std::span(text))));
  (void)send_text(line.text());
}

Status PmiSession::send_text(std::string_view text) const {
  while (!text.empty()) {
    // Not write(2): if the launcher has gone, the program must not get SIGPIPE.
    const ssize_t sent = retry_eintr([&] { return ::send(fd_, text.data(), text.size(), MSG_NOSIGNAL); });
    if (sent < 0) return fail_errno("PMI-1: writing to the launcher");
    text.remove_prefix(static_cast<std::size_t>(sent));
  }
  return {};
}

Result<net::PmiLine> PmiSession::exchange(const net::PmiLine& line, std::string_view answer,
                                          Deadline deadline) {
  DDL_TRY(send_text(line.text()));
  for (;;) {
    DDL_ASSIGN(next, reader_.next());
    if (next) {
      auto reply = net::PmiLine::parse(*next);
      if (reply && reply->command != answer) {
        return fail(ErrorCode::kProtocol,
                    "PMI-1: the launcher answers " + line.command + " with " + reply->command);
      }
      return reply;
    }
    pollfd waited{fd_, POLLIN, 0};
    const int ready = poll_interruptibly({&waited, 1}, deadline);
    if (ready < 0) return fail_errno("poll");
    if (ready == 0) return fail(ErrorCode::kTimeout, "PMI-1: no answer to " + line.command);
    std::array<char, 4096> buffer;
    const ssize_t got = retry_eintr([&] { return ::read(fd_, buffer.data(), buffer.size()); });
    if (got < 0 && errno == EAGAIN) continue;
    if (got < 0) return fail_errno("read of PMI_FD");
    if (got == 0) return fail(ErrorCode::kClosed, "PMI-1: the launcher has closed the connection");
    reader_.append({buffer.data(), static_cast<std::size_t>(got)});
  }
}

namespace {

/// Shorter than a value may be, to leave space for the rest of its line: MPICH's parser cuts lines at 1023 bytes.
constexpr std::size_t kMaxPiece = 512;

/// All ranks share one key space, so keys contain the rank. A value is put in pieces; the first gives their number.
std::string key_of(int rank, std::string_view key, std::size_t piece) {
  return std::to_string(rank) + "-" + std::string(key) + "-" + std::to_string(piece);
}

class PmiBootstrap : public Bootstrap {
 public:
  explicit PmiBootstrap(PmiSession& session) : session_(session) { session.add_user(); }
  ~PmiBootstrap() override { (void)leave(); }

  Status load_membership(const PmiParameters& parameters, std::uint32_t generation, Deadline deadline);

  const char* name() const override { return "pmi"; }
  const Membership& membership() const override { return membership_; }

  Status put(std::string_view key, std::string_view value) override {
    // Values of PMI-1 must not contain blanks or newlines.
    const std::string text = to_hex(std::as_bytes(std::span(value)));
    const std::size_t room = std::min(kMaxPiece, session_.value_bytes() - kCountBytes);
    const std::size_t pieces = std::max<std::size_t>(1, (text.size() + room - 1) / room);
    for (std::size_t piece = 0; piece < pieces; ++piece) {
      std::string part = text.substr(piece * room, room);
      if (piece == 0) part = std::to_string(pieces) + ":" + part;
      const std::string name = key_of(membership_.rank, key, piece);
      if (name.size() >= session_.key_bytes())
        return fail(ErrorCode::kInvalidArgument, "PMI-1: the launcher takes no key as long as " + name);
      DDL_TRY(session_.ask({"put", {{"kvsname", session_.space()}, {"key", name}, {"value", part}}},
                           "put_result", Deadline::after(PmiSession::kAnswerPatience)));
    }
    return {};
  }

  Status fence(Deadline deadline) override {
    DDL_TRY(session_.ask({"barrier_in", {}}, "barrier_out", deadline));
    return {};
  }

  Result<std::string> get(int rank, std::string_view key, Deadline deadline) override {
    DDL_ASSIGN(first, fetch(key_of(rank, key, 0), deadline));
    const std::size_t colon = first.find(':');
    const auto pieces = parse_integer(first.substr(0, colon));
    if (colon == std::string::npos || !pieces || *pieces < 1 || *pieces > kMaxPieces)
      return fail(ErrorCode::kProtocol, "PMI-1: a value is not as it was put");
    std::string text = first.substr(colon + 1);
    for (std::int64_t piece = 1; piece < *pieces; ++piece) {
      DDL_ASSIGN(more, fetch(key_of(rank, key, static_cast<std::size_t>(piece)), deadline));
      text += more;
    }
    std::string bytes(text.size() / 2, '\0');
    if (!from_hex(text, std::as_writable_bytes(std::span(bytes))))
      return fail(ErrorCode::kProtocol, "PMI-1: a value is not as it was put");
    return bytes;
  }

  void notify_launcher(int) override {}
  void abort_job(int code, const std::string& text) override { session_.abort_job(code, text); }
  Status leave() final {
    if (!std::exchange(left_, true)) session_.remove_user();
    return {};
  }

 private:
  static constexpr std::size_t kCountBytes = 16;
  static constexpr std::int64_t kMaxPieces = 1024;

  Result<std::string> fetch(const std::string& key, Deadline deadline) {
    const auto found =
        session_.ask({"get", {{"kvsname", session_.space()}, {"key", key}}}, "get_result", deadline);
    if (!found) return fail(Error(found.error()).during(key));
    return std::string((*found)["value"]);
  }
  Result<std::vector<std::vector<int>>> groups(Deadline deadline);

  bool left_ = false;

 protected:
  PmiSession& session() { return session_; }
  /// With the ranks of each host.
  Status set_membership(std::uint32_t generation, int rank, int size, std::vector<std::vector<int>> groups);

 private:
  PmiSession& session_;
  Membership membership_;
};

/// By the launcher's map, or, if it has none, by the names of the ranks' hosts.
Result<std::vector<std::vector<int>>> PmiBootstrap::groups(Deadline deadline) {
  if (const auto mapping = fetch(net::kPmiProcessMapping, deadline); mapping && !mapping->empty())
    return net::parse_process_mapping(*mapping, membership_.size);
  return groups_by_host_name(*this, membership_, deadline);
}

Status PmiBootstrap::load_membership(const PmiParameters& parameters, std::uint32_t generation,
                                     Deadline deadline) {
  membership_.generation = generation;
  membership_.rank = parameters.rank;
  membership_.size = parameters.size;
  membership_.host = host_name();
  DDL_ASSIGN(found, groups(deadline));
  return set_membership(generation, parameters.rank, parameters.size, std::move(found));
}

Status PmiBootstrap::set_membership(std::uint32_t generation, int rank, int size,
                                    std::vector<std::vector<int>> groups) {
  membership_.generation = generation;
  membership_.rank = rank;
  membership_.size = size;
  membership_.host = host_name();
  auto layout = HostLayout::of(std::move(groups), rank, size);
  if (!layout) return fail(std::move(layout.error().during("the launcher's map of the job")));
  membership_.layout = *std::move(layout);
  return {};
}

/// The same connection, on which the launcher makes generations (contract/elastic.h).
class ElasticBootstrap final : public PmiBootstrap {
 public:
  using PmiBootstrap::PmiBootstrap;

  const char* name() const override { return "elastic"; }

  Status join(const Settings& settings) {
    // Others may have to commit first, or to start.
    DDL_ASSIGN(plan, session().ask({contract::kElasticJoin,
                                    {{"reason", std::to_string(static_cast<int>(settings.join_reason))},
                                     {"commits", std::to_string(settings.commits)}}},
                                   contract::kElasticPlan, Deadline::never()));
    const auto generation = parse_integer(plan["generation"]), rank = parse_integer(plan["rank"]),
               size = parse_integer(plan["size"]);
    constexpr std::int64_t kMost = std::int64_t{1} << 30;
    if (!generation || !rank || !size || *generation < 0 || *generation >= kMost || *rank < 0 ||
        *rank >= *size || *size > kMost)
      return fail(ErrorCode::kProtocol, "the launcher's plan is not understood");
    DDL_ASSIGN(groups, net::parse_process_mapping(plan["hosts"], static_cast<int>(*size)));
    return set_membership(static_cast<std::uint32_t>(*generation) + 1, static_cast<int>(*rank),
                          static_cast<int>(*size), std::move(groups));
  }

  void notify_launcher(int event) override {
    if (event != contract::kFinishedEvent) return;
    (void)session().ask({contract::kElasticFinished, {}}, contract::kElasticFinishedAck,
                        Deadline::after(PmiSession::kAnswerPatience));
  }
};

}  // namespace

namespace {

/// Null: there is none, for the reason that is stored.
Result<PmiSession*> session_of(const Settings& settings, std::string& not_available) {
  if (!settings.pmi) {
    not_available = std::string(contract::env::kPmiFd) + ", " + contract::env::kPmiRank + " and " +
                    contract::env::kPmiSize + " are not all set";
    return nullptr;
  }
  PmiSession& session = PmiSession::instance();
  if (session.is_inherited()) {
    return fail(
        ErrorCode::kInvalidArgument,
        "this process was forked, without exec, from one that had joined a job; it cannot join in its place");
  }
  if (const auto opened = session.open(settings.pmi->fd); !opened) {
    not_available = opened.error().message();
    return nullptr;
  }
  return &session;
}

}  // namespace

Result<BootstrapAttempt> attempt_elastic(const Settings& settings, std::uint32_t) {
  if (!settings.elastic)
    return BootstrapAttempt{nullptr, std::string(contract::env::kElastic) + " is not set"};
  std::string not_available;
  DDL_ASSIGN(session, session_of(settings, not_available));
  if (session == nullptr) return BootstrapAttempt{nullptr, not_available};
  survive_sigterm_of_slurm();
  auto bootstrap = std::make_unique<ElasticBootstrap>(*session);
  DDL_TRY(bootstrap->join(settings));
  return BootstrapAttempt{std::move(bootstrap), ""};
}

Result<BootstrapAttempt> attempt_pmi(const Settings& settings, std::uint32_t generation) {
  std::string not_available;
  DDL_ASSIGN(found, session_of(settings, not_available));
  if (found == nullptr) return BootstrapAttempt{nullptr, not_available};
  PmiSession& session = *found;
  auto bootstrap = std::make_unique<PmiBootstrap>(session);
  DDL_TRY(bootstrap->load_membership(*settings.pmi, generation, settings.start_deadline()));
  return BootstrapAttempt{std::move(bootstrap), ""};
}

}  // namespace ddl::runtime
