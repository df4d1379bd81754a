// What users of mpirun, srun and torchrun type: taken where it means the same here, and otherwise answered by a hint.
#include "base/text.h"
#include "cli/commands/commands.h"
#include "support/catch.h"

using namespace ddl::cli;  // NOLINT(google-build-using-namespace)
using Words = std::vector<std::string>;

namespace {

/// A hostfile of three, and a rankfile of two ranks.
ddl::Result<std::string> file_named(const std::string& path) {
  if (path.ends_with("ranks")) return std::string("rank 1=n1 slot=0\nrank 0=n2 slot=1\n");
  return std::string("n1:2\nn2:2\nn3:2\n");
}

auto parse_for_hosts(Words words) {
  words.insert(words.end(), {"./train", "--fast"});
  return parse_command_line(words, {"/home/me", 6, "head", file_named});
}

/// What the options amount to.
std::string meaning_of(const Words& words) {
  const auto request = parse_for_hosts(words);
  INFO(ddl::join(words, " ") << " -> " << (request ? "" : request.error().message()));
  REQUIRE(request);
  const ddl::launcher::JobSpec& job = request->job;
  std::string text = "np=" + std::to_string(job.num_ranks) + " each=" + std::to_string(job.ranks_per_node) +
                     " node=" + std::to_string(static_cast<int>(job.map_by)) +
                     std::to_string(static_cast<int>(job.rank_by)) + " in=" + job.workdir +
                     " over=" + std::to_string(job.oversubscribe) + " tag=" + std::to_string(job.tag_output) +
                     " time=" + std::to_string(job.timestamp_output) +
                     " merge=" + std::to_string(job.merges_stderr) +
                     " bind=" + ddl::affinity::name_of(job.binding.bind_to) +
                     " cores=" + std::to_string(job.binding.cores_per_rank);
  if (job.binding.mapping.object != ddl::affinity::BindTo::kAuto)
    text += " map=" + ddl::affinity::text_of(job.binding.mapping);
  for (const auto& one : job.exports) text += " " + one.name + "=" + one.value.value_or("");
  for (const auto& node : request->allocation.nodes) text += " " + node.name;
  text += " mpi=" + ddl::join(request->mpi.options.mpi_args, " ");
  return text + " notes=" + std::to_string(request->notes.size());
}

struct SameOption {
  Words theirs;
  Words ours;
};

struct HintedOption {
  Words words;
  std::string hint;  ///< a part of it, or of the sentence before it
};

// clang-format off
const std::vector<SameOption> kSame = {
    {{"-n", "4"}, {"-np", "4"}},
    {{"-n4"}, {"-np", "4"}},
    {{"--n", "4"}, {"-np", "4"}},
    {{"--ntasks=4"}, {"-np", "4"}},
    {{"-H", "a,b", "-npernode", "2"}, {"-H", "a,b", "--ranks-per-node", "2"}},
    {{"-H", "a,b", "--npernode", "2"}, {"-H", "a,b", "--ranks-per-node", "2"}},
    {{"-H", "a,b", "-ppn", "2"}, {"-H", "a,b", "--ranks-per-node", "2"}},
    {{"-H", "a,b", "--ppn", "2"}, {"-H", "a,b", "--ranks-per-node", "2"}},
    {{"-H", "a,b", "-perhost", "2"}, {"-H", "a,b", "--ranks-per-node", "2"}},
    {{"-H", "a,b", "--ntasks-per-node=2"}, {"-H", "a,b", "--ranks-per-node", "2"}},
    {{"-H", "a,b", "--nproc-per-node=2"}, {"-H", "a,b", "--ranks-per-node", "2"}},
    {{"-H", "a,b", "--nproc_per_node", "2"}, {"-H", "a,b", "--ranks-per-node", "2"}},
    {{"-n", "2", "--shutdown-timeout=7"}, {"-n", "2", "--kill-grace", "7"}},
    {{"-H", "a,b", "--map-by", "ppr:2:node"}, {"-H", "a,b", "--ranks-per-node", "2"}},
    {{"-H", "a,b,c", "--nnodes", "2", "--nproc-per-node", "4"}, {"-H", "a:4,b:4", "--ranks-per-node", "4"}},
    {{"-machinefile", "hosts", "--nnodes=2"}, {"-H", "n1:2,n2:2"}},
    {{"--machinefile", "hosts"}, {"--hostfile", "hosts"}},
    {{"-H", "a:1,b:1,c:1", "--exclude", "b"}, {"-H", "a:1,c:1"}},
    {{"-n", "2", "-wdir", "/tmp"}, {"-np", "2", "--workdir", "/tmp"}},
    {{"-n", "2", "--wd", "/tmp"}, {"-np", "2", "--workdir", "/tmp"}},
    {{"-n", "2", "--chdir=/tmp"}, {"-np", "2", "--workdir", "/tmp"}},
    {{"-n", "2", "--map-by", "node"}, {"-np", "2", "--map-by", "node"}},
    {{"-n", "2", "-map-by", "slot"}, {"-np", "2"}},
    {{"-rf", "ranks"}, {"-np", "2", "--rankfile", "ranks"}},
    {{"--map-by", "rankfile:FILE=ranks"}, {"--rankfile", "ranks"}},
    {{"-n", "2", "-rank-by", "FILL"}, {"-np", "2", "--rank-by", "slot"}},
    {{"-n", "2", "--rankby", "node"}, {"-np", "2", "--rank-by", "node"}},
    {{"-n", "2", "--map-by", "package"}, {"-np", "2", "--map-by", "socket"}},
    {{"-n", "2", "--map-by", "L3CACHE"}, {"-np", "2", "--map-by", "l3"}},
    {{"-n", "2", "--map-by", "hwthread"}, {"-np", "2", "--map-by", "pu"}},
    {{"-n", "2", "--map-by", "ppr:2:package"}, {"-np", "2", "--map-by", "ppr:2:socket"}},
    {{"-n", "2", "--map-by", "ppr:2:l3"}, {"-np", "2", "--map-by", "ppr:2:l3cache"}},
    {{"-n", "2", "--map-by", "slot:PE=3"}, {"-np", "2", "--cores-per-rank", "3"}},
    {{"-n", "2", "--map-by", "numa:pe=3,OVERSUBSCRIBE"},
     {"-np", "2", "--map-by", "numa", "--cores-per-rank", "3", "--oversubscribe"}},
    {{"-H", "a,b", "--map-by", "ppr:2:node:NOOVERSUBSCRIBE:PE=2"},
     {"-H", "a,b", "--ranks-per-node", "2", "--cores-per-rank", "2"}},
    {{"-n", "2", "--bind-to", "hwthread"}, {"-np", "2", "--bind-to", "pu"}},
    {{"-n", "2", "--bind-to", "l3cache"}, {"-np", "2", "--bind-to", "l3"}},
    {{"-n", "2", "-bind-to", "package"}, {"-np", "2", "--bind-to", "socket"}},
    {{"-n", "2", "--overcommit"}, {"-np", "2", "--oversubscribe"}},
    {{"-n", "2", "-O"}, {"-np", "2", "--oversubscribe"}},
    {{"-n", "1", "-tag-output"}, {"-np", "1", "--tag-output"}},
    {{"-n", "2", "--timestamp-output"}, {"-np", "2", "--prefix-output-with-timestamp"}},
    {{"-n", "2", "-merge-stderr-to-stdout"}, {"-np", "2", "--merge-stderr-to-stdout"}},
    {{"-n", "2", "-x", "A=1"}, {"-np", "2", "-x", "A=1"}},
    {{"-n", "2", "--mca", "btl", "tcp,self"}, {"-np", "2", "-x", "OMPI_MCA_btl=tcp,self"}},
    {{"-n", "2", "-mca", "btl=tcp,self"}, {"-np", "2", "-x", "OMPI_MCA_btl=tcp,self"}},
    {{"--mpi", "-n", "2", "--mca", "btl", "tcp,self"}, {"--mpi", "-np", "2", "--mpi-args", "--mca btl tcp,self"}},
};

const std::vector<HintedOption> kHinted = {
    {{"-N", "2"}, "--nnodes N for N hosts (srun's)"},
    {{"-n", "2", "-c", "4"}, "--cores-per-rank N for their cores (srun's)"},
    {{"-n", "2", "-l"}, "lines of several ranks begin with their rank"},
    {{"-n", "2", "-w", "a,b"}, "name hosts with -H"},
    {{"-n", "2", "--host", "a,b"}, "name hosts with -H"},
    {{"-n", "2", "--nodelist=a"}, "name hosts with -H"},
    {{"-n", "2", "-f", "hosts"}, "--hostfile FILE"},
    {{"-n", "2", "--cpu-bind=cores"}, "use --bind-to"},
    {{"-n", "2", "--gres=gpu:2"}, "salloc OPTIONS ddlrun"},
    {{"-n", "2", "--gpus=2"}, "salloc OPTIONS ddlrun"},
    {{"-n", "2", "--reservation=r"}, "with --slurm, for a job script"},
    {{"-n", "2", "-C", "a100"}, "--constraint FEATURES"},
    {{"-n", "2", "-t", "30"}, "sbatch's --time"},
    {{"-n", "2", "--gpus-per-task=1"}, "--gpus-per-rank N"},
    {{"-n", "2", "--gpu-bind=closest"}, "--gpus-per-rank N"},
    {{"-n", "2", "--cpus-per-task=4"}, "--cores-per-rank N"},
    {{"-n", "2", "--depth", "4"}, "--cores-per-rank N"},
    {{"-n", "2", "--distribution=cyclic"}, "--map-by slot or node"},
    {{"-n", "2", "-m", "cyclic"}, "--map-by slot or node (srun's -m), or python -m MODULE"},
    {{"-n", "2", "--multi-prog"}, "shell script"},
    {{"-n", "2", "--export=ALL"}, "-x NAME=VALUE"},
    {{"-n", "2", "-W", "0"}, "--kill-grace"},
    {{"-n", "2", "--jobid", "7"}, "srun --jobid ID --overlap"},
    {{"-n", "2", "--map-by", "ppr:2:board"}, "--map-by WHAT"},
    {{"-n", "2", "--rank-by", "board"}, "--rank-by slot|node"},
    {{"-n", "3", "--rankfile", "ranks"}, "omit -np, or give every rank a line in ranks"},
    {{"-rf", "hosts"}, "rank 0=node1 slot=0-3"},
    {{"-n", "2", "--use-hwthread-cpus"}, "--smt"},
    {{"-n", "2", "--bind-to", "core:overload-allowed"}, "--bind-to WHAT"},
    {{"-n", "2", "--display-map"}, "--dry-run"},
    {{"-n", "2", "--prefix", "/opt"}, "--remote-path"},
    {{"-n", "2", "-app", "f"}, "shell script"},
    {{"-n", "2", "--tune", "f"}, "--mca NAME VALUE"},
    {{"-n", "2", "--prtemca", "a", "b"}, "--mpi-args ARGS"},
    {{"-n", "2", "-genv", "A", "1"}, "-x NAME=VALUE"},
    {{"-n", "2", "--tee", "3"}, "--output-filename DIR"},
    {{"-n", "2", "-r", "3"}, "--output-filename DIR"},
    {{"--nproc-per-node", "gpu"}, "--ranks-per-node N"},
    {{"-n", "2", "--node-rank", "0"}, "start ddlrun once"},
    {{"-H", "a,b", "--nnodes", "1:2"}, "slots for every host"},
    {{"-H", "a,b", "--nproc-per-node", "gpu"}, "write a number"},
    {{"-H", "a,b", "--nproc_per_node=auto"}, "write a number"},
    {{"-n", "2", "--local-addr", "a"}, "--network-interfaces"},
    {{"-n", "2", "--start-method", "spawn"}, "omit it"},
    {{"-n", "2", "--run-path"}, "python FILE"},
    {{"-n", "2", "--output", "tag,timestamp,dir=logs,merge"}, "--output-filename DIR"},
    {{"-n", "2", "--bind-to", "core:if-supported"}, "--strict-bind"},
    {{"-n", "2", "-a", "1"}, "--ranks-per-node"},
    {{"-n", "2", "-g", "1"}, "--gpus-per-rank"},
    {{"-n", "2", "-b", "packed:2"}, "--bind-to"},
    {{"-n", "2", "-d", "4"}, "--cores-per-rank"},
    {{"-n", "2", "-E", "A=1"}, "-x NAME=VALUE"},
    {{"-n", "2", "--master-addr", "a"}, "name the hosts with -H"},
    {{"-n", "2", "--rdzv-endpoint", "a:1"}, "name the hosts with -H"},
    {{"-n", "2", "--no-python"}, "any program"},
    {{"-n", "2", "--mca", "=tcp"}, "--mca NAME VALUE"},
    {{"-H", "a:1", "--nnodes", "2"}, "name more hosts with -H"},
};
// clang-format on

}  // namespace

