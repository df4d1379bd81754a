#include "cli/commands/commands.h"

#include <map>

#include "base/text.h"
#include "cli/options/foreign_options.h"
#include "support/catch.h"

using namespace ddl::cli;
using ddl::launcher::JobSpec;
using ddl::launcher::LauncherChoice;
using ddl::launcher::MapBy;
using ddl::launcher::StdinTarget;
using Words = std::vector<std::string>;

namespace {

ddl::Result<std::string> read_file(const std::string& path) {
  const std::map<std::string, std::string> files = {
      {"hosts", "n1 slots=2\nn2\n"},
      {"full", "n1 slots=2\nn2 slots=3\n"},
      {"bad", "n1\nn2 slots=x\n"},
      {"-", "m1:2\nm2:2\n"},
      {"gloo.yaml", "controller: gloo\n"},
      {"mpi.yaml", "controller: mpi\nnum-proc: 2\n"},
      {"twice.yaml", "hosts: [a, a]\nnum-proc: 2\n"},
      {"slots.yaml", "verbose: true\nhosts: [a, b:2]\n"},
      {"checks.yaml", "num-proc: 2\nbind-to: core\njson: true\n"},
      {"timeline.yaml", "timeline:\n  filename: of-file.json\n"},
      {"bad.yaml", "verbose: true\nnump-roc: 3\n"},
      {"job.yaml",
       "num-proc: 3\ntimeout: 60\nx: [A=1, B]\nhosts: a:3\nverbose: true\nno-tag-output: true\n"}};
  const auto file = files.find(path);
  if (file == files.end()) return ddl::fail(ddl::ErrorCode::kNotFound, path + ": there is no such file");
  return file->second;
}

const CommandLineContext kContext{"/home/me", 6, "head", read_file};

auto parse(const Words& words) { return parse_command_line(words, kContext); }

Request accepted(const Words& words) {
  const auto request = parse(words);
  INFO(ddl::join(words, " ") << " -> " << (request ? "" : request.error().message()));
  REQUIRE(request);
  return *request;
}

struct Refused {
  Words words;
  std::string message;  // a part of it
  std::string hint;     // a part of it
};

// clang-format off
const std::vector<Refused> kRefused = {
    {{}, "no command", "ddlrun -np 6 "},
    {{"-np", "4"}, "no command", ""},
    {{"-np", "4", "--"}, "no command", ""},
    {{"-np", "2", ""}, "empty word", ""},
    {{"python", "train.py"}, "-np is missing", "ddlrun -np 6 python train.py"},
    {{"./a b", "-np", "4"}, "the one after './a b' belongs to the command", "come before"},
    {{"./a", "--num-proc=4"}, "the one after ./a belongs", "come before"},
    {{"-np"}, "-np/--num-proc needs a value", "-np N"},
    {{"-np", "--", "./a"}, "-np/--num-proc needs a value", "-np N"},
    {{"-np", "./a"}, "'./a' is not a whole number", "-np N"},
    {{"-np", "--verbose", "./a"}, "-np needs a value, but the option --verbose follows", "-np N"},
    {{"-np", "", "a"}, "'' is not a whole number", ""},
    {{"-np", "four", "a"}, "'four' is not a whole number", ""},
    {{"-np", "4.0", "a"}, "'4.0' is not a whole number", ""},
    {{"-np", "4x", "a"}, "'4x' is not a whole number", ""},
    {{"-np", " 4", "a"}, "' 4' is not a whole number", ""},
    {{"-np", "0x4", "a"}, "'0x4' is not a whole number", ""},
    {{"-np", "1e3", "a"}, "'1e3' is not a whole number", ""},
    {{"-np", "nan", "a"}, "'nan' is not a whole number", ""},
    {{"-np", "--4", "a"}, "'--4' is not a whole number", ""},
    {{"-np", "0", "a"}, "'0' is too few", ""},
    {{"-np", "-1", "a"}, "'-1' is too few", ""},
    {{"-np", "-99999999999999999999", "a"}, "is too few", ""},
    {{"-np", "1000001", "a"}, "too many", "-np N"},
    {{"-np", "99999999999999999999", "a"}, "too many", ""},
    {{"-np", "2", "-np", "3", "a"}, "-np/--num-proc was given 2 times: 2, 3", "give it once"},
    {{"-np", "2", "--num-proc=2", "a"}, "was given 2 times: 2, 2", ""},
    {{"-np4x", "a"}, "unknown option -np4x", "write it behind the program"},
    {{"--tf-roles", "chief:1,worker", "a"}, "--tf-roles: the number of tasks is missing", "--tf-roles ROLES"},
    {{"-np", "4", "--tf-roles", "worker:2", "a"}, "--tf-roles has 2 tasks, and -np is 4", "omit -np"},
    {{"--framework", "jax", "--tf-roles", "worker:2", "a"}, "--tf-roles belongs to --framework tensorflow", "omit"},
    {{"-np", "2", "--framework", "tensorflow", "--mxnet-servers", "2", "a"}, "belongs to --framework mxnet", "omit"},
    {{"-np", "2", "--mpi", "--framework", "tensorflow", "a"}, "mpirun runs without them", "omit --mpi"},
    {{"--tf-roles", "worker:2", "--mxnet-servers", "2", "a"}, "--mxnet-servers", "omit one of them"},
    {{"-np", "1001", "--framework", "tensorflow", "-H", "a:2000", "a"}, "each of 1001 tasks", "at most 1000"},
    {{"-np", "2", "--gloo", "--framework", "none", "a"}, "--gloo needs the variables of Horovod", "omit one"},
    {{"-np", "2", "--mxnet-servers", "1", "--gloo", "a"}, "--gloo needs the variables of Horovod", "omit one"},
    {{"-np", "2", "--mxnet-servers", "0", "a"}, "--mxnet-servers: '0'", ""},
    {{"-np", "2", "--as-horovod=yes", "a"}, "--as-horovod", ""},
    {{"-np", "2", "--gloo", "-x", "HOROVOD_GLOO_RENDEZVOUS_ADDR=a", "a"}, "is set by ddlrun for every rank", ""},
    {{"-np", "2", "--framework", "tensorflow", "-x", "TF_CONFIG={}", "a"}, "TF_CONFIG is set by ddlrun", ""},
    {{"--completion", "csh"}, "'csh' is not one of bash, zsh, fish", ""},
    {{"--completion", "zsh", "-np", "2"}, "--completion does not use -np", "omit it"},
    {{"-np", "2", "--mpi", "--mxnet-servers", "2", "a"}, "mpirun runs without them", "omit"},
    {{"-np", "2", "--visible-gpus", "all", "a"}, "'all' is neither own nor node", ""},
    {{"-np", "2", "--timeout", "nan", "a"}, "--timeout: 'nan' is not a number of seconds", "--timeout SECONDS"},
    {{"-np", "2", "--timeout", "inf", "a"}, "'inf' is not a number", ""},
    {{"-np", "2", "--timeout", "1e999", "a"}, "'1e999' is not a number", ""},
    {{"-np", "2", "--timeout", "10m", "a"}, "'10m' is not a number", ""},
    {{"-np", "2", "--timeout", "1,5", "a"}, "'1,5' is not a number", ""},
    {{"-np", "2", "--timeout", "0", "a"}, "'0' seconds leaves no time", ""},
    {{"-np", "2", "--timeout", "-0", "a"}, "'-0' seconds leaves no time", ""},
    {{"-np", "2", "--timeout", "-5", "a"}, "'-5' seconds is negative", ""},
    {{"-np", "2", "--timeout", "1e300", "a"}, "more than three years", ""},
    {{"-np", "2", "--timeout="}, "'' is not a number", ""},
    {{"-np", "2", "--timeout=", "a"}, "'' is not a number", ""},
    {{"-np", "2", "--timeout"}, "--timeout needs a value", ""},
    {{"-np", "2", "--end-with", "0", "a"}, "--end-with: '0' is not a whole number from 1", ""},
    {{"-np", "2", "--end-with", "python", "a"}, "'python' is not a whole number", ""},
    {{"-np", "2", "--kill-grace", "-1", "a"}, "--kill-grace: '-1' seconds is negative", ""},
    {{"-np", "2", "--kill-grace", "soon", "a"}, "'soon' is not a number", ""},
    {{"-np", "2", "--stdin", "1", "a"}, "'1' is not one of 0, all, none", ""},
    {{"-np", "2", "--stdin", "ALL", "a"}, "'ALL' is not one of", ""},
    {{"-np", "2", "--workdir", "", "a"}, "--workdir: the name of the directory is empty", ""},
    {{"-np", "2", "--output-filename=", "a"}, "--output-filename: the name of the directory is empty", ""},
    {{"-np", "2", "-x", "", "a"}, "-x: '' is not the name", ""},
    {{"-np", "2", "-x", "=1", "a"}, "-x: '' is not the name", ""},
    {{"-np", "2", "-x", "A B", "a"}, "-x: 'A B' is not the name", ""},
    {{"-np", "2", "-x", "A\t=1", "a"}, "is not the name", ""},
    {{"-np", "2", "-x=-A=1", "a"}, "-x: '-A' is not the name", ""},
    {{"-np", "2", "-x", "-np", "4", "a"}, "-x needs a value, but the option -np follows", "-x NAME"},
    {{"-np", "2", "-x", "A,B", "a"}, "'A,B' looks like several", ""},
    {{"-np", "2", "-x", "HOROVOD_RANK=3", "a"}, "HOROVOD_RANK is set by ddlrun", ""},
    {{"-np", "2", "-x", "RANK", "a"}, "RANK is set by ddlrun", ""},
    {{"-np", "2", "-x", "PMIX_NAMESPACE=x", "a"}, "PMIX_NAMESPACE is set by ddlrun", ""},
    {{"-np", "2", "--tag-output", "--no-tag-output", "a"}, "contradict each other", "omit one"},
    {{"-np", "2", "--verbose", "--quiet", "a"}, "--verbose and --quiet contradict each other", "omit one"},
    {{"-np", "2", "--verbose=3", "a"}, "--verbose takes no value, but --verbose=3 gives one", "write --verbose"},
    {{"-np", "2", "--verbos", "a"}, "unknown option --verbos", "did you mean --verbose?"},
    {{"-np", "2", "--output", "d", "a"}, "--output belongs to --slurm", "--output-filename DIR"},
    {{"-np", "2", "--work-dir", "d", "a"}, "unknown option --work-dir", "did you mean --workdir?"},
    {{"-np", "2", "--num_proc", "2", "a"}, "unknown option --num_proc", "did you mean --num-proc?"},
    {{"-np", "2", "-timeout", "3", "a"}, "unknown option -timeout", "did you mean --timeout?"},
    {{"-np", "2", "-verbose", "a"}, "unknown option -verbose", "did you mean --verbose?"},
    {{"-np", "2", "--frobnicate", "a"}, "unknown option --frobnicate", "--help all lists"},
    {{"-np", "2", "-z", "a"}, "unknown option -z", "--help all lists"},
    {{"-np", "2", "---", "a"}, "unknown option ---", "--help all lists"},
    {{"-np", "2", "--a b", "a"}, "unknown option '--a b'", "--help all lists"},
    {{"-H", "a:2", "--hostfile", "f", "-np", "4", "a"}, "-H/--hosts and -hostfile/--hostfile contradict", "omit one"},
    {{"-H", "a:four", "-np", "4", "a"}, "-H: \"a:four\": slots must be a positive integer, found \"four\"", "node1:4"},
    {{"-H", "a,-b", "-np", "4", "a"}, "-H: \"-b\": a host is named with letters", ""},
    {{"-H", "", "-np", "4", "a"}, "-H/--hosts: its value is empty", "-H HOSTS"},
    {{"-H=", "-np", "4", "a"}, "-H/--hosts: its value is empty", "-H HOSTS"},
    {{"-H", "a:2,b", "./a"}, "-np is missing, and -H does not say how many slots b has", "node1:4,node2:4"},
    {{"-H", "a:2,b:2", "./a", "-np", "4"}, "the one after ./a belongs", "come before"},
    {{"-H", "a:2", "-H", "b:2", "./a"}, "-H/--hosts was given 2 times: a:2, b:2", "give it once"},
    {{"-H", "a:2"}, "no command", ""},
    {{"-H"}, "-H/--hosts needs a value", "-H HOSTS"},
    {{"--hosts-exclude", "head", "-np", "2", "a"}, "leaves no host of this machine", ""},
    {{"-H", "a", "--hosts-exclude", "b:2", "-np", "2", "a"}, "--hosts-exclude: \"b:2\": only names of hosts", ""},
    {{"--hostfile", "missing", "-np", "2", "a"},
     "the hostfile cannot be read: missing: there is no such file", "hosts with -H"},
    {{"--hostfile", "bad", "-np", "2", "a"}, "bad:2: slots must be a positive integer, found \"x\"", ""},
    {{"--hostfile", "-", "--stdin", "all", "-np", "2", "a"}, "ranks cannot", "name a file"},
    {{"--hostfile", "hosts", "a"}, "-np is missing, and hosts does not say how many slots n2 has", ""},
    {{"--ranks-per-node", "0", "a"}, "--ranks-per-node: '0' is too few ranks", "--ranks-per-node N"},
    {{"--map-by", "board", "-np", "2", "a"}, "'board' is not one of slot, node, socket", "--map-by WHAT"},
    {{"--launcher", "slurm", "-np", "2", "a"}, "'slurm' is not one of auto, local, ssh", ""},
    {{"--launcher", "local", "-H", "localhost:1,b:1", "a"},
     "starts ranks on this machine, head, but b is another", "ssh"},
    {{"-np", "2", "-p", "0", "a"}, "-p/--ssh-port: '0' is not a whole number from 1 to 65535", "-p PORT"},
    {{"-np", "2", "-p", "ssh", "a"}, "'ssh' is not a whole number", ""},
    {{"-np", "2", "-p65536", "a"}, "'65536' is not a whole number", ""},
    {{"-np", "2", "-i", "", "a"}, "-i/--ssh-identity-file: the name of the file is empty", ""},
    {{"-np", "2", "--ssh-args", "-o 'x", "a"}, "a quote ' is not closed", ""},
    {{"-np", "2", "--ssh-args", " ", "a"}, "--ssh-args: it is empty", ""},
    {{"-np", "2", "--launch-agent", "rsh node1", "a"}, "lacks %h", ""},
    {{"-np", "2", "--launch-agent", "'' %h", "a"}, "the command is empty", ""},
    {{"-np", "2", "--ssh-parallel", "0", "a"}, "'0' is not a whole number from 1 to 4096", ""},
    {{"-np", "2", "--fan-out", "-1", "a"}, "'-1' is not a whole number from 0 to 4096", ""},
    {{"-np", "2", "--start-timeout", "0", "a"}, "'0' seconds leaves no time", ""},
    {{"-np", "2", "--remote-path", "/opt/my dir/ddlrun", "a"}, "is not a path of letters, digits", ""},
    {{"-np", "2", "--remote-path", "bin/ddlrun", "a"}, "neither an absolute path nor a bare name", ""},
    {{"-np", "2", "--remote-path", "-y", "a"}, "'-y' begins with a dash", ""},
    {{"-np", "2", "--remote-path", "", "a"}, "'' is not a path", ""},
    {{"-np", "2", "--network-interfaces", "eth0,", "a"}, "'' is not the name of a network interface", ""},
    {{"-np", "2", "--network-interface", "e/0", "a"}, "'e/0' is not the name", ""},
    {{"-np", "2", "--config-file", "missing", "a"}, "the configuration file cannot be read: missing: there is no", ""},
    {{"-np", "2", "--config-file", "bad.yaml", "a"}, "bad.yaml:2: unknown key nump-roc", "did you mean num-proc?"},
    {{"--config-file", "job.yaml", "--config-file", "job.yaml", "a"}, "--config-file was given 2 times", ""},
    {{"--host", "a,b", "-np", "2", "a"}, "--host is not an option of ddlrun", "-H"},
    {{"-np", "2", "--timeline-filename", "", "a"}, "--timeline-filename: the name of the file is empty", ""},
    {{"-np", "2", "--timeline-filename", "a", "--timeline-filename", "b", "c"}, "was given 2 times: a, b", "give it once"},
    {{"-np", "2", "--timeline-max-mb", "0", "a"}, "--timeline-max-mb: '0' is not a whole number from 1 to 16384", ""},
    {{"-np", "2", "--timeline-max-mb", "16385", "a"}, "'16385' is not a whole number from 1", ""},
    {{"--check-hosts", "--timeline-filename", "t"}, "--check-hosts does not use --timeline-filename", "omit it"},
    {{"--inspect", "--timeline-filename", "t"}, "--inspect does not use --timeline-filename", "omit it"},
    {{"--timeline"}, "--timeline needs a value", "--timeline start|stop"},
    {{"--timeline", "pause", "train"}, "--timeline: \"pause\" is neither start nor stop", "--timeline start|stop"},
    {{"--timeline", "", "train"}, "--timeline: \"\" is neither start nor stop", ""},
    {{"--timeline", "stop", ""}, "the name of the job is empty", "name one"},
    {{"--timeline", "start", "a", "b"}, "--timeline starts no command, but b follows", "--timeline start JOB"},
    {{"--timeline", "stop", "--timeline-filename", "t"}, "--timeline-filename belongs to --timeline start", "omit it"},
    {{"--timeline", "start", "--timeline-filename=", "a"}, "--timeline-filename: the name of the file is empty", ""},
    {{"--timeline", "start", "--timeline-max-mb", "1", "a"}, "--timeline does not use --timeline-max-mb", "omit it"},
    {{"--timeline", "start", "--json", "a"}, "--timeline does not use --json", "omit it"},
    {{"--timeline", "start", "-np", "2", "a"}, "--timeline does not use -np", "omit it"},
    {{"--timeline", "start", "--inspect"}, "--inspect and --timeline contradict", "omit one"},
    {{"--timeline-view"}, "--timeline-view needs a value", "--timeline-view FILE.json"},
    {{"--timeline-view", ""}, "--timeline-view: the name of the file is empty", ""},
    {{"--timeline-view", "a", "--timeline-view", "b"}, "was given 2 times: a, b", "give it once"},
    {{"--timeline-view", "a", "--report="}, "--report: the name of the file is empty", ""},
    {{"--timeline-view", "a", "b"}, "--timeline-view starts no command, but b follows", "omit it"},
    {{"--timeline-view", "a", "--json"}, "--timeline-view does not use --json", "omit it"},
    {{"--timeline-view", "a", "-np", "2"}, "--timeline-view does not use -np", "omit it"},
    {{"--timeline-view", "a", "--baseline", "b"}, "--timeline-view does not use --baseline", "omit it"},
    {{"--timeline-view", "a", "--report-from", "b"}, "contradict each other", "omit one"},
    {{"-np", "2", "--stall-check-warning-time-seconds", "0", "a"}, "'0' seconds leaves no time", ""},
    {{"-np", "2", "--mpi", "--no-stall-check", "a"}, "--no-stall-check needs ddlrun's agents", "omit"},
    {{"-np", "2", "--fusion-threshold-mb", "-1", "a"}, "'-1' is not a whole number from 0 to 1048576", ""},
    {{"-np", "2", "--mpi-args=--map-by ppr:6:node", "a"},
     "--mpi-args belongs to --launcher mpirun", "--launcher mpirun"},
    {{"-np", "2", "--tcp", "a"}, "--tcp belongs to --launcher mpirun", "--launcher mpirun"},
    {{"-np", "2", "--mpi", "--launcher", "ssh", "a"}, "--mpi", "omit one"},
    {{"-np", "2", "--mpi", "--report-bindings", "a"}, "--report-bindings needs ddlrun's agents", "omit"},
    {{"-np", "2", "--mpi", "--output-filename", "/tmp/x", "a"},
     "--output-filename needs ddlrun's agents", "--mpi-args"},
    {{"-np", "2", "--mpi", "--mpi-args", "'a", "a"}, "--mpi-args", "--mpi-args"},
    {{"-np", "2", "--mpi", "--binding-args", "--bind-to core", "--bind-to", "core", "a"}, "--binding-args", ""},
    {{"-np", "2", "--mpi-threads-disable", "a"}, "--mpi-threads-disable is not in this version", "OMPI_MCA"},
    {{"-np", "2", "--jsrun", "a"}, "--jsrun is not in this version", "omit it"},
    {{"-np", "2", "--gloo", "--mpi", "a"}, "--gloo and --mpi contradict each other", "omit one"},
    {{"-np", "2", "--gloo", "--launcher", "mpirun", "a"}, "--gloo and --launcher mpirun contradict", "omit one"},
    // Messages quote the spelling that was typed.
    {{"-np", "2", "-genv", "A", "1", "a"}, "-genv is not an option of ddlrun", "-x NAME=VALUE"},
    {{"-np", "2", "--mpi", "--json", "a"}, "--json needs ddlrun's agents", "omit --mpi"},
    {{"-np", "2", "--slurm", "--launcher", "ssh", "a"}, "--launcher ssh cannot be used in a job script", ""},
    {{"-np", "2", "--slurm", "--mpi", "--fan-out", "2", "a"}, "--fan-out needs ddlrun's agents, and mpirun", ""},
    {{"--explain-bind", "-np", "2", "-H", "b"}, "--explain-bind is for one node, but -H/--hosts names", ""},
    {{"--explain-bind"}, "-np is missing", "ddlrun --explain-bind -np 8"},
    {{"-np", "2", "--launcher", "ssh", "--mpi-type", "pmix", "a"}, "--mpi-type belongs to --launcher srun", "omit it"},
    // An action that starts no command refuses words after the options.
    {{"--check-build", "nccl"}, "--check-build starts no command, but nccl", "--check-build=nccl"},
    {{"-np", "4", "-cb", "--", "./a", "b"}, "-cb starts no command, but ./a", ""},
    {{"--check-box", "nccl", "mpi"}, "--check-box starts no command, but mpi", ""},
    {{"--inspect", "4711", "train"}, "--inspect starts no command, but train follows", "name one job"},
    {{"--inspect", "-np", "2"}, "--inspect does not use -np/--num-proc", "omit it"},
    {{"--inspect", "--dry-run", "-np", "2", "./a"}, "--inspect and --dry-run contradict", "omit one"},
    {{"--inspect", "a", "--inspect", "b"}, "--inspect was given 2 times", "give it once"},
    {{"--watch", "-np", "2", "./a"}, "--watch belongs to --inspect", "add --inspect"},
    {{"--watch"}, "--watch belongs to --inspect", "add --inspect"},
    {{"--metrics", "a", "--json"}, "--metrics does not use --json", "omit it"},
    {{"--metrics", "a", "b"}, "--metrics starts no command, but b follows", "name one job"},
    {{"--metrics", "--inspect"}, "--inspect and --metrics contradict", "omit one"},
    {{"-np", "2", "--openmetrics", "a"}, "--openmetrics belongs to --metrics", "omit it"},
    {{"-np", "2", "--mpi", "--metrics-file", "m.prom", "a"}, "--metrics-file needs ddlrun's agents", "omit"},
    {{"--check-hosts", "--watch"}, "--watch belongs to --inspect", "add --inspect"},
    {{"--check-hosts", "--job-name", "a"}, "--check-hosts does not use --job-name", "omit it"},
    {{"-np", "2", "--job-name", "", "./a"}, "--job-name", "--job-name NAME"},
    {{"--launcher", "srun", "-np", "2", "--job-name", "a", "./a"}, "--job-name names a job for --inspect", "omit it"},
    {{"--check-hosts", "nodes"}, "--check-hosts starts no command, but nodes", "omit it"},
    {{"--check-hosts", "./a", "-H", "b"}, "but ./a follows", "options come before"},
    {{"--list-sites", "lumi-g"}, "--list-sites starts no command, but lumi-g", ""},
    {{"--show-site", "lumi-g", "frontier"}, "--show-site starts no command, but frontier", ""},
    {{"--lint", "a.sh", "b.sh"}, "--lint starts no command, but b.sh", "--lint b.sh"},
    {{"--show-bind", "-np", "2", "a"}, "--show-bind starts no command, but a", ""},
    {{"--show-topology", "node.xml"}, "--show-topology starts no command, but node.xml", ""},
    {{"--check-build=nccl", "--check-build=mpi"}, "--check-build was given two names: nccl, mpi", "give one"},
    {{"--check-hosts", "--check-build"}, "-cb/--check-build and --check-hosts contradict", "omit one"},
    {{"--lint", "a.sh", "--list-sites"}, "--lint and --list-sites contradict", "omit one"},
    {{"--slurm", "--show-bind", "-np", "2", "a"}, "--show-bind and --slurm contradict", "omit one"},
    {{"--check-hosts", "--dry-run"}, "--check-hosts and --dry-run contradict", "omit one"},
    {{"--list-sites", "--site", "lumi-g"}, "--list-sites does not use --site", "omit it"},
    {{"--lint", "a.sh", "-np", "4"}, "--lint does not use -np/--num-proc", "omit it"},
    {{"--show-site", "lumi-g", "--json"}, "--show-site does not use --json", "omit it"},
    // Hosts are named as they were given.
    {{"--hosts", "a,a", "-np", "2", "a"}, "--hosts: \"a\": a is named twice", "node1:4"},
    {{"--hosts=a,b", "a"}, "-np is missing, and --hosts does not say how many slots a has", ""},
    {{"--config-file", "twice.yaml", "a"}, "twice.yaml:1: \"a\": a is named twice", "node1:4"},
    {{"--config-file", "slots.yaml", "a"}, "and slots.yaml:2 does not say how many slots a has", ""},
    // So are the options of an action.
    {{"--check-box", "nccl", "foo"}, "--check-box starts no command, but foo", "options come before"},
    {{"--check-box="}, "--check-box: the name is empty", ""},
    {{"--check-box", "nccl", "--check-box", "mpi"}, "--check-box was given two names: nccl, mpi", "give one"},
    // Options that an action would accept and drop.
    {{"--check-build", "--bind-to", "core"}, "--check-build does not use --bind-to", "omit it"},
    {{"--check-build", "-H", "b", "--timeout", "9"}, "--check-build does not use --timeout", "omit it"},
    {{"-cb=nccl", "--tag-output"}, "-cb does not use --tag-output", "omit it"},
    {{"--check-hosts", "-np", "2"}, "--check-hosts does not use -np/--num-proc", "omit it"},
    {{"--check-hosts", "--site", "lumi-g"}, "--check-hosts does not use --site", "omit it"},
    {{"--check-hosts", "-H", "b", "-x", "A=1"}, "--check-hosts does not use -x", "omit it"},
    {{"--slurm", "--json", "-np", "2", "a"}, "--json with --slurm belongs to --submit", "add --submit"},
    {{"--slurm", "--json", "--test-only", "-np", "2", "a"}, "--json with --slurm belongs to --submit", ""},
    // Several programs, as in mpirun.
    {{"-np", "1", "./a", ":", "--n", "2", "./b"}, "': --n' would begin a second program", "$RANK"},
    {{"-np", "1", "./a", ":", "--wd", "x", "./b"}, "': --wd' would begin a second program", "$RANK"},
    {{"-np", "1", "./a", ":", "-wd", "x", "./b"}, "': -wd' would begin a second program", "$RANK"},
    {{"-np", "1", "./a", ":", "-np", "1", "./b"}, "': -np' would begin a second program", "$RANK"},
    {{"-np", "1", "./a", "x", ":", "-n", "1", "./b"}, "': -n' would begin a second program", "$RANK"},
    {{"-np", "1", "./a", ":", "--host=b", "./b"}, "': --host=b' would begin a second program", ""},
    {{"-np", "1", "--slurm", "./a", ":", "-np", "1", "./b"}, "would begin a second program", ""},
    {{"-np", "1", "--mpi", "expr", "a", ":", "b"}, "where mpirun would begin a second program", "shell script"},
    {{"-np", "1", "--slurm", "--launcher", "srun", "expr", "a", ":", "b"}, "where srun would begin", "shell script"},
};
// clang-format on

}  // namespace

