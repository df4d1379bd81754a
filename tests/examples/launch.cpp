#include "examples/launch.h"

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

}  // namespace ddl::test
