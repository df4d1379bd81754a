// The end of a launcher that does nothing else.
#pragma once

#include <sys/wait.h>

namespace ddl::bench {

/// Waits for every child of this process; 0 if all of them exited with 0, otherwise 1.
inline int wait_for_all() {
  int worst = 0;
  int status = 0;
  while (::wait(&status) > 0) {
    if (status != 0) worst = 1;
  }
  return worst;
}

}  // namespace ddl::bench