TEST_CASE("an invalid command line is refused with a sentence and a hint") {
  for (const Refused& one : kRefused) {
    INFO("ddlrun " << ddl::join(one.words, " "));
    const auto request = parse(one.words);
    REQUIRE_FALSE(request);
    CHECK_THAT(request.error().message(), Catch::Contains(one.message));
    CHECK_THAT(request.error().hint(), Catch::Contains(one.hint));
    CHECK(request.error().hint().size() > 5);
    CHECK(request.error().message().find('\n') == std::string::npos);
  }
}

TEST_CASE("--fusion-threshold-mb sets DDL_FUSION_BYTES for the ranks") {
  const auto job = accepted({"-np", "2", "--fusion-threshold-mb", "3", "./train"}).job;
  REQUIRE(job.exports.size() == 1);
  CHECK(job.exports[0].name == "DDL_FUSION_BYTES");
  CHECK(job.exports[0].value == "3145728");
}

TEST_CASE("-x takes every name that a program can be started with") {
  for (const std::string name : {"some.setting", "A-B", "1A", "\xc3\xa4", "a:b/c", "%X%"}) {
    CAPTURE(name);
    const auto job = accepted({"-np", "2", "-x", name + "=1=2", "-x", name, "./train"}).job;
    REQUIRE(job.exports.size() == 2);
    CHECK(job.exports[0].name == name);
    CHECK(job.exports[0].value == "1=2");
    CHECK(job.exports[1].name == name);
    CHECK_FALSE(job.exports[1].value);
  }
}

