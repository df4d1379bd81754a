#include "launcher/process/process_state.h"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <ctime>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/fd.h"
#include "base/process.h"
#include "base/text.h"
#include "contract/environment.h"

namespace ddl::launcher {

CpuSet parse_allowed_cpus(std::string_view status) {
  constexpr std::string_view kName = "Cpus_allowed_list:";
  for (const std::string_view line : split(status, '\n')) {
    if (line.starts_with(kName)) return CpuSet::parse_list(line.substr(kName.size())).value_or(CpuSet());
  }
  return {};
}

std::string parse_memory_policy(std::string_view numa_maps) {
  // "55a1c0000000 prefer (many):0 file=/bin/true mapped=2": the policy's name may have a space in it.
  const std::string_view line = numa_maps.substr(0, numa_maps.find('\n'));
  const std::size_t begin = line.find(' ');
  if (begin == std::string_view::npos) return "";
  std::string_view policy = line.substr(begin + 1);
  for (const std::string_view next : {" file=", " anon=", " heap", " stack", " mapped=", " huge"}) {
    policy = policy.substr(0, policy.find(next));
  }
  return std::string(trim(policy));
}

std::string parse_visible_devices(std::string_view environ) {
  namespace env = contract::env;
  constexpr std::array kNames{env::kCudaVisibleDevices, env::kRocrVisibleDevices, env::kHipVisibleDevices,
                              env::kZeAffinityMask};
  const auto entries = split(environ, '\0');
  for (const char* name : kNames) {
    for (const std::string_view entry : entries) {
      if (entry.starts_with(std::string(name) + "=")) return std::string(entry);
    }
  }
  return "";
}

namespace {

struct SystemCall {
  long number;
  std::string_view name;
};

// Those in which a program may wait for long.
constexpr std::array kSystemCalls = {
    SystemCall{SYS_read, "read"},
    SystemCall{SYS_write, "write"},
    SystemCall{SYS_readv, "readv"},
    SystemCall{SYS_writev, "writev"},
    SystemCall{SYS_pread64, "pread64"},
    SystemCall{SYS_pwrite64, "pwrite64"},
    SystemCall{SYS_openat, "openat"},
    SystemCall{SYS_fsync, "fsync"},
    SystemCall{SYS_fdatasync, "fdatasync"},
    SystemCall{SYS_flock, "flock"},
    SystemCall{SYS_fcntl, "fcntl"},
    SystemCall{SYS_ioctl, "ioctl"},
    SystemCall{SYS_futex, "futex"},
    SystemCall{SYS_nanosleep, "nanosleep"},
    SystemCall{SYS_clock_nanosleep, "clock_nanosleep"},
    SystemCall{SYS_ppoll, "ppoll"},
    SystemCall{SYS_pselect6, "pselect6"},
    SystemCall{SYS_epoll_pwait, "epoll_pwait"},
#ifdef SYS_poll  // not on newer architectures
    SystemCall{SYS_poll, "poll"},
    SystemCall{SYS_select, "select"},
    SystemCall{SYS_epoll_wait, "epoll_wait"},
    SystemCall{SYS_pause, "pause"},
    SystemCall{SYS_open, "open"},
#endif
    SystemCall{SYS_connect, "connect"},
    SystemCall{SYS_accept, "accept"},
    SystemCall{SYS_accept4, "accept4"},
    SystemCall{SYS_recvfrom, "recvfrom"},
    SystemCall{SYS_recvmsg, "recvmsg"},
    SystemCall{SYS_sendto, "sendto"},
    SystemCall{SYS_sendmsg, "sendmsg"},
    SystemCall{SYS_wait4, "wait4"},
    SystemCall{SYS_waitid, "waitid"},
    SystemCall{SYS_rt_sigsuspend, "rt_sigsuspend"},
    SystemCall{SYS_rt_sigtimedwait, "rt_sigtimedwait"},
};

}  // namespace

KernelWait parse_kernel_wait(std::string_view syscall, std::string_view wchan) {
  KernelWait wait;
  // "230 0x0 ...", "running", or "-1 ...", which is a wait outside of system calls.
  const auto number = parse_integer(trim(syscall.substr(0, syscall.find(' '))));
  if (number && *number >= 0) {
    const auto known = std::find_if(kSystemCalls.begin(), kSystemCalls.end(),
                                    [&](const SystemCall& one) { return one.number == *number; });
    wait.system_call = known == kSystemCalls.end() ? std::to_string(*number) : std::string(known->name);
  }
  const std::string_view channel = trim(wchan);
  if (channel != "0") wait.channel = channel;
  return wait;
}

namespace {

std::string read_of_process(pid_t pid, const char* name) {
  return read_file("/proc/" + std::to_string(pid) + "/" + name, std::size_t{16} << 20).value_or("");
}

// exec closes what is close-on-exec before the new program's memory is laid out, and until then its environment reads
// as empty. No event reports that moment, so the environment is read again, for as long as a file system may take to
// load the program.
std::string environ_after_exec(pid_t pid) {
  constexpr int kProbes = 100;
  constexpr timespec kPause{0, 1'000'000};
  for (int probe = 0; probe < kProbes; ++probe) {
    std::string environ = read_of_process(pid, "environ");
    if (!environ.empty() || read_of_process(pid, "status").find("\nVmSize:") == std::string::npos)
      return environ;
    ::nanosleep(&kPause, nullptr);
  }
  return "";
}

}  // namespace

KernelBinding read_kernel_binding(pid_t pid) {
  std::string devices = parse_visible_devices(environ_after_exec(pid));
  return {parse_allowed_cpus(read_of_process(pid, "status")),
          parse_memory_policy(read_of_process(pid, "numa_maps")), std::move(devices)};
}

ProcessUsage process_usage(const rusage& usage) {
  const auto seconds = [](const timeval& time) {
    return static_cast<double>(time.tv_sec) + static_cast<double>(time.tv_usec) / 1e6;
  };
  return {seconds(usage.ru_utime), seconds(usage.ru_stime), std::int64_t{usage.ru_maxrss} * 1024};
}

KernelWait read_kernel_wait(pid_t pid) {
  return parse_kernel_wait(read_of_process(pid, "syscall"), read_of_process(pid, "wchan"));
}

bool is_stopped(pid_t pid) {
  const auto stat = read_process_stat(pid);
  return stat && stat->is_stopped();
}

// A probe is one system call: an idle job does little else.
StoppedWatch::StoppedWatch(pid_t pid, int probes)
    : probes_(probes), stat_(::open(process_stat_path(pid).c_str(), O_RDONLY | O_CLOEXEC)) {}

bool StoppedWatch::is_stopped_for_good() {
  std::array<char, 1024> buffer;
  const ssize_t got = retry_eintr([&] { return ::pread(stat_.get(), buffer.data(), buffer.size(), 0); });
  const auto stat = parse_process_stat(std::string_view(buffer.data(), std::max<ssize_t>(got, 0)));
  stopped_probes_ = stat && stat->is_stopped() ? stopped_probes_ + 1 : 0;
  return stopped_probes_ >= probes_;
}

}  // namespace ddl::launcher
