// NVRTC (libnvrtc.so) and hipRTC (libhiprtc.so): the functions that libddl uses, declared here so that nothing of the
// vendors' is needed to build it. tests/gpu compares them with nvrtc.h and hiprtc.h where these are installed.
#pragma once

#include <cstddef>

namespace ddl::runtime::rtc {

using Program = void*;  ///< nvrtcProgram, hiprtcProgram
using Result = int;     ///< nvrtcResult, hiprtcResult; 0: success

/// Both vendors' functions are alike, but for their names: KernelCompiler has these.
struct Functions {
  Result (*create)(Program* program, const char* source, const char* name, int header_count,
                   const char* const* headers, const char* const* header_names);
  Result (*compile)(Program program, int option_count, const char* const* options);
  Result (*log_size)(Program program, std::size_t* bytes);
  Result (*log)(Program program, char* text);
  Result (*code_size)(Program program, std::size_t* bytes);
  Result (*code)(Program program, char* code);
  Result (*destroy)(Program* program);
};

}  // namespace ddl::runtime::rtc
