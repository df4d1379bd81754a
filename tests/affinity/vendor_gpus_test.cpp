// The vendors' libraries are queried in a child, and their answers are matched by bus id.
#include "affinity/source/vendor_gpus.h"

#include <cstdlib>
#include <string>

#include "affinity/source/child_query.h"
#include "affinity/source/gpu_meter.h"
#include "support/catch.h"

using namespace ddl::affinity;
using namespace std::chrono_literals;

namespace {

ddl::Result<std::vector<VendorGpu>> nvml_told(const char* what) {
  ::setenv("DDL_FAKE_GPUS", what, 1);
  auto gpus = in_child([] { return ask_nvml(DDL_FAKE_NVML); }, std::string(what) == "hang" ? 100ms : 60s);
  ::unsetenv("DDL_FAKE_GPUS");
  return gpus;
}

std::string failure_of(const char* what) {
  const auto gpus = nvml_told(what);
  return gpus ? "answered" : gpus.error().message();
}

Gpu gpu_at(const char* bus_id, GpuVendor vendor) {
  Gpu gpu;
  gpu.bus_id = bus_id;
  gpu.vendor = vendor;
  gpu.index = 7;
  return gpu;
}

}  // namespace

TEST_CASE("NVML's numbers, UUIDs and models") {
  const auto gpus = nvml_told("");
  REQUIRE(gpus);
  CHECK(*gpus == std::vector<VendorGpu>{{0, "0000:c3:00.0", "GPU-aaaa", "H200"},
                                        {1, "0000:c1:00.0", "GPU-bbbb", "H200"}});
  const auto rest = nvml_told("lost");
  REQUIRE(rest);
  CHECK(*rest == std::vector<VendorGpu>{{1, "0000:c1:00.0", "GPU-bbbb", "H200"}});
}

TEST_CASE("a GPU in MIG mode is replaced by its instances, which ranks see by UUID") {
  const auto gpus = nvml_told("mig");
  REQUIRE(gpus);
  REQUIRE(gpus->size() == 3);
  CHECK(gpus->at(0) == VendorGpu{0, "0000:c3:00.0", "MIG-aaaa-0", "H200", true});
  CHECK(gpus->at(1) == VendorGpu{1, "0000:c3:00.0", "MIG-aaaa-2", "H200", true});
  CHECK(gpus->at(2) == VendorGpu{2, "0000:c1:00.0", "GPU-bbbb", "H200", true});
  Topology node;
  node.gpus = {gpu_at("0000:c1:00.0", GpuVendor::kNvidia), gpu_at("0000:c3:00.0", GpuVendor::kNvidia)};
  number_gpus(node, GpuVendor::kNvidia, *gpus);
  REQUIRE(node.gpus.size() == 3);
  CHECK(node.gpus[0].visible_as == "MIG-aaaa-0");
  CHECK(node.gpus[1].visible_as == "MIG-aaaa-2");
  CHECK(node.gpus[2].visible_as == "GPU-bbbb");
}

TEST_CASE("ROCm SMI's GPUs, with partitions of one device and one without a number of its own") {
  const auto gpus = in_child([] { return ask_rocm_smi(DDL_FAKE_ROCM_SMI); }, 60s);
  REQUIRE(gpus);
  CHECK(*gpus == std::vector<VendorGpu>{{0, "0001:c1:00.0", "GPU-0000000000001234", "MI300A"},
                                        {1, "0001:c1:00.0", "GPU-0000000000001235", "MI300A"},
                                        {2, "0001:d1:00.0", "", "MI300A"}});
}

TEST_CASE("a meter reads how much GPUs are used, and leaves out what is not known") {
  const auto nvml = open_nvml_meter(DDL_FAKE_NVML);
  REQUIRE(nvml);
  const auto first = (*nvml)->read(), second = (*nvml)->read();
  REQUIRE(first.size() == 2);
  CHECK(first[0].gpu == VendorGpu{0, "0000:c3:00.0", "GPU-aaaa", "H200"});
  CHECK(first[0].busy_ratio == 0.75);
  CHECK(first[0].memory_bytes == std::int64_t{40} << 30);
  CHECK(first[0].memory_limit_bytes == std::int64_t{140} << 30);
  CHECK(first[0].joules > 0);
  CHECK(second[0].joules >= first[0].joules);
  CHECK(first[1] == GpuReading{{1, "0000:c1:00.0", "GPU-bbbb", "H200"}});

  const auto smi = open_rocm_smi_meter(DDL_FAKE_ROCM_SMI);
  REQUIRE(smi);
  const auto parts = (*smi)->read();
  REQUIRE(parts.size() == 3);
  CHECK(parts[0].busy_ratio == 0.3);
  CHECK(parts[1].memory_bytes == std::int64_t{2} << 30);
  CHECK(parts[1].memory_limit_bytes == std::int64_t{64} << 30);
  CHECK(parts[2].memory_limit_bytes < 0);
  CHECK(parts[0].joules == 61);
  CHECK(parts[2].joules < 0);
  CHECK_FALSE(open_nvml_meter("libno-such-library.so"));
  CHECK_FALSE(open_rocm_smi_meter(DDL_FAKE_NVML));
}