TEST_CASE("options of other launchers with the same meaning are taken") {
  for (const SameOption& one : kSame) {
    CAPTURE(ddl::join(one.theirs, " "));
    CHECK(meaning_of(one.theirs) == meaning_of(one.ours));
  }
}

TEST_CASE("other options of other launchers get a hint that says what to type") {
  for (const HintedOption& one : kHinted) {
    CAPTURE(ddl::join(one.words, " "));
    const auto request = parse_for_hosts(one.words);
    REQUIRE_FALSE(request);
    CHECK_THAT(request.error().message() + "; " + request.error().hint(), Catch::Contains(one.hint));
  }
}

TEST_CASE("options that ask for what ddlrun does anyway change nothing, and that is said") {
  for (const Words& words :
       {Words{"--standalone"}, Words{"--allow-run-as-root"}, Words{"--nooversubscribe"}, Words{"-genvall"},
        Words{"-K"}, Words{"--rdzv-backend", "c10d"}, Words{"--rdzv_id=7"},
        Words{"--rdzv-conf", "join_timeout=5"}, Words{"--monitor_interval=0.1"}}) {
    CAPTURE(words.front());
    Words all{"-n", "2"};
    all.insert(all.end(), words.begin(), words.end());
    const auto request = parse_for_hosts(all);
    REQUIRE(request);
    CHECK(request->notes.size() == 1);
    CHECK(request->job.num_ranks == 2);
  }
  // torchrun's default.
  CHECK(meaning_of({"-n", "2", "--max_restarts=0"}) == meaning_of({"-n", "2"}));
}

