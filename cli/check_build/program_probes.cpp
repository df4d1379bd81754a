// Programs that ddlrun can start as they are.
#include <string>

#include "cli/check_build/probe.h"
#include "cli/check_build/probe_tools.h"

namespace ddl::cli {

namespace {

/// Without importing it, which takes seconds.
Finding ask_python(const std::string& package, const std::string& module) {
  const Command python = command_in_path("python3", "load the module, environment or container that has it");
  if (python.path.empty()) return python.missing;
  const std::string script =
      "import importlib.util as u, importlib.metadata as m, sys\n"
      "s = u.find_spec('" +
      module +
      "')\n"
      "sys.exit('python3 has no " +
      module + "') if s is None else print('" + package + "', m.version('" + module + "'), '|', s.origin)";
  const FirstLine said = first_line_of({python.path, "-c", script});
  if (said.text.empty())
    return fails(python.path + " has no " + module,
                 "load the environment or container that has it before you start ddlrun");
  const std::size_t bar = said.text.find(" | ");
  return works(said.text.substr(0, bar), bar == std::string::npos ? "" : said.text.substr(bar + 3));
}

}  // namespace

Finding look_at_torch() { return ask_python("PyTorch", "torch"); }
Finding look_at_tensorflow() { return ask_python("TensorFlow", "tensorflow"); }

}  // namespace ddl::cli
