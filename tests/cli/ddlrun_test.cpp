// The real command: command lines, and their output and exit code.
#include <algorithm>
#include <cmath>
#include <filesystem>

#include <nlohmann/json.hpp>

#include "base/text.h"
#include "cli/options/help_pages.h"
#include "cli/options/option_table.h"
#include "cli/program_run.h"
#include "contract/ddlrun.h"
#include "support/catch.h"
#include "support/temporary_directory.h"

using ddl::test::ProgramRun;
using ddl::test::ProgramSetup;
using ddl::test::run_program;
using nlohmann::json;
using Words = std::vector<std::string>;
namespace contract = ddl::contract;

namespace {

ProgramSetup ddlrun(Words words) {
  ProgramSetup setup;
  setup.argv = std::move(words);
  setup.argv.insert(setup.argv.begin(), DDLRUN_PATH);
  return setup;
}

ProgramRun run(Words words) { return run_program(ddlrun(std::move(words))); }

std::string last_line(const std::string& text) {
  const auto lines = ddl::split(ddl::trim(text), '\n');
  return std::string(lines.back());
}

}  // namespace

TEST_CASE("help and version go to standard output") {
  for (const char* word : {"-h", "--help"}) {
    const ProgramRun help = run({word});
    CHECK(help.exit_code == 0);
    CHECK(help.out == ddl::cli::help_text().value());
    CHECK(help.err.empty());
  }
  for (const char* word : {"-v", "--version"}) {
    const ProgramRun version = run({word});
    CHECK(version.exit_code == 0);
    CHECK(version.out == ddl::cli::version_text());
  }
}

TEST_CASE("all words after the command belong to the command") {
  const ProgramRun echo = run({"-np", "1", "/bin/echo", "-np", "4", "--help", "--", "-x"});
  CHECK(echo.exit_code == 0);
  CHECK(echo.out == "-np 4 --help -- -x\n");
  CHECK(run({"-np=1", "--", "/bin/echo", "--", "x"}).out == "-- x\n");
}

TEST_CASE("hosts can be given by -H, a hostfile, a configuration file and standard input") {
  // env starts the agent on this machine, in place of a remote host.
  const Words over_env = {"--launch-agent", "env HOST=%h"};
  const auto with = [&over_env](Words words) {
    words.insert(words.begin(), over_env.begin(), over_env.end());
    return ddlrun(std::move(words));
  };
  const Words print_identity = {"--quiet", "/bin/sh", "-c",
                                "echo $RANK $HOROVOD_CROSS_RANK $HOROVOD_LOCAL_RANK"};
  const auto sorted_lines = [](const ProgramRun& result) {
    INFO(result.err);
    CHECK(result.exit_code == 0);
    std::vector<std::string> lines;
    for (const auto line : ddl::split(ddl::trim(result.out), '\n')) lines.emplace_back(line);
    std::sort(lines.begin(), lines.end());
    return ddl::join(lines, ", ");
  };

  ProgramSetup listed = with({"-H", "a:2,b:1", "--no-tag-output"});
  listed.argv.insert(listed.argv.end(), print_identity.begin(), print_identity.end());
  CHECK(sorted_lines(run_program(listed)) == "0 0 0, 1 0 1, 2 1 0");

  ProgramSetup by_node = with({"-H", "a:2,b:1", "--map-by", "node", "--no-tag-output"});
  by_node.argv.insert(by_node.argv.end(), print_identity.begin(), print_identity.end());
  CHECK(sorted_lines(run_program(by_node)) == "0 0 0, 1 1 0, 2 0 1");

  ProgramSetup piped = with({"--hostfile", "-", "--no-tag-output"});
  piped.stdin_text = "a slots=1\r\n# c\r\nb 1\r\n";
  piped.argv.insert(piped.argv.end(), print_identity.begin(), print_identity.end());
  CHECK(sorted_lines(run_program(piped)) == "0 0 0, 1 1 0");

  ProgramSetup configured = with({"--config-file", "-", "--no-tag-output"});
  configured.stdin_text = "hosts: [a:1, b:1]\nx: WHO=me\n";
  const Words me = {"/bin/sh", "-c", "echo $RANK $WHO"};
  configured.argv.insert(configured.argv.end(), me.begin(), me.end());
  CHECK(sorted_lines(run_program(configured)) == "0 me, 1 me");
}

