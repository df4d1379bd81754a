#include "launcher/node/job_presence.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>

#include "base/text.h"
#include "launcher/process/process_state.h"

namespace ddl::launcher {
namespace {

constexpr std::size_t kMaxProcText = std::size_t{16} << 20;

struct AbstractName {
  sockaddr_un address{};
  socklen_t length = 0;

  /// A leading zero byte makes it abstract; what follows is not zero-terminated, so the length counts (unix(7)).
  explicit AbstractName(std::string_view name) {
    address.sun_family = AF_UNIX;
    std::memcpy(address.sun_path + 1, name.data(), name.size());
    length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&address); }
};

UniqueFd unix_socket() { return UniqueFd(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0)); }

/// Letters, digits, and "-._" as in host names: any user can put other text into /proc/net/unix.
bool is_word(std::string_view text) {
  constexpr std::size_t kMaxLength = 63;
  return !text.empty() && text.size() <= kMaxLength && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '.' || c == '_';
  });
}

CpuSet allowed_cpus_of(pid_t pid) {
  return parse_allowed_cpus(read_file("/proc/" + std::to_string(pid) + "/status", kMaxProcText).value_or(""));
}

/// Whether an agent of this user listens at this socket and may run on one of these CPUs. The CPUs of a process in
/// another container cannot be read, as it has no pid here: it counts as sharing them.
bool shares_cpus(const std::string& socket, const CpuSet& own) {
  const UniqueFd fd = unix_socket();
  const AbstractName name(socket);
  if (!fd || ::connect(fd.get(), name.get(), name.length) != 0) return false;
  ucred peer{};
  socklen_t length = sizeof peer;
  if (::getsockopt(fd.get(), SOL_SOCKET, SO_PEERCRED, &peer, &length) != 0 || peer.uid != ::getuid())
    return false;
  const CpuSet theirs = peer.pid > 0 ? allowed_cpus_of(peer.pid) : CpuSet();
  return theirs.is_empty() || own.is_empty() || theirs.intersects(own);
}

}  // namespace

std::vector<AnnouncedHead> announced_heads(std::string_view proc_net_unix, std::string_view prefix,
                                           std::string_view own) {
  std::vector<AnnouncedHead> heads;
  for (const std::string_view line : split(proc_net_unix, '\n')) {
    const std::size_t at = line.rfind(" @");  // of the path, which is the last column
    if (at == std::string_view::npos) continue;
    const std::string_view name = line.substr(at + 2);
    if (!name.starts_with(prefix) || name == own) continue;
    const std::string_view rest = name.substr(prefix.size());
    const std::size_t slash = rest.find('/');
    const auto pid = slash == std::string_view::npos ? std::nullopt : parse_integer(rest.substr(slash + 1));
    if (!pid || *pid < 1 || !is_word(rest.substr(0, slash))) continue;
    AnnouncedHead one{{std::string(rest.substr(0, slash)), *pid}, std::string(name)};
    // A connection that was accepted has the name of its listener.
    if (std::find(heads.begin(), heads.end(), one) == heads.end()) heads.push_back(std::move(one));
  }
  return heads;
}

Result<JobPresence> JobPresence::announce(const std::string& slurm_job, const JobHead& head) {
  const std::string host = head.host.substr(0, head.host.find('.'));
  if (!is_word(slurm_job) || !is_word(host))
    return fail(ErrorCode::kInvalidArgument, "cannot name a socket by job " + slurm_job + ", host " + host);
  const std::string prefix = "ddlrun/" + std::to_string(::getuid()) + "/" + slurm_job + "/";
  const std::string name = prefix + host + "/" + std::to_string(head.pid);
  if (name.size() >= sizeof(sockaddr_un::sun_path))
    return fail(ErrorCode::kInvalidArgument, "too long for the name of a socket: " + name);
  UniqueFd socket = unix_socket();
  if (!socket) return fail_errno("socket");
  const AbstractName address(name);
  if (::bind(socket.get(), address.get(), address.length) != 0) return fail_errno("bind of @" + name);
  if (::listen(socket.get(), kListenBacklog) != 0) return fail_errno("listen at @" + name);
  return JobPresence(std::move(socket), prefix, name);
}

void JobPresence::accept_in(EventLoop& loop) {
  // A peer connects only to read the credentials of this process (SO_PEERCRED), which it has once connected.
  const int fd = socket_.get();
  watch_ = loop.watch(fd, [fd] { const UniqueFd connection(::accept4(fd, nullptr, nullptr, SOCK_CLOEXEC)); });
}

std::string shared_cpus_warning(const JobHead& other, const std::string& host, const std::string& slurm_job) {
  return "warning: another ddlrun (process " + std::to_string(other.pid) + " on " + other.host +
         ", seen on " + host + ") runs in Slurm job " + slurm_job +
         " at the same time, and both use the same CPUs and GPUs; start one after the other, "
         "or give each its nodes with -H, or its part of a node: srun --exact -N 1 -n 1 -c CPUS --gpus GPUS "
         "ddlrun --launcher local ...";
}

std::string announcement_text(const JobAnnouncement& announcement) {
  if (announcement.slurm_job.empty()) return "";
  return announcement.slurm_job + "/" + announcement.head.host + "/" + std::to_string(announcement.head.pid);
}

JobAnnouncement parse_announcement(std::string_view text) {
  const std::vector<std::string_view> parts = split(text, '/');
  const auto pid = parts.size() == 3 ? parse_integer(parts[2]) : std::nullopt;
  if (!pid || *pid < 1 || !is_word(parts[0])) return {};
  return {std::string(parts[0]), {std::string(parts[1]), *pid}};
}

std::vector<JobHead> JobPresence::others() const {
  const auto text = read_file("/proc/self/net/unix", kMaxProcText);
  if (!text) return {};
  const CpuSet own = allowed_cpus_of(::getpid());
  std::vector<JobHead> heads;
  for (AnnouncedHead& one : announced_heads(*text, prefix_, name_)) {
    if (shares_cpus(one.socket, own)) heads.push_back(std::move(one.head));
  }
  return heads;
}

}  // namespace ddl::launcher