TEST_CASE("in a current directory that was removed, only absolute paths mean something") {
  CommandLineContext context = kContext;
  context.current_directory = "";
  const auto parsed = [&](const Words& words) { return parse_command_line(words, context); };
  const auto absolute =
      parsed({"-np", "2", "--workdir", "/tmp", "--output-filename", "/o", "--timeline-filename", "/t", "a"});
  REQUIRE(absolute);
  CHECK(absolute->job.workdir == "/tmp");
  for (const std::string option : {"--workdir", "--output-filename", "--timeline-filename"}) {
    const auto refused = parsed({"-np", "2", option, "sub", "a"});
    REQUIRE_FALSE(refused);
    CHECK_THAT(refused.error().message(),
               Catch::Contains(option + ": 'sub' is in the current directory, which has been "
                                        "removed; give an absolute path"));
  }
}

TEST_CASE("--cpu-operations sets DDL_CPU_OPERATIONS for the ranks") {
  const auto job = accepted({"-np", "2", "--cpu-operations", "mpi", "./train"}).job;
  REQUIRE(job.exports.size() == 1);
  CHECK(job.exports[0].name == "DDL_CPU_OPERATIONS");
  CHECK(job.exports[0].value == "mpi");
  const auto refused = parse({"-np", "2", "--cpu-operations", "gloo", "./train"});
  REQUIRE_FALSE(refused);
  CHECK_THAT(refused.error().message(), Catch::Contains("'gloo' is neither ddl"));
}

