// PMIx_Init() and PMIx_Finalize(), nothing in between: the minimum that a launcher's PMIx server costs a client.
#include <pmix.h>

#include <cstdio>

#include "bench/idle_rank.h"

int main(int argc, char** argv) {
  pmix_proc_t self;
  const pmix_status_t joined = PMIx_Init(&self, nullptr, 0);
  if (joined != PMIX_SUCCESS) {
    std::fprintf(stderr, "PMIx_Init: %s\n", PMIx_Error_string(joined));
    return 1;
  }
  const bool hold_succeeded = ddl::bench::hold_if_asked(argc, argv);
  return PMIx_Finalize(nullptr, 0) == PMIX_SUCCESS && hold_succeeded ? 0 : 1;
}
