#include "templates/profile/site_environment.h"

#include <algorithm>
#include <string_view>

#include "base/text.h"

namespace ddl::templates {
namespace {

bool contains(const std::vector<SiteVariable>& variables, std::string_view name) {
  return std::any_of(variables.begin(), variables.end(),
                     [&](const SiteVariable& one) { return one.name == name; });
}

/// /tmp is each node's own. Several jobs of a user may run on a node.
std::string node_folder(const std::string& user, const std::string& name, const std::string& slurm_job) {
  return "/tmp/" + user + "-" + name + (slurm_job.empty() ? "" : "-" + slurm_job);
}

bool has_module(std::string_view loaded, std::string_view beginning) {
  const auto modules = split(loaded, ':');
  return !beginning.empty() && std::any_of(modules.begin(), modules.end(), [&](std::string_view module) {
    return module.starts_with(beginning);
  });
}

/// "export A=1; export B=2" of those that are not given.
std::string exports_of(const std::vector<SiteVariable>& variables, const std::vector<SiteVariable>& given) {
  std::vector<std::string> exports;
  for (const auto& [name, value] : variables) {
    if (!contains(given, name)) exports.push_back("export " + name + "=" + shell_quote(value));
  }
  return join(exports, "; ");
}

}  // namespace

std::vector<SiteVariable> site_environment(const SiteSetup& setup, const SiteJob& job) {
  std::vector<SiteVariable> all;
  const auto add = [&all](const std::vector<SiteVariable>& variables) {
    for (const SiteVariable& one : variables) {
      if (!contains(all, one.name)) all.push_back(one);
    }
  };
  add(setup.variables);
  add(job.nodes > 1 ? setup.between_nodes_variables : setup.one_node_variables);
  std::vector<SiteVariable> folders = setup.node_folders;
  for (SiteVariable& folder : folders) folder.value = node_folder(job.user, folder.value, job.slurm_job);
  add(folders);
  if (setup.needed && !has_module(job.loaded_modules, setup.needed->module) &&
      (job.nodes > 1 || !setup.needed->between_nodes))
    add(setup.needed->variables);
  return all;
}

std::vector<std::string> site_lines(const SiteSetup& setup, const std::vector<SiteVariable>& given) {
  std::vector<std::string> lines;
  const std::string one_node = exports_of(setup.one_node_variables, given);
  const std::string several = exports_of(setup.between_nodes_variables, given);
  if (!several.empty() || !one_node.empty()) {
    std::string line =
        "if [ \"${SLURM_JOB_NUM_NODES:-1}\" -gt 1 ]; then " + (several.empty() ? ":" : several);
    if (!one_node.empty()) line += "; else " + one_node;
    lines.push_back(line + "; fi");
  }
  for (const auto& [name, value] : setup.node_folders) {
    if (!contains(given, name))
      lines.push_back("export " + name + "=\"" + node_folder("$USER", value, "$SLURM_JOB_ID") + "\"");
  }
  return lines;
}

}  // namespace ddl::templates