TEST_CASE("--framework chooses whose variables ranks get") {
  CHECK(accepted({"-np", "2", "./train"}).job.framework == ddl::launcher::Framework::kAuto);
  CHECK(accepted({"-np", "2", "--framework", "jax", "./train"}).job.framework ==
        ddl::launcher::Framework::kJax);
  const auto refused = parse({"-np", "2", "--framework", "keras", "./train"});
  REQUIRE_FALSE(refused);
  CHECK_THAT(refused.error().message(), Catch::Contains("'keras' is not one of auto, torch,"));
}

TEST_CASE("ddl by the name of horovod is asked for by an option, which mpirun's ranks get, too") {
  CHECK_FALSE(accepted({"-np", "2", "python", "train.py"}).job.as_horovod);
  CHECK(accepted({"-np", "2", "--as-horovod", "python", "train.py"}).job.as_horovod);
  const Request by_mpirun = accepted({"-np", "2", "--mpi", "--as-horovod", "python", "train.py"});
  CHECK(by_mpirun.mpi.rank_options == Words{"--as-horovod"});
  // srun's script is for sites without ddlrun, which have no such package.
  const auto refused = parse({"--slurm", "-np", "2", "--launcher", "srun", "--as-horovod", "./train"});
  REQUIRE_FALSE(refused);
  CHECK_THAT(refused.error().message(), Catch::Contains("--as-horovod cannot be used in a script"));
}

