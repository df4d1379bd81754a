#include "launcher/process/stopped_watch.h"

#include <fcntl.h>
#include <unistd.h>

#include <array>
#include <string>

#include "base/error.h"
#include "launcher/process/is_stopped.h"

namespace ddl::launcher {

// A look is one system call: an idle job does little else.
StoppedWatch::StoppedWatch(pid_t pid, int looks)
    : looks_(looks), stat_(::open(stat_path(pid).c_str(), O_RDONLY | O_CLOEXEC)) {}

bool StoppedWatch::is_stopped_for_good() {
  std::array<char, 1024> buffer;
  const ssize_t got = retry_eintr([&] { return ::pread(stat_.get(), buffer.data(), buffer.size(), 0); });
  const bool is_stopped = got > 0 && says_stopped({buffer.data(), static_cast<std::size_t>(got)});
  stopped_looks_ = is_stopped ? stopped_looks_ + 1 : 0;
  return stopped_looks_ >= looks_;
}

}  // namespace ddl::launcher