TEST_CASE("what --map-by does not take is named, with what to type instead") {
  const std::vector<std::pair<std::string, std::string>> refused = {
      {"numa:SPAN", "--map-by: SPAN in 'numa:SPAN' is mpirun's; instead of it type --map-by node"},
      {"ppr:2:numa:PE=2,nolocal",
       "nolocal in 'ppr:2:numa:PE=2,nolocal' is mpirun's; instead of it type --hosts-exclude"},
      {"core:HWTCPUS", "HWTCPUS in 'core:HWTCPUS' is mpirun's; instead of it type --smt"},
      {"numa:PE=0", "PE=0 in 'numa:PE=0': '0' is not a whole number from 1"},
      {"numa:PE", "'PE' in 'numa:PE' is neither PE=N nor OVERSUBSCRIBE"},
      {"ppr:2", "'ppr:2' is not of the form ppr:N:WHAT, as in ppr:2:numa"},
      {"ppr:0:numa", "'ppr:0:numa': '0' is too few ranks"},
      {"ppr:2:l2cache", "'l2cache' in 'ppr:2:l2cache' is not one of node, socket,"},
      {"seq", "'seq' is not one of slot, node, socket,"},
      {"", "'' is not one of slot, node"},
  };
  for (const auto& [text, message] : refused) {
    CAPTURE(text);
    const auto request = parse_for_hosts({"-n", "2", "--map-by", text});
    REQUIRE_FALSE(request);
    CHECK_THAT(request.error().message(), Catch::Contains(message));
  }
}

