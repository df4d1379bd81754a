// libddl's kernels: their text, compiled as C++, against libddl's conversions of 16-bit floats; and what NVRTC says to it,
// where that is installed.
#include <cmath>
#include <cstdint>
#include <cstring>
#include <random>
#include <string>

#include "ddl/half.hpp"
#include "runtime/src/device/gpu_kernels.h"
#include "stand_ins/kernels_as_cpp.h"
#include "support/catch.h"
#include "support/skip.h"

namespace {

/// The bits of a 16-bit float.
template <class T>
std::uint16_t bits_of(T value) {
  std::uint16_t bits = 0;
  std::memcpy(&bits, &value, sizeof bits);
  return bits;
}

bool is_same(float a, float b) {
  return (std::isnan(a) && std::isnan(b)) || (a == b && std::signbit(a) == std::signbit(b));
}

}  // namespace

TEST_CASE("the kernels read every 16-bit float as libddl does, and write it back") {
  int wrong = 0;
  for (unsigned i = 0; i <= 0xFFFF; ++i) {
    const auto bits = static_cast<std::uint16_t>(i);
    ddl::float16 half;
    ddl::bfloat16 brain;
    std::memcpy(static_cast<void*>(&half), &bits, sizeof bits);
    std::memcpy(static_cast<void*>(&brain), &bits, sizeof bits);
    const auto half_value = static_cast<float>(half), brain_value = static_cast<float>(brain);
    wrong += is_same(ddl_from_float16(bits), half_value) ? 0 : 1;
    wrong += is_same(ddl_from_bfloat16(bits), brain_value) ? 0 : 1;
    if (!std::isnan(half_value)) wrong += ddl_to_float16(half_value) == bits ? 0 : 1;
    if (!std::isnan(brain_value)) wrong += ddl_to_bfloat16(brain_value) == bits ? 0 : 1;
  }
  CHECK(wrong == 0);
}

TEST_CASE("the kernels round to 16-bit floats as libddl does") {
  std::mt19937 random(1);
  int wrong = 0;
  for (int i = 0; i < 2'000'000; ++i) {
    const std::uint32_t bits = random();
    float value = 0;
    std::memcpy(&value, &bits, sizeof value);
    if (std::isnan(value)) continue;
    // Half of them near the range of float16, where there are ties.
    if (i % 2 == 0)
      value = std::ldexp(static_cast<float>(random() % 8192), static_cast<int>(random() % 44) - 28);
    wrong += ddl_to_float16(value) == bits_of(ddl::float16(value)) ? 0 : 1;
    wrong += ddl_to_bfloat16(value) == bits_of(ddl::bfloat16(value)) ? 0 : 1;
  }
  CHECK(wrong == 0);
}

TEST_CASE("NVRTC compiles the kernels for old and new GPUs") {
#ifdef DDL_NVRTC_FILE
  const ddl::runtime::KernelCompiler nvrtc{
      {DDL_NVRTC_FILE},     "nvrtcCreateProgram", "nvrtcCompileProgram", "nvrtcGetProgramLogSize",
      "nvrtcGetProgramLog", "nvrtcGetCUBINSize",  "nvrtcGetCUBIN",       "nvrtcDestroyProgram"};
  for (const char* const architecture : {"sm_80", "sm_90"}) {
    const auto code =
        ddl::runtime::compile_gpu_kernels(nvrtc, {std::string("--gpu-architecture=") + architecture});
    INFO((code ? std::string() : code.error().message()));
    REQUIRE(code.has_value());
    const std::string text(code->begin(), code->end());
    for (const char* const name : ddl::runtime::kGpuKernelNames) CHECK(text.find(name) != std::string::npos);
  }
  const auto refused = ddl::runtime::compile_gpu_kernels(nvrtc, {"--gpu-architecture=sm_1"});
  REQUIRE(!refused.has_value());
  CHECK(refused.error().message().find("nvrtcCompileProgram: error") != std::string::npos);
#else
  DDL_SKIP("NVRTC is not installed, or a sanitizer is there");
#endif
}