TEST_CASE("--check-hosts has a line for each host, and 122 if one fails") {
  const ProgramRun here = run({"--check-hosts", "-H", "a,b", "--launch-agent", "env HOST=%h"});
  CHECK(here.exit_code == 0);
  CHECK_THAT(here.out, Catch::StartsWith("host ") && Catch::Contains("\na ") && Catch::Contains("\nb ") &&
                           Catch::EndsWith("\n2 hosts answered\n"));
  const ProgramRun failed =
      run({"--check-hosts", "--json", "-H", "localhost,b", "--launch-agent", "false %h"});
  CHECK(failed.exit_code == 122);
  const auto parsed = json::parse(failed.out);
  CHECK(parsed["kind"] == "check_hosts");
  CHECK(parsed["failed"] == 2);
  CHECK_THAT(parsed["hosts"][1]["failure"].get<std::string>(), Catch::Contains("false ended with 1"));
  // This machine is asked without ssh.
  const auto self = json::parse(run({"--check-hosts", "--json"}).out);
  REQUIRE(self["hosts"].size() == 1);
  CHECK(self["hosts"][0]["reachable"] == true);
  CHECK(std::abs(self["hosts"][0]["clock_offset_seconds"].get<double>()) < 5);
}

TEST_CASE("a dry run prints the plan and starts nothing") {
  const ProgramRun plan = run({"-np", "2", "--oversubscribe", "--dry-run", "/bin/sh", "-c", "echo started"});
  CHECK(plan.exit_code == 0);
  CHECK_THAT(plan.out, Catch::StartsWith("ddlrun would start 2 ranks on 1 node."));
  CHECK_THAT(plan.out, Catch::Contains("/bin/sh -c 'echo started'"));
  CHECK_THAT(plan.out, Catch::Contains("MASTER_PORT (unknown until launch)"));
  CHECK_THAT(plan.out, Catch::Contains("    rank 1: "));

  const ProgramRun as_json = run({"-np", "2", "--oversubscribe", "--dry-run", "--json", "/bin/true"});
  const auto parsed = json::parse(as_json.out);
  CHECK(parsed["kind"] == "launch_plan");
  CHECK(parsed["nodes"][0]["ranks"].size() == 2);
  CHECK(parsed["environment_set"]["MASTER_PORT"].is_null());
}

TEST_CASE("a dry run creates no output directory") {
  const std::string directory = "/tmp/ddl-dry-run-must-not-create-this";
  CHECK(run({"-np", "1", "--dry-run", "--output-filename", directory, "/bin/true"}).exit_code == 0);
  CHECK_FALSE(std::filesystem::exists(directory));
}

TEST_CASE("the report of a failure is the last output, as text or as JSON") {
  const Words failing = {"/bin/sh", "-c", "echo why >&2; exit 7"};
  Words words = {"-np", "1"};
  words.insert(words.end(), failing.begin(), failing.end());
  const ProgramRun text = run(words);
  CHECK(text.exit_code == 7);
  CHECK_THAT(text.err, Catch::Contains("ddlrun: rank 0 on ") && Catch::Contains(" exited with 7 after ") &&
                           Catch::EndsWith("  its last line on standard error:\n  | why\n"));

  words.insert(words.begin(), "--json");
  const ProgramRun as_json = run(words);
  CHECK(as_json.exit_code == 7);
  const auto parsed = json::parse(last_line(as_json.err));
  CHECK(parsed["reason"] == "rank_failed");
  CHECK(parsed["exit_code"] == 7);
  CHECK(parsed["first_failure"] == 0);
  CHECK(parsed["ranks"][0]["stderr_tail"] == json::array({"why"}));
}

