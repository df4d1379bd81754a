#include "launcher/node/job_presence.h"

#include <sys/socket.h>
#include <unistd.h>

#include "base/text.h"
#include "launcher/process/process_state.h"
#include "net/abstract_socket.h"

namespace ddl::launcher {
namespace {

constexpr std::size_t kMaxStatus = std::size_t{1} << 20;

CpuSet allowed_cpus_of(pid_t pid) {
  return parse_allowed_cpus(read_file("/proc/" + std::to_string(pid) + "/status", kMaxStatus).value_or(""));
}

/// Whether an agent of this user listens at this socket and may run on one of these CPUs. The CPUs of a process in
/// another container cannot be read, as it has no pid here: it counts as sharing them.
bool shares_cpus(const std::string& socket, const CpuSet& own) {
  const auto fd = net::connect_abstract(socket);
  const auto peer = fd ? net::peer_of(fd->get()) : std::nullopt;
  if (!peer || peer->uid != ::getuid()) return false;
  const CpuSet theirs = peer->pid > 0 ? allowed_cpus_of(peer->pid) : CpuSet();
  return theirs.is_empty() || own.is_empty() || theirs.intersects(own);
}

}  // namespace

std::vector<AnnouncedHead> announced_heads(std::string_view proc_net_unix, std::string_view prefix,
                                           std::string_view own) {
  std::vector<AnnouncedHead> heads;
  for (const std::string_view name : net::abstract_names(proc_net_unix)) {
    if (!name.starts_with(prefix) || name == own) continue;
    const std::string_view rest = name.substr(prefix.size());
    const std::size_t slash = rest.find('/');
    const auto pid = slash == std::string_view::npos ? std::nullopt : parse_integer(rest.substr(slash + 1));
    if (!pid || *pid < 1 || !net::is_name_part(rest.substr(0, slash))) continue;
    heads.push_back({{std::string(rest.substr(0, slash)), *pid}, std::string(name)});
  }
  return heads;
}

Result<JobPresence> JobPresence::announce(const std::string& scheduler_job, const JobHead& head) {
  const std::string host = head.host.substr(0, head.host.find('.'));
  if (!net::is_name_part(scheduler_job) || !net::is_name_part(host))
    return fail(ErrorCode::kInvalidArgument,
                "cannot name a socket by job " + scheduler_job + ", host " + host);
  const std::string prefix = "ddlrun/" + std::to_string(::getuid()) + "/" + scheduler_job + "/";
  const std::string name = prefix + host + "/" + std::to_string(head.pid);
  DDL_ASSIGN(socket, net::listen_abstract(name, kListenBacklog));
  return JobPresence(std::move(socket), prefix, name);
}

void JobPresence::accept_in(EventLoop& loop) {
  // A peer connects only to read the credentials of this process (SO_PEERCRED), which it has once connected.
  const int fd = socket_.get();
  watch_ = loop.watch(fd, [fd] { const UniqueFd connection(::accept4(fd, nullptr, nullptr, SOCK_CLOEXEC)); });
}

std::string shared_cpus_warning(const JobHead& other, const std::string& host, const Scheduler& scheduler,
                                const std::string& scheduler_job) {
  return "warning: another ddlrun (process " + std::to_string(other.pid) + " on " + other.host +
         ", seen on " + host + ") runs in " + scheduler.name() + " job " + scheduler_job +
         " at the same time, and both use the same CPUs and GPUs; start one after the other, "
         "or give each its nodes with -H, or its part of a node: " +
         scheduler.command_on_part_of_node();
}

std::string announcement_text(const JobAnnouncement& announcement) {
  if (announcement.scheduler_job.empty()) return "";
  return announcement.scheduler_job + "/" + announcement.head.host + "/" +
         std::to_string(announcement.head.pid);
}

JobAnnouncement parse_announcement(std::string_view text) {
  const std::vector<std::string_view> parts = split(text, '/');
  const auto pid = parts.size() == 3 ? parse_integer(parts[2]) : std::nullopt;
  if (!pid || *pid < 1 || !net::is_name_part(parts[0])) return {};
  return {std::string(parts[0]), {std::string(parts[1]), *pid}};
}

std::vector<JobHead> JobPresence::others() const {
  const auto text = net::read_proc_net_unix();
  if (!text) return {};
  const CpuSet own = allowed_cpus_of(::getpid());
  std::vector<JobHead> heads;
  for (AnnouncedHead& one : announced_heads(*text, prefix_, name_)) {
    if (shares_cpus(one.socket, own)) heads.push_back(std::move(one.head));
  }
  return heads;
}

}  // namespace ddl::launcher
