// Job scripts: what writes, checks and submits them.
#include <unistd.h>

#include "base/text.h"
#include "cli/check_build/probe.h"
#include "cli/check_build/probe_tools.h"
#include "cli/cluster_query.h"
#include "cli/this_process.h"
#include "cli/user_file.h"
#include "templates/script/batch_job.h"
#include "templates/script/script_renderer.h"

namespace ddl::cli {

Finding look_at_script_templates() {
  templates::ScriptRequest request;
  request.num_proc = 2;
  request.command = {"./train"};
  request.ddlrun = "ddlrun";
  const auto job = templates::make_batch_job(request, nullptr);
  if (!job) return fails(job.error().message());
  const auto found =
      templates::find_templates("", config_folders(process_environment(), "slurm"), read_user_file);
  if (!found)
    return fails(found.error().message(), "correct it: " + document("reference/script-templates.md"));
  const auto text = templates::render_script(*found, request, *job, nullptr, {});
  if (!text) return fails(text.error().message(), "correct it: " + document("reference/script-templates.md"));
  if (!text->starts_with("#!/bin/bash")) return fails("the script does not begin with #!/bin/bash");
  return works({}, {},
               "ddlrun --slurm writes one with " +
                   counted(static_cast<std::int64_t>(split(*text, '\n').size()), "line"));
}

Finding look_at_slurm_probe() {
  if (::access(slurm_probe_path().c_str(), X_OK) != 0) {
    return fails("there is no " + slurm_probe_path(),
                 "build ddlrun where libslurm is (Debian: libslurm-dev); without it scontrol is asked");
  }
  const auto facts = ask_cluster(slurm_probe_path(), kCommandPatience);
  if (!facts) return fails(facts.error().message(), "run it where Slurm is set up");
  return works(
      {}, slurm_probe_path(),
      counted(static_cast<std::int64_t>(facts->partitions.size()), "partition") + " of " + facts->name);
}

Finding look_at_sbatch() {
  const Command command =
      command_in_path("sbatch", "scripts are written here all the same; submit them where sbatch is");
  if (command.path.empty()) return command.missing;
  const FirstLine said = first_line_of({command.path, "--version"});
  if (!said.text.empty()) return works(said.text, command.path, "for --submit and --test-only");
  return fails(said.failure.detail, "run it where Slurm is set up: SLURM_CONF, or /etc/slurm/slurm.conf");
}

}  // namespace ddl::cli
