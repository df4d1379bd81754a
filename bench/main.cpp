// ddl-bench: measures ddlrun and libddl against their peers.
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>
#include <CLI/CLI.hpp>

#include "base/command.h"
#include "base/cpu_set.h"
#include "base/files.h"
#include "base/process_tree.h"
#include "base/text.h"
#include "base/text_table.h"
#include "bench/benchmarks.h"
#include "bench/chart.h"
#include "bench/cluster.h"
#include "bench/cost_model.h"
#include "bench/machine.h"
#include "bench/measured_run.h"
#include "bench/settings.h"
#include "ddl/ddl.h"

namespace {

using namespace ddl::bench;

constexpr const char* kModel = "model";
constexpr std::chrono::seconds kTimeToFindFarCpus{20};
constexpr std::size_t kExplainedCpus = 16;

Site find_site() {
  const char* path = std::getenv("PATH");
  Site site;
  site.programs = std::filesystem::path(ddl::own_path()).parent_path().native();
  site.ddlrun = site.programs + "/ddlrun";
  site.mpirun = ddl::find_in_path("mpirun", path != nullptr ? path : "").value_or("");
  site.mpi_absent = DDL_BENCH_MPI_ABSENT;
  site.gloo_absent = DDL_BENCH_GLOO_ABSENT;
  site.torch_absent = DDL_BENCH_TORCH_ABSENT;
  site.is_root = ::geteuid() == 0;
  return site;
}

/// The MPIs of --mpi.
ddl::Status find_peers(const std::vector<std::string>& names, Site& site) {
  if (!names.empty()) DDL_TRY(ddl::become_subreaper());  // as their launchers are asked for their versions
  for (const std::string& name : names) {
    DDL_ASSIGN(mpi, find_peer_mpi(name));
    site.mpis.push_back(std::move(mpi));
  }
  return {};
}

void list(const Site& site, const Settings& settings) {
  for (const Benchmark& benchmark : benchmarks()) {
    fmt::print("{}: {} ({})\n", benchmark.name, benchmark.what, ddl::counted(benchmark.blocks, "block"));
    ddl::TextTable contenders;
    for (const Contender& contender : benchmark.contenders(site, settings)) {
      contenders.add({contender.name, contender.why});
      contenders.add({"", command_text(contender.command)});
      if (contender.absent) contenders.add({"", "absent: " + *contender.absent});
    }
    fmt::print("{}", contenders.text(ddl::TextTable::Align::kLeft, "  "));
  }
}

const Benchmark* find_benchmark(const std::string& name) {
  for (const Benchmark& benchmark : benchmarks()) {
    if (benchmark.name == name) return &benchmark;
  }
  return nullptr;
}

bool write_file(const std::string& path, const std::string& text) {
  std::ofstream file(path);
  file << text;
  file.close();
  if (file.fail()) fmt::print(stderr, "ddl-bench: cannot write {}\n", path);
  return !file.fail();
}

// A chart for each distance of the ranks: "FILE-near.svg" and "FILE-far.svg"; FILE if distances were not measured.
bool write_charts(const std::string& path, const Report& report) {
  bool is_good = true;
  for (const Report& part : by_distance(report)) {
    std::filesystem::path file = path;
    if (!part.cases.empty() && part.cases.front().distance) {
      const std::string extension = file.extension().native();
      file.replace_extension();
      file += fmt::format("-{}{}", name_of(*part.cases.front().distance), extension);
    }
    is_good = write_file(file.native(), as_chart(part)) && is_good;
  }
  return is_good;
}

// Files to write the results into; "" for none.
struct Outputs {
  std::string json;
  std::string csv;
  std::string svg;
};

// "near: ...", for the sentence of --explain.
std::string explained(Distance distance) {
  switch (distance) {
    case Distance::kNear: return "near each other: ranks there begin with plain stores";
    case Distance::kFar:
      return "far apart: ranks there begin with streaming stores for chunks from 16 KiB on";
    default: return "at a distance that could not be measured";
  }
}

// The arguments that result in the same settings.
std::vector<std::string> words_of(const Benchmark& benchmark, const Settings& settings) {
  std::vector<std::string> words{benchmark.name, "--blocks", std::to_string(settings.blocks)};
  if (settings.quick) words.push_back("--quick");
  if (!benchmark.has_job) return words;
  const JobShape& job = settings.job;
  words.insert(words.end(), {"--np", std::to_string(job.ranks), "--hosts", std::to_string(job.hosts),
                             "--cpus-per-rank", std::to_string(job.cpus_per_rank)});
  if (!job.rate.empty()) words.insert(words.end(), {"--rate", job.rate});
  std::vector<std::string> sizes;
  for (const std::uint64_t bytes : job.sizes) sizes.push_back(std::to_string(bytes));
  if (!sizes.empty()) words.insert(words.end(), {"--sizes", ddl::join(sizes, ",")});
  if (!job.contenders.empty()) words.insert(words.end(), {"--entrants", ddl::join(job.contenders, ",")});
  words.insert(words.end(), {"--model", name_of(job.model)});
  return words;
}

// Starts a cluster, runs the same command on its head, and ends the cluster.
int run_on_head(const Benchmark& benchmark, const Settings& settings, const Outputs& outputs) {
  namespace fs = std::filesystem;
  const fs::path program = ddl::own_path();
  std::vector<std::string> command = words_of(benchmark, settings);
  command.insert(command.begin(), program);
  std::vector<std::string> trees{program.parent_path()};
  for (const auto& [option, file] : {std::pair{"--json", outputs.json}, std::pair{"--csv", outputs.csv},
                                     std::pair{"--svg", outputs.svg}}) {
    if (file.empty()) continue;
    // The head has a /tmp and a /dev/shm of its own, but other folders are made visible there.
    const fs::path folder = fs::absolute(file).lexically_normal().parent_path();
    if (folder == "/tmp" || folder == "/dev/shm") {
      fmt::print(
          stderr,
          "ddl-bench: {} {}: the hosts of this benchmark have a {} of their own. Name a file in another "
          "folder.\n",
          option, file, folder.native());
      return 2;
    }
    command.insert(command.end(), {option, fs::absolute(file)});
    trees.push_back(folder);
  }
  const auto exit_status =
      run_on_new_cluster(benchmark.hosts_needed(settings), benchmark.needs_slurm, trees, command);
  if (exit_status) return *exit_status;
  fmt::print(stderr, "ddl-bench: {}\n", exit_status.error().message());
  return 1;
}

int run(const Benchmark& benchmark, const Site& site, const Settings& settings, const Outputs& outputs) {
  const bool needs_hosts = benchmark.hosts_needed != nullptr && benchmark.hosts_needed(settings) > 0;
  if (needs_hosts && !is_on_cluster_head()) return run_on_head(benchmark, settings, outputs);
  if (const auto status = ddl::become_subreaper(); !status) {
    fmt::print(stderr, "ddl-bench: {}\n", status.error().message());
    return 1;
  }
  const Report report = benchmark.run(site, settings);
  fmt::print("{}", as_table(report));
  bool is_good = outputs.json.empty() || write_file(outputs.json, as_json(report));
  if (!outputs.csv.empty()) is_good = write_file(outputs.csv, as_csv(report)) && is_good;
  if (!outputs.svg.empty()) is_good = write_charts(outputs.svg, report) && is_good;
  for (const Contender& contender : report.contenders) {
    // An absent contender is a property of the machine, a failed one is an error. Of ours one failed run is an error.
    if (contender.failed || (contender.is_ours && contender.failed_runs > 0)) is_good = false;
  }
  return is_good ? 0 : 1;
}

// "ddl-bench model": prints predictions for larger jobs.
int run_model(const std::vector<std::string>& paths) {
  std::vector<ResultFile> files;
  for (const std::string& path : paths) {
    auto text = ddl::read_file(path);
    if (!text) {
      fmt::print(stderr, "ddl-bench: {}\n", text.error().message());
      return 1;
    }
    files.push_back({path, std::move(*text)});
  }
  if (files.empty()) {
    fmt::print(stderr, "ddl-bench: model needs --from with files that --json has written\n");
    return 2;
  }
  const auto report = model_report(files);
  fmt::print(report ? stdout : stderr, "{}",
             report ? *report : "ddl-bench: " + report.error().message() + "\n");
  return report ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app{"Measures ddlrun and libddl against their peers, in interleaved ABBA blocks.", "ddl-bench"};
  app.footer(
      "Examples:\n  ddl-bench launch\n  ddl-bench allreduce --np 4 --blocks 10 --json allreduce.json --svg "
      "allreduce.svg\n  ddl-bench alltoall --np 4 --hosts 2 --rate 1gbit --sizes 64K,1M,16M\n"
      "  ddl-bench gradients --model bert-base\n"
      "  ddl-bench overlap --model resnet50\n"
      "  ddl-bench model --from allreduce.json\n"
      "Benchmarks over hosts start a cluster and end it; on a cluster's head they use that cluster. If no "
      "cluster can be started, they print why and exit with 77. A wrong command line exits with 2.\n"
      "A lost comparison is printed as lost; a contender that cannot run is printed with the reason.");
  std::vector<std::string> names;
  for (const Benchmark& benchmark : benchmarks()) names.push_back(benchmark.name);

  names.emplace_back(kModel);

  std::string name;
  std::vector<std::string> results, mpis;
  Outputs outputs;
  JobOptions job;
  bool wants_list = false, wants_explanation = false;
  Settings settings;
  app.add_option("benchmark", name, "Which one: " + ddl::join(names, ", "))->check(CLI::IsMember(names));
  app.add_flag("--quick", settings.quick,
               "A short run that shows that everything works; its figures mean little");
  app.add_option("--blocks", settings.blocks, "ABBA blocks: every contender runs twice in each")
      ->check(CLI::Range(1, 10000));
  app.add_option("--cpus", settings.cpus,
                 "CPUs that all contenders are pinned to [the first ones allowed, as many as the ranks need]")
      ->delimiter(',');
  app.add_flag("--far", settings.is_far,
               "Ranks that share no last-level cache: look for such CPUs, and wait for them where a "
               "virtual machine moves its CPUs");
  app.add_option("--json", outputs.json, "Also write the results to this file as JSON");
  app.add_option("--csv", outputs.csv, "Also write the results to this file as CSV");
  app.add_option("--svg", outputs.svg, "Also write a chart of the results to this file as SVG");
  app.add_option("--from", results, "For model: results of collectives that --json has written")
      ->delimiter(',');
  app.add_flag("--list", wants_list, "Show all benchmarks and contenders, and which can run here, and stop");
  app.add_flag(
      "--explain", wants_explanation,
      "Show the rules by which libddl chooses an algorithm, and how far apart CPUs are now, and stop");
  app.add_option("--np", job.ranks, "Ranks of a benchmark of collectives [2, or one for each host]")
      ->check(CLI::Range(1, 1024));
  app.add_option("--cpus-per-rank", job.cpus_per_rank, "CPUs of each rank, for its threads [1]")
      ->check(CLI::Range(1, 1024));
  app.add_option("--hosts", job.hosts, "Hosts that they are spread over, evenly, on a cluster of its own [1]")
      ->check(CLI::Range(1, 64));
  app.add_option("--rate", job.rate, "Limit of what each host sends, as tc writes it: 1gbit, 10gbit");
  app.add_option("--sizes", job.sizes, "Message sizes, multiples of 4: 4,64K,1M [4 B to 256 MiB]")
      ->delimiter(',');
  app.add_option("--model", job.model,
                 "The model with these gradients: resnet50, resnet101, vgg16, bert-base, gpt2-small");
  app.add_option("--entrants", job.contenders,
                 "Only these contenders take part: ddl,ddl-again,gloo; --list names them")
      ->delimiter(',');
  app.add_option(
         "--mpi", mpis,
         "MPIs beside the one in PATH take part, too: a name of scripts/frameworks, such as mpich-5.0, or "
         "NAME=FOLDER")
      ->delimiter(',');
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    // CLI11 has an exit code for each kind of mistake; a script needs one for all wrong command lines.
    return app.exit(error) == 0 ? 0 : 2;
  }