TEST_CASE("a rankfile says where ranks run, and how many there are") {
  const auto request = parse_for_hosts({"--rankfile", "ranks"});
  REQUIRE(request);
  CHECK(request->job.num_ranks == 2);
  CHECK(request->job.tag_output);
  REQUIRE(request->allocation.nodes.size() == 2);
  CHECK(request->allocation.nodes[0].name == "n2");  // of rank 0
  CHECK(request->job.placed_ranks[1].node == 1);
  CHECK(parse_for_hosts({"--hostfile", "hosts", "--rankfile", "ranks"})->job.placed_ranks[1].node == 0);
  CHECK(parse_for_hosts({"-H", "n1", "--rankfile", "ranks"}).error().message() ==
        "ranks:2: rank 0: n2 is not a host of -H; name one of its hosts, or add this one there");
  for (const Words& left_out : {Words{"--hosts-exclude", "n2"}, Words{"--nnodes", "1"}}) {
    Words all{"--rankfile", "ranks", "-H", "n1,n2"};
    all.insert(all.end(), left_out.begin(), left_out.end());
    CHECK(parse_for_hosts(all).error().hint() ==
          "--hosts-exclude and --nnodes leave hosts out: omit them, or place no rank there");
  }
  CHECK(parse_for_hosts({"--rankfile", "hosts"}).error().message() ==
        "hosts:1: found \"n1:2\"; a line is rank N=HOST slot=CORES, as in rank 0=node1 slot=0-3");
  CHECK_THAT(parse_for_hosts({"--map-by", "rankfile"}).error().message(),
             Catch::Contains("'rankfile' names no file; type --rankfile FILE"));
  for (const Words& by : {Words{"--rankfile", "ranks"}, Words{"--map-by", "rankfile:file=ranks"}}) {
    Words all{"--mpi"};
    all.insert(all.end(), by.begin(), by.end());
    CHECK_THAT(parse_for_hosts(all).error().message(), Catch::Contains("needs ddlrun's agents"));
  }
  for (const Words& words :
       {Words{"--bind-to", "core"}, Words{"--map-by", "node"}, Words{"--rank-by", "node"},
        Words{"--ranks-per-node", "1"}, Words{"--gpus-per-rank", "1"}}) {
    Words all{"--rankfile", "ranks"};
    all.insert(all.end(), words.begin(), words.end());
    CHECK_THAT(parse_for_hosts(all).error().message(), Catch::Contains("contradict each other"));
  }
}

