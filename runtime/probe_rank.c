/* probe-rank: one rank of a job that checks that libddl works here. Rank 0 prints the bootstrap, the backend, the
 * number of ranks and the sum of their ranks. With an argument, cuda or hip, the sum is made in memory of the first GPU.
 * The exit code is 0 if the sum is right. Started by ddlrun --check-build. */
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

#include "ddl/ddl.h"

static int complain(const char* what) {
  fprintf(stderr, "%s: %s\n", what, ddl_last_error());
  return 1;
}

static void* vendor_library;

/* Calls a function of the library, and ends main() if it fails. */
#define CALL(name, type, ...)                             \
  do {                                                    \
    int(*called) type = NULL;                             \
    *(void**)&called = dlsym(vendor_library, name);       \
    const int error = called ? called(__VA_ARGS__) : -1;  \
    if (error != 0) {                                     \
      fprintf(stderr, "%s fails with %d\n", name, error); \
      return 1;                                           \
    }                                                     \
  } while (0)

/* Stores an address of GPU memory with one number, and how it is read again. */
static int make_on_cuda(unsigned long long* memory, const int* number) {
  void* context = NULL;
  int device = 0;
  vendor_library = dlopen("libcuda.so.1", RTLD_NOW);
  if (vendor_library == NULL) {
    fprintf(stderr, "%s\n", dlerror());
    return 1;
  }
  CALL("cuInit", (unsigned), 0);
  CALL("cuDeviceGet", (int*, int), &device, 0);
  CALL("cuDevicePrimaryCtxRetain", (void**, int), &context, device);
  CALL("cuCtxSetCurrent", (void*), context);
  CALL("cuMemAlloc_v2", (unsigned long long*, size_t), memory, sizeof *number);
  CALL("cuMemcpyHtoD_v2", (unsigned long long, const void*, size_t), *memory, number, sizeof *number);
  return 0;
}
static int read_from_cuda(unsigned long long memory, int* number) {
  CALL("cuMemcpyDtoH_v2", (void*, unsigned long long, size_t), number, memory, sizeof *number);
  return 0;
}

enum { kHostToDevice = 1, kDeviceToHost = 2 };
static int make_on_hip(unsigned long long* memory, const int* number) {
  static const char* const kNames[] = {"libamdhip64.so.7", "libamdhip64.so.6", "libamdhip64.so.5"};
  void* address = NULL;
  for (size_t i = 0; i < sizeof kNames / sizeof *kNames && vendor_library == NULL; ++i)
    vendor_library = dlopen(kNames[i], RTLD_NOW);
  if (vendor_library == NULL) {
    fprintf(stderr, "%s\n", dlerror());
    return 1;
  }
  CALL("hipInit", (unsigned), 0);
  CALL("hipSetDevice", (int), 0);
  CALL("hipMalloc", (void**, size_t), &address, sizeof *number);
  CALL("hipMemcpy", (void*, const void*, size_t, int), address, number, sizeof *number, kHostToDevice);
  *memory = (unsigned long long)address;
  return 0;
}
static int read_from_hip(unsigned long long memory, int* number) {
  CALL("hipMemcpy", (void*, const void*, size_t, int), number, (const void*)memory, sizeof *number,
       kDeviceToHost);
  return 0;
}

int main(int argc, char** argv) {
  const char* const vendor = argc > 1 ? argv[1] : "";
  const int is_cuda = strcmp(vendor, "cuda") == 0, is_hip = strcmp(vendor, "hip") == 0;
  ddl_context* context = NULL;
  if (ddl_init(NULL, &context) != DDL_OK) return complain("ddl_init");
  const int size = ddl_size(context);
  int32_t sum = ddl_rank(context);
  unsigned long long memory = 0;
  if (is_cuda && make_on_cuda(&memory, &sum) != 0) return 1;
  if (is_hip && make_on_hip(&memory, &sum) != 0) return 1;
  void* const buffer = memory != 0 ? (void*)memory : &sum;
  if (ddl_allreduce(context, buffer, buffer, 1, DDL_INT32, DDL_SUM, NULL) != DDL_OK)
    return complain("ddl_allreduce");
  sum = memory != 0 ? -1 : sum;
  if (is_cuda && read_from_cuda(memory, &sum) != 0) return 1;
  if (is_hip && read_from_hip(memory, &sum) != 0) return 1;
  if (ddl_rank(context) == 0)
    printf("%s %s %d %d libddl %s%s%s\n", ddl_bootstrap_name(context), ddl_backend_name(context), size,
           (int)sum, ddl_version(), ddl_has_feature("mpi-enabled") ? " over " : "", ddl_mpi_library());
  if (ddl_finalize(context) != DDL_OK) return complain("ddl_finalize");
  return sum == size * (size - 1) / 2 ? 0 : 1;
}