  if (wants_explanation) {
    fmt::print("The last of these rules that applies is used; DDL_ALGORITHM overrides them.\n{}",
               ddl_algorithm_table());
    const std::vector<int> cpus = ddl::CpuSet::allowed().cpus();
    for (std::size_t other = 1; other < cpus.size() && other < kExplainedCpus; ++other) {
      fmt::print("Now CPUs {} and {} are {}.\n", cpus[0], cpus[other],
                 explained(distance_of({cpus[0], cpus[other]})));
    }
    return 0;
  }
  if (name == kModel) return run_model(results);
  const Benchmark* benchmark = find_benchmark(name);
  if (settings.is_far && (job.hosts > 1 || job.ranks == 1 || job.cpus_per_rank > 1 || benchmark == nullptr ||
                          !benchmark->has_job)) {
    fmt::print(
        stderr,
        "ddl-bench: --far is for a benchmark of collectives with several ranks of one CPU on one host\n");
    return 2;
  }
  if (!mpis.empty() && (job.hosts > 1 || benchmark == nullptr || (!benchmark->has_job && name != "launch"))) {
    fmt::print(stderr, "ddl-bench: --mpi is for launch and for benchmarks of collectives on one host\n");
    return 2;
  }
  Site site = find_site();
  if (const auto status = find_peers(mpis, site); !status) {
    fmt::print(stderr, "ddl-bench: {}\n", status.error().message());
    return 2;
  }
  const auto shape = job_shape(job, benchmark != nullptr && benchmark->has_job, site.mpis);
  if (!shape) {
    fmt::print(stderr, "ddl-bench: {}\n", shape.error().message());
    return 2;
  }
  settings.job = *shape;
  if (settings.cpus.empty()) {
    settings.cpus = ddl::CpuSet::allowed().cpus();
    const std::size_t needed = settings.job.ranks * settings.job.cpus_per_rank;
    if (settings.is_far && !wants_list) {
      settings.cpus = far_cpus(settings.cpus, settings.job.ranks, ddl::Deadline::after(kTimeToFindFarCpus));
    } else if (settings.cpus.size() > needed) {
      settings.cpus.resize(needed);
    }
  }
  if (settings.ranks_with_cpus() < 1) {
    fmt::print(stderr, "ddl-bench: --cpus-per-rank {}: a rank may use {} here\n", settings.job.cpus_per_rank,
               ddl::counted(settings.cpus.size(), "CPU"));
    return 2;
  }
  if (wants_list) {
    list(site, settings);
    return 0;
  }
  if (benchmark == nullptr) {
    fmt::print(stderr, "ddl-bench: no benchmark is named; choose one of {}\n", ddl::join(names, ", "));
    return 2;
  }
  if (settings.blocks == 0) settings.blocks = settings.quick ? 1 : benchmark->blocks;
  return run(*benchmark, site, settings, outputs);
}
