#include "examples/launch.h"

#include <stdexcept>

namespace ddl::test {

Arguments command_line(const std::string& example, int size, const Arguments& arguments) {
  Arguments argv;
  if (size > 0)
    argv = {DDL_BIN_DIR "/ddlrun", "-np", std::to_string(size), "--oversubscribe", "--no-tag-output", "--"};
  argv.push_back(DDL_BIN_DIR "/" + example);
  argv.insert(argv.end(), arguments.begin(), arguments.end());
  return argv;
}

Outcome run_example(const std::string& example, int size, const Arguments& arguments) {
  return Program(command_line(example, size, arguments)).wait();
}

int interrupt_example(const Arguments& argv, const std::string& text, int signal,
                      const std::function<void()>& prepare) {
  constexpr int kAttempts = 10;
  for (int attempt = 0; attempt < kAttempts; ++attempt) {
    prepare();
    Program program(argv);
    program.wait_for_output(text);
    program.signal(signal);
    const Outcome outcome = program.wait();
    if (outcome.exit_code != 0) return outcome.exit_code;
  }
  throw std::runtime_error("it always ended before the signal arrived");
}

}  // namespace ddl::test