TEST_CASE("ddlrun prints nothing about a job that succeeds, except with --verbose or --json") {
  const ProgramRun silent = run({"-np", "1", "/bin/true"});
  CHECK(silent.exit_code == 0);
  CHECK(silent.out.empty());
  CHECK(silent.err.empty());
  CHECK_THAT(run({"-np", "1", "--verbose", "/bin/true"}).err,
             Catch::Contains("ddlrun: 1 rank exited with 0 after "));
  const auto parsed = json::parse(last_line(run({"-np", "1", "--json", "/bin/true"}).err));
  CHECK(parsed["reason"] == "success");
  CHECK(parsed["exit_code"] == 0);
}

TEST_CASE("inside a Slurm job the ranks run on its nodes, unless --launcher says otherwise") {
  ProgramSetup setup = ddlrun({"--dry-run", "/bin/true"});
  setup.environment = {"SLURM_JOB_ID=4711", "SLURM_JOB_NODELIST=node3", "SLURM_TASKS_PER_NODE=1",
                       "SLURM_JOB_CPUS_PER_NODE=128", "SLURM_GPUS=8"};
  CHECK_THAT(run_program(setup).out, Catch::Contains("Slurm job 4711 (1 node, 8 GPUs, 128 CPUs)") &&
                                         Catch::Contains("Node 0, node3 (8 slots): ranks 0-7"));
  setup.argv.insert(setup.argv.begin() + 1, {"-np", "129"});
  ProgramRun refused = run_program(setup);
  CHECK(refused.exit_code == 2);
  CHECK_THAT(refused.err,
             Catch::Contains("129 ranks asked for, and Slurm job 4711 (1 node, 8 GPUs, 128 CPUs)"));
  setup.argv.insert(setup.argv.begin() + 1, {"--launcher", "local", "--oversubscribe"});
  CHECK_THAT(run_program(setup).out, Catch::Contains("this machine"));
  setup = ddlrun({"--dry-run", "-np", "1", "-H", "node9", "/bin/true"});
  setup.environment = {"SLURM_JOB_ID=4711", "SLURM_JOB_NODELIST=node3"};
  refused = run_program(setup);
  CHECK(refused.exit_code == 2);
  CHECK_THAT(refused.err, Catch::Contains("node9 is not a node of Slurm job 4711 (1 node)"));
}

TEST_CASE("standard output that cannot be written to is an error") {
  for (const std::vector<std::string>& asked : std::vector<std::vector<std::string>>{
           {"--help"},
           {"--version"},
           {"--list-sites"},
           {"--dry-run", "-np", "1", "true"},
           {"--slurm", "-np", "2", "true"},
           {"--show-bind", "-np", "2", "--topology", "pack:1 core:2 pu:1"}}) {
    CAPTURE(asked);
    ProgramSetup full = ddlrun(asked);
    full.out_path = "/dev/full";
    const ProgramRun result = run_program(full);
    CHECK(result.exit_code == contract::kOutputLost);
    CHECK_THAT(result.err, Catch::Contains("ddlrun: standard output: "));
  }
  ProgramSetup closed = ddlrun({"--version"});
  closed.close_all_standard_fds = true;
  CHECK(run_program(closed).exit_code == contract::kOutputLost);
}

