#include "launcher/process/stopped_watch.h"

#include "launcher/process/is_stopped.h"

namespace ddl::launcher {

bool StoppedWatch::is_stopped_for_good() {
  stopped_looks_ = is_stopped(pid_) ? stopped_looks_ + 1 : 0;
  return stopped_looks_ >= kLooks;
}

}  // namespace ddl::launcher
