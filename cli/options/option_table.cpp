#include "cli/options/option_table.h"

#include <algorithm>
#include <limits>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "cli/options/foreign_options.h"

namespace ddl::cli {

namespace {

using enum OptionId;
using enum OptionGroup;
using enum OptionRule;

constexpr OptionEntry kTable[] = {
    {kNumProc, "-np,--num-proc,--np,-n,--n,--ntasks", "N",
     "start N ranks (default: the number of slots of the hosts)", kRanks},
    {kRanksPerNode,
     "--ranks-per-node,--ntasks-per-node,-npernode,--npernode,-ppn,--ppn,-perhost,--perhost,--nproc-per-node,"
     "--nproc_per_node",
     "N", "start N ranks on each host", kRanks, kForScript},
    {kScaling, "--scaling", "N,N,...", "run the command with each of these numbers of ranks, and compare",
     kRanks, kForScript | kNotWithMpirun | kNotWithSrun},
    {kScalingKind, "--scaling-kind", "strong|weak",
     "all runs do the same work (strong, the default), or each rank does", kRanks,
     kForScript | kNotWithMpirun | kNotWithSrun},
    {kRepeat, "--repeat", "N", "run each of them N times, and take the median (default: 3)", kRanks,
     kForScript | kNotWithMpirun | kNotWithSrun},
    {kMapBy, "--map-by,-map-by", "WHAT", "slot (default), node, socket, numa, l3, core, pu, ppr:N:WHAT",
     kRanks, kForScript},
    {kRankBy, "--rank-by,-rank-by,--rankby,-rankby", "slot|node",
     "then number ranks host by host, or one of each host in turn", kRanks, kForScript},
    {kRankfile, "--rankfile,-rankfile,--rf,-rf", "FILE",
     "host and cores of each rank, a line each: rank 0=node1 slot=0-3", kRanks,
     kForScript | kNotWithMpirun | kNotWithSrun},
    {kOversubscribe, "--oversubscribe,-oversubscribe,--overcommit,-O", "",
     "allow more ranks than slots; a host has one for each CPU", kRanks, kForScript},
    {kExport, "-x", "NAME[=VALUE]", "set a variable for the ranks, or pass on ddlrun's own; repeatable",
     kRanks, kForScript | kRepeatable},
    {kCpuOperations, "--cpu-operations", "ddl|mpi", "what runs libddl's collectives (default: ddl, itself)",
     kRanks, kForScript},
    {kGpuOperations, "--gpu-operations", "auto|nccl|staged", "the same on memory of GPUs (default: auto)",
     kRanks, kForScript},
    {kFusionThreshold, "--fusion-threshold-mb", "MB",
     "named tensors that libddl processes together (default: 64)", kRanks, kForScript},
    {kFramework, "--framework", "NAME", "torch, tensorflow, horovod, jax, mxnet, mpi, ... (default: auto)",
     kRanks, kForScript | kForMpiRank | kNotWithSrun},
    {kGloo, "--gloo", "", "for programs of Horovod that were built with Gloo, not MPI", kRanks,
     kForScript | kNotWithSrun},
    {kGlooTimeout, "--gloo-timeout-seconds", "SECONDS",
     "how long their ranks wait for each other (default: 30)", kRanks, kForScript},
    {kAsHorovod, "--as-horovod", "", "for scripts that import horovod: they get ddl by that name", kRanks,
     kForScript | kForMpiRank},
    {kMca, "--mca,-mca,--gmca,-gmca", "NAME VALUE", "set a parameter of Open MPI for the ranks; repeatable",
     kRanks, kForScript | kNameAndValue},
    {kTfRoles, "--tf-roles", "ROLES", "tasks of TensorFlow, one for each rank: chief:1,worker:4,ps:2", kRanks,
     kForScript | kNotWithMpirun | kNotWithSrun},
    {kMxnetServers, "--mxnet-servers", "N", "servers of MXNet, beside the ranks (default: as many)", kRanks,
     kForScript | kNotWithMpirun | kNotWithSrun},
    {kWorkdir, "--workdir,--wdir,-wdir,--wd,-wd,--chdir", "DIR",
     "start the ranks in DIR (default: the current directory)", kRanks, kForScript},
    {kTimeout, "--timeout", "SECONDS", "end the job after this time, with exit code 124", kRanks,
     kForScript | kNotWithSrun},
    {kEndWith, "--end-with", "PID", "end the job when this process has ended", kRanks,
     kNotInScript | kNotWithSrun},
    {kJobName, "--job-name", "NAME", "name of the job (default: the command's)", kRanks, kForScript},
    {kKillGrace, "--kill-grace,--shutdown-timeout,--shutdown_timeout", "SECONDS",
     "time that ranks have to end before SIGKILL (default: 5)", kRanks,
     kForScript | kForMpiRank | kNotWithSrun},
    {kStallWarning, "--stall-check-warning-time-seconds", "SECONDS",
     "say which ranks the others wait for after this time (default: 60)", kRanks,
     kForScript | kNotWithMpirun | kNotWithSrun},
    {kStallShutdown, "--stall-check-shutdown-time-seconds", "SECONDS",
     "end the job for such a wait after this time, with exit code 124", kRanks,
     kForScript | kNotWithMpirun | kNotWithSrun},
    {kNoStallCheck, "--no-stall-check", "", "never say it", kRanks,
     kForScript | kNotWithMpirun | kNotWithSrun},

    {kBindTo, "--bind-to,-bind-to", "WHAT", "auto, gpu, numa, l3, socket, core, pu or none (default: auto)",
     kBinding, kForScript | kForMpiRank},
    {kCoresPerRank, "--cores-per-rank", "N", "give each rank N cores (default: its share of the node)",
     kBinding, kForScript | kForMpiRank},
    {kReserve, "--reserve", "first-core-per-l3|LIST", "leave these cores to the system: 0,8,16-17", kBinding,
     kForScript | kForMpiRank},
    {kRankOrder, "--rank-order", "gpu|cpu", "local rank r gets GPU r (default), or ranks ascend by CPU",
     kBinding, kForScript | kForMpiRank},
    {kSmt, "--smt", "", "also use the other hardware threads of a rank's cores", kBinding,
     kForScript | kForMpiRank},
    {kGpusPerRank, "--gpus-per-rank", "N", "give each rank N GPUs", kBinding, kForScript | kForMpiRank},
    {kRanksPerGpu, "--ranks-per-gpu", "N", "put N ranks on each GPU (default: spread evenly)", kBinding,
     kForScript | kForMpiRank},
    {kVisibleGpus, "--visible-gpus", "own|node", "a rank sees its own GPU, or those of its node's ranks",
     kBinding, kForScript | kForMpiRank | kNotWithSrun},
    {kMemBind, "--mem-bind", "local|none", "allocate memory near a rank's CPUs (default), or anywhere",
     kBinding, kForScript | kForMpiRank | kNotWithSrun},
    {kReportBindings, "--report-bindings,-report-bindings", "", "print how the kernel has bound every rank",
     kBinding, kForScript | kNotWithMpirun | kNotWithSrun},
    {kStrictBind, "--strict-bind", "", "start nothing unless every rank can be bound as planned", kBinding,
     kForScript | kForMpiRank | kNotWithSrun},
    {kShowBind, "--show-bind", "", "print where -np N ranks would run on one node, and start nothing",
     kBinding},
    {kExplainBind, "--explain-bind", "", "the same, with the reason for each rank", kBinding},
    {kShowTopology, "--show-topology", "", "print the node, and with -np N its ranks, and start nothing",
     kBinding},
    {kFormat, "--format", "FORM", "map_cpu, mask_cpu, srun, taskset, svg, json, ... (default: table)",
     kBinding},
    {kTopology, "--topology", "NODE", "plan for an hwloc XML file, or \"pack:2 numa:2 l3:2 core:8 pu:2\"",
     kBinding},
    {kSite, "--site", "NAME|FILE", "follow a site's rules, or plan for it: lumi-g; see --list-sites",
     kBinding},
    {kTopologyText, "--topology-text", "FILE",
     "plan for text of lscpu, amd-smi, rocm-smi, nvidia-smi; repeatable", kBinding, kRepeatable},

    {kHosts, "-H,--hosts", "HOSTS", "hosts and their slots: node1:4,node2:4", kHostsAndLauncher,
     kNotInScript},
    {kHostfile, "-hostfile,--hostfile,-machinefile,--machinefile", "FILE",
     "the same in a file, one host a line; - is standard input", kHostsAndLauncher, kNotInScript},
    {kHostsExclude, "--hosts-exclude,--exclude", "HOSTS", "do not use these hosts", kHostsAndLauncher,
     kNotInScript},
    {kNnodes, "--nnodes", "N|MIN:MAX", "use only the first N of the hosts, or as many as there are",
     kHostsAndLauncher, kNotInScript},
    {kLauncher, "--launcher", "auto|local|ssh|srun|mpirun",
     "how to start ranks (default: ssh, but not to this machine)", kHostsAndLauncher},
    {kMpi, "--mpi", "", "same as --launcher mpirun: the MPI's mpirun starts the ranks", kHostsAndLauncher,
     kForScript},
    {kMpirun, "--mpirun", "FILE", "with --launcher mpirun: which mpirun to use (default: mpirun)",
     kHostsAndLauncher, kForScript},
    {kMpiArgs, "--mpi-args", "ARGS", "further options for mpirun, before the command", kHostsAndLauncher,
     kForScript},
    {kBindingArgs, "--binding-args", "ARGS", "mpirun's options for binding, instead of ddlrun's binding",
     kHostsAndLauncher, kForScript},
    {kTcp, "--tcp", "", "with --launcher mpirun: use only TCP and shared memory", kHostsAndLauncher,
     kForScript},
    {kSshPort, "-p,--ssh-port", "PORT", "port of the ssh servers (with --slurm, -p is the partition)",
     kHostsAndLauncher, kNotInScript},
    {kSshIdentityFile, "-i,--ssh-identity-file", "FILE", "private key for ssh", kHostsAndLauncher,
     kNotInScript},
    {kSshArgs, "--ssh-args", "ARGS", "further options for ssh: --ssh-args \"-J me@bastion\"",
     kHostsAndLauncher, kNotInScript},
    {kLaunchAgent, "--launch-agent", "CMD", "a command to use instead of ssh; %h is the host",
     kHostsAndLauncher, kNotInScript | kNotWithMpirun},
    {kSshParallel, "--ssh-parallel", "N", "open at most N connections at once (default: 32)",
     kHostsAndLauncher, kNotInScript | kNotWithMpirun},
    {kFanOut, "--fan-out", "N", "let each host connect to N others (default: 0, to none)", kHostsAndLauncher,
     kNotInScript | kNotWithMpirun},
    {kStartTimeout, "--start-timeout", "SECONDS", "time that each host has to answer (default: 30)",
     kHostsAndLauncher, kForScript | kNotWithMpirun | kNotWithSrun},
    {kRemotePath, "--remote-path", "PATH", "path of ddlrun on the other hosts (default: as on this one)",
     kHostsAndLauncher},
    {kNetworkInterfaces, "--network-interfaces,--network-interface", "NAMES",
     "let ranks use only these: eth0,ib0 (default: all)", kHostsAndLauncher, kForScript | kNotWithSrun},

    {kElastic, "--elastic", "continue|restart|off", "when a rank fails: others go on, or all start again",
     kElasticJobs, kForScript | kNotWithMpirun | kNotWithSrun},
    {kMaxRestarts, "--max-restarts,--max_restarts", "N",
     "at most N times after failures of ranks (default: 0 or 3)", kElasticJobs,
     kForScript | kNotWithMpirun | kNotWithSrun},
    {kMinNp, "--min-np,--min-num-proc", "N", "go on with N ranks or more (default: -np)", kElasticJobs,
     kForScript | kNotWithMpirun | kNotWithSrun},
    {kMaxNp, "--max-np,--max-num-proc", "N", "never start more than N ranks (default: no limit)",
     kElasticJobs, kForScript | kNotWithMpirun | kNotWithSrun},
    {kSpares, "--spares", "N", "start N processes more than --max-np, which wait to replace others",
     kElasticJobs, kForScript | kNotWithMpirun | kNotWithSrun},
    {kDiscovery, "--host-discovery-script", "FILE",
     "a program that prints hosts; slurm:NAME: nodes of your jobs", kElasticJobs,
     kNotInScript | kNotWithMpirun | kNotWithSrun},
    {kSlotsPerHost, "--slots-per-host,--slots", "N", "slots of hosts that are named without slots",
     kElasticJobs, kNotInScript | kNotWithMpirun | kNotWithSrun},
    {kElasticTimeout, "--elastic-timeout", "SECONDS",
     "longest wait for the least number of ranks (default: 600)", kElasticJobs,
     kForScript | kNotWithMpirun | kNotWithSrun},
    {kElasticSettle, "--elastic-settle", "SECONDS", "wait for more hosts after one has appeared (default: 2)",
     kElasticJobs, kForScript | kNotWithMpirun | kNotWithSrun},
    {kReadyTimeout, "--elastic-ready-timeout", "SECONDS",
     "kill ranks that do not join again in time (default: 30)", kElasticJobs,
     kForScript | kNotWithMpirun | kNotWithSrun},
    {kElasticUnit, "--elastic-unit", "UNIT", "what rests after a process has failed: its slot, or host",
     kElasticJobs, kForScript | kNotWithMpirun | kNotWithSrun},
    {kStateDir, "--state-dir", "DIR", "save the state here when asked to end, and go on from it",
     kElasticJobs, kForScript | kNotWithMpirun | kNotWithSrun},
    {kStateInterval, "--state-interval", "N", "save it after every N commits, too", kElasticJobs,
     kForScript | kNotWithMpirun | kNotWithSrun},
    {kPreemptionWatch, "--preemption-watch", "COMMAND",
     "a host's ranks leave when COMMAND, which runs there, ends with 0", kElasticJobs,
     kForScript | kNotWithMpirun | kNotWithSrun},
    {kResetLimit, "--reset-limit", "N", "at most N new generations, whatever the reason", kElasticJobs,
     kForScript | kNotWithMpirun | kNotWithSrun},
    {kCooldown, "--blacklist-cooldown-range", "MIN MAX",
     "seconds without a host or slot that has failed (default: 30 300)", kElasticJobs,
     kForScript | kNameAndValue | kNotWithMpirun | kNotWithSrun},

    {kStdin, "--stdin", "0|all|none", "which ranks read standard input (default: rank 0)", kInputOutput,
     kForScript | kForMpiRank},
    {kOutputFilename, "--output-filename", "DIR", "also write the output to DIR/rank.R/stdout and stderr",
     kInputOutput, kForScript | kNotWithMpirun | kNotWithSrun},
    {kTimelineFile, "--timeline-filename", "FILE",
     "write what all ranks did to FILE (.gz too), for ui.perfetto.dev", kInputOutput, kForScript},
    {kTimelineSize, "--timeline-max-mb", "MB", "size of FILE; the oldest events are dropped (default: 128)",
     kInputOutput, kForScript},
    {kReport, "--report", "FILE.html", "write a page about the job to FILE at its end, however it ends",
     kInputOutput, kForScript | kNotWithMpirun | kNotWithSrun},
    {kReportJson, "--report-json", "FILE.json", "write what the page is drawn from", kInputOutput,
     kForScript | kNotWithMpirun | kNotWithSrun},
    {kReportDir, "--report-dir", "DIR", "write both into DIR, named by the job", kInputOutput,
     kForScript | kNotWithMpirun | kNotWithSrun},
    {kBaseline, "--baseline", "FILE.json", "compare on the page with the run of this --report-json",
     kInputOutput, kForScript | kNotWithMpirun | kNotWithSrun},
    {kMetricsListen, "--metrics-listen", "[ADDRESS:]PORT", "answer a site's Prometheus at this port",
     kInputOutput, kForScript | kNotWithMpirun | kNotWithSrun},
    {kMetricsUsers, "--metrics-users", "USER,USER,...", "also answer programs of these users", kInputOutput,
     kForScript | kNotWithMpirun | kNotWithSrun},
    {kMetricsTokenFile, "--metrics-token-file", "FILE", "also answer requests with the token in FILE",
     kInputOutput, kForScript | kNotWithMpirun | kNotWithSrun},
    {kMetricsDiscovery, "--metrics-discovery", "DIR", "tell Prometheus of that port by a file in DIR",
     kInputOutput, kForScript | kNotWithMpirun | kNotWithSrun},
    {kMetricsFile, "--metrics-file", "FILE.prom", "keep in FILE, or a folder, what a site's Prometheus reads",
     kInputOutput, kForScript | kNotWithMpirun | kNotWithSrun},
    {kMetricsHistory, "--metrics-history", "FILE.om", "collect the same with times, for promtool",
     kInputOutput, kForScript | kNotWithMpirun | kNotWithSrun},
    {kMetricsInterval, "--metrics-interval", "SECONDS", "how often (default: 15)", kInputOutput,
     kForScript | kNotWithMpirun | kNotWithSrun},
    {kMetricsDetail, "--metrics-detail", "auto|job|host|rank", "what has numbers of its own (default: auto)",
     kInputOutput, kForScript | kNotWithMpirun | kNotWithSrun},
    {kTagOutput, "--tag-output,-tag-output", "",
     "put \"[rank]<stdout>:\" before every line (default if N > 1)", kInputOutput, kForScript},
    {kNoTagOutput, "--no-tag-output", "", "do not change the ranks' lines", kInputOutput, kForScript},
    {kMergeStderr, "--merge-stderr-to-stdout,-merge-stderr-to-stdout", "",
     "show the ranks' standard error on standard output", kInputOutput,
     kForScript | kNotWithMpirun | kNotWithSrun},
    {kPrefixTimestamp,
     "--prefix-output-with-timestamp,-prefix-timestamp,--timestamp-output,-timestamp-output", "",
     "put the time before every line", kInputOutput, kForScript | kNotWithSrun},

    {kSlurm, "--slurm", "", "print a job script for sbatch, and start nothing", kScripts},
    {kNodes, "--nodes", "N|MIN-MAX", "number of nodes (default: what -np and the site's nodes require)",
     kScripts},
    {kGpusPerNode, "--gpus-per-node", "[TYPE:]N", "GPUs of each node; 0: none (default: the site's)",
     kScripts},
    {kCpusPerTask, "--cpus-per-task", "N", "CPUs of each rank, as Slurm counts them (default: the site's)",
     kScripts},
    {kAccount, "-A,--account", "NAME", "the account, or project, to charge", kScripts},
    {kPartition, "--partition", "NAME", "partition (default: the site's)", kScripts},
    {kQos, "--qos", "NAME", "quality of service", kScripts},
    {kTime, "--time", "LIMIT", "time limit: 30:00, 2:00:00, 1-12:00:00, 90m or 2h", kScripts},
    {kMem, "--mem", "SIZE", "memory of each node: 64G", kScripts},
    {kMemPerCpu, "--mem-per-cpu", "SIZE", "memory of each CPU", kScripts},
    {kMemPerGpu, "--mem-per-gpu", "SIZE", "memory of each GPU", kScripts},
    {kExclusive, "--exclusive", "", "do not share the nodes with other jobs", kScripts},
    {kConstraint, "--constraint", "FEATURES", "use only nodes with these features", kScripts},
    {kDependency, "--dependency", "JOBS", "start after other jobs: afterok:4711", kScripts},
    {kArray, "--array", "TASKS", "start a job array, each task a job of its own: 0-9%4", kScripts},
    {kRequeue, "--requeue", "", "start again after a lost node or a preemption", kScripts},
    {kRequeueOn, "--requeue-on", "CODE", "start again if the ranks end with this exit code", kScripts},
    {kSignal, "--signal", "SIGNAL@SECONDS", "send the ranks a signal before the time limit: USR2@120",
     kScripts},
    {kOutput, "--output", "PATTERN", "file of the job's output (default: %x-%j.out)", kScripts},
    {kError, "--error", "PATTERN", "file of the job's errors (default: the output's)", kScripts},
    {kMailUser, "--mail-user", "ADDRESS", "send mail to this address", kScripts},
    {kMailType, "--mail-type", "EVENTS", "send mail on these events: END,FAIL", kScripts},
    {kSbatch, "--sbatch", "OPTION", "any other option of sbatch: --sbatch=--licenses=x; repeatable", kScripts,
     kRepeatable},
    {kBeforeModules, "--before-modules", "LINE", "run a line of shell before modules are loaded; repeatable",
     kScripts, kRepeatable},
    {kModule, "--module", "NAME", "load this module first; repeatable", kScripts, kRepeatable},
    {kEasybuildPrefix, "--easybuild-prefix", "DIR", "where EasyBuild installed your own modules", kScripts},
    {kEessi, "--eessi", "VERSION", "take software from EESSI: 2023.06", kScripts},
    {kConda, "--conda", "NAME|DIR", "activate this conda environment", kScripts},
    {kVenv, "--venv", "DIR", "activate this Python environment", kScripts},
    {kSetup, "--setup", "LINE", "run a line of shell before the ranks start; repeatable", kScripts,
     kRepeatable},
    {kAfter, "--after", "LINE", "run one after the ranks, also if they have failed; repeatable", kScripts,
     kRepeatable},
    {kContainer, "--container", "IMAGE", "run each rank in this image", kScripts},
    {kContainerBind, "--container-bind", "DIR[:DIR]", "mount this folder in the container; repeatable",
     kScripts, kRepeatable},
    {kContainerRuntime, "--container-runtime", "NAME",
     "apptainer, singularity, pyxis, shifter, podman-hpc, ...", kScripts},
    {kContainerOption, "--container-option", "OPTION",
     "any other option of that, as in =--cleanenv; repeatable", kScripts, kRepeatable},
    {kExpand, "--expand", "", "the script replaces $NAME, $1 and $@ in the command", kScripts},
    {kSrunOption, "--srun-option", "OPTION", "any other option of srun, with --launcher srun; repeatable",
     kScripts, kRepeatable},
    {kGpuChoice, "--gpu-choice", "visible-devices|gpu-bind",
     "how srun's ranks get theirs (default: the site's)", kScripts},
    {kGpuVendor, "--gpu-vendor", "nvidia|amd|intel", "of the nodes (default: the site's)", kScripts},
    {kMpiType, "--mpi-type", "TYPE", "value of srun's --mpi= (default: the site's)", kScripts},
    {kTemplate, "--template", "FILE", "use your own template for the script", kScripts},
    {kScriptFile, "-o,--script-file", "FILE", "write the script to FILE", kScripts},
    {kForce, "--force", "", "replace FILE if it exists", kScripts},
    {kSubmit, "--submit", "", "submit the script by sbatch, and print the job's number", kScripts},
    {kTestOnly, "--test-only", "", "ask when the job would start, and submit nothing", kScripts},
    {kLint, "--lint", "FILE", "check a job script that you wrote", kScripts},
    {kListSites, "--list-sites", "", "list the sites that --site knows", kScripts},
    {kShowSite, "--show-site", "NAME|FILE", "print a site's profile", kScripts},
    {kExplain, "--explain", "", "with --site: each fact of its profile, with source and date", kScripts},

    {kDryRun, "--dry-run", "", "print what would be started where, and start nothing", kReports,
     kNotInScript},
    {kProbe, "--probe", "", "with --dry-run: ask the hosts where each rank would run, and why", kReports,
     kNotInScript | kNotWithMpirun},
    {kInspect, "--inspect", "[JOB]", "show what the ranks of a running job do: its pid or name", kReports,
     kOptionalValue},
    {kTimeline, "--timeline", "start|stop", "a running job, named as for --inspect, records its timeline",
     kReports},
    {kReportFrom, "--report-from", "FILE.json", "draw the page of a --report-json again, to --report or here",
     kReports},
    {kMetrics, "--metrics", "[JOB]", "print what monitoring reads of a running job", kReports,
     kOptionalValue},
    {kOpenMetrics, "--openmetrics", "", "with --metrics: in the format OpenMetrics", kReports},
    {kTimelineView, "--timeline-view", "FILE.json", "print a page that shows a timeline without a network",
     kReports},
    {kWatch, "--watch", "", "with --inspect: again every 2 seconds, until the job ends", kReports},
    {kJson, "--json", "", "print the report, --inspect, --dry-run or --check-* as JSON", kReports,
     kNotWithMpirun},
    {kVerbose, "--verbose", "", "report each step", kReports, kForScript},
    {kQuiet, "--quiet", "", "no notes; errors and the ranks' output remain", kReports,
     kForScript | kForMpiRank},

    {kConfigFile, "--config-file", "FILE", "read options from YAML; the command line takes precedence",
     kAbout},
    {kCheckHosts, "--check-hosts", "", "compare the hosts of -H or --hostfile", kAbout},
    {kCheckBuild, "-cb,--check-build", "", "print what is built, what works here or on the hosts, or why not",
     kAbout},
    {kCheckCapability, "--check-box", "NAME",
     "check one line of --check-build: exit code 0 if it works, else 1", kAbout},
    {kCompletion, "--completion", "bash|zsh|fish", "print what this shell needs to complete ddlrun's options",
     kAbout},
    {kVersion, "-v,--version,-V", "", "print the version", kAbout},
    {kHelp, "-h,--help", "[TOPIC]", "print the most used options, or those of a topic, or all", kAbout,
     kOptionalValue},
};

constexpr SbatchSpelling kSbatchSpellings[] = {
    {"-t", kTime},
    {"-N", kNodes},
    {"-c", kCpusPerTask},
    {"-p", kPartition},
    {"-J", kJobName},
    {"-e", kError},
    {"-C", kConstraint},
    {"-q", kQos},
    {"-d", kDependency},
    {"-a", kArray},
    {"-w", kSbatch, "--nodelist"},
    {"--nodelist", kSbatch, "--nodelist"},
    {"-G", kSbatch, "--gpus"},
    {"--gpus", kSbatch, "--gpus"},
    {"--gres", kSbatch, "--gres"},
    {"--exclude", kSbatch, "--exclude"},
    {"--reservation", kSbatch, "--reservation"},
    {"-L", kSbatch, "--licenses"},
    {"--licenses", kSbatch, "--licenses"},
    {"--mincpus", kSbatch, "--mincpus"},
    {"--comment", kSbatch, "--comment"},
    {"--begin", kSbatch, "--begin"},
    {"--hint", kSbatch, "--hint"},
    {"--nice", kSbatch, "--nice"},
};

/// Does not use split(), which allocates: this is called for every word of the command line.
bool has_spelling(const OptionEntry& entry, std::string_view wanted) {
  std::string_view rest = entry.spellings;
  while (!rest.empty()) {
    const std::size_t comma = std::min(rest.find(','), rest.size());
    if (rest.substr(0, comma) == wanted) return true;
    rest.remove_prefix(std::min(comma + 1, rest.size()));
  }
  return false;
}

std::string_view without_dashes(std::string_view word) {
  const std::size_t first = word.find_first_not_of('-');
  return first == std::string_view::npos ? std::string_view{} : word.substr(first);
}

}  // namespace

std::span<const OptionEntry> option_table() { return kTable; }

const OptionEntry* find_spelling(std::string_view spelling) {
  for (const auto table : {option_table(), foreign_options()}) {
    for (const OptionEntry& entry : table) {
      if (has_spelling(entry, spelling)) return &entry;
    }
  }
  return nullptr;
}

std::span<const SbatchSpelling> sbatch_spellings() { return kSbatchSpellings; }

const SbatchSpelling* find_sbatch_spelling(std::string_view spelling) {
  const auto* found =
      std::find_if(std::begin(kSbatchSpellings), std::end(kSbatchSpellings),
                   [spelling](const SbatchSpelling& one) { return one.spelling == spelling; });
  return found == std::end(kSbatchSpellings) ? nullptr : found;
}

const OptionEntry& entry_of(OptionId id) {
  const auto* entry =
      std::find_if(std::begin(kTable), std::end(kTable), [id](const OptionEntry& e) { return e.id == id; });
  DDL_CHECK(entry != std::end(kTable), "option " + std::to_string(static_cast<int>(id)));
  return *entry;
}

std::string_view canonical_spelling(const OptionEntry& entry) {
  const auto spellings = split(entry.spellings, ',');
  const auto two_dashes = std::find_if(spellings.begin(), spellings.end(),
                                       [](std::string_view spelling) { return spelling.starts_with("--"); });
  return two_dashes != spellings.end() ? *two_dashes : spellings.front();
}

std::string display_name(const OptionEntry& entry) {
  const auto spellings = split(entry.spellings, ',');
  const std::string_view canonical = canonical_spelling(entry);
  if (spellings.front() == canonical) return std::string(canonical);
  return std::string(spellings.front()) + "/" + std::string(canonical);
}

std::string usage_line(const OptionEntry& entry) {
  std::string text(split(entry.spellings, ',').front());
  if (entry.takes_value()) text += " " + std::string(entry.value);
  return text + ": " + std::string(entry.help);
}

std::optional<std::string> suggest_option(std::string_view word) {
  const std::string lower = in_lower_case(without_dashes(word.substr(0, word.find_first_of("=:"))));
  const std::string_view name = lower;
  // A longer word cannot be close to any option.
  constexpr std::size_t kMaxName = 64;
  if (name.empty() || name.size() > kMaxName) return std::nullopt;

  int closest = std::numeric_limits<int>::max();
  std::string_view suggestion;
  for (const OptionEntry& entry : option_table()) {
    for (const std::string_view spelling : split(entry.spellings, ',')) {
      const std::string_view candidate = without_dashes(spelling);
      int distance = edit_distance(name, candidate);
      // "--output" for "--output-filename": a prefix, which argparse would accept.
      if (name.size() >= 3 && candidate.starts_with(name)) distance = std::min(distance, 1);
      const int close_enough = std::max(name.size(), candidate.size()) / 3;
      // A short name with another first letter is another name: -genv is not a misspelt --venv.
      constexpr std::size_t kShort = 6;
      if (name.size() < kShort && name.front() != candidate.front()) continue;
      if (distance <= close_enough && distance < closest) {
        closest = distance;
        suggestion = spelling;
      }
    }
  }
  if (suggestion.empty()) return std::nullopt;
  return std::string(suggestion);
}

}  // namespace ddl::cli
