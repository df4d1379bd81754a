/* Stands in for libnvidia-ml.so.1: two GPUs, counted against their bus order. DDL_FAKE_GPUS says what goes wrong, or
   "mig": the first is divided into two, in slots 0 and 2. Each second the first one uses 200 J; of the second one
   nothing is known. */
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct pci_info {
  char legacy_bus_id[16];
  unsigned domain, bus, device, device_id, subsystem_id;
  char bus_id[32];
};

static int is_mode(const char* wanted) {
  const char* mode = getenv("DDL_FAKE_GPUS");
  return mode != NULL && strcmp(mode, wanted) == 0;
}

int nvmlInit_v2(void) {
  if (is_mode("crash")) raise(SIGKILL);
  if (is_mode("hang")) pause();
  if (is_mode("leave")) _exit(3);
  return is_mode("error") ? 9 : 0;
}
int nvmlDeviceGetCount_v2(unsigned* count) {
  *count = 2;
  return 0;
}
int nvmlDeviceGetHandleByIndex_v2(unsigned index, void** device) {
  *device = (void*)(size_t)(index + 1);
  return is_mode("lost") && index == 0 ? 15 : 0;
}
int nvmlDeviceGetPciInfo_v3(void* device, struct pci_info* info) {
  strcpy(info->bus_id, (size_t)device == 1 ? "00000000:C3:00.0" : "00000000:C1:00.0");
  return 0;
}
int nvmlDeviceGetMigMode(void* device, unsigned* now, unsigned* next) {
  *now = *next = is_mode("mig") && (size_t)device == 1;
  return is_mode("mig") ? 0 : 3;
}
int nvmlDeviceGetMaxMigDeviceCount(void* device, unsigned* count) {
  (void)device;
  *count = 7;
  return 0;
}
int nvmlDeviceGetMigDeviceHandleByIndex(void* device, unsigned slot, void** part) {
  *part = (void*)(16 * (size_t)device + slot);
  return slot == 0 || slot == 2 ? 0 : 6;
}
int nvmlDeviceGetUUID(void* device, char* uuid, unsigned length) {
  if ((size_t)device >= 16) {
    strncpy(uuid, (size_t)device == 16 ? "MIG-aaaa-0" : "MIG-aaaa-2", length);
    return 0;
  }
  strncpy(uuid, (size_t)device == 1 ? "GPU-aaaa" : "GPU-bbbb", length);
  return 0;
}
int nvmlDeviceGetName(void* device, char* name, unsigned length) {
  (void)device;
  strncpy(name, "H200", length);
  return 0;
}
int nvmlDeviceGetUtilizationRates(void* device, unsigned* percent) {
  percent[0] = (size_t)device == 1 ? 75 : 4294967294U;
  percent[1] = 10;
  return 0;
}
int nvmlDeviceGetMemoryInfo(void* device, uint64_t* bytes) {
  bytes[0] = (uint64_t)140 << 30;
  bytes[1] = (uint64_t)100 << 30;
  bytes[2] = (uint64_t)40 << 30;
  return (size_t)device == 1 ? 0 : 3;
}
int nvmlDeviceGetTotalEnergyConsumption(void* device, uint64_t* millijoules) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  *millijoules = 200000 * (uint64_t)now.tv_sec + (uint64_t)now.tv_nsec / 5000;
  if ((size_t)device != 1) *millijoules = 9223372036854775794U;
  return 0;
}
const char* nvmlErrorString(int status) { return status == 9 ? "Driver Not Loaded" : "?"; }