TEST_CASE("a rankfile on standard input leaves none to the ranks, to a hostfile and to a job script") {
  const auto read_dash = [](const std::string& path) {
    return path == "-" ? ddl::Result<std::string>("rank 0=n1 slot=0\n") : file_named(path);
  };
  const auto parse = [&](Words words) {
    words.insert(words.end(), {"--", "./train"});
    return parse_command_line(words, {"/home/me", 6, "head", read_dash});
  };
  const auto request = parse({"--rankfile", "-"});
  REQUIRE(request);
  CHECK(request->job.stdin_target == ddl::launcher::StdinTarget::kNone);
  CHECK_THAT(parse({"--rankfile", "-", "--stdin", "0"}).error().message(),
             Catch::Contains("--rankfile - reads standard input, so ranks cannot"));
  CHECK_THAT(parse({"--rankfile", "-", "--hostfile", "-"}).error().message(),
             Catch::Contains("would both read standard input"));
  CHECK_THAT(parse({"--rankfile", "-", "--slurm", "--site", "generic-cpu"}).error().message(),
             Catch::Contains("which a job script does not have"));
}

TEST_CASE("a rankfile of the command line has precedence over what a configuration file says of places") {
  const auto read = [](const std::string& path) {
    if (path == "bind.yaml") return ddl::Result<std::string>("bind-to: core\nmap-by: numa\nreserve: 0\n");
    if (path == "count.yaml") return ddl::Result<std::string>("np: 3\n");
    if (path == "ranks.yaml") return ddl::Result<std::string>("rankfile: ranks\n");
    return file_named(path);
  };
  const auto parse = [&](Words words) {
    words.insert(words.end(), {"--", "./train"});
    return parse_command_line(words, {"/home/me", 6, "head", read});
  };
  const auto ranks = parse({"--config-file", "bind.yaml", "--rankfile", "ranks"});
  REQUIRE(ranks);
  CHECK(ranks->job.placed_ranks.size() == 2);
  CHECK(ranks->job.binding == ddl::affinity::BindingPolicy{});
  const auto mapped = parse({"--config-file", "ranks.yaml", "--map-by", "numa", "-np", "3"});
  REQUIRE(mapped);
  CHECK(mapped->job.placed_ranks.empty());
  CHECK(parse({"--config-file", "count.yaml", "--rankfile", "ranks"}).error().message() ==
        "count.yaml:1: ranks places 2 ranks, and the job has 3");
  // The rankfile is not dropped without a word.
  CHECK_THAT(parse({"--config-file", "ranks.yaml", "--bind-to", "core"}).error().message(),
             Catch::Contains("contradict each other"));
}

