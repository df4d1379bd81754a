#include "cli/options/help_pages.h"

#include <algorithm>
#include <cctype>
#include <span>
#include <string_view>

#include "base/text.h"
#include "cli/options/option_table.h"
#include "contract/version.h"

namespace ddl::cli {

namespace {

struct OptionHeading {
  OptionGroup group;
  std::string_view text;
  std::string_view topic;
};
struct OptionExample {
  std::string_view command;
  std::string_view effect;  ///< "": the command says it
};

constexpr OptionHeading kHeadings[] = {
    {OptionGroup::kRanks, "Ranks", "ranks"},
    {OptionGroup::kBinding, "Binding", "binding"},
    {OptionGroup::kHostsAndLauncher, "Hosts", "hosts"},
    {OptionGroup::kElasticJobs, "Elastic jobs", "elastic"},
    {OptionGroup::kInputOutput, "Input and output", "output"},
    {OptionGroup::kScripts, "Job scripts", "scripts"},
    {OptionGroup::kReports, "Reports", "reports"},
    {OptionGroup::kAbout, "About", "about"},
};

constexpr std::string_view kDescription =
    "Starts N ranks of a command on this machine, or on other hosts. Its exit code is that of the\n"
    "first rank that fails.\n"
    "Options come before the command; everything after it belongs to the command.";

constexpr std::string_view kExitCodes =
    "That of the first rank that failed, 128+N for signal N, 2 for a wrong option, 121 for a lost\n"
    "host, 122 if the job could not be started, 124 for --timeout, 126 or 127 if the command cannot be\n"
    "executed or does not exist.";

constexpr std::string_view kUsage = "Usage: ddlrun -np N [-H HOSTS] [options] [--] command [args...]\n\n";

// The topics that are no group of options.
constexpr std::string_view kExitCodesTopic = "exit-codes";
constexpr std::string_view kExamplesTopic = "examples";
constexpr std::string_view kAllTopics = "all";
constexpr std::string_view kMarkdown = "markdown";

/// What --help shows first.
constexpr OptionExample kFirstExamples[] = {
    {"ddlrun -np 4 python3 train.py --epochs 10", "4 ranks here; --epochs belongs to train.py"},
    {"ddlrun -H node1:4,node2:4 ./train", "4 ranks on each host, over ssh"},
    {"salloc -N 2 -n 16 ddlrun ./train", "a rank for each task of a Slurm job"},
    {"ddlrun --slurm -np 16 --time 2:00:00 ./train", "prints a script for sbatch"},
};
constexpr std::string_view kFirstOptions[] = {"-np",       "-H",        "--hostfile",
                                              "-x",        "--bind-to", "--output-filename",
                                              "--dry-run", "--inspect", "--check-build"};

constexpr OptionExample kExamples[] = {
    {"ddlrun -np 4 python train.py --epochs 10", "4 ranks; --epochs belongs to train.py"},
    {"ddlrun -np 4 --output-filename logs ./train", "also writes each rank's output to logs/rank.R/"},
    {"ddlrun -np 4 --timeline-filename t.json ./train", "also writes what the ranks did, and when"},
    {"ddlrun -np 4 --report page.html ./train", "a page about the job: where its time went"},
    {"ddlrun -np 2 -x LR=0.1 -x DATA ./train", "sets LR, passes on DATA"},
    {"ddlrun -np 4 --as-horovod python train.py", "a script that imports horovod, by ddl"},
    {"ddlrun -np 1 --no-tag-output ./train > out", "the rank's output, unchanged"},
    {"ddlrun -np 8 --oversubscribe --dry-run ./train", "prints what would be started"},
    {"ddlrun -H node1:2,node2:2 ./train", "2 ranks on each host, over ssh"},
    {"ddlrun -np 16 -H node[01-04] --map-by node ./a", "hosts in turn, one slot for each CPU"},
    {"ddlrun -H me@node1:4,[2001:db8::1]:4 -p 2222 ./train", ""},
    {"ddlrun --hostfile hosts.txt --ranks-per-node 1 hostname", ""},
    {"ddlrun --check-hosts --hostfile hosts.txt", "what those hosts have, and how they differ"},
    {"ddlrun --show-bind -np 8", "CPUs, GPU and NIC that each rank would have"},
    {"ddlrun --show-bind -np 8 --topology node.xml --format map_cpu", "for srun --cpu-bind="},
    {"ddlrun --slurm -np 16 --site lumi-g --account project_465 --time 30:00 -- ./train > job.sh", ""},
    {"ddlrun --slurm -np 8 --nodes 2 --time 2:00:00 --submit ./train", "write, check and submit it"},
    {"ddlrun --inspect", "what the ranks of your running job do"},
    {"ddlrun --inspect train --watch", "the same of the job \"train\", every 2 seconds"},
    {"ddlrun --timeline start train", "\"train\" records what its ranks do, and when"},
    {"ddlrun --timeline stop train", "writes that to a file"},
    {"ddlrun --config-file job.yaml ./train", "num-proc: 8, hosts: [a, b], ... in a file"},
    {"ddlrun --check-build", "what works on this machine"},
};

constexpr std::size_t kHelpColumn = 34;
constexpr std::size_t kFirstColumn = 26;
constexpr std::size_t kExampleColumn = 50;

std::string option_line(const OptionEntry& entry) {
  std::string line = "  ";
  bool first = true;
  for (const std::string_view spelling : split(entry.spellings, ',')) {
    // Long synonyms would widen the column; docs/reference/ddlrun.md has them.
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

std::string options_of(const OptionHeading& heading) {
  std::string text = std::string(heading.text) + ":\n";
  for (const OptionEntry& entry : option_table()) {
    if (entry.group == heading.group) text += option_line(entry);
  }
  return text;
}

std::string exit_codes() { return "Exit codes:\n" + std::string(kExitCodes) + "\n"; }

std::string examples(std::span<const OptionExample> all) {
  std::string text;
  for (const OptionExample& example : all) {
    std::string line = "  " + std::string(example.command);
    if (!example.effect.empty()) {
      line.resize(std::max(line.size() + 2, kExampleColumn), ' ');
      line += example.effect;
    }
    text += line + "\n";
  }
  return text;
}

std::string first_page() {
  std::string text =
      std::string(kUsage) + std::string(kDescription) + "\n\n" + examples(kFirstExamples) + "\n";
  for (const std::string_view spelling : kFirstOptions) {
    const OptionEntry& entry = *find_spelling(spelling);
    std::string line = "  " + std::string(spelling);
    if (entry.takes_value()) line += " " + std::string(entry.value);
    line.resize(std::max(line.size() + 2, kFirstColumn), ' ');
    text += line + std::string(entry.help) + "\n";
  }
  return text + "\nMore, by topic: ddlrun --help TOPIC, one of\n  " + join(help_topics(), " ") + "\n";
}

/// Text with every mark escaped, so that none begins a tag, a list or another font.
std::string escaped(std::string_view text) {
  std::string markdown;
  for (const char c : text) {
    if (std::ispunct(static_cast<unsigned char>(c)) != 0) markdown += '\\';
    markdown += c == '\n' ? ' ' : c;
  }
  return markdown;
}

std::string markdown_item(const std::string& term, std::string_view text) {
  return term + "\n\n" + (text.empty() ? "" : ":   " + escaped(text) + "\n\n");
}

/// Definition lists below the headings of a manual page.
std::string markdown() {
  std::string text = "# ddlrun\n\n## Description\n\n" + escaped(kDescription) + "\n\n## Options\n\n";
  for (const OptionHeading& heading : kHeadings) {
    text += "### " + std::string(heading.text) + "\n\n";
    for (const OptionEntry& entry : option_table()) {
      if (entry.group != heading.group) continue;
      std::string term;
      for (const std::string_view spelling : split(entry.spellings, ',')) {
        term += (term.empty() ? "`" : ", `") + std::string(spelling) + "`";
        if (entry.takes_value()) term += " *" + escaped(entry.value) + "*";
      }
      text += markdown_item(term, entry.help);
    }
  }
  text += "## Exit status\n\n" + escaped(kExitCodes) + "\n\n## Examples\n\n";
  for (const OptionExample& example : kExamples)
    text += markdown_item("`" + std::string(example.command) + "`", example.effect);
  return text;
}

}  // namespace

Result<std::string> help_text(std::string_view topic) {
  if (topic.empty()) return first_page();
  if (topic == kExitCodesTopic) return exit_codes();
  if (topic == kExamplesTopic) return "Examples:\n" + examples(kExamples);
  if (topic == kMarkdown) return markdown();
  std::string text = topic == kAllTopics ? std::string(kUsage) + std::string(kDescription) + "\n\n" : "";
  for (const OptionHeading& heading : kHeadings) {
    if (topic == heading.topic) return options_of(heading);
    if (topic == kAllTopics) text += options_of(heading) + "\n";
  }
  if (topic == kAllTopics) return text + exit_codes() + "\nExamples:\n" + examples(kExamples);
  return refuse("--help has no topic '" + std::string(topic) + "'; there are " + join(help_topics(), ", "));
}

std::vector<std::string> help_topics() {
  std::vector<std::string> topics;
  for (const OptionHeading& heading : kHeadings) topics.emplace_back(heading.topic);
  for (const std::string_view topic : {kExitCodesTopic, kExamplesTopic, kAllTopics, kMarkdown})
    topics.emplace_back(topic);
  return topics;
}

std::string version_text() { return "ddlrun " + std::string(contract::kVersion) + "\n"; }

}  // namespace ddl::cli
