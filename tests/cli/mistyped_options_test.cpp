// Options as fingers, word processors and memories of other programs write them.
#include "cli/commands/commands.h"
#include "cli/mistakes.h"
#include "support/catch.h"

using ddl::test::check_refused;

TEST_CASE("numbers that are none, or not in their range, are refused by the option that was typed") {
  check_refused({
      {{"-np", "4294967297", "a"}, "'4294967297' is too many ranks; the maximum is 1000000", "-np N"},
      {{"-np", "4 ", "a"}, "'4 ' is not a whole number of ranks", "-np N"},
      {{"-np", "4GB", "a"}, "'4GB' is not a whole number of ranks", "-np N"},
      {{"-np", "4,4", "a"}, "'4,4' is not a whole number of ranks", "-np N"},
      {{"-np", "\uff14", "a"}, "'\uff14' is not a whole number of ranks", "-np N"},
      {{"-n", "true"}, "-n (-np/--num-proc): 'true' is not a whole number", "-np N"},
      {{"-n", "2", "-n", "3", "a"}, "-n (-np/--num-proc) was given 2 times: 2, 3", "give it once"},
      {{"--nproc_per_node=gpu", "train.py"},
       "--nproc_per_node (--ranks-per-node): 'gpu' is torchrun's",
       "--ranks-per-node N"},
      {{"--ppn", "0", "a"}, "--ppn (--ranks-per-node): '0' is too few ranks", "--ranks-per-node N"},
      {{"--scaling", "1,2,x", "a"}, "--scaling: 'x' is not a whole number of ranks", "--scaling N,N,..."},
      {{"--scaling", "1,0", "a"}, "--scaling: '0' is too few ranks", "compare"},
      {{"--scaling", "1,,2", "a"}, "--scaling: '' is not a whole number of ranks", ""},
      {{"--scaling", "4", "a"}, "--scaling: '4' is one number", ""},
      {{"--scaling", "2,1,2", "a"}, "--scaling: 2 is in it twice; --repeat", ""},
      {{"--scaling", "1,2", "--scaling-kind", "hard", "a"},
       "--scaling-kind: 'hard' is neither strong nor weak",
       "strong|weak"},
      {{"--scaling", "1,2", "--repeat", "0", "a"}, "--repeat: '0' is not a whole number from 1", "median"},
      {{"--machinefile", "", "-np", "2", "a"},
       "--machinefile (-hostfile/--hostfile): its value is empty",
       ""},
      {{"-wdir", "", "-np", "2", "a"},
       "-wdir (--workdir): the name of the directory is empty",
       "--workdir DIR"},
      {{"-np", "2", "--nnodes", "0", "a"},
       "--nnodes: '0' is not a whole number from 1 to 65536",
       "--nnodes N"},
      {{"-np", "2", "--nnodes", "", "a"}, "--nnodes: '' is not a whole number", "--nnodes N"},
      {{"-np", "2", "-p22x", "a"}, "-p/--ssh-port: '22x' is not a whole number", "-p PORT"},
      {{"-np", "2", "-p", "gpu", "a"},
       "-p/--ssh-port: 'gpu' is not a whole number",
       "port of the ssh servers"},
      {{"-np", "2", "--timeout", "1h", "a"},
       "--timeout: '1h' is not a number of seconds",
       "--timeout SECONDS"},
      {{"-np", "2", "--timeout", "00:10", "a"},
       "--timeout: '00:10' is not a number of seconds",
       "exit code 124"},
      {{"-np", "2", "--timeout", " 5", "a"}, "--timeout: ' 5' is not a number of seconds", ""},
      {{"-np", "2", "--timeout", "0x10", "a"}, "--timeout: '0x10' is not a number of seconds", ""},
      {{"-np", "2", "--kill-grace", "", "a"},
       "--kill-grace: '' is not a number of seconds",
       "--kill-grace SECONDS"},
      {{"-np", "2", "--start-timeout", "1e9", "a"},
       "'1e9' seconds is more than three years",
       "--start-timeout"},
      {{"-np", "2", "--stall-check-shutdown-time-seconds", "1m", "a"},
       "seconds: '1m' is not a number",
       "124"},
      {{"-np", "2", "--timeline-max-mb", "1GB", "a"}, "'1GB' is not a whole number from 1 to 16384", "MB"},
      {{"-np", "2", "--fusion-threshold-mb", "64MB", "a"}, "'64MB' is not a whole number", "MB"},
      {{"-np", "2", "--gloo-timeout-seconds", "0", "a"}, "--gloo-timeout-seconds: '0' is not", "SECONDS"},
      {{"-np", "2", "--cores-per-rank", "1.5", "a"},
       "--cores-per-rank: '1.5' is not a whole number",
       "N cores"},
      {{"-np", "2", "--ranks-per-gpu", "0", "a"}, "--ranks-per-gpu: '0' is not a whole number", "N ranks"},
      {{"-np", "2", "--mxnet-servers", "-1", "a"}, "--mxnet-servers: '-1' is not a whole number", "servers"},
      {{"-np", "2", "--tf-roles", "worker:a", "a"},
       "'a' is not a number of tasks of the role worker",
       "ROLES"},
      {{"-np", "2", "--tf-roles", "boss:2", "a"},
       "'boss' is not one of chief, worker, ps, evaluator",
       "ROLES"},
      {{"-np", "2", "--bind-to", "Core", "a"},
       "--bind-to: 'Core' is not one of auto, gpu, numa",
       "--bind-to WHAT"},
      {{"-np", "2", "--bind-to", "cores", "a"}, "--bind-to: 'cores' is not one of", "core"},
      {{"-np", "2", "--launcher", "SSH", "a"},
       "--launcher: 'SSH' is not one of auto, local, ssh",
       "--launcher"},
      {{"-np", "2", "--rank-order", "random", "a"},
       "--rank-order: 'random' is neither gpu nor cpu",
       "--rank-order"},
      {{"-np", "2", "--mem-bind", "all", "a"}, "--mem-bind: 'all' is neither local nor none", "--mem-bind"},
      {{"-np", "2", "--gpu-operations", "NCCL", "a"}, "'NCCL' is neither auto, nccl", "--gpu-operations"},
      {{"-np", "2", "--network-interfaces", "10.0.0.0/8", "a"},
       "'10.0.0.0/8' is not the name of a network",
       "eth0"},
      {{"--completion", ""}, "--completion: '' is not one of bash, zsh, fish", "--completion"},
      {{"--show-topology", "--format", "map_cpu"}, "'map_cpu' is not text, json or svg", "--format"},
      {{"--show-bind", "-np", "2", "--format", "yaml"}, "'yaml' is not one of table, map_cpu", "--format"},
  });
}

