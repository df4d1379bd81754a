#include "cli/options/given_options.h"

#include "base/text.h"
#include "cli/options/option_table.h"
#include "support/catch.h"

using ddl::cli::option_table;
using ddl::cli::split_argv;
using Words = std::vector<std::string>;

namespace {

struct Case {
  Words words;
  Words options;
  Words command;
};

// clang-format off
const std::vector<Case> kCases = {
    {{}, {}, {}},
    {{"-np", "4", "./a"}, {"--num-proc", "4"}, {"./a"}},
    {{"-np=4", "./a"}, {"--num-proc", "4"}, {"./a"}},
    {{"--np", "4", "./a"}, {"--num-proc", "4"}, {"./a"}},
    {{"--num-proc=4", "./a"}, {"--num-proc", "4"}, {"./a"}},
    {{"-cb"}, {"--check-build"}, {}},
    {{"-hostfile", "hosts", "./a"}, {"--hostfile", "hosts"}, {"./a"}},
    {{"-H", "a:2,b:2", "./a"}, {"--hosts", "a:2,b:2"}, {"./a"}},
    {{"-p22", "./a"}, {"--ssh-port", "22"}, {"./a"}},
    {{"-prefix-timestamp", "./a"}, {"--prefix-output-with-timestamp"}, {"./a"}},
    // Words after the command belong to the command.
    {{"./a", "-np", "4", "-cb", "--", "--help"}, {}, {"./a", "-np", "4", "-cb", "--", "--help"}},
    {{"-np", "2", "./a", "-np", "4"}, {"--num-proc", "2"}, {"./a", "-np", "4"}},
    {{"--", "-np", "4"}, {}, {"-np", "4"}},
    {{"-np", "2", "--", "--", "-x"}, {"--num-proc", "2"}, {"--", "-x"}},
    {{"--verbose", "", "-np", "4"}, {"--verbose"}, {"", "-np", "4"}},
    {{"-", "-np", "4"}, {}, {"-", "-np", "4"}},
    // A value may start with a dash, but is never "--".
    {{"--timeout", "-5", "./a"}, {"--timeout", "-5"}, {"./a"}},
    {{"-np", "-cb", "./a"}, {"--num-proc", "-cb"}, {"./a"}},
    {{"--workdir", "", "./a"}, {"--workdir", ""}, {"./a"}},
    {{"--workdir=", "./a"}, {"--workdir", ""}, {"./a"}},
    {{"-np", "--", "./a"}, {"--num-proc"}, {"./a"}},
    {{"-np"}, {"--num-proc"}, {}},
    {{"-x", "A=1=2", "-xB=3", "-x=C=4", "./a"}, {"-x", "A=1=2", "-x", "B=3", "-x", "C=4"}, {"./a"}},
    // An optional value does not start with a dash; "" stands for none.
    {{"--inspect"}, {"--inspect", ""}, {}},
    {{"--inspect", "4711", "--json"}, {"--inspect", "4711", "--json"}, {}},
    {{"--inspect", "--json"}, {"--inspect", "", "--json"}, {}},
    {{"--inspect", "--", "a"}, {"--inspect", ""}, {"a"}},
    {{"--inspect", "a", "b"}, {"--inspect", "a"}, {"b"}},
    // Unknown options are passed on unchanged and take no value.
    {{"--bogus", "3", "./a"}, {"--bogus"}, {"3", "./a"}},
    {{"--bogus=3", "./a"}, {"--bogus=3"}, {"./a"}},
    {{"-np4", "./a"}, {"--num-proc", "4"}, {"./a"}},
    {{"-np4x", "./a"}, {"-np4x"}, {"./a"}},
    {{"-timeout", "3", "./a"}, {"-timeout"}, {"3", "./a"}},
    {{"--verbose=3", "./a"}, {"--verbose=3"}, {"./a"}},
    {{"---", "./a"}, {"---"}, {"./a"}},
    // With --slurm, before or behind them, letters are sbatch's.
    {{"-t", "30", "-N2", "-c", "4", "-p", "gpu", "-J", "n", "-e", "e", "-C", "a&b", "-q", "q", "-d", "1", "-a", "0-9",
      "--slurm", "-n", "8", "./a"},
     {"--time", "30", "--nodes", "2", "--cpus-per-task", "4", "--partition", "gpu", "--job-name", "n", "--error", "e",
      "--constraint", "a&b", "--qos", "q", "--dependency", "1", "--array", "0-9", "--slurm", "--num-proc", "8"},
     {"./a"}},
    {{"--slurm", "-w", "n[1-2]", "-G=8", "--exclude=n3", "-A", "p", "-o", "f", "-x", "A", "./a", "-t", "3"},
     {"--slurm", "--sbatch", "--nodelist=n[1-2]", "--sbatch", "--gpus=8", "--sbatch", "--exclude=n3", "--account", "p",
      "--script-file", "f", "-x", "A"},
     {"./a", "-t", "3"}},
    {{"-p", "22", "./a", "--slurm"}, {"--ssh-port", "22"}, {"./a", "--slurm"}},
    // There an unknown option that is close to one has its value.
    {{"--slurm", "--tiem", "30", "./a"}, {"--slurm", "--tiem", "30"}, {"./a"}},
    {{"--slurm", "--bogus", "30", "./a"}, {"--slurm", "--bogus"}, {"30", "./a"}},
};
// clang-format on

/// "-np=4" and "-np 4" are both "--num-proc", "4"; unknown words are as they were typed.
Words options_of(const Words& words) {
  Words options;
  for (const auto& one : split_argv(words).options) {
    options.push_back(one.entry == nullptr ? one.name : std::string(canonical_spelling(*one.entry)));
    if (one.value) options.push_back(*one.value);
  }
  return options;
}

std::string typed_name(const Words& words) { return split_argv(words).options.at(0).name; }

}  // namespace

