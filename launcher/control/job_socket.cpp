#include "launcher/control/job_socket.h"

#include <algorithm>

#include "base/text.h"
#include "net/abstract_socket.h"

namespace ddl::launcher {
namespace {

constexpr std::string_view kJobPrefix = "ddlrun-job/";
constexpr std::string_view kHeadRole = "head";
constexpr std::string_view kAgentRole = "agent";

/// From "ddlrun-job/1000/head/4711/ddlrun-4711-0f3c9a1b".
std::optional<JobSocket> parse_job_socket(std::string_view name) {
  if (!name.starts_with(kJobPrefix)) return std::nullopt;
  const auto parts = split(name.substr(kJobPrefix.size()), '/');
  if (parts.size() != 4 || !head_pid_of(parts[3])) return std::nullopt;
  const bool is_head = parts[1] == kHeadRole;
  const auto uid = parse_integer(parts[0]), pid = parse_integer(parts[2]);
  if ((!is_head && parts[1] != kAgentRole) || !uid || *uid < 0 || !pid || *pid < 1) return std::nullopt;
  JobSocket socket{is_head ? JobSocket::Role::kHead : JobSocket::Role::kAgent, *uid, *pid,
                   std::string(parts[3])};
  // A number has several spellings, a socket only one.
  return socket.name() == name ? std::optional(std::move(socket)) : std::nullopt;
}

}  // namespace

std::string JobSocket::name() const {
  return std::string(kJobPrefix) + std::to_string(uid) + "/" +
         std::string(role == Role::kHead ? kHeadRole : kAgentRole) + "/" + std::to_string(pid) + "/" + job_id;
}

std::optional<std::int64_t> head_pid_of(std::string_view job_id) {
  constexpr std::string_view kStart = "ddlrun-";
  if (!job_id.starts_with(kStart) || !net::is_name_part(job_id)) return std::nullopt;
  const auto parts = split(job_id.substr(kStart.size()), '-');
  const auto pid = parts.size() == 2 && !parts[1].empty() ? parse_integer(parts[0]) : std::nullopt;
  return pid && *pid > 0 ? pid : std::nullopt;
}

std::vector<JobSocket> job_sockets(std::string_view proc_net_unix) {
  std::vector<JobSocket> sockets;
  for (const std::string_view name : net::abstract_names(proc_net_unix)) {
    auto socket = parse_job_socket(name);
    if (!socket) continue;
    const auto same = std::find_if(sockets.begin(), sockets.end(), [&](const JobSocket& one) {
      return one.uid == socket->uid && one.job_id == socket->job_id;
    });
    if (same == sockets.end()) {
      sockets.push_back(*std::move(socket));
    } else if (same->role == JobSocket::Role::kAgent && socket->role == JobSocket::Role::kHead) {
      *same = *std::move(socket);
    }
  }
  return sockets;
}

Result<std::vector<JobSocket>> job_sockets_here() {
  DDL_ASSIGN(text, net::read_proc_net_unix());
  return job_sockets(text);
}

}  // namespace ddl::launcher
