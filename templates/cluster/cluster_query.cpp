#include "templates/cluster/cluster_query.h"

#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>

#include <nlohmann/json.hpp>

#include "base/command.h"
#include "base/command_output.h"
#include "base/deadline.h"
#include "base/environment.h"
#include "base/text.h"

namespace ddl::templates {

using std::chrono::milliseconds;

namespace {

constexpr char kDefaultConfiguration[] = "/etc/slurm/slurm.conf";

std::string environment(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

/// Checks, by files alone, that there is a Slurm.
Status look_for_slurm() {
  const std::string configured = environment("SLURM_CONF");
  if (!configured.empty()) {
    // Slurm's own programs would try to read it for a minute.
    if (::access(configured.c_str(), R_OK) == 0) return {};
    return fail(ErrorCode::kUnavailable, "SLURM_CONF names " + configured + ", which cannot be read");
  }
  if (::access(kDefaultConfiguration, R_OK) == 0 || find_in_path("scontrol", environment("PATH"))) return {};
  return fail(ErrorCode::kNotFound, "there is no Slurm here: SLURM_CONF is not set, there is no " +
                                        std::string(kDefaultConfiguration) + ", and scontrol is not in PATH");
}

/// The text of {"error": "..."}; "" if the text is anything else.
std::string reported_error(const std::string& text) {
  const auto json = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return "";
  const auto error = json.find("error");
  return error != json.end() && error->is_string() ? error->get<std::string>() : "";
}

/// Why a command failed: its last word on the matter.
std::string failure_of(const CommandOutput& output) {
  std::string reason(trim(output.err));
  reason = reason.substr(reason.rfind('\n') + 1);
  if (!reason.empty()) return reason;
  return WIFSIGNALED(output.wait_status)
             ? "it was ended by " + signal_text(WTERMSIG(output.wait_status))
             : "it ended with exit code " + std::to_string(WEXITSTATUS(output.wait_status));
}

Result<ClusterFacts> ask_probe(const std::string& path, milliseconds patience) {
  // The program's own deadline is a little shorter, so that it can report what it waited for.
  const std::string own_patience = std::to_string(std::max<std::int64_t>(patience.count() * 9 / 10, 1));
  DDL_ASSIGN(output, command_output({path, own_patience}, {}, patience));
  if (output.wait_status != 0) {
    const std::string reported = reported_error(output.out);
    return fail(
        Error(ErrorCode::kUnavailable, reported.empty() ? failure_of(output) : reported).during(path));
  }
  return cluster_facts_from_json(output.out);
}

Result<std::string> scontrol_text(const char* what, const Deadline& deadline) {
  const auto left = std::chrono::duration_cast<milliseconds>(deadline.remaining());
  // By these a user chooses what scontrol shows.
  Environment own = process_environment();
  std::erase_if(own, [](const auto& variable) { return variable.first.starts_with("SCONTROL_"); });
  DDL_ASSIGN(output,
             command_output({"scontrol", "--all", "--local", "--oneliner", "show", what}, {}, left, own));
  if (output.wait_status != 0)
    return fail(
        Error(ErrorCode::kUnavailable, failure_of(output)).during("scontrol show " + std::string(what)));
  return output.out;
}

Result<ClusterFacts> ask_scontrol(const Deadline& deadline) {
  DDL_ASSIGN(partitions, scontrol_text("partition", deadline));
  DDL_ASSIGN(nodes, scontrol_text("node", deadline));
  return cluster_facts_from_scontrol(partitions, nodes);
}

}  // namespace

Result<ClusterFacts> ask_cluster(const std::string& probe_path, milliseconds patience) {
  DDL_TRY(look_for_slurm());
  const Deadline deadline = Deadline::after(patience);
  std::string probe_failure;
  if (!probe_path.empty() && ::access(probe_path.c_str(), X_OK) == 0) {
    // Half of the time, so that the rest is left for scontrol.
    auto facts = ask_probe(probe_path, patience / 2);
    if (facts) return facts;
    probe_failure = facts.error().message();
  }
  auto facts = ask_scontrol(deadline);
  if (facts || probe_failure.empty()) return facts;
  return fail(ErrorCode::kUnavailable, facts.error().message() + "; " + probe_failure);
}

}  // namespace ddl::templates