TEST_CASE("argv is split where the command starts, and options get their canonical spelling") {
  for (const Case& one : kCases) {
    INFO("words: " << ddl::join(one.words, "|"));
    CHECK(options_of(one.words) == one.options);
    CHECK(split_argv(one.words).command == one.command);
  }
}

TEST_CASE("every spelling of every option is accepted, with a separate and an attached value") {
  for (const auto& entry : option_table()) {
    const std::string canonical(canonical_spelling(entry));
    for (const auto spelling_view : ddl::split(entry.spellings, ',')) {
      const std::string spelling(spelling_view);
      INFO(spelling);
      if ((entry.rules & ddl::cli::kNameAndValue) != 0) {
        CHECK(options_of(Words{spelling, "n", "v", "cmd"}) == Words{canonical, "n=v"});
        CHECK(options_of(Words{spelling, "n=v=w", "cmd"}) == Words{canonical, "n=v=w"});
        CHECK(options_of(Words{spelling, "n"}) == Words{canonical, "n"});
        continue;
      }
      if (entry.takes_value()) {
        CHECK(options_of(Words{spelling, "v", "cmd"}) == Words{canonical, "v"});
        CHECK(options_of(Words{spelling + "=v", "cmd"}) == Words{canonical, "v"});
      } else {
        CHECK(options_of(Words{spelling, "cmd"}) == Words{canonical});
      }
      CHECK(split_argv(Words{spelling, "v", "cmd"}).command.back() == "cmd");
    }
  }
}

TEST_CASE("the spelling that was typed is kept, without an attached value") {
  CHECK(typed_name(Words{"--hosts=a", "-H", "b"}) == "--hosts");
  CHECK(typed_name(Words{"-H", "a=b"}) == "-H");
  CHECK(typed_name(Words{"-p22"}) == "-p");
  CHECK(typed_name(Words{"-cb=nccl"}) == "-cb");
  CHECK(typed_name(Words{"-xA=1=2"}) == "-x");
}
