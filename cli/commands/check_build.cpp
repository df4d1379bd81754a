// --check-build, on this machine or on every host of a job.
#include <algorithm>
#include <cerrno>
#include <chrono>

#include "base/child_question.h"
#include "base/environment.h"
#include "base/files.h"
#include "base/text.h"
#include "cli/check_build/capability.h"
#include "cli/check_build/probe.h"
#include "cli/commands/commands.h"
#include "cli/options/this_process.h"
#include "cli/reports/job_report.h"
#include "launcher/head/run_job.h"
#include "launcher/node/node_probe.h"
#include "launcher/output/output_files.h"

namespace ddl::cli {

namespace {

constexpr std::size_t kMaxReportBytes = std::size_t{1} << 20;

/// Added to the start timeout: the time for the probes, on slow hosts too.
constexpr double kProbeSeconds = 30;

launcher::JobSpec one_rank_on_each(const Request& request, const std::string& folder) {
  launcher::JobSpec spec = request.job;
  spec.command = {spec.ssh.remote_path.empty() ? own_path() : spec.ssh.remote_path, "--check-build", "--json",
                  "--launcher", "local"};
  spec.name = "check-build";
  spec.num_ranks = request.allocation.nodes.size();
  spec.ranks_per_node = 1;
  spec.oversubscribe = true;
  spec.binding.bind_to = affinity::BindTo::kNone;
  spec.stdin_target = launcher::StdinTarget::kNone;
  spec.timeout_seconds = spec.ssh.start_timeout_seconds + kProbeSeconds;
  spec.output_directory = folder;
  spec.tag_output = false;
  spec.quiet = true;
  spec.exports.push_back({"TMPDIR", ""});  // the directory of this machine may not exist elsewhere
  return spec;
}

/// "" if the job succeeds, else its report.
std::string run_quietly(const launcher::JobSpec& spec, const launcher::Allocation& allocation,
                        const Environment& environment) {
  const auto ignore = [](const std::string&) {};
  const auto report = launcher::run_job(spec, allocation, environment, {ignore, ignore, nullptr});
  const launcher::JobReport outcome = report ? *report : error_report(report.error());
  return outcome.reason == launcher::EndReason::kSuccess
             ? ""
             : failure_report(outcome, spec, TerminalStyle(false));
}

/// Prints the requested capability of every host. Returns 0 if all hosts can use it.
int print_one(std::vector<HostCapabilities>& hosts, const Request& request, const Console& console) {
  bool all_can = true;
  std::string text;
  for (HostCapabilities& host : hosts) {
    std::erase_if(host.all, [&request](const Capability& one) { return one.key != request.capability; });
    for (const Capability& one : host.all) {
      all_can = all_can && one.available();
      text += host.host + ": " + capability_line(one);
    }
  }
  const int printed = console.print(request.json ? check_build_hosts_json(hosts) : text);
  return printed != contract::kSuccess ? printed : all_can ? 0 : 1;
}

/// Starts ddlrun --check-build on each host of the request, as it would start a rank, and prints what the hosts have
/// in common and how they differ.
int check_on_hosts(const Request& request, const Environment& environment, const Console& console) {
  const auto folder = make_scratch_folder();
  if (!folder)
    return console.refuse(folder.error().with_hint("set TMPDIR to a writable folder"),
                          contract::kStartFailure);
  const launcher::JobSpec spec = one_rank_on_each(request, folder->path());
  // In a child, whose own output is discarded: the output of the ranks goes to files.
  auto job = ChildQuestion::ask([&] { return "x" + run_quietly(spec, request.allocation, environment); });
  const auto report = job ? job->answer(Deadline::never()) : Result<std::string>(fail(job.error()));
  if (!report)
    return console.refuse(report.error().with_hint("ddlrun --check-hosts shows which host is the cause"),
                          contract::kStartFailure);
  if (report->size() > 1) {
    console.report(report->substr(1));
    return contract::kStartFailure;
  }
  std::vector<HostCapabilities> hosts;
  for (int rank = 0; rank < spec.num_ranks; ++rank) {
    const auto text =
        read_file(folder->path() + "/" + launcher::rank_directory_name(rank, spec.num_ranks) + "/stdout",
                  kMaxReportBytes);
    auto host = text ? read_check_build(*text) : Result<HostCapabilities>(fail(text.error()));
    const std::string& name = request.allocation.nodes[rank].name;
    if (!host)
      return console.refuse(
          host.error().during(name).with_hint("compare the versions of ddlrun: ddlrun --check-hosts"),
          contract::kStartFailure);
    host->host = name;
    hosts.push_back(*std::move(host));
  }
  if (request.capability.empty())
    return console.print(request.json ? check_build_hosts_json(hosts) : check_build_hosts_text(hosts));
  return print_one(hosts, request, console);
}

/// Longer than any probe that does not hang: all of them run at once.
constexpr std::chrono::seconds kProbeTimeout{20};

const Probe* find_probe(const std::string& key) {
  const auto probes = probe_list();
  const auto found =
      std::find_if(probes.begin(), probes.end(), [&key](const Probe& probe) { return key == probe.key; });
  return found == probes.end() ? nullptr : &*found;
}

std::string known_keys(const std::string& asked) {
  std::vector<std::string> keys;
  for (const Probe& probe : probe_list()) keys.emplace_back(probe.key);
  const auto nearest = nearest_word(asked, keys);
  return (nearest ? "did you mean " + *nearest + "? There are " : "there are ") + join(keys, ", ");
}

int refuse_probes(Error error, const Console& console) {
  const bool is_limit = error.system_errno() == EMFILE;
  return console.refuse(
      error.during("the probes cannot be started")
          .with_hint(is_limit ? "raise the limit: ulimit -n 256" : "try again, or on another host"),
      contract::kStartFailure);
}

int check_one(const Probe& probe, const Request& request, const Console& console) {
  const auto all = run_probes({&probe, 1}, kProbeTimeout);
  if (!all) return refuse_probes(all.error(), console);
  const int printed = console.print(request.json ? check_build_json(*all, launcher::hostname())
                                                 : capability_line(all->front()));
  return printed != contract::kSuccess ? printed : all->front().available() ? 0 : 1;
}

}  // namespace

int check_build(const Request& request, const Environment& environment, const Console& console) {
  const Probe* one = request.capability.empty() ? nullptr : find_probe(request.capability);
  if (one == nullptr && !request.capability.empty())
    return console.refuse({ErrorCode::kInvalidArgument, "there is no capability '" + request.capability + "'",
                           known_keys(request.capability)});
  if (!request.allocation.nodes.empty()) return check_on_hosts(request, environment, console);
  if (one != nullptr) return check_one(*one, request, console);
  const auto all = run_probes(probe_list(), kProbeTimeout);
  if (!all) return refuse_probes(all.error(), console);
  return console.print(request.json ? check_build_json(*all, launcher::hostname()) : check_build_text(*all));
}

}  // namespace ddl::cli