TEST_CASE("dashes and quotes of a web page or a word processor are named, and what to type instead") {
  check_refused({
      {{"\u2013np", "4", "a"}, "\u2013np begins with a dash that is not a hyphen", "type -np"},
      {{"\u2014np", "4", "a"}, "\u2014np begins with a dash that is not a hyphen", "type --np"},
      {{"\u2212np=4", "a"}, "\u2212np=4 begins with a dash that is not a hyphen", "type -np"},
      {{"\u2010H", "a:2", "a"}, "\u2010H begins with a dash that is not a hyphen", "type -H"},
      {{"\u2013\u2013num-proc", "4", "a"}, "begins with a dash that is not a hyphen", "type --num-proc"},
      {{"-\u2013num-proc", "4", "a"}, "begins with a dash that is not a hyphen", "type --num-proc"},
      {{"\u2014num-proc", "4", "a"}, "begins with a dash that is not a hyphen", "type --num-proc"},
      {{"-np", "2", "\u2013hostfile", "h", "a"}, "\u2013hostfile begins with a dash", "type -hostfile"},
      {{"-np", "2", "\u2013verbos", "a"}, "\u2013verbos begins with a dash", "type --verbose"},
      {{"-np", "2", "\u2013quux", "a"},
       "\u2013quux begins with a dash",
       "a program of this name is given after --"},
      {{"-np", "\u201c2\u201d", "a"},
       "-np: \u201c2\u201d begins with a quote that is not a shell's",
       "type the quotes"},
      {{"-np", "1", "-x", "\u2018A=1\u2019", "a"}, "-x: \u2018A=1\u2019 begins with a quote", "as \" or '"},
      {{"-np", "1", "--sbatch", "\u201e--nice\u201c", "a"},
       "--sbatch: \u201e--nice\u201c begins with a quote",
       ""},
      {{"-np", "1", "\u201cpython", "train.py\u201d"},
       "\u201cpython begins with a quote that is not a shell's",
       "as \""},
      {{"\u201c-np", "2\u201d", "a"}, "\u201c-np begins with a quote", "type the quotes again"},
  });
  // Behind "--" it is the name of a program.
  const auto request =
      ddl::cli::parse_command_line(std::vector<std::string>{"-np", "2", "--", "\u2013np"}, {"/", 2, "head"});
  REQUIRE(request);
  CHECK(request->job.command == std::vector<std::string>{"\u2013np"});
}

