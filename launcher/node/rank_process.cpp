#include "launcher/node/rank_process.h"

#include <elf.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <system_error>
#include <vector>

#include "base/fd.h"
#include "base/process.h"
#include "base/process_tree.h"
#include "base/text.h"
#include "contract/ddlrun.h"
#include "contract/environment.h"

namespace ddl::launcher {
namespace {

void take_own_variables(const std::vector<std::string>& names, Environment& environment) {
  for (const std::string& name : names) {
    const char* own = std::getenv(name.c_str());
    if (own != nullptr) {
      environment[name] = own;
    } else {
      environment.erase(name);
    }
  }
}

}  // namespace

ChildSpec rank_child(const JobLaunch& job, const NodeLaunch& node, const RankLaunch& launch,
                     const Environment& agent_environment, std::vector<int> inherited_fds) {
  Environment environment = job.environment;
  for (const auto& [name, value] : node.environment) environment[name] = value;
  take_own_variables(job.login_variables, environment);
  for (const auto& [name, value] : launch.environment) environment[name] = value;
  for (const auto& [name, value] : agent_environment) environment[name] = value;

  ChildSpec child;
  child.rank = launch.rank;
  child.inherited_fds = std::move(inherited_fds);
  child.cpus = launch.cpus;
  child.memory_nodes = launch.memory_nodes;
  child.report_bindings = job.report_bindings;
  child.strict_bind = job.strict_bind;
  child.argv = job.command;
  child.workdir = job.workdir;
  child.shell = job.shell;
  child.environment = environment_entries(environment);
  return child;
}

Result<RankStreams> make_rank_streams(bool reads_stdin) {
  DDL_ASSIGN(out, make_pipe());
  DDL_ASSIGN(err, make_pipe());
  RankStreams streams;
  streams.out = std::move(out.first);
  streams.rank_out = std::move(out.second);
  streams.err = std::move(err.first);
  streams.rank_err = std::move(err.second);
  if (reads_stdin) {
    DDL_ASSIGN(in, make_pipe());
    streams.rank_in = std::move(in.first);
    streams.in = std::move(in.second);
  } else {
    streams.rank_in = UniqueFd(::open("/dev/null", O_RDONLY | O_CLOEXEC));
    if (!streams.rank_in) return fail_errno("open /dev/null");
  }
  return streams;
}

/// VmHWM of /proc/PID/status, in KiB there; -1: not known, as of a process that has ended.
std::int64_t peak_resident_bytes(pid_t pid) {
  const auto status = read_file("/proc/" + std::to_string(pid) + "/status");
  if (!status) return -1;
  constexpr std::string_view kKey = "VmHWM:";
  for (std::string_view line : split(*status, '\n')) {
    if (!line.starts_with(kKey)) continue;
    line = trim(line.substr(kKey.size()));
    return parse_integer(line.substr(0, line.find(' '))).value_or(-1) * 1024;
  }
  return -1;
}

ProcessActivity process_activity(pid_t pid) {
  const auto stat = read_process_stat(pid);
  if (!stat) return {};
  return {std::string(1, stat->state), stat->num_threads, stat->cpu_seconds + stat->reaped_cpu_seconds,
          stat->resident_bytes, peak_resident_bytes(pid)};
}

std::optional<message::MpiLoaded> loaded_mpi(int rank, pid_t pid) {
  constexpr std::size_t kMaxMaps = std::size_t{16} << 20;
  const auto maps = read_file("/proc/" + std::to_string(pid) + "/maps", kMaxMaps);
  if (!maps) return std::nullopt;
  for (const std::string_view line : split(*maps, '\n')) {
    const std::size_t slash = line.rfind('/');
    if (slash == std::string_view::npos) continue;
    const std::string_view name = line.substr(slash + 1);
    // Open MPI, and MPICH's family; MPICH's as Debian calls it.
    if (!name.starts_with("libmpi.so.") && !name.starts_with("libmpich.so.")) continue;
    message::MpiLoaded mpi{rank, std::string(line.substr(line.find('/')))};
    struct stat status {};
    if (::stat(mpi.path.c_str(), &status) == 0) mpi.bytes = status.st_size;
    return mpi;
  }
  return std::nullopt;
}

void add_process(RankActivity& activity, const RankSnapshot& now, std::int64_t pid) {
  const bool is_known_here = now.pid > 0 && now.pid_namespace == own_pid_namespace();
  activity.pid = is_known_here ? now.pid : pid;
  activity.process = process_activity(activity.pid);
  activity.is_stopped = activity.process.state == "T";
}

RankOutcome rank_end(const message::ChildEnded& ended, std::int64_t pid, const TerminationState& ending) {
  RankOutcome outcome;
  outcome.rank = ended.rank;
  outcome.pid = pid;
  outcome.run_seconds = ended.run_seconds;
  outcome.usage = ended.usage;
  outcome.before_end = ending.requested_signals.empty() && !ending.killed;
  if (WIFSIGNALED(ended.wait_status)) {
    outcome.kind = RankOutcome::Kind::kSignalled;
    outcome.signal = WTERMSIG(ended.wait_status);
    outcome.core_dumped = WCOREDUMP(ended.wait_status);
    outcome.ended_by_us =
        ending.has_requested(outcome.signal) || (ending.killed && outcome.signal == SIGKILL);
  } else {
    outcome.kind = RankOutcome::Kind::kExited;
    outcome.exit_code = WEXITSTATUS(ended.wait_status);
  }
  return outcome;
}

namespace {

/// The beginning of a file, enough for "#!" and the program headers; "" if it cannot be read.
std::string beginning_of(const std::string& path) {
  constexpr std::size_t kMaxHeaderBytes = 4096;
  const UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file) return "";
  std::string text(kMaxHeaderBytes, '\0');
  const ssize_t got = retry_eintr([&] { return ::pread(file.get(), text.data(), text.size(), 0); });
  text.resize(std::max<ssize_t>(got, 0));
  return text;
}

/// The first line behind "#!", with the "\r" that it may end in; "" if the file does not begin with "#!".
std::string_view script_line_of(std::string_view beginning) {
  if (!beginning.starts_with("#!")) return "";
  return beginning.substr(2, beginning.find('\n') - 2);
}

/// The interpreter in that line, with the "\r" that it may end in.
std::string interpreter_of(std::string_view beginning) {
  std::string_view line = script_line_of(beginning);
  line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
  return std::string(line.substr(0, line.find_first_of(" \t")));
}

/// The dynamic loader that a 64-bit ELF file of this machine's byte order names; "" if it names none within
/// beginning.
std::string loader_of(std::string_view beginning) {
  Elf64_Ehdr head;
  if (beginning.size() < sizeof head || !beginning.starts_with(ELFMAG)) return "";
  std::memcpy(&head, beginning.data(), sizeof head);
  if (head.e_ident[EI_CLASS] != ELFCLASS64 || head.e_phentsize != sizeof(Elf64_Phdr)) return "";
  for (std::size_t i = 0; i < head.e_phnum; ++i) {
    Elf64_Phdr part;
    const std::size_t at = head.e_phoff + i * sizeof part;
    if (at > beginning.size() || beginning.size() - at < sizeof part) return "";
    std::memcpy(&part, beginning.data() + at, sizeof part);
    if (part.p_type == PT_INTERP && part.p_offset < beginning.size())
      return std::string(beginning.substr(part.p_offset, part.p_filesz == 0 ? 0 : part.p_filesz - 1));
  }
  return "";
}

bool is_directory(const std::string& path) {
  struct stat status {};
  return ::stat(path.c_str(), &status) == 0 && S_ISDIR(status.st_mode);
}

/// The path of the command; "" if it has no slash and is in no folder of PATH.
std::string file_of(const FailedCommand& failed) {
  const auto in_workdir = [&](const std::string& path) {
    return path.starts_with('/') ? path : failed.workdir + "/" + path;
  };
  if (failed.command.find('/') != std::string::npos) return in_workdir(failed.command);
  for (const std::string_view folder : split(failed.search_path, ':')) {
    std::string file = in_workdir(std::string(folder.empty() ? "." : folder) + "/" + failed.command);
    if (::access(file.c_str(), F_OK) == 0 && !is_directory(file)) return file;
  }
  return "";
}

constexpr char kCarriageReturn[] =
    "its first line ends with a carriage return (\\r), as files from Windows do";

std::string removal_of_carriage_returns(const std::string& file) {
  return "remove them with: sed -i 's/\\r$//' " + shell_quote(file);
}

/// Why a file that exists cannot be executed, in more detail than errno; "" if nothing more is known.
std::string reason_in_file(const std::string& file, int error) {
  if (error == EACCES && is_directory(file)) return "it is a directory; name the program in it";
  const std::string beginning = beginning_of(file);
  const std::string interpreter = interpreter_of(beginning);
  if (error == ENOENT && interpreter.ends_with('\r')) {
    return std::string(kCarriageReturn) + ", and there is no " +
           interpreter.substr(0, interpreter.size() - 1) + "\\r; " + removal_of_carriage_returns(file);
  }
  if (error == ENOENT && !interpreter.empty())
    return "its first line names the interpreter " + interpreter + ", which does not exist";
  if (error == ENOENT) {
    const std::string loader = loader_of(beginning);
    return loader.empty() ? "its interpreter or dynamic loader does not exist"
                          : "it needs the dynamic loader " + loader +
                                ", which does not exist; it was built for another system";
  }
  if (error == EACCES && !interpreter.empty() && ::access(file.c_str(), X_OK) == 0) {
    return is_directory(interpreter) ? "its first line names " + interpreter + ", which is a directory"
                                     : "its interpreter " + interpreter + " may not be executed";
  }
  if (error == ENOEXEC && beginning.starts_with(ELFMAG)) return "it was built for another kind of machine";
  return "";
}

/// "; /data has train.py", if that is the file of the folder whose name is most like this one; "" if none is.
std::string similar_file(const std::string& folder, const std::string& name) {
  constexpr std::size_t kMaxFiles = 2000;  // a folder of very many files is not read to its end
  std::error_code failed;
  std::vector<std::string> names;
  for (auto entry = std::filesystem::directory_iterator(folder, failed);
       !failed && entry != std::filesystem::directory_iterator() && names.size() < kMaxFiles;
       entry.increment(failed))
    names.push_back(entry->path().filename());
  std::sort(names.begin(), names.end());  // the same of several in every run
  const auto nearest = nearest_word(name, names);
  const std::size_t length = folder.ends_with("/.") ? folder.size() - 2 : folder.size();
  return nearest ? "; " + folder.substr(0, length) + " has " + *nearest : "";
}

/// What the user most likely meant by the name of a program that is not in PATH.
std::string meant_by(const FailedCommand& failed) {
  const std::string here = failed.workdir + "/" + failed.command;
  if (::access(here.c_str(), F_OK) == 0 && !is_directory(here))
    return "; write ./" + failed.command + " for the one in " + failed.workdir;
  const FailedCommand python3{"python3", failed.workdir, failed.search_path};
  if (failed.command == "python" && !file_of(python3).empty()) return "; python3 is there: write python3";
  return similar_file(failed.workdir, failed.command);
}

std::string exec_failure(const FailedCommand& failed, int error) {
  const std::string file = file_of(failed);
  if (error == ENOENT && file.empty())
    return "command not found: " + failed.command + " (no such program in PATH" + meant_by(failed) + ")";
  if (error == ENOENT && ::access(file.c_str(), F_OK) != 0) {
    const std::size_t slash = file.rfind('/');
    return "no such file: " + file + similar_file(file.substr(0, slash), file.substr(slash + 1));
  }
  const std::string reason = file.empty() ? "" : reason_in_file(file, error);
  if (!reason.empty()) return "cannot execute " + file + ": " + reason;
  return "cannot execute " + failed.command + ": " + std::generic_category().message(error);
}

}  // namespace