TEST_CASE("Horovod's programs are served a rendezvous if they were built with Gloo") {
  CHECK_FALSE(accepted({"-np", "2", "./train"}).job.serves_gloo);
  CHECK(accepted({"-np", "2", "--gloo", "./train"}).job.serves_gloo);
  CHECK(accepted({"-np", "2", "-x", "HOROVOD_CONTROLLER=gloo", "./train"}).job.serves_gloo);
  CHECK_FALSE(accepted({"-np", "2", "-x", "HOROVOD_CONTROLLER=mpi", "./train"}).job.serves_gloo);
  CHECK(accepted({"-np", "2", "-x", "HOROVOD_CPU_OPERATIONS=GLOO", "./train"}).job.serves_gloo);
  for (const Words& words : {Words{"--mpi"}, Words{"--framework", "none"}}) {
    Words all{"-np", "2", "-x", "HOROVOD_CONTROLLER=gloo"};
    all.insert(all.end(), words.begin(), words.end());
    all.emplace_back("./train");
    const Request alone = accepted(all);
    CHECK_FALSE(alone.job.serves_gloo);
    REQUIRE(alone.notes.size() == 1);
    CHECK_THAT(alone.notes[0], Catch::Contains("would be alone; omit " + words.front()) ||
                                   Catch::Contains("would be alone; omit --launcher"));
  }
  CHECK(accepted({"-np", "2", "-x", "TF_CONFIG={}", "./train"}).job.exports.size() == 1);
  const auto timed = accepted({"-np", "2", "--gloo-timeout-seconds", "60", "./train"}).job;
  REQUIRE(timed.exports.size() == 1);
  CHECK(timed.exports[0].name == "HOROVOD_GLOO_TIMEOUT_SECONDS");
  CHECK(timed.exports[0].value == "60");
}

TEST_CASE("the roles of ranks belong to their framework, and state the number of ranks") {
  const auto tasks = accepted({"--tf-roles", "chief:1,worker:2", "./train"}).job;
  CHECK(tasks.framework == ddl::launcher::Framework::kTensorflow);
  CHECK(tasks.num_ranks == 3);
  CHECK(accepted({"-np", "3", "--tf-roles", "chief:1,worker:2", "./train"}).job.num_ranks == 3);
  const auto workers = accepted({"-np", "3", "--framework", "mxnet", "./train"}).job;
  CHECK(workers.num_ranks == 7);
  CHECK(workers.roles == ddl::launcher::mxnet_roles(3, 3));
  CHECK(accepted({"-H", "a:2,b:2", "--mxnet-servers", "1", "./train"}).job.num_ranks == 6);
}

TEST_CASE("--gpu-operations sets DDL_GPU_OPERATIONS for the ranks") {
  const auto job = accepted({"-np", "2", "--gpu-operations", "staged", "./train"}).job;
  REQUIRE(job.exports.size() == 1);
  CHECK(job.exports[0].name == "DDL_GPU_OPERATIONS");
  CHECK(job.exports[0].value == "staged");
  const auto refused = parse({"-np", "2", "--gpu-operations", "mpi", "./train"});
  REQUIRE_FALSE(refused);
  CHECK_THAT(refused.error().message(), Catch::Contains("'mpi' is neither auto, nccl"));
}

TEST_CASE(
    "what a check does not use is accepted in a configuration file, and -np of horovodrun gives a note") {
  CHECK(accepted({"--check-build", "--config-file", "checks.yaml"}).notes.empty());
  CHECK(accepted({"--check-hosts", "--config-file", "checks.yaml"}).json);
  CHECK(accepted({"--slurm", "--config-file", "checks.yaml", "a"}).json);
  CHECK(accepted({"-np", "4", "-cb"}).notes == Words{"-np changes nothing: -cb starts no ranks"});
  CHECK(accepted({"--check-build", "-x", "PATH", "--workdir", "/tmp", "-H", "b"}).notes.empty());
}

TEST_CASE("every option that is not in this version is refused by name, with and without a value") {
  for (const OptionEntry& entry : foreign_options()) {
    if (entry.id == OptionId::kWithoutEffect) continue;
    for (const auto spelling_view : ddl::split(entry.spellings, ',')) {
      const std::string spelling(spelling_view);
      for (const Words& words :
           {Words{"-np", "2", spelling, "1", "a"}, Words{spelling}, Words{spelling, "--", "a"}}) {
        INFO(ddl::join(words, " "));
        const auto request = parse(words);
        REQUIRE_FALSE(request);
        CHECK(request.error().message().starts_with(spelling + " is "));
        CHECK(request.error().hint().size() > 20);
      }
    }
  }
}

TEST_CASE("stalls are reported after 60 s, and end no job, unless the options say so") {
  const auto limits = [](const Words& options) {
    Words words{"-np", "2"};
    words.insert(words.end(), options.begin(), options.end());
    words.emplace_back("a");
    const Request request = accepted(words);
    return std::pair(request.job.stall_warning_seconds, request.job.stall_shutdown_seconds);
  };
  CHECK(limits({}) == std::pair(60.0, 0.0));
  CHECK(limits({"--stall-check-warning-time-seconds", "0.5", "--stall-check-shutdown-time-seconds", "7"}) ==
        std::pair(0.5, 7.0));
  CHECK(limits({"--stall-check-shutdown-time-seconds", "0"}) == std::pair(60.0, 0.0));
  CHECK(limits({"--no-stall-check", "--stall-check-shutdown-time-seconds", "7"}) == std::pair(0.0, 0.0));
}

