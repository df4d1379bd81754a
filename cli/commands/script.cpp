// --slurm: writes a job script, checks it against the rules and the cluster, and passes it to sbatch.
#include <sys/stat.h>
#include <sys/wait.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include "base/command.h"
#include "base/command_output.h"
#include "base/files.h"
#include "base/printable_text.h"
#include "base/text.h"
#include "cli/commands/commands.h"
#include "cli/options/this_process.h"
#include "cli/reports/console.h"
#include "contract/ddlrun.h"
#include "contract/version.h"
#include "templates/cluster/cluster_query.h"
#include "templates/lint/lint.h"
#include "templates/script/batch_system.h"
#include "templates/script/script_renderer.h"

namespace ddl::cli {

namespace {

using templates::sbatch;
using templates::Submission;

/// sbatch waits for a controller that does not answer as long as the site has configured. A user needs an answer
/// sooner.
constexpr std::chrono::seconds kSbatchTimeout{60};

/// What sbatch has printed, or the exit code of ddlrun after an error that has been printed.
struct SbatchResult {
  std::string out;
  std::string err;
  int status = contract::kSuccess;
};

SbatchResult run_sbatch(Submission submission, const std::string& script, const Environment& own,
                        const Console& console) {
  const bool is_test = submission == Submission::kTest;
  const auto output = command_output(sbatch().submit_command(submission), script, kSbatchTimeout,
                                     sbatch().submit_environment(own, script));
  if (!output) {
    return {{},
            {},
            console.refuse(Error(output.error())
                               .during("sbatch")
                               .with_hint(std::string("run it on a host with Slurm's commands, or omit ") +
                                          (is_test ? "--test-only" : "--submit")),
                           contract::kStartFailure)};
  }
  std::string err = printable_text(trim(output->err));
  if (!WIFEXITED(output->wait_status) || WEXITSTATUS(output->wait_status) != 0) {
    return {{},
            {},
            console.refuse({ErrorCode::kSystem, err.empty() ? "sbatch failed without a message" : err,
                            is_test ? "ask the staff of the cluster, or omit --test-only to see the script"
                                    : "ask the staff of the cluster, or try --test-only"},
                           contract::kStartFailure)};
  }
  return {std::string(trim(output->out)), std::move(err)};
}

using templates::LintFinding;

constexpr std::chrono::seconds kClusterTimeout{20};
/// For a script that may be intended for another cluster.
constexpr std::chrono::seconds kShortTimeout{1};

struct Script {
  std::string text;
  std::vector<LintFinding> findings;
  /// Findings about this cluster, if the script may be intended for another one.
  std::vector<LintFinding> local_findings;
  std::vector<std::string> notes;
};

/// Asks this cluster, if there is one, and adds the findings about what it would refuse. True: the script is for it, or
/// may be.
bool ask_about(Script& script, const Request& request, const templates::BatchJob& job) {
  const ScriptTask& task = request.script;
  const bool is_for_it = task.submits || task.tests_only;
  const auto facts =
      templates::ask_cluster(libexec_path("slurm-probe"), is_for_it ? kClusterTimeout : kShortTimeout);
  if (!facts) {
    // Slurm's commands may be installed on a host without a cluster. That matters only if the script is for this
    // cluster.
    if (is_for_it || (request.job.verbose && facts.error().code() != ErrorCode::kNotFound))
      script.notes.push_back("the script was not checked against the cluster: " + facts.error().message());
    return is_for_it || request.site.empty();
  }
  const auto findings = templates::cluster_findings(*facts, task.request, job, is_for_it);
  // A script for a named site may be intended for another cluster. Findings about this one must not be written into
  // it.
  auto& target = is_for_it || request.site.empty() ? script.findings : script.local_findings;
  target.insert(target.end(), findings.begin(), findings.end());
  return is_for_it || request.site.empty() ||
         !has_error(templates::cluster_findings(*facts, task.request, job, true));
}

/// How the script calls ddlrun: by name if this program is the one in PATH, or if the script is for another cluster;
/// else by its path. Adds a note if that may not be what is meant.
std::string ddlrun_of(const Request& request, const Environment& environment, bool is_for_here,
                      std::vector<std::string>& notes) {
  const ScriptTask& task = request.script;
  if (!task.request.ddlrun.empty()) return task.request.ddlrun;
  const std::filesystem::path self = own_path();
  const auto path = environment.find("PATH");
  const auto named = find_in_path("ddlrun", path == environment.end() ? "" : path->second);
  std::error_code error;
  if (self.empty() || (named && std::filesystem::equivalent(*named, self, error))) return "ddlrun";
  if (is_for_here) {
    if (!request.site.empty() && !task.submits && !task.tests_only)
      notes.push_back("the script calls " + self.string() +
                      ", as this cluster would take it; for another cluster, add --remote-path ddlrun");
    return self.string();
  }
  if (!named)
    notes.push_back(
        "the script calls ddlrun by its name, and none is in PATH here: at " + request.site +
        " it needs one in PATH (--module loads a module), or give its path there with --remote-path");
  return "ddlrun";
}

/// The script, with its warnings in it as comments.
Result<Script> script_of(const Request& all, const Environment& environment) {
  templates::ScriptRequest request = all.script.request;
  const templates::SiteProfile* site = all.profile ? &*all.profile : nullptr;
  DDL_ASSIGN(job, templates::make_batch_job(request, site));
  const auto found = templates::find_templates(all.script.template_file, config_folders(environment, "slurm"),
                                               read_user_file);
  if (!found) return fail(Error(found.error()).during("the template cannot be read"));
  Script script;
  script.notes = job.notes;
  const bool is_for_here = ask_about(script, all, job);
  if (request.launcher == templates::ScriptLauncher::kDdlrun)
    request.ddlrun = ddlrun_of(all, environment, is_for_here, script.notes);
  DDL_ASSIGN(text, templates::render_script(*found, request, job, site, {}));
  script.text = std::move(text);
  auto of_text = templates::lint_script(script.text, site);
  script.findings.insert(script.findings.begin(), of_text.begin(), of_text.end());
  std::vector<std::string> warnings;
  for (const LintFinding& finding : script.findings)
    warnings.push_back("[" + finding.rule + "] " + finding.sentence);
  if (!warnings.empty()) {
    DDL_ASSIGN(with_warnings, templates::render_script(*found, request, job, site, warnings));
    script.text = std::move(with_warnings);
  }
  return script;
}

/// Slurm makes no folder for the output of a job, and drops the output if there is none. The folders that are named
/// and are not there; one with % in its name has no name yet.
std::vector<std::string> missing_folders(const templates::ScriptRequest& request) {
  std::vector<std::string> missing;
  for (const std::string& file : {request.output, request.error}) {
    const std::size_t slash = file.rfind('/');
    const std::string folder = slash == std::string::npos ? "" : file.substr(0, slash);
    std::error_code error;
    const bool is_there = folder.empty() || std::filesystem::is_directory(folder, error);
    if (!is_there && std::find(missing.begin(), missing.end(), folder) == missing.end())
      missing.push_back(folder);
  }
  return missing;
}

/// Makes them for a job that is submitted from here; for another script says that they have to be made.
Status provide_folders(const Request& request, const Console& console) {
  for (const std::string& folder : missing_folders(request.script.request)) {
    const bool has_name = folder.find('%') == std::string::npos;
    std::error_code error;
    if (request.script.submits && has_name) {
      std::filesystem::create_directories(folder, error);
      if (error)
        return refuse(
            "the folder " + shell_quote(folder) + " of the job's output cannot be made: " + error.message(),
            "name another file with --output");
    } else if (!request.job.quiet) {
      console.note("warning: the folder " + shell_quote(folder) +
                   " of the job's output has to be there when the job starts, or Slurm drops the output" +
                   (has_name ? ": mkdir -p " + shell_quote(folder) : ""));
    }
  }
  return {};
}

/// After an error of write_new_file().
int refuse_file(const std::string& file, const Error& error, const Console& console) {
  struct stat status {};
  if (::stat(file.c_str(), &status) == 0 && S_ISDIR(status.st_mode))
    return console.refuse(
        {error.code(), file + " is a directory", "name a file with -o, as in -o " + file + "/job.sh"});
  switch (error.system_errno()) {
    case EEXIST: return console.refuse(error.with_hint("--force replaces it"));
    case ENOSPC:
    case EDQUOT:
    case EFBIG:
    case EIO:
      return console.refuse(error.with_hint("make room there, or name a file elsewhere with -o"),
                            contract::kOutputLost);
    default: return console.refuse(error.with_hint("name another file with -o"));
  }
}

/// Without file and line, because the script is not written yet.
std::string sentence_of(const LintFinding& finding) {
  return std::string(templates::name_of(finding.severity)) + ": [" + finding.rule + "] " + finding.sentence;
}

}  // namespace

int submit(const std::string& script, const Environment& own, bool as_json, const Console& console) {
  const SbatchResult result = run_sbatch(Submission::kReal, script, own, console);
  if (result.status != contract::kSuccess) return result.status;
  if (!result.err.empty()) console.note(result.err);
  const std::string number = sbatch().job_id(result.out);
  if (!as_json) return console.print(number + "\n");
  const nlohmann::ordered_json report = {
      {"ddlrun", contract::kVersion}, {"kind", "submission"}, {"job", parse_integer(number).value_or(0)}};
  return console.print(report.dump() + "\n");
}

int test_submission(const std::string& script, const Environment& own, const Console& console) {
  const SbatchResult result = run_sbatch(Submission::kTest, script, own, console);
  return result.status != contract::kSuccess ? result.status : console.print(result.err + "\n");
}

int write_script(const Request& request, const Environment& environment, const Console& console) {
  const ScriptTask& task = request.script;
  // Before a refusal, too, which may follow from what the site's profile does not know.
  if (request.profile && !request.job.quiet) {
    for (const std::string& note : request.profile->notes) console.note(request.profile->name + ": " + note);
  }
  const auto script = script_of(request, environment);
  if (!script)
    return console.refuse(script.error().with_hint("ddlrun --help scripts lists the options of job scripts"));
  if (!request.job.quiet) {
    for (const std::string& note : script->notes) console.note(note);
    for (const LintFinding& finding : script->findings) console.note(sentence_of(finding));
    for (const LintFinding& finding : script->local_findings)
      console.note("if the script is for this cluster: " + sentence_of(finding));
  }
  if (has_error(script->findings)) {
    return console.refuse(
        {ErrorCode::kInvalidArgument,
         "no script was written because of the errors" + std::string(request.job.quiet ? " in it" : " above"),
         document("reference/lint.md") + " explains each rule"});
  }
  if (const Status provided = provide_folders(request, console); !provided)
    return console.refuse(provided.error());
  if (!task.script_file.empty()) {
    constexpr unsigned kExecutable = 0755;
    const auto written = write_new_file(task.script_file, script->text, kExecutable, task.overwrites);
    if (!written) return refuse_file(task.script_file, written.error(), console);
    if (!request.job.quiet && !task.submits)
      console.note("wrote " + task.script_file + "; submit it with: sbatch " + shell_quote(task.script_file));
  }
  if (task.submits) return submit(script->text, environment, request.json, console);
  if (task.tests_only) return test_submission(script->text, environment, console);
  return task.script_file.empty() ? console.print(script->text) : contract::kSuccess;
}

}  // namespace ddl::cli