TEST_CASE("an option without its value does not take the next option for it") {
  check_refused({
      {{"-np", "2", "--output-filename", "--verbose", "a"},
       "--output-filename needs a value, but the option --verbose",
       "for a file of this name write ./--verbose"},
      {{"--hostfile", "-np", "2", "a"}, "--hostfile needs a value, but the option -np follows", "./-np"},
      {{"-np", "2", "--workdir", "--json", "a"},
       "--workdir needs a value, but the option --json",
       "./--json"},
      {{"-np", "2", "--job-name", "--quiet", "a"},
       "--job-name needs a value, but the option --quiet",
       "--job-name NAME"},
      {{"-H", "-np", "2", "a"},
       "-H needs a value, but the option -np follows",
       "-H HOSTS: hosts and their slots: node1:4"},
      {{"--lint", "--json"}, "--lint needs a value, but the option --json follows", "./--json"},
      {{"--show-bind", "-np", "--json"}, "-np needs a value, but the option --json follows", "-np N"},
      {{"--mca", "-np", "2", "a"}, "--mca needs a value, but the option -np follows", "--mca NAME"},
      {{"--mca", "btl", "-np", "2", "a"}, "--mca needs a value, but the option -np follows", "--mca NAME"},
      {{"--mca", "btl", "-np", "2", "a"}, "but the option -np follows", "for this value write --mca btl=-np"},
      {{"--hostfile"}, "-hostfile/--hostfile needs a value", "-hostfile FILE"},
      {{"--launcher"}, "--launcher needs a value", "--launcher auto|local|ssh"},
      {{"--check-box"}, "--check-box needs a value", "--check-box NAME"},
      {{"--show-site"}, "--show-site needs a value", "--show-site NAME|FILE"},
      {{"--completion"}, "--completion needs a value", "--completion bash|zsh|fish"},
  });
  // Where options of other programs are the value, or where no option was forgotten.
  for (const std::vector<std::string>& value : {std::vector<std::string>{"--ssh-args", "-v"},
                                                {"--mca", "plm_rsh_args", "-q"},
                                                {"--mca", "btl=-q"},
                                                {"--job-name=-x"},
                                                {"--output-filename=-v"},
                                                {"-x", "CFLAGS=-g"}}) {
    std::vector<std::string> words = {"-np", "2"};
    words.insert(words.end(), value.begin(), value.end());
    words.emplace_back("a");
    CAPTURE(value.front());
    CHECK(ddl::cli::parse_command_line(words, {"/", 2, "head"}));
  }
}

