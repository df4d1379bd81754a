/* Stands in for libcuda.so.1 as a program with CUDA_VISIBLE_DEVICES sees it: a GPU, and an instance of a divided one.
   DDL_FAKE_GPUS says what goes wrong. */
#include <stdlib.h>
#include <string.h>

static int is_mode(const char* wanted) {
  const char* mode = getenv("DDL_FAKE_GPUS");
  return mode != NULL && strcmp(mode, wanted) == 0;
}

int cuInit(unsigned flags) {
  (void)flags;
  return is_mode("none") ? 100 : is_mode("error") ? 803 : is_mode("stub") ? 34 : 0;
}
/* "stub": the library of CUDA's toolkit that programs are linked with. Its functions answer 34 and write nothing. */
int cuGetErrorName(int error, const char** name) {
  if (error == 803) *name = "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH";
  return error == 803 ? 0 : error;
}
int cuDeviceGetCount(int* count) {
  *count = 2;
  return 0;
}
int cuDeviceGet(int* device, int ordinal) {
  *device = ordinal + 10;
  return 0;
}
int cuDeviceGetPCIBusId(char* name, int size, int device) {
  strncpy(name, device == 10 ? "00000000:C3:00.0" : "00000000:C1:00.0", (size_t)size);
  return 0;
}
int cuDeviceGetUuid(unsigned char* uuid, int device) {
  memset(uuid, device == 10 ? 0xaa : 0xbb, 16);
  return 0;
}
int cuDeviceGetUuid_v2(unsigned char* uuid, int device) {
  cuDeviceGetUuid(uuid, device);
  if (device == 11) uuid[15] = 7;
  return 0;
}
