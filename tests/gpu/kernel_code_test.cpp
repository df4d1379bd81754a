// What the vendors' compilers make of libddl's kernels, where they are installed; no GPU is needed.
//  - A value that does not fit into the registers would be kept in memory, which takes far longer.
//  - The kernels read and write 16 bytes at once. By fewer, a GPU may not reach the rate of its memory.
#include <dlfcn.h>
#include <elf.h>

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <map>
#include <optional>
#include <regex>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/src/device/gpu_kernels.h"
#include "support/catch.h"
#include "support/skip.h"

using ddl::runtime::CompiledKernels;
using ddl::runtime::GpuProgram;
using ddl::runtime::KernelCompiler;

namespace {

constexpr GpuProgram kPrograms[] = {GpuProgram::kForNccl, GpuProgram::kForIpc};

std::vector<std::string> kernels_of(GpuProgram program) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < ddl::runtime::kGpuKernels; ++i) {
    if (program_of(static_cast<ddl::runtime::GpuKernel>(i)) == program)
      names.emplace_back(ddl::runtime::kGpuKernelNames[i]);
  }
  return names;
}

#ifdef DDL_NVRTC_FILE

CompiledKernels compiled(const KernelCompiler& compiler, GpuProgram program,
                         const std::vector<std::string>& options) {
  auto result = compile_gpu_kernels(compiler, program, options);
  INFO((result ? std::string() : result.error().message()));
  REQUIRE(result.has_value());
  return *std::move(result);
}

KernelCompiler installed_nvrtc() {
  KernelCompiler compiler = ddl::runtime::nvrtc();
  compiler.libraries = {DDL_NVRTC_FILE};
  return compiler;
}

std::string architecture_option(int capability) {
  return "--gpu-architecture=sm_" + std::to_string(capability);
}

/// Compute capabilities, as 75 or 120.
std::vector<int> known_architectures() {
  void* const library = ::dlopen(DDL_NVRTC_FILE, RTLD_NOW | RTLD_LOCAL);
  REQUIRE(library != nullptr);
  const auto number = reinterpret_cast<int (*)(int*)>(::dlsym(library, "nvrtcGetNumSupportedArchs"));
  const auto list = reinterpret_cast<int (*)(int*)>(::dlsym(library, "nvrtcGetSupportedArchs"));
  REQUIRE((number != nullptr && list != nullptr));
  int count = 0;
  REQUIRE(number(&count) == 0);
  std::vector<int> all(static_cast<std::size_t>(count));
  REQUIRE(list(all.data()) == 0);
  return all;
}

struct Resources {
  int registers = -1;     ///< of a thread
  int bytes_beside = -1;  ///< memory of a thread, on its stack and for what does not fit into registers
};

/// What ptxas says with -v, by kernel:
///   ptxas info    : Compiling entry function 'ddl_copies' for 'sm_90'
///   ptxas info    : Function properties for ddl_copies
///   ptxas         .     0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
///   ptxas info    : Used 17 registers, used 0 barriers
std::map<std::string, Resources> resources_in(const std::string& log) {
  static const std::regex begin("Compiling entry function '(\\w+)'"),
      memory("(\\d+) bytes stack frame, (\\d+) bytes spill stores, (\\d+) bytes spill loads"),
      registers("Used (\\d+) registers");
  std::map<std::string, Resources> all;
  std::string kernel;
  std::istringstream lines(log);
  for (std::string line; std::getline(lines, line);) {
    std::smatch found;
    if (std::regex_search(line, found, begin)) kernel = found[1];
    if (std::regex_search(line, found, memory))
      all[kernel].bytes_beside = std::stoi(found[1]) + std::stoi(found[2]) + std::stoi(found[3]);
    if (std::regex_search(line, found, registers)) all[kernel].registers = std::stoi(found[1]);
  }
  return all;
}

/// The text of a kernel in NVIDIA's intermediate language (PTX), in which a vector is read by one instruction.
std::string_view ptx_of(std::string_view program, const std::string& kernel) {
  const std::size_t begin = program.find(".entry " + kernel + "(");
  if (begin == std::string_view::npos) return {};
  return program.substr(begin, program.find(".entry ", begin + 1) - begin);
}

/// instruction: "ld.global" or "st.global". 16 bytes: "ld.global.v4.u32", "ld.global.nc.v2.f64".
bool moves_packs(std::string_view ptx, std::string_view instruction) {
  for (std::size_t at = ptx.find(instruction); at != std::string_view::npos;
       at = ptx.find(instruction, at + 1)) {
    const std::string_view word = ptx.substr(at, ptx.find_first_of(" \t", at) - at);
    if ((word.find(".v4.") != std::string_view::npos && word.ends_with("32")) ||
        (word.find(".v2.") != std::string_view::npos && word.ends_with("64")))
      return true;
  }
  return false;
}

#endif

