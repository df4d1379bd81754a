#include "cli/sbatch.h"

#include <sys/wait.h>

#include <chrono>
#include <optional>

#include <nlohmann/json.hpp>

#include "base/text.h"
#include "cli/command_output.h"
#include "contract/ddlrun.h"
#include "contract/version.h"
#include "launcher/output/stderr_tail.h"

namespace ddl::cli {

namespace {

/// sbatch waits for a controller that does not answer for as long as its site says; a person wants to hear of it.
constexpr std::chrono::seconds kPatience{60};

/// What sbatch has said, if it took the script; the exit code where it did not, which has been told.
struct Answer {
  std::string out;
  std::string complaint;
  int status = contract::kSuccess;
};

Answer ask_sbatch(const std::string& option, const std::string& script, const std::string& option_of_ours,
                  const Console& console) {
  const auto said = command_output({"sbatch", option}, script, kPatience);
  if (!said) {
    return {{},
            {},
            console.refuse({"sbatch: " + said.error().message(),
                            "run it where Slurm's commands are, or omit " + option_of_ours,
                            contract::kStartFailure})};
  }
  std::string complaint = launcher::printable_text(trim(said->err));
  if (!WIFEXITED(said->wait_status) || WEXITSTATUS(said->wait_status) != 0) {
    return {{},
            {},
            console.refuse({complaint.empty() ? "sbatch failed and did not say why" : complaint,
                            "ask Slurm's staff there, or try --test-only", contract::kStartFailure})};
  }
  return {std::string(trim(said->out)), std::move(complaint)};
}

}  // namespace

int submit(const std::string& script, bool as_json, const Console& console) {
  const Answer answer = ask_sbatch("--parsable", script, "--submit", console);
  if (answer.status != contract::kSuccess) return answer.status;
  if (!answer.complaint.empty()) console.note(answer.complaint);
  const std::string number = answer.out.substr(0, answer.out.find(';'));  // behind it: the cluster
  if (!as_json) return console.print(number + "\n");
  const nlohmann::ordered_json report = {
      {"ddlrun", contract::kVersion}, {"kind", "submission"}, {"job", parse_integer(number).value_or(0)}};
  return console.print(report.dump() + "\n");
}

int test_submission(const std::string& script, const Console& console) {
  const Answer answer = ask_sbatch("--test-only", script, "--test-only", console);
  return answer.status != contract::kSuccess ? answer.status : console.print(answer.complaint + "\n");
}

}  // namespace ddl::cli
