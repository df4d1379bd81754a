// The stand-in for NVRTC and hipRTC. What it compiles is the text itself, in which the stand-in for the runtime finds the
// kernels' names.
#include <cstddef>
#include <cstring>
#include <string>

namespace {

struct Program {
  std::string source;
  bool is_compiled = false;
};

int create(Program** program, const char* source) {
  *program = new Program{source};
  return 0;
}
int compile(Program* program) {
  program->is_compiled = true;
  return 0;
}
int log_size(std::size_t* bytes) {
  *bytes = 1;
  return 0;
}
int log(char* text) {
  *text = '\0';
  return 0;
}
int code_size(const Program* program, std::size_t* bytes) {
  if (!program->is_compiled) return 8;
  *bytes = program->source.size() + 1;
  return 0;
}
int code(const Program* program, char* text) {
  std::memcpy(text, program->source.c_str(), program->source.size() + 1);
  return 0;
}
int destroy(Program** program) {
  delete *program;
  *program = nullptr;
  return 0;
}

}  // namespace

extern "C" {

int nvrtcCreateProgram(Program** program, const char* source, const char*, int, const char* const*,
                       const char* const*) {
  return create(program, source);
}
int nvrtcCompileProgram(Program* program, int, const char* const*) { return compile(program); }
int nvrtcGetProgramLogSize(Program*, std::size_t* bytes) { return log_size(bytes); }
int nvrtcGetProgramLog(Program*, char* text) { return log(text); }
int nvrtcGetCUBINSize(Program* program, std::size_t* bytes) { return code_size(program, bytes); }
int nvrtcGetCUBIN(Program* program, char* text) { return code(program, text); }
int nvrtcDestroyProgram(Program** program) { return destroy(program); }

int hiprtcCreateProgram(Program** program, const char* source, const char*, int, const char* const*,
                        const char* const*) {
  return create(program, source);
}
int hiprtcCompileProgram(Program* program, int, const char* const*) { return compile(program); }
int hiprtcGetProgramLogSize(Program*, std::size_t* bytes) { return log_size(bytes); }
int hiprtcGetProgramLog(Program*, char* text) { return log(text); }
int hiprtcGetCodeSize(Program* program, std::size_t* bytes) { return code_size(program, bytes); }
int hiprtcGetCode(Program* program, char* text) { return code(program, text); }
int hiprtcDestroyProgram(Program** program) { return destroy(program); }

}  // extern "C"