RankOutcome start_failure(const message::ChildFailed& failure, const FailedCommand& command) {
  const std::string reason = std::generic_category().message(failure.error);
  const int code_of_path =
      failure.error == ENOENT || failure.error == ENOTDIR ? contract::kNotFound : contract::kNotExecutable;
  RankOutcome outcome;
  outcome.kind = RankOutcome::Kind::kStartFailed;
  outcome.rank = failure.rank;
  outcome.exit_code = contract::kStartFailure;
  switch (failure.stage) {
    case StartStage::kFork:
      outcome.start_error = "fork: " + reason + " (see ulimit -u and the pids limit of the cgroup)";
      break;
    case StartStage::kCpus:
      outcome.start_error =
          "binding it to its CPUs: " + reason + "; without --strict-bind it runs on other CPUs";
      break;
    case StartStage::kMemory:
      outcome.start_error = "binding its memory: " + reason +
                            "; without --strict-bind, or with --mem-bind none, it uses any node's";
      break;
    case StartStage::kStreams: outcome.start_error = "redirecting its standard streams: " + reason; break;
    case StartStage::kDirectory:
      outcome.exit_code = code_of_path;
      outcome.start_error = "working directory " + command.workdir + ": " + reason;
      break;
    case StartStage::kLimits: outcome.start_error = "setting its resource limits: " + reason; break;
    case StartStage::kExec:
      outcome.exit_code = code_of_path;
      outcome.start_error = exec_failure(command, failure.error);
      break;
  }
  return outcome;
}

void describe_carriage_return(const FailedCommand& command, RankOutcome& outcome) {
  // 127 and 126: env has not found or not executed a program. 2: shells and Python reject an option.
  constexpr int kRejectedOption = 2;
  if (outcome.kind != RankOutcome::Kind::kExited ||
      (outcome.exit_code != contract::kNotFound && outcome.exit_code != contract::kNotExecutable &&
       outcome.exit_code != kRejectedOption))
    return;
  const std::string file = file_of(command);
  if (file.empty() || !script_line_of(beginning_of(file)).ends_with('\r')) return;
  outcome.start_error = file + ": " + kCarriageReturn + "; " + removal_of_carriage_returns(file);
}

}  // namespace ddl::launcher
