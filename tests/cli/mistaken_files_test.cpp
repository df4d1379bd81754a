// Hosts, hostfiles, configuration files and names of files that are wrong.
#include "cli/commands/commands.h"
#include "cli/mistakes.h"
#include "support/catch.h"
#include "support/temporary_directory.h"

using ddl::test::check_refused;
using ddl::test::MistakenFiles;

TEST_CASE("hosts of -H that are written as for another program, or cut by a space") {
  check_refused({
      {{"-np", "2", "-H", ",", "a"}, "-H: an empty entry: the name of a host is missing", "one word"},
      {{"-np", "2", "-H", "a,,b", "a"}, "-H: an empty entry", "node1:4"},
      {{"-np", "2", "-H", "a:2,", "x"}, "-H: an empty entry", "without a space behind a comma"},
      {{"-np", "2", "-H", "a:2", "b:2", "x"},
       "the hosts of -H end at a space: b:2 would be the command",
       "no space"},
      {{"-np", "2", "-H", "a:2,", "b:2,c:2", "x"},
       "the hosts of -H end at a space: b:2,c:2",
       "node1:4,node2:4"},
      {{"-np", "2", "--hosts=a:2", "b:2"}, "the hosts of --hosts end at a space", "as one word"},
      {{"-np", "2", "-H", "a:0", "x"}, "\"a:0\": slots must be a positive integer, found \"0\"", "node1:4"},
      {{"-np", "2", "-H", "a:2.5", "x"}, "slots must be a positive integer, found \"2.5\"", "node1:4"},
      {{"-np", "2", "-H", "a:99999999999", "x"}, "slots must be at most 1000000", "node1:4"},
      {{"-np", "2", "-H", "a:2:2", "x"}, "more than one colon", "node1:4"},
      {{"-np", "2", "-H", ":2", "x"}, "\":2\": the name of a host is missing", "node1:4"},
      {{"-np", "2", "-H", "a slots=2", "x"}, "found \"a slots=2\"", "node1:4"},
      {{"-np", "2", "-H", "a*2", "x"}, "found \"a*2\"", "node1:4"},
      {{"-np", "2", "-H", "a=2", "x"}, "found \"a=2\"", "node1:4"},
      {{"-np", "2", "-H", "::1", "x"}, "an IPv6 address [2001:db8::1]:SLOTS", "[2001:db8::1]:4"},
      {{"-np", "2", "-H", "[::1:2", "x"}, "the brackets do not match", "[2001:db8::1]:4"},
      {{"-np", "2", "-H", "n[2-1]", "x"}, "the range \"2-1\" runs backwards", "node[01-16]:4"},
      {{"-np", "2", "-H", "n[1-99999999]", "x"}, "stands for more than 65536 hosts", "node[01-16]"},
      {{"-np", "2", "-H", "n[a-b]", "x"}, "brackets hold numbers and ranges", "node[01-16]"},
      {{"-np", "2", "-H", "n{1,2}", "x"}, "found \"n{1\"", "node[01-16]"},
      {{"-np", "2", "-H", "@a:2", "x"}, "the name of a user is missing", "me@node1:4"},
      {{"-np", "2", "-H", "me@:2", "x"}, "\"me@:2\": the name of a host is missing", "me@node1:4"},
      {{"-np", "2", "-H", "ssh://a", "x"}, "found \"//a\"", "--hostfile"},
      {{"-np", "2", "-H", "./hosts", "x"}, "found \"./hosts\"", "a file of hosts is named with --hostfile"},
      {{"-np", "2", "-H", "1", "x"}, "\"1\" is a number, not the name of a host", "node1:4"},
      {{"-np", "2", "-H", "a\nb", "x"}, "found \"a\\x0ab\"", "node1:4"},
      {{"-H", "a:2", "--hosts-exclude", "a", "x"}, "--hosts-exclude leaves no host of -H", "node1:4"},
      {{"--nnodes", "3", "-np", "3", "x"}, "--nnodes asks for 3 hosts, and this machine has 1", "-H"},
      {{"-np", "2", "--exclude", "", "x"}, "--exclude (--hosts-exclude): its value is empty", "HOSTS"},
      {{"--launcher", "srun", "-np", "1", "x"}, "ddlrun does not run in one", "salloc"},
  });
}