TEST_CASE("a flag takes no value, not even true") {
  check_refused({
      {{"-np", "2", "--verbose=true", "a"},
       "--verbose takes no value, but --verbose=true gives one",
       "write --verbose"},
      {{"-np", "2", "--quiet=false", "a"},
       "--quiet takes no value, but --quiet=false",
       "omit it if that is not meant"},
      {{"-np", "2", "--no-tag-output=true", "a"}, "--no-tag-output takes no value", "write --no-tag-output"},
      {{"-np", "2", "--smt=2", "a"}, "--smt takes no value, but --smt=2", "write --smt"},
      {{"-np", "4", "--oversubscribe=4", "a"}, "--oversubscribe takes no value", "write --oversubscribe"},
  });
}

TEST_CASE("an option in another case, with another separator or with its value in one word is recognized") {
  check_refused({
      {{"-NP", "2", "a"}, "unknown option -NP", "did you mean -np?"},
      {{"--Num-Proc", "2", "a"}, "unknown option --Num-Proc", "did you mean --num-proc?"},
      {{"--NUM_PROC=2", "a"}, "unknown option --NUM_PROC=2", "did you mean --num-proc?"},
      {{"-np:2", "a"}, "unknown option -np:2", "did you mean -np?"},
      {{"--np2", "a"}, "unknown option --np2", "did you mean -np?"},
      {{"-np 2", "a"}, "unknown option '-np 2', which is one word with a space in it", "omit the quotes"},
      {{"-np 2 -H a:2", "a"}, "which is one word with a space in it", "two words"},
      {{"-N2", "a"}, "-N is not an option of ddlrun", "--ranks-per-node N for N ranks on each host"},
      {{"-c4", "-np", "2", "a"}, "-c is not an option of ddlrun", "--cores-per-rank N"},
      {{"-np", "2", "-J", "name", "a"}, "-J is not an option of ddlrun", "use --job-name NAME"},
      {{"-np", "2", "-D", "/tmp", "a"}, "-D is not an option of ddlrun", "use --workdir DIR"},
      {{"-np", "2", "-t", "10", "a"}, "-t is not an option of ddlrun", "--timeout SECONDS (srun's -t)"},
      {{"-np", "2", "-o", "out.txt", "a"}, "-o/--script-file belongs to --slurm", "--output-filename DIR"},
      {{"-np", "2", "--cpu-list", "0-3", "a"}, "--cpu-list is not an option of ddlrun", "--cores-per-rank N"},
      {{"--nprocs", "2", "a"}, "--nprocs is not an option of ddlrun", "use -np N"},
      {{"-np", "2", "--dry_run", "a"}, "unknown option --dry_run", "did you mean --dry-run?"},
      {{"-np", "2", "--time-out", "4", "a"}, "unknown option --time-out", "did you mean --timeout?"},
      {{"-help"}, "unknown option -help", "did you mean --help?"},
      {{"--vresion"}, "unknown option --vresion", "did you mean --version?"},
  });
}

TEST_CASE("what would look like a job that has run is refused") {
  check_refused({
      {{"-v", "-np", "2", "a"},
       "-v prints the version and starts nothing, but the command a follows",
       "--verbose"},
      {{"-np", "2", "-v", "a", "b"}, "-v prints the version and starts nothing", "--version alone"},
      {{"help"}, "-np is missing for the command help", "ddlrun --help"},
      {{"version"}, "-np is missing for the command version", "ddlrun --version"},
      {{"-np", "1", "-x", "A", "=", "1", "a"}, "the word = stands where the command begins", "-x NAME=VALUE"},
      {{"--json", "--completion", "bash"}, "--completion does not use --json", "omit it"},
      {{"--dry-run", "--submit", "-np", "2", "a"}, "--submit belongs to --slurm", "add --slurm"},
      {{"--probe", "-np", "2", "a"}, "--probe belongs to --dry-run", "add --dry-run"},
      {{"--format", "json", "-np", "2", "a"}, "--format belongs to --show-bind", "omit it"},
      {{"--show-bind", "-np", "2", "--topology", "x", "--topology-text", "y"},
       "contradict each other",
       "omit one"},
  });
  CHECK(ddl::cli::parse_command_line(std::vector<std::string>{"-v"}, {"/", 2, "head"}));
  CHECK(ddl::cli::parse_command_line(std::vector<std::string>{"--version", "a"}, {"/", 2, "head"}));
}