TEST_CASE("other orders of mpirun's --rank-by get a hint") {
  CHECK_THAT(parse_for_hosts({"-n", "2", "--rank-by", "span"}).error().message(),
             Catch::Contains("'span' is mpirun's; type --map-by node"));
  CHECK_THAT(parse_for_hosts({"-n", "2", "--rank-by", "NUMA"}).error().message(),
             Catch::Contains(
                 "'NUMA' is mpirun's; ranks of a host are numbered as they are placed: type --map-by numa"));
}

TEST_CASE("--map-by contradicts other options for the same") {
  for (const Words& words : {Words{"--map-by", "ppr:2:numa", "--ranks-per-node", "2"},
                             Words{"--map-by", "numa:PE=2", "--cores-per-rank", "2"},
                             Words{"--map-by", "numa", "--bind-to", "gpu"}}) {
    CAPTURE(ddl::join(words, " "));
    Words all{"-np", "2"};
    all.insert(all.end(), words.begin(), words.end());
    const auto request = parse_for_hosts(all);
    REQUIRE_FALSE(request);
    CHECK(request.error().hint() == "omit one of them");
  }
}

TEST_CASE("ranks counted by objects need -np, unless slots say how many there are") {
  const auto here = parse_for_hosts({"--map-by", "ppr:1:numa"});
  REQUIRE_FALSE(here);
  CHECK(here.error().message() ==
        "-np is missing: how many ranks? --map-by ppr:1:numa depends on the objects of each host, which are "
        "known "
        "only at launch");
  CHECK(parse_for_hosts({"-H", "a:4,b:4", "--map-by", "ppr:1:numa"})->job.num_ranks == 8);
}

TEST_CASE("with --launcher mpirun the ddlrun of each rank binds by the same rule") {
  const auto request = parse_for_hosts({"--mpi", "-np", "4", "--map-by", "ppr:2:numa:PE=2"});
  REQUIRE(request);
  CHECK(ddl::join(request->mpi.rank_options, " ") == "--map-by ppr:2:numa --cores-per-rank 2");
  CHECK(parse_for_hosts({"--mpi", "-np", "4", "--map-by", "node"})->mpi.rank_options.empty());
}