TEST_CASE("an option of horovodrun that requests the default behaviour is accepted, with a note") {
  for (const OptionEntry& entry : foreign_options()) {
    if (entry.id != OptionId::kWithoutEffect) continue;
    for (const auto spelling : ddl::split(entry.spellings, ',')) {
      Words words{"-np", "2", std::string(spelling), "a"};
      if (entry.takes_value()) words.insert(words.end() - 1, "5");
      const Request request = accepted(words);
      REQUIRE(request.notes.size() == 1);
      CHECK(request.notes[0].starts_with(std::string(spelling) + " changes nothing: "));
      CHECK(request.job.command == Words{"a"});
    }
  }
  const Request request = accepted({"-np", "2", "--disable-cache", "--no-autotune", "a"});
  CHECK(request.notes.size() == 2);
  CHECK(request.job.launcher == LauncherChoice::kAuto);
  // The command line takes precedence over a file for horovodrun.
  const Request other = accepted({"--config-file", "gloo.yaml", "--mpi", "-np", "2", "a"});
  CHECK(other.job.launcher == LauncherChoice::kMpirun);
  CHECK_FALSE(other.job.serves_gloo);
  CHECK(accepted({"--config-file", "gloo.yaml", "-np", "2", "a"}).job.serves_gloo);
  CHECK(accepted({"--config-file", "mpi.yaml", "a"}).job.launcher == LauncherChoice::kMpirun);
  CHECK(accepted({"--config-file", "mpi.yaml", "--launcher", "ssh", "a"}).job.launcher ==
        LauncherChoice::kSsh);
}

TEST_CASE("a repeated --network-interface adds to one list, as in horovodrun") {
  CHECK(accepted({"-np", "2", "--network-interface", "eth0", "--network-interface", "ib0", "a"})
            .job.network_interfaces == Words{"eth0", "ib0"});
  CHECK(accepted({"-np", "2", "--network-interfaces=eth0,ib0", "--network-interface", "eth0", "a"})
            .job.network_interfaces == Words{"eth0", "ib0"});
}

TEST_CASE("a colon that does not begin a second program is a word of the command") {
  CHECK(accepted({"-np", "2", "expr", "a", ":", "b"}).job.command == Words{"expr", "a", ":", "b"});
  CHECK(accepted({"-np", "2", ":"}).job.command == Words{":"});
  CHECK(accepted({"-np", "2", "a", ":", "-weird"}).job.command == Words{"a", ":", "-weird"});
}

TEST_CASE("the defaults of a job") {
  const Request request = accepted({"-np", "2", "./train", "--lr", "0.1"});
  CHECK(request.action == Action::kRun);
  CHECK_FALSE(request.json);
  const JobSpec& job = request.job;
  CHECK(job.command == Words{"./train", "--lr", "0.1"});
  CHECK(job.num_ranks == 2);
  CHECK(job.exports.empty());
  CHECK(job.workdir == "/home/me");
  CHECK(job.timeout_seconds == 0);
  CHECK(job.kill_grace_seconds == 5);
  CHECK(job.stdin_target == StdinTarget::kRank0);
  CHECK_FALSE(job.oversubscribe);
  CHECK(job.output_directory.empty());
  CHECK(job.tag_output);
  CHECK_FALSE(job.timestamp_output);
  CHECK_FALSE(job.verbose);
  CHECK_FALSE(job.quiet);
}

TEST_CASE("every option of a job reaches the request") {
  const JobSpec job = accepted({"--np=3",
                                "--oversubscribe",
                                "-x",
                                "A=1",
                                "-x",
                                "B",
                                "-x",
                                "A=x=y",
                                "-x",
                                "EMPTY=",
                                "--workdir",
                                "data",
                                "--timeout",
                                "1.5",
                                "--end-with",
                                "4711",
                                "--kill-grace=0",
                                "--stdin",
                                "all",
                                "--output-filename",
                                "./logs/",
                                "--no-tag-output",
                                "--prefix-output-with-timestamp",
                                "--verbose",
                                "--",
                                "-weird",
                                "-np"})
                          .job;
  CHECK(job.command == Words{"-weird", "-np"});
  CHECK(job.num_ranks == 3);
  CHECK(job.oversubscribe);
  REQUIRE(job.exports.size() == 4);
  CHECK(job.exports[0].name == "A");
  CHECK(job.exports[0].value == "1");
  CHECK(job.exports[1].name == "B");
  CHECK_FALSE(job.exports[1].value);
  CHECK(job.exports[2].value == "x=y");
  CHECK(job.exports[3].value == "");
  CHECK(job.workdir == "/home/me/data");
  CHECK(job.timeout_seconds == 1.5);
  CHECK(job.end_with_pid == 4711);
  CHECK(job.kill_grace_seconds == 0);
  CHECK(job.stdin_target == StdinTarget::kAll);
  CHECK(job.output_directory == "/home/me/logs");
  CHECK_FALSE(job.tag_output);
  CHECK(job.timestamp_output);
  CHECK(job.verbose);
  CHECK(accepted({"-np", "1", "--quiet", "--stdin=none", "a"}).job.quiet);
  CHECK(accepted({"-np", "1", "--stdin=none", "a"}).job.stdin_target == StdinTarget::kNone);
}

TEST_CASE("lines are tagged if there are several ranks, unless an option overrides this") {
  CHECK_FALSE(accepted({"-np", "1", "a"}).job.tag_output);
  CHECK(accepted({"-np", "1", "--tag-output", "a"}).job.tag_output);
  CHECK(accepted({"-np", "2", "a"}).job.tag_output);
  CHECK_FALSE(accepted({"-np", "2", "--no-tag-output", "a"}).job.tag_output);
}

TEST_CASE("relative directories start at the current one, and '..' after a link is left to the kernel") {
  const auto workdir = [](const std::string& given) {
    return accepted({"-np", "1", "--workdir", given, "a"}).job.workdir;
  };
  CHECK(workdir("/data") == "/data");
  CHECK(workdir("/") == "/");
  CHECK(workdir(".") == "/home/me");
  CHECK(workdir("a/./b//") == "/home/me/a/b");
  CHECK(workdir("link/../b") == "/home/me/link/../b");
  CHECK(workdir("./--json") == "/home/me/--json");
}

TEST_CASE("actions other than a job need no command, and --help has precedence over any error") {
  CHECK(accepted({"-h"}).action == Action::kHelp);
  CHECK(accepted({"--help", "-np", "x", "a"}).action == Action::kHelp);
  CHECK(accepted({"--bogus", "-H", "x", "--help"}).action == Action::kHelp);
  CHECK(accepted({"-v"}).action == Action::kVersion);
  CHECK(accepted({"--version", "--help"}).action == Action::kHelp);
  CHECK(accepted({"-cb"}).action == Action::kCheckBuild);
  CHECK(accepted({"--help", "hosts"}).text == ddl::cli::help_text("hosts").value());
  CHECK(accepted({"--bogus", "--help=all"}).text == ddl::cli::help_text("all").value());
  CHECK(accepted({"-h"}).text == ddl::cli::help_text().value());
  CHECK(accepted({"--list-sites", "--config-file", "job.yaml", "--json"}).action == Action::kListSites);
  CHECK(accepted({"--lint", "a.sh", "--site", "lumi-g", "--json", "--quiet"}).action == Action::kLint);
  const Request check = accepted({"-np", "4", "--check-build", "--json"});
  CHECK(check.action == Action::kCheckBuild);
  CHECK(check.json);
  CHECK(accepted({"--dry-run", "-np", "2", "a"}).action == Action::kDryRun);
  CHECK_FALSE(accepted({"--dry-run", "-np", "2", "a"}).probes_hosts);
  CHECK(accepted({"--dry-run", "--probe", "-np", "2", "a"}).probes_hosts);
  // After the command they belong to the command.
  const Request run = accepted({"-np", "1", "a", "--help", "-cb", "--dry-run", "--json"});
  CHECK(run.action == Action::kRun);
  CHECK_FALSE(run.json);
}