TEST_CASE("a job whose output cannot be written fails with 123, but a rank's own exit code has precedence") {
  ProgramSetup full = ddlrun({"-np", "1", "/bin/echo", "result"});
  full.out_path = "/dev/full";
  ProgramRun result = run_program(full);
  CHECK(result.exit_code == contract::kOutputLost);
  CHECK_THAT(result.err, Catch::Contains("part of the ranks' output was lost") &&
                             Catch::Contains("standard output: No space left on device"));
  ProgramSetup closed = ddlrun({"-np", "1", "/bin/echo", "result"});
  closed.close_all_standard_fds = true;
  CHECK(run_program(closed).exit_code == contract::kOutputLost);

  ProgramSetup silent = ddlrun({"-np", "1", "/bin/true"});
  silent.close_all_standard_fds = true;
  CHECK(run_program(silent).exit_code == 0);  // nothing was lost
  ProgramSetup failing = ddlrun({"-np", "1", "/bin/sh", "-c", "echo result; exit 5"});
  failing.out_path = "/dev/full";
  CHECK(run_program(failing).exit_code == 5);
}

TEST_CASE("a job fails if a file of --output-filename cannot be written") {
  const ddl::test::TemporaryDirectory directory;
  const std::string folder = directory.path() + "/out/rank.0";
  std::filesystem::create_directories(folder);
  std::filesystem::create_symlink("/dev/full", folder + "/stdout");
  const ProgramRun result = run_program(
      ddlrun({"-np", "1", "--output-filename", directory.path() + "/out", "/bin/echo", "result"}));
  CHECK(result.exit_code == contract::kOutputLost);
  CHECK_THAT(result.err, Catch::Contains("rank.0/stdout: No space left on device"));
}

TEST_CASE("control characters of programs and of the command line are not printed unchanged") {
  ProgramSetup setup = ddlrun({"-np", "1", "no\x1b[31mtrain"});
  CHECK_THAT(run_program(setup).err, !Catch::Contains("\x1b[31m"));
  setup = ddlrun({"-np", "1", "/bin/sh", "-c", "printf 'a\\0b\\033[2Jc\\n' >&2; exit 5"});
  const std::string err = run_program(setup).err;
  const std::string report = err.substr(err.find("ddlrun: "));
  CHECK_THAT(report, Catch::Contains("| a^@bc\n"));
  CHECK_THAT(report, !Catch::Contains("\x1b[2J") && !Catch::Contains(std::string(1, '\0')));
  setup = ddlrun({"--no\x1b[31mtion"});
  CHECK_THAT(run_program(setup).err, !Catch::Contains("\x1b[31m"));
}

TEST_CASE("ddlrun works with closed standard descriptors") {
  ProgramSetup closed = ddlrun({"-np", "1", "/bin/sh", "-c", "exit 5"});
  closed.close_all_standard_fds = true;
  CHECK(run_program(closed).exit_code == 5);
  ProgramSetup no_out = ddlrun({"--version"});
  no_out.out_path = "-";
  CHECK(run_program(no_out).exit_code == contract::kOutputLost);
}

TEST_CASE("a current directory that was removed is reported, unless --workdir names another") {
  const auto from_removed = [](const std::string& words) {
    const ddl::test::TemporaryDirectory directory;
    ProgramSetup setup;
    setup.argv = {"/bin/sh", "-c", "rmdir '" + directory.path() + "' && exec " DDLRUN_PATH " -np 1 " + words};
    setup.directory = directory.path();
    return run_program(setup);
  };
  const ProgramRun refused = from_removed("/bin/true");
  CHECK(refused.exit_code == 127);
  CHECK_THAT(refused.err,
             Catch::StartsWith(
                 "ddlrun: the current directory, in which the ranks would start, has been removed\n") &&
                 Catch::Contains("--workdir"));
  const ProgramRun elsewhere = from_removed("--workdir / /bin/pwd");
  CHECK(elsewhere.exit_code == 0);
  CHECK(elsewhere.out == "/\n");
}

TEST_CASE("an empty argument vector is treated as a command line without words") {
  ProgramSetup setup;
  setup.argv = {"/bin/sh", "-c", "exec -a '' " DDLRUN_PATH};
  setup.argv[0] = "/bin/bash";
  CHECK(run_program(setup).exit_code == 2);
}
