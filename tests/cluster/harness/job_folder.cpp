#include "cluster/harness/job_folder.h"

#include <sys/stat.h>

#include <exception>

#include "base/text.h"
#include "e2e/harness/job.h"
#include "support/catch.h"

namespace ddl::cluster {

JobFolder::JobFolder() { REQUIRE(::chmod(path().c_str(), 0777) == 0); }

JobFolder::~JobFolder() {
  if (std::uncaught_exceptions() == 0) return;
  try {
    run({"sh", "-c", "scancel $(squeue -h -o '%i %Z' | sed -n \"s|^\\([0-9_]*\\) $PWD\\$|\\1|p\")"});
  } catch (...) {
    // The test has failed anyway.
  }
}

JobFolder::CommandResult JobFolder::run(const std::vector<std::string>& words) const {
  const e2e::Scratch scratch;
  // Without the TMPDIR of the test, which does not exist on the nodes of the job.
  std::vector<std::string> argv = {"env", "-u", "TMPDIR"};
  argv.insert(argv.end(), words.begin(), words.end());
  e2e::Command command = as_login(tested_login(), argv);
  command.directory = path();
  e2e::Job job(scratch, command);
  const int status = job.wait();
  return {status, job.out(), job.err()};
}

std::string JobFolder::checked_output(const std::vector<std::string>& words) const {
  const CommandResult result = run(words);
  INFO(join(words, " ") << '\n' << result.err);
  REQUIRE(result.status == 0);
  return result.out;
}

JobFolder::CommandResult JobFolder::slurm(const std::vector<std::string>& options,
                                          const std::vector<std::string>& command) const {
  std::vector<std::string> words = {e2e::ddlrun({}).argv.front(), "--slurm", "--time", "5"};
  words.insert(words.end(), options.begin(), options.end());
  words.emplace_back("--");
  words.insert(words.end(), command.begin(), command.end());
  return run(words);
}

std::string JobFolder::submit(const std::string& output, std::vector<std::string> options,
                              const std::vector<std::string>& command) const {
  options.insert(options.end(), {"--quiet", "--output", output, "--submit"});
  const CommandResult result = slurm(options, command);
  INFO(result.err);
  REQUIRE(result.status == 0);
  return std::string(trim(result.out));
}

std::string JobFolder::sbatch(const std::string& output, std::vector<std::string> options,
                              const std::string& script) const {
  options.insert(options.begin(), {"sbatch", "--parsable", "--output", output});
  options.push_back(script);
  return std::string(trim(checked_output(options)));
}

void JobFolder::wait_until(const std::string& condition, int limit_seconds) const {
  checked_output({"timeout", std::to_string(limit_seconds), "bash", "-c",
                  "until " + condition + "; do sleep 0.05; done"});
}

void JobFolder::await(const std::vector<std::string>& jobs) const {
  // Not by sbatch --wait, which polls with increasing intervals, up to 10 s.
  wait_until("[ -z \"$(squeue -h -j " + join(jobs, ",") + " 2>/dev/null)\" ]");
}

void JobFolder::await_second_run(const std::string& job) const {
  wait_until("squeue -h -j " + job + " -o %r | grep -q BeginTime");
  // Slurm waits two minutes before it restarts the job, so that no node mistakes it for the previous run: its
  // credentials distinguish runs only by the second.
  checked_output({"scontrol", "update", "JobId=" + job, "StartTime=now+3"});
  await({job});
}

void JobFolder::await_run_without_lost_node(const std::string& job) const {
  wait_until("reason=$(squeue -h -o %r -j " + job + " 2>/dev/null); [ \"$reason\" != BeginTime ] || " +
                 "scontrol update JobId=" + job + " StartTime=now; [ -z \"$reason\" ]",
             150);
}

void JobFolder::await_file(const std::string& name) const { wait_until("[ -e " + name + " ]"); }

void JobFolder::await_lines(const std::string& name, const std::string& word, int count) const {
  wait_until("[ \"$(grep -c " + word + " " + name + " 2>/dev/null)\" = " + std::to_string(count) + " ]");
}

std::string JobFolder::output(const std::string& name) const { return e2e::bytes_of(path() + "/" + name); }

int cancel_batch_script(const JobFolder& folder, bool execs) {
  const std::string rank =
      folder.write("saves.sh", R"sh(trap 'trap "" TERM; sleep 0.5; echo saved; exit 0' TERM
echo begins
exec 3<>never
read -rt 100 -u 3
)sh");
  const std::string script =
      folder.write("cancelled.sh", std::string("#!/bin/bash\n") + (execs ? "exec " : "") +
                                       e2e::ddlrun({}).argv.front() + " --kill-grace 4 bash " + rank + "\n");
  const std::string out = "out" + std::to_string(execs ? 1 : 0);
  // No child, whose end by Slurm's signal might end the rank before its own. A FIFO that nobody writes to.
  folder.checked_output({"sh", "-c", "rm -f never " + out + "; mkfifo never"});
  const std::string job =
      folder.sbatch(out, {"-N", "2", "--ntasks-per-node", "1", "-w", "node[1-2]"}, script);
  folder.await_lines(out, "begins", 2);
  folder.checked_output({"scancel", job});
  folder.await({job});
  const std::string text = folder.output(out);
  INFO(text);
  CHECK_THAT(text, Catch::Matchers::Contains("ended by SIGTERM"));
  int saved = 0;
  for (const std::string_view line : split(text, '\n')) saved += line.ends_with("saved") ? 1 : 0;
  return saved;
}

}  // namespace ddl::cluster