TEST_CASE("a launcher in the place of the command is named, with its program in a line to type") {
  const auto line = [](std::string text) { return "type ddlrun " + std::move(text); };
  check_refused({
      {{"-np", "8", "--", "torchrun", "--standalone", "--nproc_per_node=8", "-m", "pkg.train", "--lr", "1"},
       "torchrun is a launcher itself",
       line("-np 8 --ranks-per-node 8 -- python3 -m pkg.train --lr 1")},
      {{"python3", "-u", "-W", "ignore", "-m", "torch.distributed.run", "--nproc-per-node", "4", "a.py"},
       "torchrun is a launcher itself",
       line("--ranks-per-node 4 python3 a.py")},
      {{"python", "-m", "torch.distributed.run", "--nproc-per-node", "4", "a.py"},
       "torchrun is a launcher itself",
       line("--ranks-per-node 4 python3 a.py")},
      {{"--slurm", "-t", "1h", "accelerate", "launch", "--multi_gpu", "--num_processes", "8",
        "--num_machines", "2", "--mixed_precision", "bf16", "a.py", "x y"},
       "accelerate is a launcher itself",
       line("--slurm -t 1h -np 8 --nodes 2 python3 a.py 'x y'")},
      {{"--slurm", "-N", "2", "deepspeed", "--num_gpus", "4", "a.py", "--deepspeed", "d.json"},
       "deepspeed is a launcher itself",
       line("--slurm -N 2 --ranks-per-node 4 python3 a.py --deepspeed d.json")},
      {{"mpiexec.hydra", "-np", "4", "./a"}, "mpiexec.hydra is a launcher itself", line("-np 4 ./a")},
      {{"horovodrun", "-np", "4", "-H", "a:2,b:2", "--log-level", "INFO", "python", "a.py"},
       "horovodrun is a launcher itself",
       line("-np 4 -H a:2,b:2 python a.py")},
      {{"--slurm", "--mem", "4G", "srun", "-n8", "-N", "2", "--mpi=pmix", "-c", "4", "-w", "n1", "./a"},
       "srun is a launcher itself",
       line("--slurm --mem 4G -np 8 --nodes 2 -c 4 -w n1 ./a")},
      {{"-np", "2", "sbatch", "job.sh"}, "sbatch submits a script", "type sbatch SCRIPT without ddlrun"},
      {{"-np", "2", "torchrun"}, "torchrun is a launcher itself", "omit it, and write the program"},
      {{"--slurm", "-N", "2", "--ranks-per-node", "2", "torchrun", "a.py"},
       "torchrun is a launcher",
       "python3 a.py"},
  });
  const auto read = [](std::vector<std::string> words) {
    return ddl::cli::parse_command_line(words, {"/", 2, "head"});
  };
  // One on each node has all of the node.
  const auto one =
      read({"--slurm", "-N", "2", "--ranks-per-node", "1", "torchrun", "--nproc-per-node", "8", "a.py"});
  REQUIRE(one);
  CHECK(one->script.request.starts_own_ranks);
  CHECK(one->job.binding.bind_to == ddl::affinity::BindTo::kNone);
  CHECK(read({"-H", "a,b", "--ranks-per-node", "1", "deepspeed", "a.py"}));
  CHECK(read({"--slurm", "-N", "2", "-np", "2", "accelerate", "launch", "a.py"}));
  CHECK(read({"-np", "2", "accelerate", "config"}));
}