TEST_CASE("every option about hosts reaches the request") {
  const JobSpec job = accepted({"-np",
                                "8",
                                "--hosts",
                                "a:4,me@n[1-2]:4",
                                "--hosts-exclude=n2",
                                "--map-by",
                                "node",
                                "--ranks-per-node=4",
                                "--launcher",
                                "ssh",
                                "-p2222",
                                "-i",
                                "keys/id",
                                "--ssh-args",
                                "-J me@bastion -o 'User x'",
                                "--launch-agent",
                                "rsh %h",
                                "--ssh-parallel",
                                "8",
                                "--fan-out",
                                "16",
                                "--start-timeout",
                                "2.5",
                                "--remote-path",
                                "/opt/ddl/bin/ddlrun",
                                "--network-interfaces",
                                "eth0, ib0,eth0",
                                "a"})
                          .job;
  CHECK(job.num_ranks == 8);
  CHECK(job.hosts == "a:4,me@n[1-2]:4");
  CHECK(job.hosts_exclude == "n2");
  CHECK(job.map_by == MapBy::kNode);
  CHECK(job.ranks_per_node == 4);
  CHECK(job.launcher == LauncherChoice::kSsh);
  CHECK(job.ssh.port == 2222);
  CHECK(job.ssh.identity_file == "/home/me/keys/id");
  CHECK(job.ssh.args == Words{"-J", "me@bastion", "-o", "User x"});
  CHECK(job.ssh.launch_agent == Words{"rsh", "%h"});
  CHECK(job.ssh.parallel == 8);
  CHECK(job.ssh.fan_out == 16);
  CHECK(job.ssh.start_timeout_seconds == 2.5);
  CHECK(job.ssh.remote_path == "/opt/ddl/bin/ddlrun");
  CHECK(job.network_interfaces == Words{"eth0", "ib0"});
}

TEST_CASE("without options about hosts a job runs on this machine") {
  const Request request = accepted({"-np", "2", "a"});
  REQUIRE(request.allocation.nodes.size() == 1);
  CHECK(request.allocation.nodes.front().name == "head");
  CHECK(request.allocation.origin == "this machine");
  const JobSpec& job = request.job;
  CHECK(job.launcher == LauncherChoice::kAuto);
  CHECK(job.map_by == MapBy::kSlot);
  CHECK(job.ranks_per_node == 0);
  CHECK_FALSE(job.ssh.port);
  CHECK(job.ssh.parallel == 32);
  CHECK(job.ssh.fan_out == 0);
  CHECK(job.ssh.start_timeout_seconds == 30);
}

TEST_CASE("hosts of -H or a hostfile become the allocation") {
  const Request listed = accepted({"-H", "a:2,b", "-np", "3", "x"});
  REQUIRE(listed.allocation.nodes.size() == 2);
  CHECK(listed.allocation.origin == "-H");
  CHECK(listed.allocation.nodes[0].slots == 2);
  CHECK_FALSE(listed.allocation.nodes[1].slots);
  const Request filed = accepted({"-hostfile", "hosts", "-np", "3", "x"});
  CHECK(filed.allocation.origin == "hosts");
  CHECK(filed.allocation.nodes[1].name == "n2");
}

TEST_CASE("with a hostfile on standard input, no rank reads standard input") {
  const Request request = accepted({"--hostfile", "-", "x"});
  CHECK(request.allocation.origin == "standard input");
  CHECK(request.job.num_ranks == 4);
  CHECK(request.job.stdin_target == StdinTarget::kNone);
  CHECK(accepted({"--hostfile", "-", "--stdin", "none", "x"}).job.stdin_target == StdinTarget::kNone);
}

TEST_CASE("-np may be omitted if the hosts determine the number of ranks") {
  CHECK(accepted({"-H", "a:2,b:3", "x"}).job.num_ranks == 5);
  CHECK(accepted({"--hostfile", "full", "x"}).job.num_ranks == 5);
  CHECK(accepted({"-H", "a,b", "--ranks-per-node", "2", "x"}).job.num_ranks == 4);
  CHECK(accepted({"--ranks-per-node", "2", "x"}).job.num_ranks == 2);
  CHECK(accepted({"-H", "a:2,b:3", "-np", "1", "x"}).job.num_ranks == 1);
  CHECK_FALSE(accepted({"-H", "a:1", "x"}).job.tag_output);
  CHECK(accepted({"-H", "a:2", "x"}).job.tag_output);
}

TEST_CASE("--inspect takes a job or none, and reads nothing of a job to be started") {
  const Request any = accepted({"--inspect"});
  CHECK(any.action == Action::kInspect);
  CHECK(any.inspect.job.empty());
  CHECK_FALSE(any.inspect.watches);
  const Request one = accepted({"--inspect", "train", "--watch", "--json"});
  CHECK(one.inspect.job == "train");
  CHECK(one.inspect.watches);
  CHECK(one.json);
  CHECK(accepted({"--watch", "--inspect=4711"}).inspect.job == "4711");
}

TEST_CASE("a timeline is a file of at most 128 MB, and its name is an option or HOROVOD_TIMELINE") {
  const Request none = accepted({"-np", "2", "a"});
  CHECK(none.job.timeline_file.empty());
  CHECK(none.job.timeline_bytes == std::uint64_t{128} << 20);
  const JobSpec job =
      accepted({"-np", "2", "--timeline-filename", "out/t.json.gz", "--timeline-max-mb", "16384", "a"}).job;
  CHECK(job.timeline_file == "/home/me/out/t.json.gz");
  CHECK(job.timeline_bytes == std::uint64_t{16384} << 20);

  CommandLineContext context = kContext;
  context.environment = {{"HOROVOD_TIMELINE", "mine.json"}};
  const auto file_of = [&](const Words& words) {
    const auto request = parse_command_line(words, context);
    return request ? request->job.timeline_file : request.error().message();
  };
  CHECK(file_of({"-np", "2", "a"}) == "/home/me/mine.json");
  CHECK(file_of({"-np", "2", "--timeline-filename", "/t", "a"}) == "/t");
  CHECK(file_of({"-np", "2", "--config-file", "timeline.yaml", "a"}) == "/home/me/of-file.json");
  // Without agents rank 0 writes it.
  const auto by_mpirun =
      parse_command_line(Words{"-np", "2", "--timeline-max-mb", "7", "--mpi", "a"}, context);
  REQUIRE(by_mpirun);
  CHECK(by_mpirun->job.timeline_file.empty());
  REQUIRE(by_mpirun->job.exports.size() == 2);
  CHECK(by_mpirun->job.exports[0].name == "DDL_TIMELINE");
  CHECK(by_mpirun->job.exports[0].value == "/home/me/mine.json");
  CHECK(by_mpirun->job.exports[1].name == "DDL_TIMELINE_MAX_MB");
  CHECK(by_mpirun->job.exports[1].value == "7");
  CHECK(file_of({"-np", "2", "-x", "DDL_TIMELINE=of-ranks.json", "a"}) == "/home/me/of-ranks.json");
  context.environment["DDL_TIMELINE"] = "ours.json";
  CHECK(file_of({"-np", "2", "a"}) == "/home/me/ours.json");
  context.environment.erase("DDL_TIMELINE");
  // A check has none.
  CHECK(file_of({"--check-build", "-H", "a:1"}).empty());
  context.environment["HOROVOD_TIMELINE"] = "";
  CHECK(file_of({"-np", "2", "a"}).empty());
  // In Horovod: the program begins a timeline later.
  context.environment["HOROVOD_TIMELINE"] = "DYNAMIC";
  CHECK(file_of({"-np", "2", "a"}).empty());
}

TEST_CASE("--timeline-view takes a timeline, and a file for its page") {
  const Request view = accepted({"--timeline-view", "t.json.gz"});
  CHECK(view.action == Action::kTimelineView);
  CHECK(view.timeline_file == "/home/me/t.json.gz");
  CHECK(view.report.page.empty());
  CHECK(accepted({"--report", "view.html", "--timeline-view", "/t"}).report.page == "/home/me/view.html");
}

