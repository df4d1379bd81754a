#include "cli/help_text.h"

#include <string_view>
#include <utility>

#include "base/text.h"
#include "cli/option_table.h"
#include "contract/version.h"

namespace ddl::cli {

namespace {

constexpr std::pair<OptionGroup, std::string_view> kHeadings[] = {
    {OptionGroup::kRanks, "Ranks"},         {OptionGroup::kBinding, "Binding"},
    {OptionGroup::kPlaces, "Hosts"},        {OptionGroup::kInputOutput, "Input and output"},
    {OptionGroup::kScripts, "Job scripts"}, {OptionGroup::kReports, "Reports"},
    {OptionGroup::kAbout, "About"},
};

constexpr std::size_t kHelpColumn = 34;

std::string option_line(const OptionEntry& entry) {
  std::string line = "  ";
  bool first = true;
  for (const std::string_view spelling : split(entry.spellings, ',')) {
    // Long synonyms would only widen the column; docs/reference/ddlrun.md has them.
    if (!first && line.size() + spelling.size() > kHelpColumn) continue;
    line += (first ? "" : ", ") + std::string(spelling);
    first = false;
  }
  if (entry.takes_value()) line += " " + std::string(entry.value);
  if (line.size() + 2 > kHelpColumn) {
    line += "\n" + std::string(kHelpColumn, ' ');
  } else {
    line.append(kHelpColumn - line.size(), ' ');
  }
  return line + std::string(entry.help) + "\n";
}

}  // namespace

std::string help_text() {
  std::string text =
      "Usage: ddlrun -np N [-H HOSTS] [options] [--] command [args...]\n"
      "\n"
      "Starts N ranks of a command, on this machine or on the hosts that are given, and ends with the\n"
      "exit code of the first one that fails.\n"
      "Options come before the command; everything after it is the command's.\n";
  for (const auto& [group, heading] : kHeadings) {
    text += "\n" + std::string(heading) + ":\n";
    for (const OptionEntry& entry : option_table()) {
      if (entry.group == group) text += option_line(entry);
    }
  }
  text +=
      "\n"
      "Exit codes: the first failing rank's own, 128+N for signal N, 2 for a wrong option, 121 for a\n"
      "lost host, 122 when the job could not be started, 124 for --timeout, 126 or 127 when the\n"
      "command cannot be executed or does not exist.\n"
      "\n"
      "Examples:\n"
      "  ddlrun -np 4 python train.py --epochs 10        4 ranks; --epochs is train.py's\n"
      "  ddlrun -np 4 --output-filename logs ./train     and each rank's output in logs/rank.R/\n"
      "  ddlrun -np 2 -x LR=0.1 -x DATA ./train          LR set, DATA passed on\n"
      "  ddlrun -np 1 --no-tag-output ./train > out      the rank's bytes, unchanged\n"
      "  ddlrun -np 8 --oversubscribe --dry-run ./train  what would be started\n"
      "  ddlrun -H node1:2,node2:2 ./train               2 ranks on each, over ssh\n"
      "  ddlrun -np 16 -H node[01-04] --map-by node ./a  taking turns, by as many CPUs as they have\n"
      "  ddlrun -H me@node1:4,[2001:db8::1]:4 -p 2222 ./train\n"
      "  ddlrun --hostfile hosts.txt --ranks-per-node 1 hostname\n"
      "  ddlrun --check-hosts --hostfile hosts.txt       what those hosts have, and how they differ\n"
      "  ddlrun --show-bind -np 8                        which CPUs, GPU and NIC each rank would have\n"
      "  ddlrun --show-bind -np 8 --topology node.xml --format map_cpu    for srun --cpu-bind=\n"
      "  ddlrun --slurm -np 16 --site lumi-g --account project_465 --time 30:00 -- ./train > job.sh\n"
      "  ddlrun --slurm -np 8 --nodes 2 --time 2:00:00 --submit ./train    write it, check it, sbatch it\n"
      "  ddlrun --config-file job.yaml ./train           num-proc: 8, hosts: [a, b], ... in a file\n"
      "  ddlrun --check-build                            what works on this machine\n";
  return text;
}

std::string version_text() { return "ddlrun " + std::string(contract::kVersion) + "\n"; }

}  // namespace ddl::cli
