/* Stands in for librocm_smi64.so: an MI300A in two parts, and one whole. */
#include <stdint.h>
#include <string.h>

int rsmi_init(uint64_t flags) { return (int)flags; }
int rsmi_num_monitor_devices(uint32_t* count) {
  *count = 3;
  return 0;
}
int rsmi_dev_pci_id_get(uint32_t index, uint64_t* place) {
  const uint64_t bus = index < 2 ? 0xc1 : 0xd1;
  *place = (uint64_t)1 << 32 | (uint64_t)(index == 1) << 28 | bus << 8;
  return 0;
}
int rsmi_dev_unique_id_get(uint32_t index, uint64_t* id) {
  *id = 0x1234 + index;
  return index == 2 ? 2 : 0;
}
int rsmi_dev_name_get(uint32_t index, char* name, size_t length) {
  (void)index;
  strncpy(name, "MI300A", length);
  return 0;
}
int rsmi_dev_busy_percent_get(uint32_t index, uint32_t* percent) {
  *percent = 30 * (index + 1);
  return 0;
}
int rsmi_dev_memory_usage_get(uint32_t index, int kind, uint64_t* bytes) {
  *bytes = (uint64_t)(index + 1) << 30;
  return kind;
}
int rsmi_dev_memory_total_get(uint32_t index, int kind, uint64_t* bytes) {
  *bytes = (uint64_t)64 << 30;
  return index == 2 ? 2 : kind;
}
int rsmi_dev_energy_count_get(uint32_t index, uint64_t* counter, float* resolution, uint64_t* time) {
  *counter = index == 2 ? 0 : 4000000;
  *resolution = 15.25F;
  *time = 1;
  return 0;
}
int rsmi_status_string(int status, const char** text) {
  (void)status;
  *text = "not supported";
  return 0;
}
