/* Stands in for libraries of vendors: it has their functions, and they do what DDL_STAND_IN says: "ok", "error", "crash",
 * "hang" or "leave". */
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int answer(int* number, int value) {
  const char* what = getenv("DDL_STAND_IN");
  if (what == NULL || strcmp(what, "error") == 0) return 3;
  if (strcmp(what, "crash") == 0) raise(SIGKILL);
  if (strcmp(what, "leave") == 0) _exit(0);
  if (strcmp(what, "hang") == 0) {
    for (;;) pause();
  }
  if (number != NULL) *number = value;
  return 0;
}

#define EXPORT __attribute__((visibility("default")))
EXPORT int ncclGetVersion(int* version) { return answer(version, 21805); }
EXPORT int cuInit(unsigned flags) {
  (void)flags;
  return answer(NULL, 0);
}
EXPORT int cuDriverGetVersion(int* version) { return answer(version, 12040); }
EXPORT int cuDeviceGetCount(int* count) { return answer(count, 4); }
EXPORT int hipRuntimeGetVersion(int* version) { return answer(version, 60032831); }
EXPORT int hipGetDeviceCount(int* count) { return answer(count, 8); }
EXPORT int MPI_Get_library_version(char* text, int* length) {
  strcpy(text, "Stand-in MPI v1.0, for tests\n");
  return answer(length, 28);
}