TEST_CASE("hostfiles that are empty, not text, or written for another program") {
  const ddl::test::TemporaryDirectory folder;
  const MistakenFiles files{{{"empty", ""},
                             {"comments", "# only\n\n"},
                             {"elf", std::string("\x7f"
                                                 "ELF\x02\x01\0\0",
                                                 8)},
                             {"nul", std::string("n\0001\n", 4)},
                             {"utf16", std::string("\xff\xfen\0001\0\n\0", 8)},
                             {"utf16be", std::string("\xfe\xff\0n", 4)},
                             {"mac", "n1 slots=2\rn2 slots=2\r"},
                             {"comma", "n1,n2\n"},
                             {"etc", "127.0.0.1 localhost\n"},
                             {"script", "\nprint(1)\n"}},
                            {}};
  check_refused(
      {
          {{"-np", "2", "--hostfile", "empty", "x"}, "empty names no host", "node1:4"},
          {{"-np", "2", "--hostfile", "comments", "x"}, "comments names no host", "node1:4"},
          {{"-np", "2", "--hostfile", "elf", "x"}, "elf:1: a host is named with letters", "node1:4"},
          {{"-np", "2", "--hostfile", "nul", "x"}, "found \"n\\x001\"", "node1:4"},
          {{"-np", "2", "--hostfile", "utf16", "x"}, "utf16 is encoded in UTF-16", "node1:4"},
          {{"-np", "2", "--hostfile", "utf16be", "x"}, "save it as UTF-8", "node1:4"},
          {{"-np", "2", "--hostfile", "mac", "x"},
           "mac:1: slots must be a positive integer, found \"2\\x0dn2\"",
           ""},
          {{"-np", "2", "--hostfile", "comma", "x"},
           "comma:1: a hostfile has one host on each line",
           "node1:4"},
          {{"-np", "2", "--hostfile", "etc", "x"},
           "etc:1: only slots=N, max_slots=N, port=N and user=NAME may follow",
           ""},
          {{"-np", "2", "--hostfile", "script", "x"}, "script:2: a host is named with letters", "node1:4"},
          {{"-np", "2", "--hostfile", folder.path(), "x"},
           ": Is a directory",
           "name a file with one host a line"},
          {{"-np", "2", "--hostfile", "n1:2,n2:2", "x"}, "n1:2,n2:2: No such file", "or hosts with -H"},
          {{"-np", "2", "--hostfile", "/dev/zero", "x"},
           "/dev/zero is longer than 16777216 bytes",
           "one host a line"},
          {{"--check-hosts", "--hostfile", "empty"}, "empty names no host", "node1:4"},
          {{"--check-hosts", "-H", "a,b", "--start-timeout", "0"}, "leaves no time", "SECONDS"},
      },
      files);
  // A byte order mark and line ends of Windows are none of these.
  const auto request = ddl::cli::parse_command_line(
      std::vector<std::string>{"--hostfile", "windows", "x"},
      {"/", 2, "head", [](const std::string&) {
         return ddl::Result<std::string>("\xef\xbb\xbfn1 slots=2\r\nn2 slots=2\r\n");
       }});
  REQUIRE(request);
  CHECK(request->job.num_ranks == 4);
}

TEST_CASE("configuration files that are no YAML, or say something twice or in the wrong shape") {
  const MistakenFiles files{{{"tab", "np: 2\n\tquiet: true\n"},
                             {"twice", "np: 2\nnum-proc: 3\n"},
                             {"map", "np: {a: 1}\n"},
                             {"tag", "%TAG\n"},
                             {"anchor", "np: 2\nx: *b\n"},
                             {"documents", "---\nnp: 2\n---\nnp: 3\n"},
                             {"ini", "np=2\n"},
                             {"elf", "\"\x7f\\\x01\"\n"},
                             {"command", "np: 2\ncommand: ./a\n"},
                             {"float", "np: 2.0\n"},
                             {"hosts", "np: 2\nhosts:\n  - a: 2\n"},
                             {"empty item", "np: 2\nhosts: [a, , b]\n"},
                             {"export", "np: 2\nx:\n  A: 1\n"},
                             {"both", "np: 2\nverbose: true\nquiet: true\n"},
                             {"tags", "tag-output: true\nno-tag-output: true\nnp: 2\n"},
                             {"timeout", "np: 2\ntimeout: 10m\n"},
                             {"home", "np: 2\nworkdir: ~/run\n"},
                             {"variable", "np: 2\noutput-filename: $SCRATCH/logs\n"},
                             {"script", "slurm: true\nnp: 2\nmem: 4 G\n"},
                             {"inspect", "inspect: train\n"}},
                            {}};
  check_refused(
      {
          {{"--config-file", "tab", "x"}, "tab:2: not valid YAML", "option: value"},
          {{"--config-file", "twice", "x"},
           "twice:2: -np/--num-proc was given 2 times: 2, 3",
           "give it once"},
          {{"--config-file", "map", "x"}, "map:1: -np/--num-proc takes one value", "-np N"},
          {{"--config-file", "tag", "x"}, "tag:1: not valid YAML", "option: value"},
          {{"--config-file", "anchor", "x"}, "anchor:2: not valid YAML", "option: value"},
          {{"--config-file", "documents", "x"}, "documents:3: a second document begins", "option: value"},
          {{"--config-file", "ini", "x"}, "ini:1: the file is not a map", "option: value"},
          {{"--config-file", "elf", "x"}, "elf:1: not valid YAML", "option: value"},
          {{"--config-file", "command", "x"}, "command:2: unknown key command", "without its dashes"},
          {{"--config-file", "float", "x"}, "float:1: -np/--num-proc: '2.0' is not a whole number", "-np N"},
          {{"--config-file", "hosts", "x"}, "hosts:3: -H/--hosts takes a list of strings", "write node1:4"},
          {{"--config-file", "empty item", "x"},
           "empty item:2: -H/--hosts takes a list of strings",
           "node1:4,node2:4"},
          {{"--config-file", "export", "x"},
           "export:2: -x takes one value or a list of them",
           "NAME=VALUE for -x"},
          {{"--config-file", "both", "x"}, "both:3: --verbose and --quiet contradict each other", "omit one"},
          {{"--config-file", "tags", "x"}, "tags:2: --tag-output and --no-tag-output contradict", "omit one"},
          {{"--config-file", "timeout", "x"},
           "timeout:2: --timeout: '10m' is not a number of seconds",
           "SECONDS"},
          {{"--config-file", "home", "x"},
           "home:2: --workdir: '~/run' begins with ~",
           "write the whole path"},
          {{"--config-file", "variable", "x"},
           "'$SCRATCH/logs' begins with a variable that no shell",
           "write its value"},
          {{"--config-file", "script", "x"}, "script:3: --mem: '4 G' is not a size of memory", "64G"},
          {{"--config-file", "inspect", "x"}, "--inspect starts no command, but x follows", "name one job"},
          {{"--config-file", "/", "x"}, "the configuration file cannot be read: ", "--config-file FILE"},
          {{"--config-file", "", "x"}, "--config-file: the name of the file is empty", "--config-file FILE"},
      },
      files);
}