TEST_CASE("all wrong options of a job script are answered at once, with the line to type if there is one") {
  const auto refused = [](std::vector<std::string> words) {
    words.insert(words.begin(), "--slurm");
    const auto request = ddl::cli::parse_command_line(words, {"/", 2, "head"});
    REQUIRE_FALSE(request);
    return request.error().message() + "|" + request.error().hint();
  };
  CHECK(refused({"--tiem", "30:00", "-n", "8", "--partiton=gpu", "-w", "n 1", "./a", "x y"}) ==
        "unknown option --tiem; unknown option --partiton=gpu|did you mean --time?; did you mean "
        "--partition? type "
        "ddlrun --slurm --time 30:00 -n 8 --partition gpu -w 'n 1' ./a 'x y'");
  CHECK(refused({"--tiem", "30:00", "-np", "x", "--mem", "lots", "--frob", "./a"}) ==
        "unknown option --tiem; unknown option --frob; -np/--num-proc: 'x' is not a whole number of ranks; "
        "--mem: "
        "'lots' is not a size of memory: a whole number of megabytes, or as in 64G|did you mean --time?; if "
        "it is the "
        "program's, write it behind the program; ddlrun --help all lists ddlrun's own; -np N: start N ranks "
        "(default: "
        "the number of slots of the hosts); --mem SIZE: memory of each node: 64G");
  // What contradicts each other may follow from a wrong value, and is not mentioned behind it.
  CHECK(
      refused({"-np", "2", "--mem", "lots", "--mem-per-cpu", "1G", "./a"})
          .starts_with("--mem: 'lots' is not a size of memory: a whole number of megabytes, or as in 64G|"));
}

TEST_CASE("what stands in the place of the command by mistake is named, with the line to type") {
  check_refused({
      {{"sbatch", "job.sh"},
       "sbatch submits a script, and ddlrun starts programs",
       "type sbatch SCRIPT without ddlrun"},
      {{"salloc", "-N", "2"}, "salloc asks for the nodes", "salloc OPTIONS ddlrun PROGRAM"},
      {{"jsrun", "-n", "4", "-a1", "./a"}, "jsrun is a launcher itself", "in a job of LSF"},
      {{"torchrun", "--nproc-per-node", "2", "a.py"},
       "torchrun is a launcher itself",
       "type ddlrun --ranks-per-node 2 python3 a.py; or, to have one torchrun on each node: --ranks-per-node "
       "1"},
      {{"/opt/mpi/bin/mpirun", "./a"}, "mpirun is a launcher itself", "type ddlrun -np N ./a"},
      {{"2", "hostname"}, "-np is missing before 2", "type ddlrun -np 2 hostname"},
      {{"-H", "node1", "node2", "hostname"}, "the hosts of -H end at a space: node2", "-H node1:4,node2:4"},
      {{"-np", "2", "-H", "a:1,gpu07:2", "gpu11", "./a"},
       "the hosts of -H end at a space: gpu11",
       "after --"},
      {{"-np", "2", "--include", "localhost:0,1", "a"},
       "--include is not an option",
       "-H localhost:2 with CUDA_"},
      {{"--num_gpus", "2", "a"}, "--num_gpus is not an option of ddlrun", "--ranks-per-node N"},
      {{"--num_processes", "2", "a"}, "--num_processes is not an option of ddlrun", "use -np N"},
      {{"--num_machines", "2", "a"}, "--num_machines is not an option of ddlrun", "use --nnodes N"},
      {{"-np", "2", "--epochs", "3", "./a"},
       "unknown option --epochs",
       "if it is the program's, write it behind the program"},
      {{"--lr=0.1", "-np", "2", "./a"}, "unknown option --lr=0.1", "behind the program"},
      {{"--show-bind", "-np", "2", "-o", "x.svg"}, "--show-bind does not use -o/--script-file", "by > FILE"},
      {{"--show-bind", "-np", "2", "--timeout", "3"}, "--show-bind does not use --timeout", "omit it"},
  });
  const auto read = [](std::vector<std::string> words) {
    return ddl::cli::parse_command_line(words, {"/", 2, "head"});
  };
  CHECK(read({"-np2", "hostname"})->job.num_ranks == 2);
  CHECK(read({"-np", "1", "torchrun", "a.py"}));             // a job of one rank that it starts
  CHECK(read({"-np", "2", "-H", "node1", "--", "node2"}));   // meant
  CHECK(read({"-np", "2", "-H", "node1", "python3", "a"}));  // no host, although it ends with a number
}
