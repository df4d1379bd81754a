/* A rank of an elastic job whose calls are on memory of a GPU. In generation 0 rank 1 dies when some steps are done; the
 * others go on in generation 1, make some more, and end. */
#include <dlfcn.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "ddl/ddl.h"

typedef uint64_t device_memory;

static void* cuda;

static void* function(const char* name) {
  void* const found = dlsym(cuda, name);
  if (found == NULL) {
    fprintf(stderr, "no %s\n", name);
    exit(4);
  }
  return found;
}

static void require(int status, const char* what) {
  if (status == 0) return;
  fprintf(stderr, "%s: %d\n", what, status);
  exit(4);
}

/* Of the GPU with the number of this process's slot. */
static device_memory memory_of_gpu(void) {
  cuda = dlopen("libcuda.so.1", RTLD_NOW);
  if (cuda == NULL) exit(4);
  int device = atoi(getenv("LOCAL_RANK"));
  void* context = NULL;
  device_memory memory = 0;
  require(((int (*)(unsigned))function("cuInit"))(0), "cuInit");
  require(((int (*)(int*, int))function("cuDeviceGet"))(&device, device), "cuDeviceGet");
  require(((int (*)(void**, int))function("cuDevicePrimaryCtxRetain"))(&context, device), "retain");
  require(((int (*)(void*))function("cuCtxSetCurrent"))(context), "cuCtxSetCurrent");
  require(((int (*)(device_memory*, size_t))function("cuMemAlloc_v2"))(&memory, 64), "cuMemAlloc");
  return memory;
}

static ddl_status make_step(ddl_context* context, device_memory memory) {
  const int32_t size = ddl_size(context), rank = ddl_rank(context);
  int32_t sum = 0;
  require(((int (*)(device_memory, const void*, size_t))function("cuMemcpyHtoD_v2"))(memory, &rank, 4), "to");
  const ddl_status status = ddl_allreduce(context, (void*)memory, (void*)memory, 1, DDL_INT32, DDL_SUM, NULL);
  if (status != DDL_OK) return status;
  require(((int (*)(void*, device_memory, size_t))function("cuMemcpyDtoH_v2"))(&sum, memory, 4), "from");
  int32_t change = 0;
  /* A call that a loss has cut short has left anything in the memory, and a later one says so. */
  const ddl_status checked = ddl_elastic_check(context, &change);
  if (checked == DDL_OK && sum != size * (size - 1) / 2) {
    fprintf(stderr, "a wrong sum, %d\n", sum);
    exit(3);
  }
  return checked;
}

int main(void) {
  const device_memory memory = memory_of_gpu();
  ddl_elastic_join_options options = DDL_ELASTIC_JOIN_OPTIONS_INIT;
  for (;;) {
    ddl_context* context = NULL;
    if (ddl_elastic_join(&options, &context) != DDL_OK) {
      printf("join: %s\n", ddl_last_error());
      return 1;
    }
    const int generation = ddl_elastic_generation(context);
    ddl_status status = DDL_OK;
    for (int step = 0; status == DDL_OK && (generation == 0 || step < 20); ++step) {
      if (generation == 0 && step == 20 && ddl_rank(context) == 1) raise(SIGKILL);
      status = make_step(context, memory);
      if (status == DDL_OK) ++options.commits;
    }
    printf("generation %d: rank %d of %d, pid %d: %s\n", generation, ddl_rank(context), ddl_size(context),
           (int)getpid(), status == DDL_OK ? "done" : ddl_last_error());
    fflush(stdout);
    if (status == DDL_OK) ddl_elastic_finished(context);
    ddl_finalize(context);
    if (status == DDL_OK) return 0;
    options.reason = DDL_ELASTIC_LOST;
  }
}
