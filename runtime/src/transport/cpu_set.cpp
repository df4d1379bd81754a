#include "runtime/src/transport/cpu_set.h"

#include <sys/syscall.h>
#include <unistd.h>

namespace ddl::runtime {

CpuSet CpuSet::of_this_thread() {
  CpuSet set;
  // By number: the call itself takes a buffer of any length, glibc's cpu_set_t ends at 1024 CPUs.
  if (::syscall(SYS_sched_getaffinity, 0, sizeof set.bits, set.bits.data()) < 0) set.bits[0] = 1;
  return set;
}

}  // namespace ddl::runtime
