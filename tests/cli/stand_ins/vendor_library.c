/* A stand-in for libraries of vendors: it has their functions, and DDL_STAND_IN selects what they do: "ok", "error",
 * "crash", "hang" or "leave" (exit). */
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

/* NVML and ROCm SMI: tests let the first function fail or end the process, so the others are never called. */
EXPORT int nvmlInit_v2(void) { return answer(NULL, 0); }
EXPORT const char* nvmlErrorString(int status) { return status == 3 ? "fails with 3" : "another"; }
EXPORT int rsmi_init(unsigned long long flags) {
  (void)flags;
  return answer(NULL, 0);
}
EXPORT int rsmi_status_string(int status, const char** text) {
  *text = status == 3 ? "fails with 3" : "another";
  return 0;
}
#define UNUSED(name) \
  EXPORT int name(void) { return 1; }
UNUSED(nvmlDeviceGetCount_v2)
UNUSED(nvmlDeviceGetHandleByIndex_v2)
UNUSED(nvmlDeviceGetPciInfo_v3)
UNUSED(nvmlDeviceGetUUID)
UNUSED(nvmlDeviceGetName)
UNUSED(rsmi_num_monitor_devices)
UNUSED(rsmi_dev_pci_id_get)
UNUSED(rsmi_dev_unique_id_get)
UNUSED(rsmi_dev_name_get)
