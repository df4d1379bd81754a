#include "runtime/src/bootstrap/rank_process.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/fd.h"
#include "base/process.h"
#include "base/text.h"
#include "contract/environment.h"

namespace ddl::runtime {
namespace {

namespace env = contract::env;

/// A file of /proc/PID; "" if it cannot be read.
std::string proc_file(pid_t pid, const std::string& name) {
  return read_file("/proc/" + std::to_string(pid) + "/" + name).value_or("");
}

/// "socket:[4711]": the open file behind a descriptor.
std::string open_file(pid_t pid, int fd) {
  std::array<char, 128> target{};
  const std::string path = "/proc/" + std::to_string(pid) + "/fd/" + std::to_string(fd);
  const ssize_t length = ::readlink(path.c_str(), target.data(), target.size());
  return length > 0 ? std::string(target.data(), static_cast<std::size_t>(length)) : "";
}

bool is_member(pid_t pid) {
  const std::vector<pid_t> threads = listed_pids("/proc/" + std::to_string(pid) + "/task");
  return std::any_of(threads.begin(), threads.end(), [pid](pid_t thread) {
    return trim(proc_file(pid, "task/" + std::to_string(thread) + "/comm")) == kMemberThread;
  });
}

/// Whether the launcher has told the process the same as this one: a job inside this job is another one.
bool is_same_rank(pid_t pid, const Settings& settings, const Environment& environment) {
  if (!settings.pmix_promised) {
    const std::string connection = open_file(::getpid(), settings.pmi->fd);
    return !connection.empty() && open_file(pid, settings.pmi->fd) == connection;
  }
  const std::string text = proc_file(pid, "environ");
  const std::vector<std::string_view> entries = split(text, '\0');
  const Environment other = parse_environment({entries.begin(), entries.end()});
  return value_of(other, env::kPmixNamespace) == value_of(environment, env::kPmixNamespace) &&
         value_of(other, env::kPmixRank) == value_of(environment, env::kPmixRank);
}

/// The processes above this one that have the same rank's variables, the nearest first.
std::vector<pid_t> ancestors_of_rank(const Settings& settings, const Environment& environment) {
  // A chain of processes is never so long, and /proc may be that of another PID namespace.
  constexpr int kMostGenerations = 256;
  std::vector<pid_t> ancestors;
  auto process = read_process_stat(::getpid());
  for (int i = 0; process && process->parent > 1 && i < kMostGenerations; ++i) {
    process = read_process_stat(process->parent);
    if (process && is_same_rank(process->pid, settings, environment)) ancestors.push_back(process->pid);
  }
  return ancestors;
}

/// The descriptor of the record: what this process has inherited, or if that was closed, as Python does for the
/// processes that it starts, that of a process above it. -1: there is none.
UniqueFd open_record(int fd, const std::vector<pid_t>& ancestors) {
  UniqueFd own(::fcntl(fd, F_DUPFD_CLOEXEC, 3));
  if (RankRecord::is_record(own.get())) return own;
  for (const pid_t pid : ancestors) {
    if (!open_file(pid, fd).starts_with("/memfd:")) continue;
    const std::string path = "/proc/" + std::to_string(pid) + "/fd/" + std::to_string(fd);
    UniqueFd inherited(::open(path.c_str(), O_RDWR | O_CLOEXEC));
    if (RankRecord::is_record(inherited.get())) return inherited;
  }
  return UniqueFd();
}

/// "/usr/lib/libddl.so.0 (0.2.0)" for each libddl that this process has loaded.
std::vector<std::string> loaded_libddls() {
  std::vector<std::string> libraries;
  ::dl_iterate_phdr(
      [](dl_phdr_info* info, std::size_t, void* found) {
        const std::string_view file = info->dlpi_name;
        if (file.substr(file.rfind('/') + 1).starts_with("libddl.so"))
          static_cast<std::vector<std::string>*>(found)->emplace_back(file);
        return 0;
      },
      &libraries);
  for (std::string& library : libraries) {
    void* const loaded = ::dlopen(library.c_str(), RTLD_LAZY | RTLD_NOLOAD);
    if (loaded == nullptr) continue;
    const auto version = reinterpret_cast<const char* (*)()>(::dlsym(loaded, "ddl_version"));
    if (version != nullptr) library += std::string(" (") + version() + ")";
    (void)::dlclose(loaded);
  }
  return libraries;
}

/// A second libddl knows nothing of the first one's contexts, and would use the rank's connections and record as well.
Status check_only_libddl() {
  const std::vector<std::string> libraries = loaded_libddls();
  if (libraries.size() < 2) return {};
  return fail(ErrorCode::kInvalidArgument,
              "this process has loaded two libddl, " + libraries[0] + " and " + libraries[1] +
                  ", and each would join the job as this rank; let the program and all that it loads use the "
                  "same file: uninstall one of them, or name the other in LD_LIBRARY_PATH and DDL_LIBRARY");
}

tl::unexpected<Error> is_taken(pid_t by, const Settings& settings, const Environment& environment) {
  const std::string rank =
      settings.pmix_promised ? value_of(environment, env::kPmixRank) : std::to_string(settings.pmi->rank);
  return fail(
      ErrorCode::kInvalidArgument,
      "rank " + rank + " is process " + std::to_string(by) + ", and this process (pid " +
          std::to_string(::getpid()) +
          ") was started with the variables of the same rank; let one of them call ddl_init, or start this "
          "one as a world of its own: env -u " +
          env::kPmixNamespace + " -u " + env::kPmiFd + " " + env::kAllowSingleton + "=1");
}

}  // namespace

Result<RankClaim> RankClaim::make(Settings& settings, const Environment& environment) {
  DDL_TRY(check_only_libddl());
  RankClaim claim;
  const auto location = std::exchange(settings.rank_record, std::nullopt);
  if (!settings.pmix_promised && !settings.pmi) return claim;
  const std::vector<pid_t> ancestors = ancestors_of_rank(settings, environment);
  const auto member = std::find_if(ancestors.begin(), ancestors.end(), is_member);
  if (member != ancestors.end()) return is_taken(*member, settings, environment);
  // Hydra in a rank of ddlrun leaves that rank's record to all ranks of its own.
  if (!location || settings.pmi_is_hydras) return claim;
  claim.fd_ = open_record(location->fd, ancestors);
  if (!claim.fd_) return claim;
  settings.rank_record = *location;
  settings.rank_record->fd = claim.fd_.get();
  const auto [holder, is_successor] = RankRecord::claim(*settings.rank_record);
  if (holder != 0) return is_taken(holder, settings, environment);
  settings.is_successor = is_successor;
  claim.record_ = settings.rank_record;
  return claim;
}

RankClaim::~RankClaim() {
  if (record_) RankRecord::disown(*record_);
}

}  // namespace ddl::runtime