TEST_CASE("a library that fails, crashes, hangs, exits or is missing is reported as a reason") {
  CHECK_THAT(failure_of("error"), Catch::Contains("nvmlInit: Driver Not Loaded"));
  CHECK_THAT(failure_of("crash"), Catch::Contains("it crashed: SIGKILL"));
  CHECK(failure_of("hang") == "no answer within 100 ms");
  CHECK(failure_of("leave") == "it ended without an answer");
  const auto none = in_child([] { return ask_nvml("libno-such-library.so"); }, 60s);
  REQUIRE_FALSE(none);
  CHECK_THAT(none.error().message(), Catch::Contains("libno-such-library.so"));
  const auto other = in_child([] { return ask_rocm_smi(DDL_FAKE_NVML); }, 60s);
  REQUIRE_FALSE(other);
  CHECK_THAT(other.error().message(), Catch::Contains("lacks a function of ROCm SMI"));
}

TEST_CASE("a program's GPUs as CUDA counts them; an instance of a divided GPU has a UUID of its own") {
  const auto told = [](const char* what) {
    ::setenv("DDL_FAKE_GPUS", what, 1);
    auto gpus = in_child([] { return ask_cuda(DDL_FAKE_CUDA); }, 60s);
    ::unsetenv("DDL_FAKE_GPUS");
    return gpus;
  };
  const auto gpus = told("");
  REQUIRE(gpus);
  CHECK(*gpus == std::vector<VendorGpu>{{0, "0000:c3:00.0", "GPU-aaaaaaaa-aaaa-aaaa-aaaa-aaaaaaaaaaaa", ""},
                                        {1, "0000:c1:00.0", "MIG-bbbbbbbb-bbbb-bbbb-bbbb-bbbbbbbbbb07", ""}});
  REQUIRE(told("none"));
  CHECK(told("none")->empty());
  REQUIRE_FALSE(told("error"));
  CHECK(told("error").error().message() == "cuInit fails with 803 (CUDA_ERROR_SYSTEM_DRIVER_MISMATCH)");
  CHECK(told("stub").error().message() == "cuInit fails with 34");
}

TEST_CASE("a runtime that is not installed is distinguished from one that fails") {
  CHECK(ask_cuda("libno-such-library.so").error().code() == ddl::ErrorCode::kNotFound);
  const auto hip = ask_hip({"libno-such-library.so", "libnor-this-one.so"});
  CHECK(hip.error().code() == ddl::ErrorCode::kNotFound);
  CHECK_THAT(hip.error().message(), Catch::Contains("libno-such-library.so"));
  const auto other = in_child([] { return ask_hip({"libno-such-library.so", DDL_FAKE_CUDA}); }, 60s);
  REQUIRE_FALSE(other);
  CHECK_THAT(other.error().message(), Catch::Contains("lacks a function of HIP"));
}

TEST_CASE("GPUs get the library's order, and those that it does not count are removed") {
  Topology node;
  node.gpus = {gpu_at("0000:c1:00.0", GpuVendor::kNvidia), gpu_at("0000:c3:00.0", GpuVendor::kNvidia),
               gpu_at("0000:c5:00.0", GpuVendor::kNvidia), gpu_at("0000:41:00.0", GpuVendor::kAmd)};
  number_gpus(node, GpuVendor::kNvidia,
              {{0, "0000:c3:00.0", "GPU-a", "H200"}, {1, "0000:c1:00.0", "GPU-b", ""}});
  REQUIRE(node.gpus.size() == 3);
  CHECK(node.gpus[0].vendor == GpuVendor::kAmd);
  CHECK(node.gpus[1].bus_id == "0000:c3:00.0");
  CHECK(node.gpus[1].index == 0);
  CHECK(node.gpus[1].uuid == "GPU-a");
  CHECK(node.gpus[2].bus_id == "0000:c1:00.0");
  // Parts of one device are several.
  number_gpus(node, GpuVendor::kAmd, {{0, "0000:41:00.0", "", ""}, {1, "0000:41:00.0", "", ""}});
  CHECK(node.gpus.size() == 4);
}

TEST_CASE("bus ids as NVML writes them") {
  CHECK(canonical_bus_id("00000000:C1:00.0") == "0000:c1:00.0");
  CHECK(canonical_bus_id("0000:c1:00.0") == "0000:c1:00.0");
  CHECK(canonical_bus_id("00010000:01:00.0") == "00010000:01:00.0");
}