TEST_CASE("--help and --version in a configuration file print, whatever follows") {
  for (const auto& [key, action] : std::map<std::string, ddl::cli::Action>{
           {"help", ddl::cli::Action::kHelp}, {"version", ddl::cli::Action::kVersion}}) {
    const std::string text = key + ": true\n";
    const auto request = ddl::cli::parse_command_line(
        std::vector<std::string>{"--config-file", "file", "./a", "b"},
        {"/", 2, "head", [&](const std::string&) { return ddl::Result<std::string>(text); }});
    REQUIRE(request);
    CHECK(request->action == action);
  }
}

TEST_CASE("a name of a file that no shell has expanded makes no folder of that name") {
  check_refused({
      {{"-np", "1", "--output-filename=~/out", "x"},
       "--output-filename: '~/out' begins with ~",
       "write $HOME for ~"},
      {{"-np", "1", "--workdir=~", "x"},
       "--workdir: '~' begins with ~, which no shell has replaced",
       "$HOME"},
      {{"-np", "1", "-wdir=~/x", "x"}, "-wdir: '~/x' begins with ~", "$HOME"},
      {{"-np", "1", "--hostfile=~/hosts", "x"}, "--hostfile: '~/hosts' begins with ~", "$HOME"},
      {{"-np", "1", "--config-file=~/c.yaml", "x"}, "--config-file: '~/c.yaml' begins with ~", "$HOME"},
      {{"-np", "1", "--timeline-filename=~/t", "x"}, "--timeline-filename: '~/t' begins with ~", "$HOME"},
      {{"-np", "1", "--ssh-identity-file=~/.ssh/id", "x"},
       "--ssh-identity-file: '~/.ssh/id' begins",
       "$HOME"},
      {{"-np", "1", "--mpi", "--mpirun=~/bin/mpirun", "x"},
       "--mpirun: '~/bin/mpirun' begins with ~",
       "$HOME"},
      {{"-np", "1", "--rankfile=~/ranks", "x"}, "--rankfile: '~/ranks' begins with ~", "$HOME"},
      {{"--show-bind", "-np", "1", "--topology=~/n.xml"}, "--topology: '~/n.xml' begins with ~", "$HOME"},
      {{"-np", "1", "--slurm", "--script-file=~/job.sh", "x"}, "--script-file: '~/job.sh' begins", "$HOME"},
      {{"-np", "1", "--slurm", "--venv=~/venv", "x"}, "--venv: '~/venv' begins with ~", "$HOME"},
      {{"-np", "1", "--slurm", "--container=~/i.sif", "x"}, "--container: '~/i.sif' begins with ~", "$HOME"},
      {{"-np", "1", "--slurm", "--output=~/%j.out", "x"}, "--output: '~/%j.out' begins with ~", "$HOME"},
      {{"-np", "1", "--slurm", "--venv", "$SCRATCH/v", "x"},
       "--venv: '$SCRATCH/v' begins with a variable",
       "value"},
      {{"--lint=~/job.sh"}, "--lint: '~/job.sh' begins with ~", "$HOME"},
      {{"-np", "1", "--output-filename", "$HOME/out", "x"},
       "'$HOME/out' begins with a variable that no",
       "double quotes"},
  });
}