/// Memory of a thread beside its registers, in code for GPUs of AMD: a word of the kernel's descriptor, NAME.kd ("User
/// Guide for AMDGPU Backend" of LLVM). nullopt: there is no such kernel.
std::optional<std::uint32_t> bytes_beside_registers(const std::vector<char>& code,
                                                    const std::string& kernel) {
  constexpr std::size_t kPrivateSegmentSize = 4;
  const auto read = [&code](std::size_t at, auto& value) {
    REQUIRE(at + sizeof value <= code.size());
    std::memcpy(&value, code.data() + at, sizeof value);
  };
  Elf64_Ehdr header;
  read(0, header);
  REQUIRE(std::memcmp(header.e_ident, ELFMAG, SELFMAG) == 0);
  std::vector<Elf64_Shdr> sections(header.e_shnum);
  for (std::size_t i = 0; i < sections.size(); ++i)
    read(header.e_shoff + i * sizeof sections[i], sections[i]);
  for (const Elf64_Shdr& table : sections) {
    if (table.sh_type != SHT_DYNSYM) continue;
    for (std::size_t at = 0; at < table.sh_size; at += sizeof(Elf64_Sym)) {
      Elf64_Sym symbol;
      read(table.sh_offset + at, symbol);
      if (kernel + ".kd" != code.data() + sections.at(table.sh_link).sh_offset + symbol.st_name) continue;
      const Elf64_Shdr& place = sections.at(symbol.st_shndx);
      std::uint32_t bytes = 0;
      read(place.sh_offset + symbol.st_value - place.sh_addr + kPrivateSegmentSize, bytes);
      return bytes;
    }
  }
  return std::nullopt;
}

}  // namespace

TEST_CASE("NVRTC compiles the kernels for old and new GPUs, with wide loads and no spills", "[full]") {
#ifdef DDL_NVRTC_FILE
  KernelCompiler compiler = installed_nvrtc();
  compiler.code_size = "nvrtcGetPTXSize";
  compiler.code = "nvrtcGetPTX";
  // A block of threads has 65536 registers at most, or it is not started.
  constexpr int kMostRegisters = static_cast<int>(65536 / ddl::runtime::KernelGrid::kThreads);
  const std::vector<int> known = known_architectures();
  for (const int architecture : {75, 80, 90, 100, 120}) {
    CAPTURE(architecture);
    if (std::find(known.begin(), known.end(), architecture) == known.end()) {
      std::printf("sm_%d: this NVRTC does not know it\n", architecture);
      continue;
    }
    std::pair<int, std::string> most;
    for (const GpuProgram program : kPrograms) {
      const CompiledKernels code =
          compiled(compiler, program, {architecture_option(architecture), "--ptxas-options=-v"});
      const std::string_view ptx(code.code.data(), code.code.size());
      auto resources = resources_in(code.log);
      for (const std::string& kernel : kernels_of(program)) {
        CAPTURE(kernel);
        CHECK(resources[kernel].bytes_beside == 0);
        CHECK(resources[kernel].registers > 0);
        CHECK(resources[kernel].registers <= kMostRegisters);
        CHECK(moves_packs(ptx_of(ptx, kernel), "ld.global"));
        CHECK(moves_packs(ptx_of(ptx, kernel), "st.global"));
        most = std::max(most, {resources[kernel].registers, kernel});
      }
    }
    std::printf("sm_%d: at most %d registers, in %s\n", architecture, most.first, most.second.c_str());
  }
#else
  DDL_SKIP("NVRTC is not installed; it is a part of the CUDA toolkit");
#endif
}

TEST_CASE("NVRTC gives code that has the kernels' names, and says why it refuses to compile") {
#ifdef DDL_NVRTC_FILE
  const KernelCompiler compiler = installed_nvrtc();
  const std::string architecture = architecture_option(known_architectures().front());
  const auto code = compiled(compiler, GpuProgram::kForNccl, {architecture}).code;
  const std::string text(code.begin(), code.end());
  CHECK(text.starts_with(ELFMAG));
  for (const std::string& kernel : kernels_of(GpuProgram::kForNccl))
    CHECK(text.find(kernel) != std::string::npos);
  const auto refused = compile_gpu_kernels(compiler, GpuProgram::kForNccl, {"--gpu-architecture=sm_1"});
  REQUIRE(!refused.has_value());
  CHECK(refused.error().message().find("nvrtcCompileProgram: error") != std::string::npos);
  CHECK(refused.error().message().find("--gpu-architecture") != std::string::npos);
#else
  DDL_SKIP("NVRTC is not installed; it is a part of the CUDA toolkit");
#endif
}

TEST_CASE("hipRTC compiles the kernels for GPUs of AMD, without spills", "[full]") {
  // MI50, MI200 and RX 6800. HIP 5.2, which Debian 12 has, crashes if it is asked for a GPU that it does not
  // know.
  for (const char* const architecture : {"gfx906", "gfx90a", "gfx1030"}) {
    CAPTURE(architecture);
    for (const GpuProgram program : kPrograms) {
      const auto result = compile_gpu_kernels(ddl::runtime::hiprtc(), program,
                                              {std::string("--offload-arch=") + architecture});
      if (!result && result.error().code() == ddl::ErrorCode::kUnavailable)
        DDL_SKIP("hipRTC is not installed; on Debian 12 it is in libamdhip64-5");
      INFO((result ? std::string() : result.error().message()));
      REQUIRE(result.has_value());
      for (const std::string& kernel : kernels_of(program)) {
        CAPTURE(kernel);
        CHECK(bytes_beside_registers(result->code, kernel) == 0u);
      }
    }
    std::printf("compiled for %s\n", architecture);
  }
}
