#include "cli/options/foreign_options.h"

namespace ddl::cli {

namespace {

using enum OptionId;

constexpr std::string_view kHostsAreGiven =
    "name hosts with -H, as in -H node1:4,node2:4, or in a file with --hostfile";
constexpr std::string_view kNothingTuned = "libddl chooses the algorithm itself";
constexpr std::string_view kStepsAreMarked =
    "a timeline marks the steps of named tensors; libddl has no cycles";
constexpr std::string_view kNoAutotune = "the defaults of libddl are chosen by measurement";
constexpr std::string_view kNoMpi =
    "pass mpirun's own with --launcher mpirun --mpi-args ARGS, or Open MPI's with -x OMPI_MCA_NAME=VALUE";

constexpr OptionEntry kForeignOptions[] = {
    // Of horovodrun (0.28.1, and --torus-allreduce of later versions): they request what ddlrun does by default, or
    // tune what it does not have.
    {kWithoutEffect, "--disable-cache", "", "ddlrun does not cache the results of checks"},
    {kWithoutEffect, "--hierarchical-allreduce", "", kNothingTuned},
    {kWithoutEffect, "--no-hierarchical-allreduce", "", kNothingTuned},
    {kWithoutEffect, "--torus-allreduce", "", kNothingTuned},
    {kWithoutEffect, "--no-torus-allreduce", "", kNothingTuned},
    {kWithoutEffect, "--hierarchical-allgather", "", kNothingTuned},
    {kWithoutEffect, "--no-hierarchical-allgather", "", kNothingTuned},
    {kWithoutEffect, "--num-nccl-streams", "N",
     "libddl orders all calls of NCCL on one stream for each process set"},
    {kWithoutEffect, "--thread-affinity", "N",
     "libddl's own threads sleep unless tensors are submitted or something fails"},
    {kWithoutEffect, "--no-autotune", "", "there is nothing to tune"},
    {kWithoutEffect, "--stall-check", "", "stalls are reported anyway"},
    {kWithoutEffect, "--autotune", "", kNoAutotune},
    {kWithoutEffect, "--autotune-log-file", "FILE", kNoAutotune},
    {kWithoutEffect, "--autotune-warmup-samples", "N", kNoAutotune},
    {kWithoutEffect, "--autotune-steps-per-sample", "N", kNoAutotune},
    {kWithoutEffect, "--autotune-bayes-opt-max-samples", "N", kNoAutotune},
    {kWithoutEffect, "--autotune-gaussian-process-noise", "X", kNoAutotune},
    {kWithoutEffect, "--cycle-time-ms", "MS", "libddl processes tensors when they are ready, not in cycles"},
    {kWithoutEffect, "--cache-capacity", "N", "libddl remembers the tensors of a whole step"},
    {kWithoutEffect, "--timeline-mark-cycles", "", kStepsAreMarked},
    {kWithoutEffect, "--no-timeline-mark-cycles", "", kStepsAreMarked},
    {kWithoutEffect, "--no-mpi-threads-disable", "", "ddlrun never disables threads of an MPI"},
    {kWithoutEffect, "--log-without-timestamp,--log-hide-timestamp", "",
     "ddlrun prints its messages without the time"},
    {kWithoutEffect, "--log-with-timestamp,--no-log-hide-timestamp", "",
     "--prefix-output-with-timestamp puts the time before the lines of the ranks"},
    {kWithoutEffect, "--log-level", "LEVEL",
     "--verbose is for more messages of ddlrun, and --quiet for fewer"},

    // Of horovodrun, not in this version.
    {kUnavailable, "--mpi-threads-disable", "", kNoMpi},
    {kUnavailable, "--jsrun", "", "ddlrun starts ranks itself, or with srun or mpirun (--launcher); omit it"},

    // Of mpirun, srun and torchrun: they request what ddlrun does by default.
    {kWithoutEffect, "--standalone", "", "without -H ranks run on this machine"},
    {kWithoutEffect, "--allow-run-as-root", "", "ddlrun runs as any user"},
    {kWithoutEffect, "--nooversubscribe,-nooversubscribe,--no-oversubscribe", "",
     "without --oversubscribe there are no more ranks than slots, or in a Slurm job than its CPUs"},
    {kWithoutEffect, "-genvall,--genvall,-envall,--envall", "", "ranks inherit ddlrun's environment"},
    {kWithoutEffect, "-u,--unbuffered", "", "lines are passed on when they end"},
    {kWithoutEffect, "-K,--kill-on-bad-exit", "", "a job ends when a rank fails"},
    {kWithoutEffect, "--rdzv-backend,--rdzv_backend,--rdzv-id,--rdzv_id", "VALUE",
     "ddlrun tells the ranks where they meet"},
    {kWithoutEffect, "--rdzv-conf,--rdzv_conf", "VALUE",
     "--elastic-timeout is for join_timeout, and --elastic-settle for last_call_timeout"},
    {kWithoutEffect, "--monitor-interval,--monitor_interval", "SECONDS",
     "ddlrun learns at once when a rank ends"},

    // Of mpirun, srun and torchrun: what to use instead.
    {kForeign, "-c", "N",
     "use -np N for N ranks (mpirun's -c), --cores-per-rank N for their cores (srun's); with --slurm it is "
     "sbatch's"},
    {kForeign, "-N", "N",
     "use --ranks-per-node N for N ranks on each host (mpirun's -N), --nnodes N for N hosts (srun's); with "
     "--slurm it is sbatch's"},
    {kForeign, "-host,--host,--nodelist,-w", "HOSTS", kHostsAreGiven},
    {kForeign, "-C", "FEATURES", "use --constraint FEATURES in a job script; with --slurm it is sbatch's"},
    {kForeign, "-f", "FILE", "use --hostfile FILE, one host a line"},
    {kForeign, "-l,--label", "", "omit it: lines of several ranks begin with their rank"},
    {kForeign, "-m,--distribution", "WHAT",
     "use --map-by slot or node (srun's -m), or python -m MODULE as the command (torchrun's)"},
    {kForeign, "-ppr,--ppr", "WHAT", "use --map-by ppr:N:WHAT, as in --map-by ppr:2:numa"},
    {kForeign, "-bynode,--bynode", "", "use --map-by node: hosts get ranks in turn"},
    {kForeign, "-byslot,--byslot", "", "omit it, or use --map-by slot: one host is filled after the other"},
    {kForeign, "--multi-prog", "FILE",
     "start a shell script that runs one program or the other, depending on $RANK"},
    {kForeign, "--cpus-per-rank,--depth", "N",
     "use --cores-per-rank N, and --smt for all hardware threads of these cores"},
    {kForeign, "--use-hwthread-cpus,-use-hwthread-cpus", "",
     "use --smt, which gives ranks all hardware threads of their cores"},
    {kForeign, "--cpu-bind,--cpu_bind", "WHAT",
     "use --bind-to; --show-bind --format srun prints options for srun"},
    {kForeign, "--gpu-bind,--gpus-per-task,--ntasks-per-gpu", "WHAT",
     "use --gpus-per-rank N or --ranks-per-gpu N; each rank gets GPUs near its cores"},
    {kForeign, "--gpus,-G,--gres,--reservation,--licenses,-L,--mincpus,--nice,--comment,--begin,--hint",
     "WHAT", "ask Slurm for it: salloc OPTIONS ddlrun ..., or give it with --slurm, for a job script"},
    {kForeign, "-genv,--genv,-env,--env,-genvlist,--genvlist,--export,-E", "NAME",
     "use -x NAME=VALUE, or -x NAME to pass on ddlrun's own"},
    {kForeign, "--prtemca,--pmixmca", "NAME",
     "it is PRRTE's or PMIx's own: pass it to mpirun with --launcher mpirun --mpi-args ARGS"},
    {kForeign, "--prefix,-prefix", "DIR", "use --remote-path for the path of ddlrun on the other hosts"},
    {kForeign, "-app,--app", "FILE", "start a shell script that runs one program or the other"},
    {kForeign, "--display-map,-display-map,--display-allocation,-display-allocation,--display", "",
     "use --dry-run, and with --probe where each rank would run"},
    {kForeign, "--node-rank,--node_rank", "N",
     "omit it, and start ddlrun once, not on each host: it starts the ranks of all hosts of -H"},
    {kForeign, "--master-addr,--master_addr,--master-port,--master_port,--rdzv-endpoint,--rdzv_endpoint",
     "VALUE", "omit it, and name the hosts with -H: ddlrun tells the ranks where they meet"},
    {kForeign, "--tee,-tee,--redirects,-r,--log-dir,--log_dir,-e", "WHAT",
     "use --output-filename DIR, which writes files beside what is shown"},
    {kForeign, "-t", "WHAT",
     "use --timeout SECONDS (srun's -t), or --output-filename DIR beside what is shown (torchrun's); with "
     "--slurm it is sbatch's --time"},
    {kForeign, "--local-addr,--local_addr", "VALUE",
     "use --network-interfaces NAMES for the network of the ranks"},
    {kForeign, "--start-method,--start_method,--role,--logs-specs,--logs_specs", "VALUE",
     "omit it: ranks are programs that ddlrun starts"},
    {kForeign, "--run-path,--run_path", "", "omit it, and write python FILE as the command"},
    {kForeign, "-a,--tasks_per_rs,--rs_per_host,--nrs", "N",
     "use -np N for all ranks, --ranks-per-node N for those of a host (jsrun's resource sets)"},
    {kForeign, "-g,--gpu_per_rs", "N", "use --gpus-per-rank N for the GPUs of each rank"},
    {kForeign, "-b,--bind", "WHAT", "use --bind-to WHAT, as in --bind-to core or --bind-to none"},
    {kForeign, "-d,--launch_distribution", "WHAT",
     "use --cores-per-rank N for the cores of each rank (PALS's -d), --map-by slot or node for their order "
     "(jsrun's)"},
    {kForeign, "-J", "NAME", "use --job-name NAME for the name of the job"},
    {kForeign, "-D,--cwd,-cwd", "DIR", "use --workdir DIR for the directory of the ranks"},
    {kForeign, "-q", "NAME", "use --qos NAME in a job script (srun's -q), or --quiet"},
    {kForeign, "--nproc,--nprocs,--num-procs,--nranks", "N", "use -np N for N ranks of the command"},
    {kForeign, "--num_processes,--num-processes", "N", "use -np N for N ranks of the command"},
    {kForeign, "--num_gpus,--num-gpus", "N",
     "use --ranks-per-node N for N ranks on each host, one for each GPU"},
    {kForeign, "--num_nodes,--num-nodes,--num_machines,--num-machines", "N",
     "use --nnodes N for the first N hosts of -H"},
    {kForeign, "--include,-include", "HOSTS",
     "use -H HOST:SLOTS for hosts, and CUDA_VISIBLE_DEVICES for their GPUs: localhost:0,1 is -H localhost:2 "
     "with "
     "CUDA_VISIBLE_DEVICES=0,1"},
    {kForeign, "--cpu-set,--cpu-list", "LIST",
     "use --bind-to and --cores-per-rank N for the ranks, --reserve LIST for cores that they leave free"},
    {kForeign, "--no-python,--no_python", "", "omit it: the command is any program"},
    {kForeign, "--enable-recovery,-enable-recovery", "", "a job ends when a rank fails; omit it"},
    {kForeign, "--tune,-tune,-am,--am", "FILE", "use --mca NAME VALUE for each parameter"},
    {kForeign, "-W,--wait", "SECONDS",
     "omit it: a job ends when a rank fails, and --kill-grace is its patience"},
    {kForeign, "--jobid", "ID", "start ddlrun in that job: srun --jobid ID --overlap --pty bash"},
};

// The keys that horovodrun 0.28.1 reads (horovod/runner/common/util/config_parser.py).
constexpr GroupKey kGroupKeys[] = {
    {"params", "fusion-threshold-mb", "--fusion-threshold-mb"},
    {"params", "cycle-time-ms", "--cycle-time-ms"},
    {"params", "cache-capacity", "--cache-capacity"},
    {"params", "hierarchical-allreduce", "--hierarchical-allreduce"},
    {"params", "hierarchical-allgather", "--hierarchical-allgather"},
    {"params", "torus-allreduce", "--torus-allreduce"},
    {"autotune", "enabled", "--autotune"},
    {"autotune", "log-file", "--autotune-log-file"},
    {"autotune", "warmup-samples", "--autotune-warmup-samples"},
    {"autotune", "steps-per-sample", "--autotune-steps-per-sample"},
    {"autotune", "bayes-opt-max-samples", "--autotune-bayes-opt-max-samples"},
    {"autotune", "gaussian-process-noise", "--autotune-gaussian-process-noise"},
    {"timeline", "filename", "--timeline-filename"},
    {"timeline", "mark-cycles", "--timeline-mark-cycles"},
    {"stall-check", "enabled", "--stall-check"},
    {"stall-check", "warning-time-seconds", "--stall-check-warning-time-seconds"},
    {"stall-check", "shutdown-time-seconds", "--stall-check-shutdown-time-seconds"},
    {"library-options", "mpi-threads-disable", "--mpi-threads-disable"},
    {"library-options", "mpi-args", "--mpi-args"},
    {"library-options", "num-nccl-streams", "--num-nccl-streams"},
    {"library-options", "thread-affinity", "--thread-affinity"},
    {"library-options", "ccl-bgt-affinity", "--thread-affinity"},
    {"library-options", "gloo-timeout-seconds", "--gloo-timeout-seconds"},
    {"logging", "level", "--log-level"},
    {"logging", "with-timestamp", "--log-with-timestamp"},
    {"logging", "hide-timestamp", "--log-hide-timestamp"},
};

}  // namespace

std::span<const OptionEntry> foreign_options() { return kForeignOptions; }

std::span<const GroupKey> horovodrun_keys() { return kGroupKeys; }

}  // namespace ddl::cli