TEST_CASE("--timeline takes a job or none, and for start a file") {
  const Request start = accepted({"--timeline", "start", "train"});
  CHECK(start.action == Action::kTimeline);
  CHECK(start.timeline.starts);
  CHECK(start.timeline.file.empty());
  CHECK(start.inspect.job == "train");
  const Request named = accepted({"--timeline=start", "--timeline-filename", "t.json"});
  CHECK(named.timeline.file == "/home/me/t.json");
  CHECK(named.inspect.job.empty());
  const Request stop = accepted({"--timeline", "stop", "4711"});
  CHECK_FALSE(stop.timeline.starts);
  CHECK(stop.inspect.job == "4711");
  // A configuration file is also for jobs.
  const Request file = accepted({"--timeline", "stop", "--config-file", "timeline.yaml", "--", "train"});
  CHECK_FALSE(file.timeline.starts);
  CHECK(file.inspect.job == "train");
}

TEST_CASE("a job has the name that was given, or that of its command") {
  CHECK(accepted({"-np", "2", "./train"}).job.name == "train");
  CHECK(accepted({"-np", "2", "python3", "-u", "../train.py", "--x"}).job.name == "train");
  CHECK(accepted({"-np", "2", "--job-name", "my job", "./train"}).job.name == "my job");
}

TEST_CASE("--check-hosts needs no command, and checks this machine without hosts") {
  const Request here = accepted({"--check-hosts"});
  CHECK(here.action == Action::kCheckHosts);
  CHECK(here.allocation.nodes.front().name == "head");
  const Request hosts = accepted({"--check-hosts", "-H", "a,b:2", "--json", "-p", "22"});
  CHECK(hosts.json);
  CHECK(hosts.allocation.nodes.size() == 2);
  CHECK(hosts.job.ssh.port == 22);
  CHECK_FALSE(parse({"--check-hosts", "-H", "a:x"}));
}

TEST_CASE("the command line takes precedence over the configuration file") {
  const JobSpec job = accepted({"--config-file", "job.yaml", "x"}).job;
  CHECK(job.num_ranks == 3);
  CHECK(job.timeout_seconds == 60);
  CHECK(job.hosts == "a:3");
  CHECK(job.verbose);
  CHECK_FALSE(job.tag_output);
  REQUIRE(job.exports.size() == 2);

  const Request other = accepted({"--config-file", "job.yaml", "-np", "2", "--quiet", "--hostfile", "full",
                                  "-x", "A=2", "--tag-output", "x"});
  CHECK(other.job.num_ranks == 2);
  CHECK(other.job.timeout_seconds == 60);
  CHECK(other.job.quiet);
  CHECK_FALSE(other.job.verbose);
  CHECK(other.allocation.origin == "full");
  CHECK(other.job.tag_output);
  REQUIRE(other.job.exports.size() == 3);
  CHECK(other.job.exports[2].value == "2");  // a later one takes precedence
}

TEST_CASE("--help and --version read no file") {
  CHECK(accepted({"--config-file", "missing", "--help"}).action == Action::kHelp);
  CHECK(accepted({"--hostfile", "missing", "--version"}).action == Action::kVersion);
}

TEST_CASE("without a function that reads files, options that name a file are refused") {
  const std::vector<std::string> words = {"-np", "2", "--hostfile", "hosts", "a"};
  const auto request = parse_command_line(words, {"/home/me", 6});
  REQUIRE_FALSE(request);
  CHECK_THAT(request.error().message(), Catch::Contains("cannot be read"));
}

TEST_CASE("brackets and braces in values are kept unchanged") {
  const JobSpec job =
      accepted({"-np", "1", "-x", "A=[1,2]", "--workdir", "[a,b]", "--output-filename={}", "a"}).job;
  CHECK(job.exports.at(0).value == "[1,2]");
  CHECK(job.workdir == "/home/me/[a,b]");
  CHECK(job.output_directory == "/home/me/{}");
}

TEST_CASE("inside a Slurm job the hosts are its nodes") {
  CommandLineContext context = kContext;
  context.hostname = "node3";
  context.environment = {{"SLURM_JOB_ID", "7"},
                         {"SLURM_JOB_NODELIST", "node[3-4]"},
                         {"SLURM_TASKS_PER_NODE", "2(x2)"},
                         {"SLURM_NTASKS", "4"}};
  const auto parsed = [&](const Words& words) { return parse_command_line(words, context); };
  const auto message = [&](const Words& words) {
    const auto request = parsed(words);
    return request ? "accepted" : request.error().message();
  };
  const auto both = parsed({"./a"});
  REQUIRE(both);
  CHECK(both->job.num_ranks == 4);
  CHECK(both->allocation.nodes.size() == 2);
  CHECK_THAT(message({"--fan-out", "2", "./a"}), Catch::Contains("--fan-out is for hosts over ssh"));
  // The machine that ddlrun runs on may be excluded.
  const auto other = parsed({"--hosts-exclude", "node3", "-np", "2", "./a"});
  REQUIRE(other);
  CHECK(other->allocation.nodes.at(0).name == "node4");
  CHECK(other->allocation.job);
  const auto here = parsed({"-H", "localhost", "./a"});
  REQUIRE(here);
  CHECK(here->allocation.nodes.at(0).name == "node3");
  CHECK(here->job.num_ranks == 2);
  CHECK_THAT(message({"-H", "node5", "-np", "1", "./a"}),
             Catch::Contains("node5 is not a node of Slurm job 7"));
  const auto ssh = parsed({"--launcher", "ssh", "-H", "node5", "-np", "1", "./a"});
  REQUIRE(ssh);
  CHECK_FALSE(ssh->allocation.job);
  const auto local = parsed({"--launcher", "local", "-np", "1", "./a"});
  REQUIRE(local);
  CHECK(local->allocation.origin == "this machine");
  context.environment["SLURM_TASKS_PER_NODE"] = "2(x3)";
  CHECK_THAT(message({"-np", "1", "./a"}), Catch::Contains("SLURM_TASKS_PER_NODE"));
}

TEST_CASE("in one of several tasks of a Slurm step, only --launcher local starts ranks") {
  CommandLineContext context = kContext;
  context.environment = {{"SLURM_JOB_ID", "7"},         {"SLURM_JOB_NODELIST", "node1"},
                         {"SLURM_NTASKS", "4"},         {"SLURM_TASKS_PER_NODE", "4"},
                         {"SLURM_STEP_NUM_TASKS", "4"}, {"SLURM_PROCID", "2"}};
  const auto message = [&](Words words) {
    words.insert(words.end(), {"-np", "2", "./a"});
    const auto request = parse_command_line(words, context);
    return request ? "accepted" : request.error().message();
  };
  for (const Words& launcher :
       {Words{}, Words{"--launcher", "ssh", "-H", "node1"}, Words{"--launcher", "srun"}, Words{"--mpi"}})
    CHECK_THAT(message(launcher), Catch::Contains("this is one of 4 tasks of a step of Slurm job 7"));
  CHECK(message({"--launcher", "local"}) == "accepted");
  const auto check = parse_command_line(Words{"--check-build"}, context);
  REQUIRE(check);
  CHECK(check->allocation.origin == "this machine");
}

TEST_CASE("in an unsupported Slurm job, no rank starts on the login host without --launcher local") {
  CommandLineContext context = kContext;
  context.environment = {{"SLURM_JOB_ID", "7"}, {"SLURM_HET_SIZE", "2"}};
  const auto refused = parse_command_line(Words{"-np", "2", "./a"}, context);
  REQUIRE_FALSE(refused);
  CHECK_THAT(refused.error().message(), Catch::Contains("heterogeneous"));
  CHECK_THAT(refused.error().hint(), Catch::Contains("--launcher local"));
  CHECK(parse_command_line(Words{"--launcher", "local", "-np", "2", "./a"}, context));
}
